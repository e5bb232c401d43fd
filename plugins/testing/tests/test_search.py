"""Searching for counterexamples: what is found, how small it is, and that the printed program repeats it."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from corejax import lax
from corejax.errors import CorejaxError, CorejaxValueError
from corejax.plugin import Sample, define, find, hookimpl
from corejax.testing import CHECKS, ConformanceError, Search, check_pack, check_primitive
from corejax_testing.comparing import host
from corejax_testing.effort import NO_COUNTEREXAMPLE
from corejax_testing.inputs import Forms, Inputs
from corejax_testing.reproducing import literal, program_for
from corejax_testing.search import LAWS, search_for
from corejax_testing.specification import samples_of

#: A module with a primitive that is right but for `FAULT`, which changes what `impl` returns.
MODULE = '''
"""A primitive with a fault."""

import numpy as np

from corejax import lax
from corejax.plugin import Sample, define, hookimpl


class Doubled:
    """2 x, some `times` over."""

    name = "doubled"

    @hookimpl
    def decompose(self, args, *, times):
        (x,) = args
        return x * 2 ** times

    @hookimpl
    def impl(self, args, *, times):
        (x,) = args
        out = (x * 2 ** times).astype(x.dtype)
        if {fault}:
            out = np.full_like(out, 7)
        return out

    @hookimpl
    def samples(self, rng):
        yield Sample([rng.normal(size=(2, 3))], {{"times": 1}}, domain=(-2.0, 2.0))
        yield Sample([rng.normal(size=3)], {{"times": 4}}, domain=(-2.0, 2.0))


doubled = define(Doubled())
'''

#: Faults, and the text of the smallest input that shows each.
FAULTS = {
    "an axis longer than 3": ("any(n > 3 for n in x.shape)", "np.zeros((4,))", "{'times': 0}"),
    "float32": ("x.dtype == np.float32", "np.array(0.0, np.float32)", "{'times': 0}"),
    "one value of a param": ("times == 3", "np.array(0.0)", "{'times': 3}"),
    "two equal elements": ("len(np.unique(x)) < x.size", "np.zeros((2,))", "{'times': 0}"),
    "rank 3": ("x.ndim >= 3 and x.size", "np.zeros((1, 1, 1))", "{'times': 0}"),
    "a negative element": ("(x < 0).any()", "np.array(-1.0)", "{'times': 0}"),
    "NaN": ("np.isnan(x).any()", "np.array(np.nan)", "{'times': 0}"),
}


def planted(folder: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> Any:
    """The primitive, from a module in this folder."""
    (folder / "planted.py").write_text(MODULE.format(fault=fault))
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "planted", raising=False)
    return __import__("planted").doubled


def program_of(action: Any) -> str:
    """The program in the message of a failure."""
    with pytest.raises(ConformanceError) as raised:
        action()
    failure = raised.value.failures[-1]
    shown = [line.removeprefix("      ") for line in str(raised.value).splitlines()]
    assert set(failure.program.splitlines()) <= set(shown)
    return failure.program


@pytest.mark.sample(3)
@pytest.mark.parametrize("fault", FAULTS)
def test_smallest_input_is_found_and_its_program_repeats_the_failure(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    condition, operand, params = FAULTS[fault]
    primitive = planted(tmp_path, monkeypatch, condition)
    check = "impl and the compiled program agree"
    text = program_of(lambda: check_primitive(primitive, [Sample([np.array([0.25])], {"times": 1}, domain=(-2.0, 2.0)),
                                              Sample([np.array(0.25)], {"times": 4}, domain=(-2.0, 2.0))],
                                              checks=[check], search=Search(300)))
    assert f"sample = Sample([{operand}], {params}, domain=(-2.0, 2.0))" in text
    done = subprocess.run([sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and f"doubled.impl (defined in planted), check {check!r}" in done.stderr


def test_input_is_small_in_each_operand_and_relations_stay(tmp_path: Path) -> None:
    class Outer:
        """Wrong if the second operand is longer than 2."""

        name = "sum_of_products"

        @hookimpl
        def decompose(self, args: Sequence[Any]) -> Any:
            return lax.reduce_sum(args[0][:, None] * args[1][None, :], (1,))

        @hookimpl
        def impl(self, args: Sequence[Any]) -> Any:
            x, y = args
            return (np.outer(x, y).sum(1) + (len(y) > 2)).astype(x.dtype)

    found = search_for(define(Outer()).primitive, [Sample([np.ones(4), np.ones(5)], domain=(-1.0, 1.0))], Search(300))
    (failure,) = found.failures
    assert "Sample([np.zeros((1,)), np.zeros((3,))], domain=(-1.0, 1.0))" in failure.program


def test_program_chooses_the_rules_that_were_in_effect_and_takes_what_has_no_text_from_the_sample() -> None:
    scan = find("scan")
    source = next(sample for sample in samples_of(scan) if len(sample.args) == 1)
    sample = Sample([np.array([-0.0, 1.0], np.float16), 2.0], {**source.params, "length": 7}, atol=0.5)
    text = program_for(scan, sample, source, 4, "jvp is linear", True, ["my-pack/scan:jvp"])
    assert text.endswith(textwrap.dedent("""
        given = list(samples_of(find('scan')))[4]
        sample = Sample([np.array([-0.0, 1.0], np.float16), 2.0], {**given.params, 'length': 7}, atol=0.5)
        with plugins.prefer('my-pack/scan:jvp'):
            check_primitive('scan', [sample], checks=['jvp is linear'], full=True)""").lstrip("\n"))
    compile(text, "program", "exec")


@pytest.mark.parametrize("value", [
    np.array([[1.5, np.nan], [-np.inf, -0.0]], np.float32), np.array(complex(-0.0, np.inf)), np.zeros((0, 2), np.int8),
    np.full((3, 3), 2.5), np.array([1, 2], ml_dtypes.bfloat16), np.array(True), np.zeros(2, np.complex64), 2.5, -1,
    complex(0.5, -0.0), np.nan, (1, ("a", None)), np.dtype("int32"), np.dtype(ml_dtypes.bfloat16), np.float32(1.5)])
def test_literals_give_the_value_back(value: Any) -> None:
    again = eval(literal(value), {"np": np, "ml_dtypes": ml_dtypes})
    if isinstance(value, (np.ndarray, np.generic)):
        assert (value.shape, value.dtype, value.tobytes()) == (again.shape, again.dtype, again.tobytes())
    else:
        assert (type(value), repr(value)) == (type(again), repr(again))


# What is tried

@pytest.mark.parametrize("name", ["add", "dot_general", "broadcast_in_dim", "reduce_sum", "concatenate", "scan",
                                  "slice", "transpose", "dynamic_slice", "reshape", "cumsum"])
def test_most_inputs_differ_and_all_are_accepted(name: str) -> None:
    primitive = find(name)
    rng = np.random.default_rng(0)
    samples = [sample for sample in primitive.samples(rng) if sample.error is None]
    forms = Forms(primitive, samples)
    found = [forms.draw(lambda n: int(rng.integers(n))) for _ in range(200)]
    assert all([forms.accepts(form) for form in found])
    assert len(found) // 2 < len({str((form.avals, form.params)) for form in found})
    assert {0, 1, 2, 3} <= {size for form in found for shape in form.shapes for size in shape}


def test_values_stay_in_the_domain_but_for_special_ones() -> None:
    sample = Sample([np.ones((2, 3)), np.ones(3, np.int32)], domain=[(0.5, 2.0), (1, 4)], singular=(1.0,))
    inputs, rng = Inputs(_anything(), [sample]), np.random.default_rng(0)
    seen, found = set(), []
    for _ in range(200):
        drawn, _, special = inputs.draw(lambda n: int(rng.integers(n)))
        x, i = [host(arg) for arg in drawn.args]
        if special:
            seen |= {str(value) for value in np.ravel(x) if not 0.49 <= value <= 2.01}
        else:
            found += [*np.ravel(x).astype(np.float64)]
            assert set(np.ravel(i)) <= {1, 2, 3, 4}
    assert 0.49 <= min(found) and max(found) <= 2.01 and min([abs(value - 1.0) for value in found]) > 0.07
    assert {"nan", "inf", "-inf"} <= seen


def _anything() -> Any:
    class Anything:
        """Takes all operands."""

        name = "anything"

        @hookimpl
        def impl(self, args: Sequence[Any]) -> Any:
            return args[0]

        @hookimpl
        def abstract_eval(self, avals: Sequence[Any]) -> Any:
            return avals[0]

    return define(Anything()).primitive


def test_kept_operands_keep_their_values_and_exempt_laws_are_left_out() -> None:
    kept = Sample([np.array([2.0, 3.0])], domain=[None], exempt={"impl and the compiled program agree": "it guesses"})
    inputs, rng = Inputs(_anything(), [kept]), np.random.default_rng(0)
    for _ in range(50):
        drawn, _, _ = inputs.draw(lambda n: int(rng.integers(n)))
        assert set(np.ravel(drawn.args[0])) <= {2.0, 3.0}

    class Wrong:
        """impl and decompose differ."""

        name = "wrong"

        @hookimpl
        def decompose(self, args: Sequence[Any]) -> Any:
            return args[0] * 2

        @hookimpl
        def impl(self, args: Sequence[Any]) -> Any:
            return args[0] * 3

    primitive, law = define(Wrong()).primitive, CHECKS["impl and the compiled program agree"]
    assert not search_for(primitive, [kept], Search(20), chosen=[law]).failures
    assert search_for(primitive, [Sample([np.ones(2)])], Search(20), chosen=[law]).failures


# How much, and how it is called

def test_same_seed_gives_the_same_inputs_and_another_one_others() -> None:
    def tried(seed: int) -> list[str]:
        found: list[str] = []
        each = CHECKS["params are hashable"]

        def run(case: Any) -> None:
            found.append(repr(case))
        search_for(find("add"), [Sample([np.ones((2, 3)), np.ones((2, 3))])], Search(15, seed=seed),
                   chosen=[type(each)(each.name, "", "", run, False, False, False, "")])
        return found

    assert tried(3) == tried(3) != tried(4)
    assert 5 < len(tried(3)) <= 15


def test_time_is_limited_and_what_was_found_by_then_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch
                                                                ) -> None:
    assert 0 == search_for(find("neg"), [Sample([np.ones(3)])], Search(1000, seconds=0)).held
    primitive = planted(tmp_path, monkeypatch, "True").primitive
    clock = iter(range(10 ** 6))
    monkeypatch.setattr("corejax_testing.search.time.perf_counter", lambda: float(next(clock)))
    found = search_for(primitive, [Sample([np.ones((3, 3))], {"times": 1})], Search(1000, seconds=8))
    assert found.failures and found.held <= 8


@pytest.mark.parametrize("wrong", [{"max_examples": 0}, {"seconds": -1}, {"max_examples": "many"}])
def test_nonsense_is_refused(wrong: Any) -> None:
    with pytest.raises(CorejaxValueError, match="of a search must be a number"):
        Search(**wrong)


def test_search_is_one_outcome_that_counts_inputs() -> None:
    report = check_primitive("neg", checks=["params are hashable"], search=Search(10))
    assert ["params are hashable", NO_COUNTEREXAMPLE] == [outcome.check for outcome in report.outcomes]
    assert report.outcomes[-1].status == "held" and 3 < report.outcomes[-1].held <= 10
    assert all([found[-1].check == NO_COUNTEREXAMPLE for found in
                check_pack("corejax-softplus", checks=["params are hashable"], search=Search(5)).primitives.values()])


def test_laws_are_checks_and_none_is_about_errors() -> None:
    assert set(LAWS) <= CHECKS.keys() and not [name for name in LAWS if CHECKS[name].errors]


def test_missing_hypothesis_is_an_error_that_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corejax_testing.running.find_spec", lambda name: None)
    with pytest.raises(CorejaxError, match="(.|\n)*pip install 'corejax-testing\\[search\\]'") as raised:
        check_primitive("neg", search=True)
    assert isinstance(raised.value, ModuleNotFoundError)
    check_primitive("neg", checks=["params are hashable"])


def test_kit_loads_hypothesis_only_to_search() -> None:
    code = """
        import sys
        from corejax.testing import check_primitive, Search
        check_primitive("neg", checks=["params are hashable"])
        print("hypothesis" in sys.modules)
        check_primitive("neg", checks=["params are hashable"], search=Search(1))
        print("hypothesis" in sys.modules)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert ["False", "True"] == done.stdout.split()


def test_search_leaves_nothing_behind_and_hypothesis_as_it_was(tmp_path: Path) -> None:
    program = """
        from hypothesis import configuration
        from corejax.testing import Search, check_primitive
        before = configuration.storage_directory()
        check_primitive("neg", checks=["jvp is linear"], search=Search(3))
        assert str(getattr(before, "path", before)) == str(getattr(
            configuration.storage_directory(), "path", configuration.storage_directory()))
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], cwd=tmp_path, check=True)
    assert [] == [*tmp_path.iterdir()]


def test_an_exemption_of_a_sample_leaves_out_the_search() -> None:
    samples = [Sample([0.5], exempt={NO_COUNTEREXAMPLE: "it has one input"}), Sample([1.0])]
    outcome = search_for(find("exp"), samples, Search(5))
    assert ("exempt", ("it has one input",), 0) == (outcome.status, outcome.exempt, outcome.held)
    assert "it has one input" in str(check_primitive("exp", samples, search=Search(5)))
