"""Microseconds for each equation of longer and longer programs: what is linear in a program's length stays the same.

    python -m benchmarks.growth [--sizes 1000 10000 100000] [--shape chain]
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable, Iterator
from time import thread_time
from typing import Any

import numpy as np

import corejax as cj
from corejax import lax
from corejax.core import jvp_jaxpr, partial_eval_jaxpr, split_jaxpr, transpose_jaxpr
from corejax.ir import dce, jaxpr_text, parse_jaxpr, structural_key, typecheck

Function = Callable[..., Any]


def chain(n: int) -> Function:
    """Each value is used once."""
    def fun(x: Any) -> Any:
        for _ in range(n // 2):
            x = lax.add(lax.sin(x), 0.5)
        return x
    return fun


def wide(n: int) -> Function:
    """One value is used n / 2 times."""
    def fun(x: Any) -> Any:
        y, total = lax.sin(x), x
        for i in range(n // 2):
            total = lax.add(total, lax.mul(y, 1.0 / (i + 1)))
        return total
    return fun


def operations(fun: Function) -> Iterator[tuple[str, Function]]:
    """What is timed; what each needs is made before it is handed out."""
    xs = np.ones(3)
    yield "make_jaxpr", lambda: cj.make_jaxpr(fun)(0.5)
    yield "jvp", lambda: cj.make_jaxpr(lambda x: cj.jvp(fun, (x,), (x,)))(0.5)
    yield "grad", lambda: cj.make_jaxpr(cj.grad(fun))(0.5)
    yield "grad, eager", lambda: cj.grad(fun)(0.5)
    yield "grad of jit", lambda: cj.make_jaxpr(cj.grad(cj.jit(lambda x: fun(x))))(0.5)
    yield "vmap", lambda: cj.make_jaxpr(cj.vmap(fun))(xs)
    yield "vmap of grad", lambda: cj.make_jaxpr(cj.vmap(cj.grad(fun)))(xs)
    yield "jit, lowering", lambda: cj.jit(lambda x: fun(x)).lower(0.5)
    jaxpr = cj.make_jaxpr(fun)(0.5).jaxpr
    text, tangents = jaxpr_text(jaxpr), jvp_jaxpr(jaxpr, (True,))[0]
    linear = split_jaxpr(tangents, (False, True), True).staged
    yield "structural_key", lambda: structural_key(jaxpr)
    yield "jaxpr_text", lambda: jaxpr_text(jaxpr)
    yield "parse_jaxpr", lambda: parse_jaxpr(text)
    yield "typecheck", lambda: typecheck(jaxpr)
    yield "dce", lambda: dce(tangents, (False, True))
    yield "partial_eval_jaxpr", lambda: partial_eval_jaxpr(tangents, (False, True))
    yield "transpose_jaxpr", lambda: transpose_jaxpr(linear, (*[False] * (len(linear.invars) - 1), True), (False, True))


def seconds(work: Function) -> float:
    """How long the thread works on it, once. The collector of cycles is off, as in the other benchmarks."""
    gc.collect()
    gc.disable()
    try:
        start = thread_time()
        work()
        return thread_time() - start
    finally:
        gc.enable()


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--shape", choices=["chain", "wide"], nargs="+", default=["chain", "wide"])
    options = parser.parse_args()
    for make in [{"chain": chain, "wide": wide}[name] for name in options.shape]:
        for _, work in operations(make(10)):
            work()  # rules are loaded and caches of types are filled
        columns = [dict((name, seconds(work) / n * 1e6) for name, work in operations(make(n))) for n in options.sizes]
        print(f"\n| {make.__name__}: µs an equation | {' | '.join([f'{n:,}' for n in options.sizes])} |")
        print("| --- |" + " ---: |" * len(columns))
        for name in columns[0]:
            print(f"| {name} | {' | '.join([f'{column[name]:.1f}' for column in columns])} |")


if __name__ == "__main__":
    main()
