"""Measurements without compilation: tracing, and eager calls. Also the class of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.measure import Effort, Task, Timing, measured
from benchmarks.rivals import Function, Rival

EQUATIONS = 300


@dataclass(frozen=True, slots=True)
class Row:
    """A quantity, in seconds, bytes or counts, and the factors by which corejax's should be smaller."""

    what: str
    timings: Mapping[str, Timing]
    targets: Mapping[str, float] = field(default_factory=dict)
    unit: str = "s"


#: Something that can be run by name. It yields its rows, or none if a rival that it needs is missing.
Measure = Callable[[Mapping[str, Rival], Effort], Iterable[Row]]


def timed(what: str, make: Callable[[Rival], Task | None], targets: Mapping[str, float] | None = None,
          per: int = 1) -> Measure:
    """One row of times: `make` returns what is timed, or None if a library doesn't have it."""
    def measure(rivals: Mapping[str, Rival], effort: Effort) -> Iterator[Row]:
        timings = measured(lambda name: make(rivals[name]), rivals, effort)
        yield Row(what, {name: timing.per(per) for name, timing in timings.items()}, targets or {})
    return measure


def timed_alike(what: str, make: Callable[[Any], Task], targets: Mapping[str, float] | None = None,
                per: int = 1) -> Measure:
    """The same for libraries with the names of `jax`, with empty caches each time: `make` takes the module."""
    def make_anew(rival: Rival) -> Task | None:
        if rival.module is None:
            return None
        rival.module.clear_caches()
        return make(rival.module)
    return timed(what, make_anew, targets, per)


def ready(found: Any) -> Any:
    """Wait until everything in nested tuples, lists and dicts has been computed."""
    if isinstance(found, (tuple, list)):
        return [ready(x) for x in found]
    if isinstance(found, dict):
        return [ready(x) for x in found.values()]
    wait = getattr(found, "block_until_ready", None)
    return found if wait is None else wait()


def by_functions(rival: Rival, operations: int) -> Function:
    """A chain of sin, mul and add, written with the library's functions."""
    sin, mul, add = rival.sin, rival.mul, rival.add

    def chain(x: Any, y: Any) -> Any:
        for _ in range(operations // 3):
            x = add(mul(sin(x), y), y)
        return x
    return chain


def by_operators(rival: Rival, operations: int) -> Function:
    """The same chain, written with operators."""
    sin = rival.sin

    def chain(x: Any, y: Any) -> Any:
        for _ in range(operations // 3):
            x = sin(x) * y + y
        return x
    return chain


Style = Callable[[Rival, int], Function]


def anew(function: Function) -> Function:
    """The same program as a new function, for which nothing is cached."""
    return lambda *args: function(*args)


def _call(function: Function, x: Any, y: Any) -> Task:
    return Task(lambda _: function(x, y))


def _small() -> np.ndarray:
    return np.linspace(0.1, 0.9, 8)


def _traced(what: str, transform: Callable[[Rival], Function], target: float) -> Measure:
    """Tracing `transform(rival)`, a function of two arrays made from EQUATIONS source equations."""
    def make(rival: Rival) -> Task | None:
        if rival.module is None:
            return None
        make_jaxpr, function, x = rival.module.make_jaxpr, transform(rival), _small()
        return Task(lambda program: make_jaxpr(program)(x, x), lambda: anew(function))
    return timed(what, make, {"jax": target}, EQUATIONS)


def tracing_grad(style: Style) -> Measure:
    def gradient(rival: Rival) -> Function:
        chain = style(rival, EQUATIONS)
        return lambda x, y: rival.gradient(lambda x: rival.total(chain(x, y)))(x)
    return _traced("`make_jaxpr(grad)`, per source equation", gradient, 8)


def tracing_vmap(style: Style) -> Measure:
    def mapped(rival: Rival) -> Function:
        chain = style(rival, EQUATIONS)
        return lambda x, y: rival.module.vmap(lambda x, y: chain(x, y))(x, y)
    return _traced("`make_jaxpr(vmap)`, per source equation", mapped, 4)


def lowering(style: Style) -> Measure:
    def make(rival: Rival) -> Task | None:
        if rival.module is None:
            return None
        jit, chain, x = rival.module.jit, style(rival, EQUATIONS), _small()
        return Task(lambda traced: traced.lower(), lambda: jit(anew(chain)).trace(x, x))
    return timed("lowering to StableHLO, per equation", make, {"jax": 2.5}, EQUATIONS)


def eager_add(style: Style) -> Measure:
    """The operands are the library's own arrays, like results of other computations; ours stay on the host."""
    def make(rival: Rival) -> Task | None:
        if rival.module is None:
            return None
        array = rival.array(_small())
        return _call(rival.add, array, array) if style is by_functions else Task(lambda _: array + array)
    return timed("eager `add` of two arrays of 8", make, {"jax": 5})


def add_ndarrays(rivals: Mapping[str, Rival], effort: Effort) -> Iterator[Row]:
    """Compared with NumPy too, since no transformation is needed."""
    x = _small()

    def make(name: str) -> Task | None:
        if name == "numpy":
            return _call(np.add, x, x)
        array = x if rivals[name].module else rivals[name].array(x)
        return _call(rivals[name].add, array, array) if name != "torch tape" else None  # torch.func's own function
    yield Row("eager `add(x, y)` of two ndarrays of 8", measured(make, ["numpy", *rivals], effort), {"jax": 5})


def eager_grad_scalar(style: Style) -> Measure:
    def make(rival: Rival) -> Task:
        return _derivative(rival.gradient(style(rival, 30)), rival.array(np.array(0.7)))
    return timed("eager `grad` of 30 scalar ops", make, {"jax": 30, "autograd": 2, "torch.func": 2})


def eager_grad_array(style: Style) -> Measure:
    def make(rival: Rival) -> Task:
        chain = style(rival, 30)
        gradient = rival.gradient(lambda x, y: rival.total(chain(x, y)))
        return _derivative(gradient, rival.array(np.linspace(0.1, 0.9, 1000)))
    return timed("eager `grad` of 30 ops on 1,000 elements", make, {"jax": 20, "torch.func": 1.2})


def _derivative(gradient: Function, array: Any) -> Task:
    return Task(lambda _: ready(gradient(array, array)))


def nested_gradient(times: int) -> Measure:
    """Gradients of gradients, nested this many times."""
    def make(rival: Rival) -> Task | None:
        if not rival.nests:
            return None
        function = by_operators(rival, 30)
        for _ in range(times):
            function = rival.gradient(function)
        return _derivative(function, rival.array(np.array(0.7)))
    return timed(f"eager {'`grad` of ' * (times - 1)}`grad` of 30 scalar ops", make)


def eager_jvp(rival: Rival) -> Task | None:
    if rival.jvp is None:
        return None
    jvp, chain, x = rival.jvp, by_operators(rival, 30), rival.array(np.array(0.7))
    return Task(lambda _: ready(jvp(chain, (x, x), (x, x))))


def eager_vmap(rival: Rival) -> Task | None:
    if rival.vmap is None:
        return None
    vmap, chain, xs = rival.vmap, by_operators(rival, 30), rival.array(np.linspace(0.1, 0.9, 800).reshape(100, 8))
    return Task(lambda _: ready(vmap(chain)(xs, xs)))


def eager_vmap_of_grad(rival: Rival) -> Task | None:
    if rival.vmap is None:
        return None
    vmap, gradient, xs = rival.vmap, rival.gradient(by_operators(rival, 30)), rival.array(np.linspace(0.1, 0.9, 100))
    return Task(lambda _: ready(vmap(gradient)(xs, xs)))


def indexing(what: str, use: Function) -> Measure:
    """Reading or changing a part of a computed array; ours is on the host."""
    def make(rival: Rival) -> Task | None:
        if rival.module is None:
            return None
        x = rival.array(np.linspace(0.1, 0.9, 100))
        return Task(lambda _: ready(use(x)))
    return timed(f"eager `{what}` of 100 numbers", make)


def styled(style: Style) -> dict[str, Measure]:
    """The rows of section 7 of the design for programs in one style."""
    return {
        "make_jaxpr": _traced("`make_jaxpr`, per equation", lambda rival: style(rival, EQUATIONS), 4),
        "make_jaxpr_grad": tracing_grad(style), "make_jaxpr_vmap": tracing_vmap(style), "lowering": lowering(style),
        "add": eager_add(style), "grad": eager_grad_scalar(style), "grad_1000": eager_grad_array(style)}


START: dict[str, Measure] = {"add": add_ndarrays}
EAGER: dict[str, Measure] = {
    "jvp": timed("eager `jvp` of 30 scalar ops", eager_jvp),
    "vmap": timed("eager `vmap` of 30 ops over 100 arrays of 8", eager_vmap),
    "vmap_grad": timed("eager `vmap` of `grad` of 30 scalar ops, 100 times", eager_vmap_of_grad),
    "grad_2": nested_gradient(2), "grad_3": nested_gradient(3),
    "index": indexing("x[3]", lambda x: x[3]), "at_add": indexing("x.at[3].add(1.0)", lambda x: x.at[3].add(1.0)),
    "at_set": indexing("x.at[indices].set(0.0)", lambda x: x.at[np.array([3, 5, 7])].set(0.0))}
