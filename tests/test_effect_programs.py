"""Effects of random programs happen once and in order, in every way to run them: beside the program in Python."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax as cj
import effect_programs as effects
from corejax import lax
from corejax.core import to_dim
from corejax.plugin import Effect, define, hookimpl

WRITE, NOTE = Effect("programs_write", ordered=True), Effect("programs_note")

written: list[effects.Event] = []
noted: list[effects.Event] = []


class Record:
    """Writes down a number, or each of an array's."""

    multiple_results = True

    def __init__(self, name: str, effect: Effect, lines: list[effects.Event]) -> None:
        self.name, self._effect, self._lines_of = name, effect, lines

    @hookimpl
    def abstract_eval(self, avals: Any, *, tag: str) -> Any:
        return []

    @hookimpl
    def effects(self, avals: Any) -> Any:
        return frozenset((self._effect,))

    @hookimpl
    def impl(self, args: Any, *, tag: str) -> Any:
        self._lines_of += [(tag, float(x)) for x in np.ravel(args[0])]
        return []

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, tag: str) -> Any:
        return ctx.callback(lambda x: self.impl([x], tag=tag), args, [])

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, tag: str) -> Any:
        return BY_NAME[self.name].primitive.bind(*primals, tag=tag), []

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, tag: str) -> Any:
        return BY_NAME[self.name].primitive.bind(to_dim(args[0], dims[0], 0, axis.size), tag=tag), []


BY_NAME: dict[str, Any] = {record.name: define(record) for record in (
    Record("programs_write", WRITE, written), Record("programs_note", NOTE, noted))}

LIBRARY = effects.Library(
    lax, np, cj.jit, cj.checkpoint, cj.custom_jvp, cj.custom_vjp,
    lambda tag, x: BY_NAME["programs_write"].primitive.bind(x, tag=tag),
    lambda tag, x: BY_NAME["programs_note"].primitive.bind(x, tag=tag))

#: In each way, whether custom rules run; and whether reverse mode is used, or forward.
WAYS: dict[str, tuple[bool, str, Callable[[Any, float], Any]]] = {
    "evaluated": (False, "", lambda f, x: f(x)),
    "jit": (False, "", lambda f, x: cj.jit(f)(x)),
    "jit of jit": (False, "", lambda f, x: cj.jit(lambda x: cj.jit(f)(x))(x)),
    "jvp": (True, "forward", lambda f, x: cj.jvp(f, (x,), (1.0,))),
    "jit of jvp": (True, "forward", lambda f, x: cj.jit(lambda x: cj.jvp(f, (x,), (1.0,)))(x)),
    "jvp of jit": (True, "forward", lambda f, x: cj.jvp(cj.jit(f), (x,), (1.0,))),
    "linearize": (True, "forward", lambda f, x: cj.linearize(f, x)[1](1.0)),
    "grad": (True, "reverse", lambda f, x: cj.grad(f)(x)),
    "jit of grad": (True, "reverse", lambda f, x: cj.jit(cj.grad(f))(x)),
    "grad of jit": (True, "reverse", lambda f, x: cj.grad(cj.jit(f))(x)),
    "grad of checkpoint": (True, "reverse", lambda f, x: cj.grad(cj.checkpoint(f))(x)),
    "jit of grad of checkpoint": (True, "reverse", lambda f, x: cj.jit(cj.grad(cj.checkpoint(f)))(x)),
    "grad of checkpoint of jit": (True, "reverse", lambda f, x: cj.grad(cj.checkpoint(cj.jit(f)))(x)),
}

REFUSED = {"forward": {"vjp"}, "reverse": {"while", "checked_while"}, "": set[str]()}

X = 0.75


def happened(run: Callable[[], Any]) -> tuple[list[effects.Event], list[effects.Event]]:
    written.clear()
    noted.clear()
    cj.block_until_ready(run())
    return list(written), list(noted)


def check(which: effects.Program, way: str) -> str | None:
    """What is wrong, if anything."""
    differentiated, mode, run = WAYS[way]
    if which.kinds & REFUSED[mode]:
        return None
    wanted = effects.expected(which, [X], differentiated)
    if mode == "forward":
        wanted = wanted._replace(backward=[])
    return effects.difference(wanted, *happened(lambda: run(effects.function(which, LIBRARY), X)))


def check_mapped(which: effects.Program) -> str | None:
    """What is wrong when the program is mapped, with notes instead of what is ordered."""
    lib = LIBRARY._replace(write=LIBRARY.note)
    xs = np.array([0.75, -0.5, 2.0])
    wanted = effects.expected(which, list(xs), False)
    wanted = effects.Happened([], wanted.written + wanted.noted, [])
    for run in (cj.vmap(effects.function(which, lib)), cj.jit(cj.vmap(effects.function(which, lib)))):
        found = effects.difference(wanted, *happened(lambda run=run: run(xs)))
        if found:
            return found
    return None


def problems(seed: int) -> list[str]:
    """Everything that is wrong with a program."""
    which = effects.program(seed)
    found = [f"{way}: {problem}" for way in WAYS if (problem := check(which, way))]
    if problem := check_mapped(which):
        found.append(f"vmap: {problem}")
    return [f"seed {seed}\n{which}\n{problem}" for problem in found]


@pytest.mark.parametrize("seed", [*range(12), 623])
def test_effects_happen_once_and_in_order(seed: int) -> None:
    assert [] == problems(seed)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seeds", [range(12, 24), *[range(k, k + 50) for k in range(24, 1024, 50)]], ids=str)
def test_effects_of_many_programs_happen_once_and_in_order(seeds: range) -> None:
    assert [] == [problem for seed in seeds for problem in problems(seed)]


def test_the_programs_have_everything_in_them() -> None:
    every = set().union(*[effects.program(seed).kinds for seed in range(24)])
    assert set(effects._RUNS) == every


def test_a_difference_is_seen() -> None:
    wanted = effects.Happened([("a", 1.0), ("b", 2.0)], [("c", 1.0)], ["d"])
    assert effects.difference(wanted, [("a", 1.0), ("b", 2.0), ("d", 9.0)], [("c", 1.0)]) is None
    for got, others in (([("b", 2.0), ("a", 1.0), ("d", 9.0)], [("c", 1.0)]), ([("a", 1.0), ("d", 9.0)], [("c", 1.0)]),
                        ([("a", 1.0), ("b", 2.5), ("d", 9.0)], [("c", 1.0)]),
                        ([("a", 1.0), ("b", 2.0), ("d", 9.0)], [("c", 1.0)] * 2),
                        ([("a", 1.0), ("b", 2.0)], [("c", 1.0)])):
        assert effects.difference(wanted, got, others) is not None


if __name__ == "__main__":
    for seed in range(int(sys.argv[1]), int(sys.argv[2])):
        for problem in problems(seed):
            print(problem)


def test_a_line_of_progress_changes_no_loop_over_rows_of_a_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("corejax_callbacks.progressing.is_terminal", lambda: True)
    ref = cj.new_ref(np.zeros(4))

    def step(x: Any, row: Any) -> Any:
        row[...] = x
        return x + 1.0, None

    assert cj.callbacks.progress().scan(step, 0.0, ref)[0] == 4.0
    assert ref[...].tolist() == [0.0, 1.0, 2.0, 3.0]
