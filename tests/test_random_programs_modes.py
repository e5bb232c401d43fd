"""Random programs of the modes beyond the usual one, and that each mode finds what it is there to find.

`make test-all` runs thousands; here is a fixed sample, and faults that are planted in corejax.
"""

from __future__ import annotations

import os
import re
import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

from exhaustive import exhaustive_unless
from imports import ROOT
from random_programs import MODES, check, differences, running
from random_programs.clashing import Surrounded
from random_programs.comparing import Failure, Leaf, Refused
from test_random_programs import assert_no_failures

FIRST = 1000
TOGETHER = 10


def reports(mode, seeds, against, planted=""):
    """What a worker of a mode reports, with a fault in its library."""
    code = f"{planted}\nfrom tests.random_programs import MODES, running\nrunning.work(MODES[{mode!r}], {against!r})"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "command", lambda mode, against: [sys.executable, "-W", "ignore", "-c", code])
        patch.chdir(ROOT)
        yield from running.run(seeds, mode, against, processes=1)


def firsts(kept):
    return exhaustive_unless(kept.__contains__, range(FIRST, FIRST + 100, TOGETHER))


# Samples

@pytest.mark.parametrize("first", firsts([1010]))
@pytest.mark.parametrize("mode", ["closures", "bits64", "types"])
def test_a_random_program_of_a_mode_gives_the_same_asked_otherwise(mode, first):
    assert_no_failures(range(first, first + TOGETHER), "itself", mode)


@pytest.mark.parametrize("first", firsts([1040]))
@pytest.mark.parametrize("mode", ["closures", "bits64", "types"])
def test_a_random_program_of_a_mode_agrees_with_jax(mode, first):
    pytest.importorskip("jax")
    assert_no_failures(range(first, first + TOGETHER), "jax", mode)


def assert_no_reports(against):
    """Numbers of 32 bits are for a process of their own."""
    found = reports("bits32", range(1030, 1040), against)
    assert [] == [report["what"] for report in found if report["kind"] != "passed"]


def test_a_random_program_of_32_bits_gives_the_same_without_compiling():
    assert_no_reports("itself")


def test_a_random_program_of_32_bits_agrees_with_jax_without_64():
    pytest.importorskip("jax")
    assert_no_reports("jax")


@pytest.mark.parametrize("first", exhaustive_unless([1032].__contains__, range(1000, 1064, 8)))
def test_a_random_program_gives_the_same_bits_where_other_packs_have_the_same_names(first):
    assert_no_failures(range(first, first + 8), "itself", "clashes")


# What programs are made of

@pytest.mark.parametrize("mode", MODES)
def test_a_seed_stands_for_one_program_of_a_mode(mode):
    texts = [[str(MODES[mode].program(seed)) for seed in range(20)] for _ in range(2)]
    assert texts[0] == texts[1]
    assert 20 == len({*texts[0]})


def test_functions_close_over_values_of_each_level():
    """Arguments, carries, elements of batches, operands of branches; in the function and in each of its rules."""
    made = [MODES["closures"].program(seed).text for seed in range(300)]
    around = {level for text in made for level in levels(text)}
    assert {"program", "body", "each", "branch", "f", "helper"} <= around
    texts = "\n".join(made)
    for level in ("api.jit(", "api.checkpoint(", "lax.scan(", "lax.cond(", "lax.switch(", "lax.while_loop(",
                  "api.vmap("):
        assert re.search(rf"through\d+ = .*{re.escape(level)}", texts), level
    for value in (r"lax\.select\(m\d*, ", r"lax\.convert_element_type\(i\d*, ", r"\[n\d* % 3\]", "lax.stop_gradient"):
        assert re.search(value, texts), value


def levels(text):
    """The functions, without their numbers, in which a function with derivatives of its own is defined."""
    around = []
    for line in text.splitlines():
        depth = (len(line) - len(line.lstrip())) // 4
        if found := re.match(r"def ([a-z_]+)", line.lstrip()):
            around[depth:] = [found[1]]
        elif "@api.custom_" in line and depth:
            yield around[depth - 1]


def test_programs_of_32_bits_name_no_wider_types():
    made = [MODES["bits32"].program(seed) for seed in range(60)]
    assert not re.search(r"(float|int|uint)64|complex128", "\n".join([program.text for program in made]))
    assert not {x.dtype.name for program in made for x in program.inputs.values() if hasattr(x, "dtype")} & {
        "float64", "int64", "uint64", "complex128"}
    assert "np.uint32(0x9E3779B9)" in "".join([program.text for program in made])


def test_rivals_bring_all_names_of_the_standard_packs():
    from random_programs.clashing import names, standard
    assert {"corejax-lax-basic", "corejax-numpy", "corejax-control-flow"} <= {*standard()}
    assert {"log", "reduce_sum", "while_loop", "cumsum"} <= {name for pack in standard() for name in names(pack)}


@pytest.mark.parametrize(("result", "is_true"), [(0, True), (1, False)])
def test_a_refusal_counts_as_true_only_if_the_result_depends_on_what_has_no_derivative(result, is_true):
    def run(api, lax, put, inputs):
        def program(y):
            f = api.custom_vjp(lambda x: (x * y, 3.0 * x))
            f.defvjp(lambda x: (f(x), None), lambda _, cts: (5.0 * cts[0] + 3.0 * cts[1],))
            return api.jit(f)(1.0)[result]
        return api.grad(program)(2.0)

    said = "got CorejaxTypeError: <lambda> is differentiated with respect to a value that it closes over"
    failure = Failure(SimpleNamespace(run=run, inputs={}), "error", said)
    assert is_true == differences.depends_on_a_closed_over_value(failure)


# Faults that a mode must find: planted in a process of their own

#: What is created without a dtype has 64 bits.
WIDTHS_ARE_FORGOTTEN = """
import numpy as np
import corejax.numpy as jnp
def wide(original):
    def planted(*args, **named):
        made = original(*args, **named)
        return made.astype(np.float64) if made.dtype == np.float32 and "dtype" not in named else made
    return planted
for name in ("zeros", "ones", "eye", "linspace", "arange", "array", "asarray"):
    setattr(jnp, name, wide(getattr(jnp, name)))
"""

#: The types of arguments are all strong.
ALL_STRONG = """
import corejax as cj
def planted(shape, dtype, weak_type=False, original=cj.ShapeDtypeStruct):
    return original(shape, dtype)
cj.ShapeDtypeStruct = planted
"""


@pytest.mark.parametrize(("mode", "planted", "says", "within"), [
    ("bits32", WIDTHS_ARE_FORGOTTEN, "got float64", 40),
    ("types", ALL_STRONG, "weak: ", 40)])
def test_a_planted_fault_is_found_beside_jax(mode, planted, says, within):
    pytest.importorskip("jax")
    found = reports(mode, range(2000, 2000 + within), "jax", planted)
    assert any(says in f"{report['kind']}: {report.get('what')}" for report in found)


@pytest.fixture(name="clashing", scope="module")
def _clashing():
    return MODES["clashes"].oracle("itself")


@pytest.mark.parametrize(("changed", "kind"), [
    (lambda leaf: replace(leaf, value=-leaf.value), "value"), (lambda leaf: replace(leaf, dtype="float32"), "dtype"),
    (lambda leaf: replace(leaf, weak=True), "weak")])
def test_a_difference_in_a_bit_is_found_where_names_clash(clashing, monkeypatch, changed, kind):
    def run(self, program):
        outcome = result(program)
        return outcome if isinstance(outcome, Refused) else [
            changed(leaf) if isinstance(leaf, Leaf) and leaf.dtype == "float64" else leaf for leaf in outcome]
    from random_programs import clashing as module

    def result(program):
        return module.result(program, module.cj.lax)
    monkeypatch.setattr(Surrounded, "run", run)
    failure = check(replace(MODES["clashes"].program(4), transformations=()), clashing)
    assert failure is not None
    assert kind == failure.kind


def test_a_rival_that_is_used_is_found(clashing, monkeypatch):
    monkeypatch.setitem(os.environ, "COREJAX_PREFER", "rival-functions")
    program = replace(MODES["clashes"].program(6), transformations=())
    outcome = Surrounded("functions", "as the environment prefers").run(program)
    assert "rival" in str(outcome)
