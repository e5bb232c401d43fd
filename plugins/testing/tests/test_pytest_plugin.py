"""The kit in pytest, by its option and by `pack_tests`, on a pack of 40 lines that is made up on the spot."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PACK = '''
"""exp(-x * x), elementwise."""

import numpy as np

from corejax import lax
from corejax.plugin import Sample, define, hookimpl, not_linear


class Gauss:
    """exp(-x * x)."""

    name = "gauss"
    transpose = not_linear()

    @hookimpl
    def decompose(self, args):
        (x,) = args
        return lax.exp(lax.neg(lax.mul(x, x)))

    @hookimpl
    def impl(self, args):
        (x,) = args
        return np.exp(-x * x)

    @hookimpl
    def jvp(self, primals, tangents):
        (x,), (x_dot,) = primals, tangents
        out = gauss(x)
        return out, lax.mul(lax.mul(-2.0 * x, out), x_dot)

    @hookimpl
    def vmap(self, axis, args, dims):
        return gauss(args[0]), dims[0]

    @hookimpl
    def samples(self, rng):
        yield Sample([rng.normal(size=(3, 2))], domain=(-2.0, 2.0))
        yield Sample([np.ones(2), np.ones(3)], error=TypeError)


gauss = define(Gauss())
'''

TESTS = '''
"""All rules of the pack."""

from corejax.testing import pack_tests

test_rules = pack_tests("my-gauss")
'''

WRONG_SIGN = ("-2.0 * x", "2.0 * x")
WRONG_AXIS = ("dims[0]", "0")


class Project:
    """A folder with packs on the path, where pytest is run in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def pack(self, name: str = "my-gauss", replace: tuple[str, str] = ("", ""), text: str = PACK) -> Project:
        """An installed distribution with the primitive, and a fault in its text."""
        module = name.replace("-", "_")
        info = self.folder / "site" / f"{module}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[corejax.primitives]\ngauss = {module}:gauss\n")
        assert replace[0] in text
        (self.folder / "site" / f"{module}.py").write_text(text.replace(*replace))
        return self

    def file(self, name: str, text: str) -> Project:
        """A file where pytest runs."""
        (self.folder / "run").mkdir(exist_ok=True)
        (self.folder / "run" / name).write_text(text)
        return self

    def pytest(self, *arguments: str, code: int = 0) -> str:
        """What pytest prints; it must end with this code."""
        (self.folder / "run").mkdir(exist_ok=True)
        env = {name: value for name, value in os.environ.items() if not name.startswith(("COREJAX_", "PYTEST_"))}
        env["PYTHONPATH"] = str(self.folder / "site")
        done = subprocess.run([sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--color=no", *arguments],
                              cwd=self.folder / "run", env=env, capture_output=True, text=True, timeout=300)
        assert code == done.returncode, done.stdout + done.stderr
        return done.stdout + done.stderr


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """An empty one."""
    return Project(tmp_path)


def counts(text: str) -> dict[str, int]:
    """The numbers of pytest's last line: `{"passed": 3}`."""
    (line,) = re.findall(r"^(?:=+ )?(\d+ \w+.* in [\d.]+s.*)$", text, re.MULTILINE)
    return {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|skipped|deselected)", line)}


# By the option

def test_option_alone_checks_a_pack_without_any_test_file(project: Project) -> None:
    text = project.pack().pytest("--corejax-pack", "my-gauss", "-v", "-rs")
    assert "my-gauss::gauss::has samples PASSED" in text
    assert "my-gauss::gauss::jvp agrees with differences PASSED" in text
    assert "failed" not in counts(text) and counts(text)["passed"] > 20
    assert re.search(r"SKIPPED \[1\].*not applicable: ", text)


def test_fault_is_reported_by_primitive_hook_and_input_without_a_traceback(project: Project) -> None:
    text = project.pack(replace=WRONG_SIGN).pytest("--corejax-pack", "my-gauss", "-k", "differences", code=1)
    assert "my-gauss::gauss::jvp agrees with differences" in text
    assert "gauss.jvp (my-gauss 1.0), check 'jvp agrees with differences': " in text
    for part in ("  input:  sample 0: gauss(f64[3,2] [[", "  got:    ", "  wanted: ", "  to do:  "):
        assert part in text
    assert "corejax/testing" not in text and "Traceback" not in text and "_pytest" not in text
    line = PACK.splitlines().index("    def jvp(self, primals, tangents):")  # the one above it is marked
    assert {f"{line}"} == {*re.findall(r"^  where:  \S+my_gauss\.py:(\d+) \(Gauss\.jvp\)$", text, re.MULTILINE)}


def test_rule_that_raises_is_reported_with_its_line(project: Project) -> None:
    text = project.pack(replace=("out = gauss(x)", "out = gaus(x)")).pytest(
        "--corejax-pack", "my-gauss", "-k", "jvp and differences", code=1)
    assert "gauss.jvp (my-gauss 1.0)" in text and "it raised NameError" in text
    assert re.search(r"my_gauss\.py:\d+ \(jvp\): out = gaus\(x\)", text)


def test_tests_are_chosen_by_keyword_and_by_marker_beside_ordinary_ones(project: Project) -> None:
    project.pack().file("test_beside.py", "def test_differences():\n    pass\n\ndef test_ordinary():\n    pass\n")
    options = ("--corejax-pack=my-gauss", "--strict-markers")
    both = counts(project.pytest(*options, "-k", "jvp and differences or ordinary"))
    assert {"passed", "deselected"} == both.keys() and 2 == both["passed"]
    marked = counts(project.pytest(*options, "-m", "corejax", "-k", "differences"))
    assert 2 <= marked["passed"] + marked.get("skipped", 0)
    assert {"passed": 2} == counts(project.pytest())


def test_workers_share_the_tests_and_exemptions_are_listed(project: Project) -> None:
    exempt = ("domain=(-2.0, 2.0)", 'exempt={"jvp is linear": "it is bent"}')
    text = project.pack(replace=exempt).pytest("--corejax-pack", "my-gauss", "-n", "2", "-k", "samples or linear")
    assert "exemptions of the conformance kit" in text
    assert "\ngauss: jvp is linear: it is bent\n" in text
    assert counts(text)["passed"] >= 1 and counts(text)["skipped"] >= 1


def test_several_packs_each_once(project: Project) -> None:
    project.pack().pack("other-gauss", text=PACK.replace('"gauss"', '"gauss2"'))
    entries = project.folder / "site" / "other_gauss-1.0.dist-info" / "entry_points.txt"
    entries.write_text("[corejax.primitives]\ngauss2 = other_gauss:gauss\n")
    packs = ("--corejax-pack=my-gauss", "--corejax-pack=other-gauss", "--corejax-pack=my-gauss")
    text = project.pytest(*packs, "-k", "has and samples", "-v")
    assert "my-gauss::gauss::has samples PASSED" in text and "other-gauss::gauss2::has samples PASSED" in text
    assert 2 == counts(text)["passed"]


def test_full_adds_the_slow_checks(project: Project) -> None:
    project.pack()
    quick, full = [project.pytest("--corejax-pack=my-gauss", "--collect-only", "-q", "-k", "orderings", *more)
                   for more in ((), ("--corejax-full",))]
    three = "my-gauss::gauss::orderings to depth three agree"
    assert three not in quick and three in full
    assert set(re.findall("my-gauss::.*", quick)) < set(re.findall("my-gauss::.*", full))


@pytest.mark.exhaustive
def test_search_is_one_more_test_and_prints_a_program(project: Project) -> None:
    project.pack(replace=("return np.exp(-x * x)", "return np.exp(-x * x) + (max(x.shape, default=0) > 3)"))
    for options in (("--corejax-search-examples=100",), ("--corejax-search", "--corejax-search-seed=3")):
        text = project.pytest("--corejax-pack=my-gauss", "-k", "counterexample", *options, code=1)
        assert "my-gauss::gauss::no counterexample is found" in text and "gauss.impl (my-gauss 1.0)" in text
        assert "sample = Sample([np.zeros((4,))], domain=(-2.0, 2.0))" in text
    assert "counterexample" not in project.pytest("--corejax-pack=my-gauss", "--collect-only", "-q")
    project.file("test_rules.py", TESTS.replace('("my-gauss")', '("my-gauss", search=True)'))
    assert 1 == counts(project.pytest("-k", "counterexample", code=1))["failed"]
    text = project.pytest("--corejax-pack=my-gauss", "--corejax-search-examples=0", code=4)
    assert "max_examples of a search must be a number" in text


def test_unknown_pack_is_an_error_of_usage_with_a_suggestion(project: Project) -> None:
    project.pack()
    for more in ((), ("-n", "1")):
        text = project.pytest("--corejax-pack", "my-gaus", *more, code=4)
        assert "no pack 'my-gaus' is in use" in text and "did you mean 'my-gauss'?" in text
        assert "Traceback" not in text and "INTERNALERROR" not in text


def test_pack_that_cannot_be_imported_fails_by_name(project: Project) -> None:
    text = project.pack(replace=("import numpy as np", "import numpyy as np")).pytest(
        "--corejax-pack", "my-gauss", "-k", "has and samples", code=1)
    assert "the pack my-gauss 1.0 can't be imported" in text and "No module named 'numpyy'" in text
    assert "Traceback" not in text


def test_pytest_without_the_option_imports_nothing_of_corejax(project: Project) -> None:
    project.file("test_mine.py", """
import sys

def test_nothing_is_loaded():
    assert "corejax_pytest" in sys.modules
    assert [] == [name for name in sys.modules if name.partition(".")[0] in ("corejax", "numpy", "jaxlib")]
""")
    assert {"passed": 1} == counts(project.pytest())


RULES = """
import numpy as np

def right(args):
    return np.exp(-args[0] ** 2)

def wrong(args):
    return np.exp(args[0] ** 2)
"""


@pytest.mark.parametrize("rule, code", [("right", 0), ("wrong", 1)])
def test_primitives_of_others_are_tested_for_a_pack_that_has_rules_for_them(project: Project, rule: str, code: int
                                                                            ) -> None:
    impl = "    @hookimpl\n    def impl(self, args):\n        (x,) = args\n        return np.exp(-x * x)\n"
    project.pack(replace=(impl, "")).pack("my-rules", text=RULES)
    entries = project.folder / "site" / "my_rules-1.0.dist-info" / "entry_points.txt"
    entries.write_text(f"[corejax.rules]\nmy-gauss/gauss:impl = my_rules:{rule}\n")
    text = project.pytest("--corejax-pack=my-rules", "-k", "used or samples or compiled", "-v", code=code)
    assert "my-rules::my-gauss/gauss::rules are used PASSED" in text
    assert "my-rules::my-gauss/gauss::impl and the compiled program agree " + ("FAILED" if code else "PASSED") in text
    assert "\nmy-gauss/gauss by my-rules 1.0: impl; by my-gauss 1.0: " in text
    # Where CI is set, pytest writes the message a second time, whole, in its summary.
    assert bool(code) == ("gauss.impl (my-rules 1.0), check 'impl and the compiled program agree'" in text)


def test_pack_of_which_nothing_can_be_checked_is_one_test(project: Project) -> None:
    project.pack()
    entries = project.folder / "site" / "my_gauss-1.0.dist-info" / "entry_points.txt"
    entries.write_text("[corejax.functions]\ngauss = my_gauss:gauss\n")
    assert "it provides 1 function" in project.pytest("--corejax-pack=my-gauss", "-rs")
    entries.write_text("[corejax.rules]\nabsent/gauss:impl = my_gauss:gauss\n")
    for text in (project.pytest("--corejax-pack=my-gauss", code=1),
                 project.file("test_rules.py", TESTS).pytest(code=1)):
        assert {"failed": 1} == counts(text) and "there is nothing to check" in text


# By a line in a test file

def test_forty_lines_of_pack_are_checked_by_ten_lines_of_tests(project: Project) -> None:
    assert len(PACK.strip().splitlines()) <= 45 and len([line for line in PACK.splitlines() if line.strip()]) <= 40
    assert len(TESTS.strip().splitlines()) <= 10
    text = project.pack().file("test_rules.py", TESTS).pytest("-v", "--strict-markers")
    assert "test_rules.py::test_rules[gauss: jvp agrees with differences] PASSED" in text
    assert "failed" not in counts(text) and counts(text)["passed"] > 20


def test_options_hold_for_the_tests_of_a_file_and_of_a_pack_alike(project: Project) -> None:
    project.pack().file("test_rules.py", TESTS)
    slow, searched = "gauss: orderings to depth three agree", "gauss: no counterexample is found"
    for options, added in (((), set()), (("--corejax-full",), {slow}), (("--corejax-search",), {searched}),
                           (("--corejax-full", "--corejax-search-seed=3"), {slow, searched})):
        text = project.pytest("--collect-only", "-q", *options)
        assert added == {slow, searched} & {*re.findall(r"test_rules\[(.*)\]", text)}
        by_option = project.pytest("--collect-only", "-q", "--corejax-pack=my-gauss", *options)
        of_pack = re.findall("^my-gauss::gauss::(.*)$", by_option, re.MULTILINE)
        assert {*re.findall(r"test_rules\[gauss: (.*)\]", text)} == {*of_pack}
    project.file("test_rules.py", TESTS.replace('("my-gauss")', '("my-gauss", full=True)'))
    assert slow in project.pytest("--collect-only", "-q")
    assert "max_examples of a search must be" in project.pytest("--corejax-search-examples=0", code=4)


@pytest.mark.parametrize("fault, blamed", [(WRONG_SIGN, "gauss.jvp"), (WRONG_AXIS, "gauss.vmap")])
def test_planted_fault_is_found_by_the_test_file(project: Project, fault: tuple[str, str], blamed: str) -> None:
    text = project.pack(replace=fault).file("test_rules.py", TESTS).pytest(code=1)
    assert f"{blamed} (my-gauss 1.0), check " in text
    assert "corejax/testing" not in text


def test_unknown_pack_is_an_error_of_the_test_file(project: Project) -> None:
    text = project.pack().file("test_rules.py", TESTS.replace("my-gauss", "my-gaus")).pytest(code=2)
    assert "did you mean 'my-gauss'?" in text
