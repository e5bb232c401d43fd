"""Random programs under random transformations, beside the same without compiling, and beside jax.

`make test-all` runs thousands; here is a fixed sample, and `make test` has a part of it. A failure shows the program,
made as small as it goes.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

import corejax as cj
from corejax import lax
from corejax.core import eval_jaxpr
from corejax.ir import parse_jaxpr, typecheck
from exhaustive import exhaustive_unless
from random_programs import MODES, Oracle, check, program, running, shrink
from random_programs.comparing import leaf

TOGETHER = 10

#: The 50 programs from these on call nearly all functions that 200 do, under nearly all pairs of transformations.
FIRST = (10, 20, 50, 100, 180)


def assert_no_failures(seeds: range, against: str, name: str = "usual") -> None:
    mode = MODES[name]
    using = mode.oracle(against)
    for seed in seeds:
        failure = check(mode.program(seed), using)
        if failure:
            smaller = shrink(failure, lambda made: check(made, using), attempts=60)
            pytest.fail(f"{smaller}\n\npython -m tests.random_programs --mode {name} --against {against} --seed {seed} "
                        "--shrink", pytrace=False)


@pytest.mark.sample(2)
@pytest.mark.parametrize("first", exhaustive_unless(FIRST.__contains__, range(0, 200, TOGETHER)))
def test_a_random_program_gives_the_same_without_compiling(first):
    assert_no_failures(range(first, first + TOGETHER), "itself")


@pytest.mark.sample(1)
@pytest.mark.parametrize("first", exhaustive_unless(lambda first: first % 20 == 0, range(1000, 1080, TOGETHER)))
def test_a_random_program_agrees_with_jax(first):
    pytest.importorskip("jax")
    assert_no_failures(range(first, first + TOGETHER), "jax")


@pytest.mark.parametrize("seed", [seed for seed in range(400, 424) if "linear" not in program(seed).text][:12])
def test_a_random_program_prints_parses_and_evaluates_alike(seed):
    made = replace(program(seed), transformations=program(seed).transformations[-1:])
    args = [made.inputs[key] for key in made.slots]
    wanted = cj.tree.leaves(made.run(cj, lax, lax.copy))
    closed = cj.make_jaxpr(lambda *xs: made.run(cj, lax, lambda x: x, dict(zip(made.slots, xs))))(*args)
    typecheck(closed.jaxpr)
    assert_alike(wanted, eval_jaxpr(closed.jaxpr, closed.consts, *args))
    if "opaque" not in str(closed.jaxpr):
        parsed = parse_jaxpr(str(closed.jaxpr), lambda name: getattr(lax, name).primitive)
        typecheck(parsed)
        assert str(closed.jaxpr) == str(parsed)
        assert_alike(wanted, eval_jaxpr(parsed, closed.consts, *args))


def assert_alike(wanted, got):
    assert [leaf(x).dtype for x in wanted] == [leaf(x).dtype for x in got]


# The generator itself

def test_a_seed_stands_for_one_program():
    assert [str(program(seed)) for seed in range(20)] == [str(program(seed)) for seed in range(20)]
    assert 20 == len({str(program(seed)) for seed in range(20)})


class ButSquares(Oracle):
    """An oracle that finds every `lax.square` wrong."""

    name = "planted"

    def difference(self, made, got):
        return ("value", "a square") if "lax.square" in made.text else None


def test_what_fails_is_made_as_small_as_it_goes():
    texts = [program(seed).text for seed in range(200)]
    seed = next(seed for seed, text in enumerate(texts) if text.count("\n") > 20 and "lax.square" in text)
    using = ButSquares()
    found = shrink(check(program(seed), using), lambda made: check(made, using))
    assert (1, 0) == (len(found.program.block), len(found.program.transformations))
    assert "lax.square" in found.program.text
    assert len(found.program.text) < len(program(seed).text) / 4


def test_a_program_that_ends_its_process_is_reported_and_the_rest_run(monkeypatch):
    monkeypatch.setattr(running, "command", lambda mode, against: [sys.executable, "-c", DYING])
    reports = {report["seed"]: report for report in running.run(range(4), "usual", "itself", processes=1)}
    assert {0: "passed", 1: "passed", 2: "died", 3: "passed"} == {seed: r["kind"] for seed, r in reports.items()}
    assert "signal SIGFPE" == reports[2]["what"]


DYING = """
import json, os, signal, sys
for seed in json.load(sys.stdin):
    print(json.dumps({"kind": "begin", "seed": seed}), flush=True)
    if seed == 2:
        os.kill(os.getpid(), signal.SIGFPE)
    print(json.dumps({"kind": "passed", "seed": seed}), flush=True)
"""
