"""How cost grows with equations, with arguments, with the steps of a loop, with nested transformations.

`make bench` plots it beside jax. For corejax alone, the time of each stage per equation, which is constant if the stage
is linear in the length of a program:

    python -m benchmarks.growth [--sizes 1000 10000 100000] [--shape chain]
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import thread_time
from typing import Any

import numpy as np

import corejax as cj
from benchmarks.measure import Effort, Task, Timing, measured
from benchmarks.rivals import Function, Rival
from benchmarks.rows import ready
from corejax import lax
from corejax.core import jvp_jaxpr, partial_eval_jaxpr, split_jaxpr, transpose_jaxpr
from corejax.ir import dce, jaxpr_text, parse_jaxpr, structural_key, typecheck


@dataclass(frozen=True, slots=True)
class Series:
    """A quantity in seconds at several sizes, for each library as far as it was measured.

    `each` says that the time per equation, argument or step is of interest, rather than the total.
    """

    what: str
    over: str
    lines: Mapping[str, Mapping[int, Timing]]
    each: bool = True


#: Makes what is timed, for a library (the module) and a size.
Make = Callable[[Any, int], Task]
Grow = Callable[[Mapping[str, Rival], Effort], Iterator[Series]]

EQUATIONS = (10, 100, 1_000, 10_000, 100_000)
ARGUMENTS = (1, 3, 10, 30, 100, 300, 1_000)
STEPS = (10, 100, 1_000, 10_000, 100_000)


def series(what: str, over: str, sizes: Sequence[int], make: Make, each: bool = True) -> Grow:
    """A quantity, from the smallest size to the largest. A library that would take too long for the next one stops."""
    def grow(rivals: Mapping[str, Rival], effort: Effort) -> Iterator[Series]:
        lines: dict[str, dict[int, Timing]] = {name: {} for name, rival in rivals.items() if rival.module}
        few = Effort(effort.few, 2 if effort.few > 2 else 1, effort.seconds / len(sizes))
        going = list(lines)
        for size in sizes:
            found = measured(lambda name, size=size: make(rivals[name].module, size), going, few)
            for name, timing in found.items():
                lines[name][size] = timing
            going = [name for name in going if found[name].median < effort.seconds / 40]
            if not going:
                break
        yield Series(what, over, lines, each)
    return grow


def _chain(module: Any, equations: int) -> Function:
    sin = module.lax.sin

    def f(x: Any) -> Any:
        for _ in range(equations // 2):
            x = sin(x) + 0.5
        return x
    return f


def _trace(module: Any, transformed: Callable[[Function], Function], x: Any, size: int) -> Task:
    return Task(lambda f: module.make_jaxpr(f)(x), lambda: transformed(_chain(module, size)))


def tracing(module: Any, size: int) -> Task:
    return _trace(module, lambda f: f, 0.5, size)


def differentiating(module: Any, size: int) -> Task:
    return _trace(module, module.grad, 0.5, size)


def mapping(module: Any, size: int) -> Task:
    return _trace(module, module.vmap, np.ones(3), size)


def lowering(module: Any, size: int) -> Task:
    return Task(lambda traced: traced.lower(), lambda: module.jit(_chain(module, size)).trace(0.5))


def calling(module: Any, size: int) -> Task:
    """A compiled function of this many device arrays."""
    f = module.jit(lambda *xs: [x + 1.0 for x in xs[:1]], keep_unused=True)
    xs = [module.device_put(np.ones(8)) for _ in range(size)]
    return Task(lambda _: f(*xs))


def signing(module: Any, size: int) -> Task:
    """Tracing the gradient of a function of this many arguments."""
    def f(*xs: Any) -> Any:
        total = xs[0]
        for x in xs[1:]:
            total = total + x * x
        return total
    return Task(lambda g: module.make_jaxpr(g)(*[0.5] * size),
                lambda: module.grad(lambda *xs: f(*xs), tuple(range(size))))


def _loop(module: Any) -> Function:
    lax = module.lax
    return module.grad(lambda x, us: lax.scan(lambda c, u: (lax.sin(c) * 0.9 + u, None), x, us)[0])


def staging_a_loop(module: Any, size: int) -> Task:
    us = np.ones(size)
    return Task(lambda f: f.lower(0.5, us), lambda: module.jit(_loop(module)))


def running_a_loop(module: Any, size: int) -> Task:
    f, us = module.jit(_loop(module)), module.device_put(np.linspace(0.0, 1.0, size))
    return Task(lambda _: ready(f(0.5, us)))


def _nested(what: str, deepest: int, transform: Callable[[Any, Function], Function], axes: bool = False) -> Grow:
    """Tracing a function of a few equations under nested transformations."""
    def make(module: Any, depth: int) -> Task:
        def prepare() -> Function:
            f = _chain(module, 10)
            for _ in range(depth):
                f = transform(module, f)
            return f
        x = np.full((2,) * depth if axes else (), 0.5)
        return Task(lambda f: module.make_jaxpr(f)(x), prepare)
    return series(what, "depth", range(1, deepest + 1), make, each=False)


GROWTH: dict[str, Grow] = {
    "trace": series("make_jaxpr", "equations", EQUATIONS, tracing),
    "trace_grad": series("make_jaxpr of grad", "equations", EQUATIONS, differentiating),
    "trace_vmap": series("make_jaxpr of vmap", "equations", EQUATIONS, mapping),
    "lowering": series("lowering", "equations", EQUATIONS, lowering),
    "call": series("a compiled call", "arguments", ARGUMENTS, calling),
    "signature": series("make_jaxpr of grad by all", "arguments", ARGUMENTS, signing),
    "scan_lowering": series("scan's gradient, lowered", "steps", STEPS, staging_a_loop, each=False),
    "scan_run": series("scan's gradient, run", "steps", STEPS, running_a_loop),
    "nested_grad": _nested("grad in grad", 5, lambda module, f: module.grad(f)),
    "nested_jvp": _nested("jvp in jvp", 6, lambda module, f: lambda x: module.jvp(f, (x,), (x,))[1]),
    "nested_vmap": _nested("vmap in vmap", 6, lambda module, f: module.vmap(f), axes=True),
    "nested_jit": _nested("jit in jit", 6, lambda module, f: module.jit(f))}


def chain(n: int) -> Function:
    """Each value is used once."""
    def fun(x: Any) -> Any:
        for _ in range(n // 2):
            x = lax.add(lax.sin(x), 0.5)
        return x
    return fun


def wide(n: int) -> Function:
    """A single value is used n / 2 times."""
    def fun(x: Any) -> Any:
        y, total = lax.sin(x), x
        for i in range(n // 2):
            total = lax.add(total, lax.mul(y, 1.0 / (i + 1)))
        return total
    return fun


def operations(fun: Function) -> Iterator[tuple[str, Function]]:
    """The operations to time; whatever one needs is made before it is yielded."""
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
    """The thread's CPU time for one run. The cyclic garbage collector is off, as in the other benchmarks."""
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
            work()  # loads rules and fills the caches of types
        columns = [dict((name, seconds(work) / n * 1e6) for name, work in operations(make(n))) for n in options.sizes]
        print(f"\n| {make.__name__}: µs an equation | {' | '.join([f'{n:,}' for n in options.sizes])} |")
        print("| --- |" + " ---: |" * len(columns))
        for name in columns[0]:
            print(f"| {name} | {' | '.join([f'{column[name]:.1f}' for column in columns])} |")


if __name__ == "__main__":
    main()
