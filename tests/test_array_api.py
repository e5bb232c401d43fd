"""`corejax.numpy` and the array API standard: its names, signatures, dtypes and values, and its own test suite."""

from __future__ import annotations

import itertools

import array_api_compat as compat
import array_api_strict as strict
import numpy as np
import pytest

import corejax as cj
from corejax import lax, numpy as jnp
from tests.array_api import compare, page, signatures, suite

strict.set_array_api_strict_flags(api_version=compare.VERSION)

ROWS = [(table, name) for table, rows in compare.TABLES.items() for name in rows]


@pytest.mark.parametrize("name", signatures.names())
def test_has_the_name(name: str) -> None:
    assert signatures.find(jnp, name) is not None or name == "newaxis"


@pytest.mark.parametrize("name", signatures.functions())
def test_takes_arguments_as_the_standard_says(name: str) -> None:
    assert [] == [*signatures.refused(signatures.find(strict, name), signatures.find(jnp, name))]


@pytest.mark.parametrize("name", signatures.array_names())
def test_arrays_have_the_attribute(name: str) -> None:
    for array in (lax.full((2, 2), 1.0), jnp.zeros((2, 2), dtype=jnp.int8)):
        assert hasattr(type(array), name) or hasattr(array, name)


@pytest.mark.sample(80)
@pytest.mark.parametrize(("table", "name"), ROWS, ids=[f"{table}-{name}" for table, name in ROWS])
def test_computes_what_array_api_strict_does(table: str, name: str) -> None:
    count, different = compare.compared(jnp, table, name)
    assert [] == different
    assert count > 0


def test_everything_of_the_standard_is_compared() -> None:
    compared = {name for rows in compare.TABLES.values() for name in rows}
    elsewhere = {*compare.DTYPES, "linalg", "fft", "result_type", "can_cast", "__array_api_version__",
                 "__array_namespace_info__"}
    assert set() == {*signatures.names()} - compared - elsewhere


def test_dtypes_promote_and_cast_as_the_standard_says() -> None:
    for names in itertools.product(compare.DTYPES, repeat=2):
        ours = [getattr(jnp, name) for name in names]
        theirs = [getattr(strict, name) for name in names]
        assert jnp.can_cast(*ours) or not strict.can_cast(*theirs), names  # between kinds, NumPy casts more
        try:
            expected = strict.result_type(*theirs)
        except TypeError:
            continue
        assert np.dtype(jnp.result_type(*ours)).name == str(expected).rpartition(".")[2]
        assert jnp.result_type(jnp.zeros(2, dtype=ours[0]), ours[1]) == jnp.result_type(*ours)


@pytest.mark.parametrize("name", compare.DTYPES)
def test_scalars_take_the_dtype_of_arrays(name: str) -> None:
    for scalar in compare.SCALARS:
        try:
            expected = strict.result_type(getattr(strict, name), scalar)
        except TypeError:
            continue
        assert np.dtype(jnp.result_type(getattr(jnp, name), scalar)).name == str(expected).rpartition(".")[2]


# Other libraries find the namespace

def test_array_api_compat_finds_the_namespace() -> None:
    for x in (jnp.zeros(3), cj.device_put(np.zeros(3)), jnp.sum(jnp.ones(2))):
        assert compat.is_array_api_obj(x)
        assert jnp is compat.array_namespace(x) is compat.array_namespace(x, 1.0, x, api_version=compare.VERSION)
        assert x.device == compat.device(x) and x.size == compat.size(x)
        assert not compat.is_lazy_array(x)


def test_array_api_compat_finds_the_namespace_of_traced_values() -> None:
    def standardized(x: cj.Array) -> cj.Array:
        xp = compat.array_namespace(x)
        assert compat.is_array_api_obj(x)
        return (x - xp.mean(x, axis=0)) / xp.std(x, axis=0)

    x = np.random.default_rng(0).normal(size=(5, 2))
    np.testing.assert_allclose((x - x.mean(0)) / x.std(0), cj.jit(standardized)(x), rtol=1e-12)
    assert (5, 2, 5, 2) == cj.jacfwd(standardized)(x).shape


# The standard's own test suite, where it is

SAMPLE = " or ".join(f"test_{name}" for name in "add sum sort reshape getitem matmul unique_all take fft".split())

needs_suite = pytest.mark.skipif(suite.checkout() is None, reason="ARRAY_API_SUITE names no checkout of the suite")


@needs_suite
def test_a_sample_of_the_standards_suite_passes() -> None:
    outcome = suite.run(suite.checkout(), examples=5, only=SAMPLE)
    allowed = {pattern: why for pattern, why in suite.exceptions().items() if pattern in outcome.failed}
    assert [] == suite.unexpected(outcome, allowed)
    assert len(outcome.passed) > 5


@needs_suite
@pytest.mark.exhaustive
def test_the_standards_suite_passes_with_few_exceptions() -> None:
    outcome = suite.run(suite.checkout())
    assert [] == suite.unexpected(outcome, suite.exceptions())
    assert len(suite.exceptions()) <= 12


REPORT = """<testsuites><testsuite><testcase classname="array_api_tests.test_linalg" name="test_svd" />
<testcase classname="array_api_tests.test_special_cases" name="test_binary[pow(x &gt; 1) -&gt; 0]">
<failure message="AssertionError: out=1&#10;more">text</failure></testcase>
<testcase classname="array_api_tests.test_fft" name="test_fft"><skipped message="none" /></testcase>
<testcase classname="array_api_tests.test_dlpack.TestOne" name="test_x" /></testsuite></testsuites>"""


def test_the_suites_report_is_read(tmp_path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    outcome = suite.read(report)
    failed = "test_special_cases.py::test_binary[pow(x > 1) -> 0]"
    assert {failed: "AssertionError: out=1"} == outcome.failed
    assert ["test_linalg.py::test_svd", "test_dlpack.py::TestOne::test_x"] == outcome.passed
    assert ["test_fft.py::test_fft"] == outcome.skipped
    assert "special_cases" in outcome.table() and outcome.table().split()[-3:] == ["2", "1", "1"]

    assert [] == suite.unexpected(outcome, {"test_special_cases.py::test_binary[pow(*": ""})
    assert [f"{failed} failed: AssertionError: out=1"] == suite.unexpected(outcome, {})
    assert ["test_linalg.py::* is an exception, and no such test fails"] == suite.unexpected(
        outcome, {failed: "", "test_linalg.py::*": "", "test_set_functions.py::*": "not run",
                  "test_dlpack.py::*": "sometimes"})


def test_every_exception_has_a_reason_which_the_page_gives() -> None:
    assert all(len(reason) > 20 and "::" in pattern for pattern, reason in suite.exceptions().items())
    assert len(suite.exceptions()) <= 12
    assert page.rows(suite.exceptions()) in page.PAGE.read_text()


def test_the_page_is_made_of_an_outcome(tmp_path) -> None:
    outcome = suite.Outcome(["test_fft.py::test_fft"], [], {"test_linalg.py::test_svd": "wrong"})
    made = page.text(outcome, tmp_path, 20)
    assert "Of 2 tests, 1 pass, 0 are skipped by the suite, and 1 fail." in made and outcome.table() in made
    assert "commit unknown" in made and f"for the version {compare.VERSION}" in made
