"""Random programs whose functions with rules of their own use references on the way back, and in which order.

What a bwd rule writes depends on what it finds, so a call that is left out, doubled or out of order shows in what the
references hold in the end, and in the gradient. In Python's own loops and branches, a program is differentiated call by
call: that is what the other ways are compared with.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

CALLS = ("leaves", "reads", "counts", "keeps", "visits", "closes", "bystander", "unused", "forward")
NESTED = ("scan", "fori", "segments", "jit", "inline", "jit_argument", "checkpoint", "cond", "switch")


class Language(NamedTuple):
    """What programs are written in."""

    module: Any
    lax: Any
    structured: bool
    """Whether loops, branches and calls of programs are the library's; else they are Python's."""


class Refs(NamedTuple):
    """The references of a program: two to vectors, one to a counter, one to a flag."""

    a: Any
    b: Any
    count: Any
    flag: Any


def fresh(rng: np.random.Generator) -> tuple[Any, ...]:
    """What they hold at first."""
    return rng.uniform(-1, 1, 3), rng.uniform(-1, 1, 3).astype(np.float32), np.int64(2**53 + 1), np.bool_(True)


def program(rng: np.random.Generator, depth: int, calls: Sequence[str] = CALLS, nested: Sequence[str] = NESTED
            ) -> list[Any]:
    """A random program."""
    found: list[Any] = []
    for _ in range(rng.integers(1, 4)):
        r, i, c = int(rng.integers(2)), int(rng.integers(3)), float(np.round(rng.uniform(0.3, 1.5), 3))
        if depth == 0 or rng.random() < 0.4:
            found.append((str(rng.choice(calls)), r, i, c))
            continue
        kind = str(rng.choice(nested))
        n = 3 if kind == "switch" else 2 if kind == "cond" else 1
        found.append((kind, r, i, c, *[program(rng, depth - 1, calls, nested) for _ in range(n)]))
    return found


# Functions with rules

def rules(m: Language, fun: Callable[..., Any], fwd: Callable[..., Any], bwd: Callable[..., Any]) -> Any:
    h = m.module.custom_vjp(fun)
    h.defvjp(fwd, bwd)
    return h


def call(m: Language, kind: str, ref: Any, refs: Refs, i: int, c: float, x: Any) -> Any:
    """One call with rules: what it returns is a function of x alone, unless it `reads`."""
    lax = m.lax
    if kind == "leaves":
        def bwd(kept: Any, g: Any) -> Any:
            ref, slope = kept
            ref[...] = ref[...] * 0.5
            ref[i] += lax.convert_element_type(g, ref.dtype)
            return None, g * slope

        return rules(m, lambda ref, x: lax.sin(x * c), lambda ref, x: (lax.sin(x * c), (ref, slope_of(m, x, c))), bwd)(
            ref, x)
    if kind == "reads":  # on the way there, too
        def read_bwd(kept: Any, g: Any) -> Any:
            ref, slope = kept
            found = lax.convert_element_type(ref[i], np.float64)
            ref[i] = lax.convert_element_type(found * 0.7 + 0.1, ref.dtype)
            return None, g * slope * (1.0 + 0.3 * found)

        def read(ref: Any, x: Any) -> Any:
            return lax.sin(x * c) + lax.convert_element_type(ref[i], np.float64) * 0.1

        return rules(m, read, lambda ref, x: (read(ref, x), (ref, slope_of(m, x, c))), read_bwd)(ref, x)
    if kind == "counts":
        def count_bwd(kept: Any, g: Any) -> Any:
            count, flag, slope = kept
            count[...] = count[...] * 3 - 2**54
            flag[...] = ~flag[...]
            return None, None, g * slope * lax.convert_element_type(flag[...], np.float64)

        return rules(m, lambda count, flag, x: lax.sin(x * c),
                     lambda count, flag, x: (lax.sin(x * c), (count, flag, slope_of(m, x, c))), count_bwd)(
            refs.count, refs.flag, x)
    if kind == "keeps":  # writes on the way there: what it finds, and a constant
        def keep(ref: Any, x: Any) -> Any:
            ref[i] = ref[(i + 1) % 3] * 0.5 + np.float32(c)
            return lax.sin(x * c)

        def keep_bwd(kept: Any, g: Any) -> Any:
            ref, slope = kept
            ref[...] += lax.convert_element_type(g, ref.dtype)
            return None, g * slope

        return rules(m, keep, lambda ref, x: (keep(ref, x), (ref, slope_of(m, x, c))), keep_bwd)(ref, x)
    if kind == "visits":  # its fwd rule writes, and the function doesn't
        def visit(count: Any, x: Any) -> Any:
            count[...] += 1
            return lax.sin(x * c), (count, slope_of(m, x, c))

        def leave(kept: Any, g: Any) -> Any:
            count, slope = kept
            count[...] = count[...] * 2
            return None, g * slope

        return rules(m, lambda count, x: lax.sin(x * c), visit, leave)(refs.count, x)
    if kind == "closes":
        def close_bwd(slope: Any, g: Any) -> Any:
            ref[i] = ref[i] * 0.25 + lax.convert_element_type(g, ref.dtype)
            refs.count[...] += 1
            return (g * slope,)

        return rules(m, lambda x: lax.sin(x * c) + 0.0 * lax.convert_element_type(ref[0], np.float64),
                     lambda x: (lax.sin(x * c), slope_of(m, x, c)), close_bwd)(x)
    if kind == "bystander":  # no derivative is taken here
        def no_bwd(kept: Any, g: Any) -> Any:
            kept[...] = kept[...] * 0.0 - 100.0
            return None, g

        y = rules(m, lambda ref, x: x + 1.0, lambda ref, x: (x + 1.0, ref), no_bwd)(ref, np.float64(c))
        return x * y
    if kind == "unused":
        call(m, "leaves", ref, refs, i, c, x)
        call(m, "keeps", ref, refs, i, c, x)
        return x * c
    ref[i] = lax.convert_element_type(np.float64(c), ref.dtype)  # "forward"
    return x + 0.1 * slope_of(m, x, c)


def choose(holds: Any, yes: Any, no: Any, x: Any) -> Any:
    return yes(x) if holds else no(x)


def slope_of(m: Language, x: Any, c: float) -> Any:
    return m.lax.cos(x * c) * c


def run(m: Language, nodes: Sequence[Any], x: Any, refs: Refs) -> Any:
    """Execute a program; `x` is a scalar that each statement may use and change."""
    lax = m.lax
    for kind, r, i, c, *inner in nodes:
        ref = refs[r]

        def body(x: Any, k: int = 0, refs: Refs = refs, inner: Any = inner) -> Any:
            return run(m, inner[k], x, refs)

        if not inner:
            x = call(m, kind, ref, refs, i, c, x)
        elif kind in ("scan", "fori", "segments") and not m.structured:
            for k in range(2):
                x = body(x + 0.1 * k)
        elif kind == "scan":
            x, _ = lax.scan(lambda x, k, body=body: (body(x + k), x), x, np.array([0.0, 0.1]))
        elif kind == "fori":
            x = lax.fori_loop(0, 2, lambda k, x, body=body: body(x + 0.1 * k), x)
        elif kind == "segments":
            x, _ = lax.scan(lambda x, k, body=body: (body(x + k), None), x, np.array([0.0, 0.1]), checkpoint_every=1)
        elif kind == "cond":
            x = (lax.cond if m.structured else choose)(x > c - 1.0, lambda x, body=body: body(x),
                                                       lambda x, body=body: body(x, 1), x)
        elif kind == "switch" and not m.structured:
            x = body(x, i)
        elif kind == "switch":
            x = lax.switch(i + lax.convert_element_type(x > 1e9, np.int32), [
                lambda x, k=k, body=body: body(x, k) for k in range(3)], x)
        elif not m.structured:
            x = body(x)
        elif kind in ("jit", "inline"):
            x = m.module.jit(body, inline=kind == "inline")(x)
        elif kind == "jit_argument":
            x = m.module.jit(lambda x, refs, body=body: body(x, 0, Refs(*refs)))(x, tuple(refs))
        else:
            x = m.module.checkpoint(lambda x, body=body: body(x))(x)
    return x
