"""Random programs that read and write references at every level, and the same programs in pure style.

A program is a list of statements. `run` executes it with references, of corejax or of jax, or with arrays that are
passed through every loop and branch by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

SIZE = 3


class Library(NamedTuple):
    """What programs are written with: corejax, or jax."""

    lax: Any
    jit: Any
    checkpoint: Any
    new_ref: Any
    freeze: Any
    addupdate: Any
    swap: Any


def library(module: Any, lax: Any) -> Library:
    return Library(lax, module.jit, module.checkpoint, module.new_ref, module.freeze, module.ref.addupdate,
                   module.ref.swap)


# Programs

SIMPLE = ("put", "put_all", "add", "increase", "swap", "read", "part")
NESTED = ("scan", "fori", "while", "cond", "switch", "jit", "jit_argument", "checkpoint", "local", "rows")


def program(rng: np.random.Generator, depth: int, refs: int, kinds: Sequence[str] = NESTED) -> list[Any]:
    """A random program that uses this many references."""
    found: list[Any] = []
    for _ in range(rng.integers(1, 4)):
        r, i, c = int(rng.integers(refs)), int(rng.integers(SIZE)), float(np.round(rng.uniform(-1.5, 1.5), 3))
        if depth == 0 or rng.random() < 0.4:
            found.append((str(rng.choice(SIMPLE)), r, i, c))
            continue
        kind = str(rng.choice(kinds))
        n = 3 if kind == "switch" else 2 if kind == "cond" else 1
        inner = [program(rng, depth - 1, refs + (kind in ("local", "rows")), kinds) for _ in range(n)]
        found.append((kind, r, i, c, *inner))
    return found


def kinds_in(nodes: Sequence[Any]) -> set[str]:
    """The kinds of statements in a program."""
    return {node[0] for node in nodes}.union(*[kinds_in(inner) for node in nodes for inner in node[4:]])


# With references

def run(m: Library, nodes: Sequence[Any], x: Any, refs: Sequence[Any]) -> Any:
    """Execute a program with references; `x` is a scalar that each statement may use and change."""
    lax = m.lax
    for kind, r, i, c, *inner in nodes:
        ref = refs[r]

        def body(x: Any, k: int = 0, refs: Sequence[Any] = refs, inner: Any = inner) -> Any:
            return run(m, inner[k], x, refs)

        if kind == "put":
            ref[i] = lax.sin(x) * c
        elif kind == "put_all":
            ref[...] = lax.cos(ref[...] * c) + x
        elif kind == "add":
            ref[i] += x * c
        elif kind == "increase":
            m.addupdate(ref, i, lax.sin(x + c))
        elif kind == "swap":
            x = m.swap(ref, i, x) + c
        elif kind == "read":
            x = lax.sin(x + ref[i]) * c
        elif kind == "part":
            # not ref[1:] = ref[:-1]: XLA 0.10.2 overwrites what it still reads in a loop, in jax, too
            ref[2:] = ref[:1] * c
            x = x + ref[-1]
        elif kind == "scan":
            x, ys = lax.scan(lambda x, c, body=body: (body(x + c), x), x, np.array([0.1, c]))
            x = lax.sin(x) + ys[0]
        elif kind == "fori":
            x = lax.fori_loop(0, 2, lambda k, x, body=body: body(lax.sin(x)), x)
        elif kind == "while":
            _, x = lax.while_loop(lambda s: s[0] < 2, lambda s, body=body: (s[0] + 1, body(lax.sin(s[1]))), (0, x))
        elif kind == "cond":
            x = lax.cond(ref[i] > c, lambda x, body=body: body(x), lambda x, body=body: body(x, 1), x)
        elif kind == "switch":
            x = lax.switch((ref[i] > 0).astype("int32") + i % 2, [
                lambda x, k=k, body=body: body(x, k) for k in range(3)], x)
        elif kind == "jit":
            x = m.jit(body)(x)
        elif kind == "jit_argument":
            x = m.jit(lambda x, refs, body=body: body(x, 0, refs))(x, refs)
        elif kind == "checkpoint":
            x = m.checkpoint(lambda x, body=body: body(x))(x)
        elif kind == "local":
            own = m.new_ref(ref[...] * x)
            x = body(x, 0, [*refs, own])
            x = lax.sin(x + m.freeze(own)[i])
        else:  # a scan over rows of a reference
            own = m.new_ref(lax.broadcast(ref[...], (2,)))
            x, _ = lax.scan(lambda x, row, body=body, refs=refs: (body(x, 0, [*refs, row]), None), x, own)
            x = lax.sin(x + own[1, i])
    return x


# In pure style

def pure(m: Library, nodes: Sequence[Any], x: Any, arrays: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """The same program, with arrays that are returned."""
    lax = m.lax
    for kind, r, i, c, *inner in nodes:
        array = arrays[r]

        def body(state: Any, k: int = 0, inner: Any = inner) -> Any:
            return pure(m, inner[k], *state)

        def put(new: Any, r: int = r, arrays: Any = arrays) -> tuple[Any, ...]:
            return (*arrays[:r], new, *arrays[r + 1:])

        if kind == "put":
            arrays = put(array.at[i].set(lax.sin(x) * c))
        elif kind == "put_all":
            arrays = put(lax.cos(array * c) + x)
        elif kind == "add":
            arrays = put(array.at[i].set(array[i] + x * c))
        elif kind == "increase":
            arrays = put(array.at[i].add(lax.sin(x + c)))
        elif kind == "swap":
            x, arrays = array[i] + c, put(array.at[i].set(x))
        elif kind == "read":
            x = lax.sin(x + array[i]) * c
        elif kind == "part":
            arrays = put(array.at[2:].set(array[:1] * c))
            x = x + arrays[r][-1]
        elif kind == "scan":
            (x, arrays), ys = lax.scan(lambda s, c, body=body: (body((s[0] + c, s[1])), s[0]), (x, arrays),
                                       np.array([0.1, c]))
            x = lax.sin(x) + ys[0]
        elif kind == "fori":
            x, arrays = lax.fori_loop(0, 2, lambda k, s, body=body: body((lax.sin(s[0]), s[1])), (x, arrays))
        elif kind == "while":
            _, (x, arrays) = lax.while_loop(lambda s: s[0] < 2, lambda s, body=body: (
                s[0] + 1, body((lax.sin(s[1][0]), s[1][1]))), (0, (x, arrays)))
        elif kind == "cond":
            x, arrays = lax.cond(array[i] > c, body, lambda s, body=body: body(s, 1), (x, arrays))
        elif kind == "switch":
            x, arrays = lax.switch((array[i] > 0).astype("int32") + i % 2, [
                lambda s, k=k, body=body: body(s, k) for k in range(3)], (x, arrays))
        elif kind in ("jit", "jit_argument"):
            x, arrays = m.jit(body)((x, arrays))
        elif kind == "checkpoint":
            x, arrays = m.checkpoint(lambda s, body=body: body(s))((x, arrays))
        elif kind == "local":
            x, (*kept, own) = body((x, (*arrays, array * x)))
            x, arrays = lax.sin(x + own[i]), tuple(kept)
        else:
            rows = lax.broadcast(array, (2,))

            def step(state: Any, row: Any, body: Any = body) -> Any:
                x, (*kept, row) = body((state[0], (*state[1], row)))
                return (x, tuple(kept)), row
            (x, arrays), rows = lax.scan(step, (x, arrays), rows)
            x = lax.sin(x + rows[1, i])
    return x, arrays


def with_references(m: Library, nodes: Sequence[Any], refs: int) -> Any:
    """The program as a function of arrays: its references are made inside. It returns all that can be seen."""
    def f(x: Any, *arrays: Any) -> Any:
        own = [m.new_ref(a) for a in arrays]
        x = run(m, nodes, x, own)
        return x, [m.freeze(ref) for ref in own]
    return f


def in_pure_style(m: Library, nodes: Sequence[Any], refs: int) -> Any:
    """The same function in pure style."""
    def f(x: Any, *arrays: Any) -> Any:
        x, arrays = pure(m, nodes, x, arrays)
        return x, [*arrays]
    return f
