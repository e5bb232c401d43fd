"""The same random programs on jax, by `jax.debug.callback`: the same things happen there, where jax promises that.

jax repeats effects under `checkpoint`, moves those that don't depend on a step out of a loop that is differentiated,
runs all branches and all steps of a batch: these ways aren't compared.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import effect_programs as effects

jax = pytest.importorskip("jax")

written: list[effects.Event] = []
noted: list[effects.Event] = []


def _record(lines: list[effects.Event], ordered: bool) -> Callable[[str, Any], None]:
    def record(tag: str, x: Any) -> None:
        jax.debug.callback(lambda x: lines.append((tag, float(x))), x, ordered=ordered)
    return record


LIBRARY = effects.Library(jax.lax, np, jax.jit, jax.checkpoint, jax.custom_jvp, jax.custom_vjp,
                          _record(written, True), _record(noted, False))

WAYS: dict[str, tuple[bool, set[str], Callable[[Any, float], Any]]] = {
    "evaluated": (False, set(), lambda f, x: f(x)),
    "jit": (False, set(), lambda f, x: jax.jit(f)(x)),
    "jvp": (True, {"vjp", "checkpoint"}, lambda f, x: jax.jvp(f, (x,), (1.0,))),
    "jit of jvp": (True, {"vjp", "checkpoint"}, lambda f, x: jax.jit(lambda x: jax.jvp(f, (x,), (1.0,)))(x)),
    "jit of grad": (True, {"while", "checked_while", "checkpoint", "scan", "fori"},
                    lambda f, x: jax.jit(jax.grad(f))(x)),
}


def difference(which: effects.Program, way: str) -> str | None:
    differentiated, refused, run = WAYS[way]
    if which.kinds & refused:
        return None
    wanted = effects.expected(which, [0.75], differentiated)
    if "jvp" in way:
        wanted = wanted._replace(backward=[])
    written.clear()
    noted.clear()
    jax.block_until_ready(run(effects.function(which, LIBRARY), 0.75))
    jax.effects_barrier()
    return effects.difference(wanted, list(written), list(noted))


@pytest.mark.parametrize("seed", range(16))
def test_effects_are_those_of_jax(seed: int) -> None:
    which = effects.program(seed)
    assert [] == [f"{way}: {found}" for way in WAYS if (found := difference(which, way))]


@pytest.mark.exhaustive
@pytest.mark.parametrize("seeds", [range(start, start + 50) for start in range(16, 1016, 50)], ids=str)
def test_effects_of_many_programs_are_those_of_jax(seeds: range) -> None:
    found = [f"{seed}, {way}: {problem}" for seed in seeds for way in WAYS
             if (problem := difference(effects.program(seed), way))]
    assert [] == found



if __name__ == "__main__":
    counts: Counter[str] = Counter()
    for seed in range(int(sys.argv[1]), int(sys.argv[2])):
        which = effects.program(seed)
        for way, (_, refused, _) in WAYS.items():
            found = difference(which, way)
            counts[f"{way}: {'left out' if which.kinds & refused else 'differs' if found else 'same'}"] += 1
            if found:
                print(seed, way, found)
    print(dict(sorted(counts.items())))
