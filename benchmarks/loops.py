"""Loops: their compiled gradients, the memory of these according to the compiler, and the cost of tracing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from benchmarks.measure import Effort, Task, Timing, measured
from benchmarks.rivals import Function, Rival
from benchmarks.rows import Measure, Row, ready

STEPS = 10_000
MANY = 1_000_000
WIDTH = 64

#: Within 5% of the rival.
CLOSE = 1 / 1.05

#: A program of one argument, a tuple of arrays, and that argument for a number of steps.
Program = tuple[Function, tuple[Any, ...]]
_RNG_SEED = 0


def scalar(rival: Rival, steps: int) -> Program:
    """A recurrence of one number."""
    lax = rival.module.lax

    def f(start: Any, inputs: Any) -> Any:
        return lax.scan(lambda c, u: (lax.sin(c) * 0.9 + u, None), start, inputs)[0]
    return f, (np.float64(0.5), _random().standard_normal(steps))


def rnn(rival: Rival, steps: int) -> Program:
    """A recurrent network of 64 units: two matrix products in each step."""
    lax, rng = rival.module.lax, _random()

    def f(w: Any, u: Any, h: Any, xs: Any) -> Any:
        return lax.scan(lambda h, x: (lax.tanh(lax.dot(w, h) + lax.dot(u, x)), None), h, xs)[0].sum()
    return f, (*rng.standard_normal((2, WIDTH, WIDTH)) / 8, rng.standard_normal(WIDTH),
               rng.standard_normal((steps, WIDTH)))


def outputs(rival: Rival, steps: int) -> Program:
    """Inputs and outputs of 64 numbers, without matrix products."""
    lax, rng = rival.module.lax, _random()

    def f(a: Any, b: Any, c: Any, xs: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            c = c * a + lax.sin(x) * b
            return c, c * x
        c, ys = lax.scan(step, c, xs)
        return c.sum() + (ys * ys).sum()
    return f, (rng.uniform(0.9, 0.95, WIDTH), *rng.standard_normal((2, WIDTH)), rng.standard_normal((steps, WIDTH)))


def softmax(rival: Rival, steps: int) -> Program:
    """A matrix product and a softmax."""
    lax, rng = rival.module.lax, _random()

    def f(w: Any, h: Any, xs: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            e = lax.exp(lax.dot(w, h) + x)
            return e / e.sum(), None
        h, _ = lax.scan(step, h, xs)
        return (h * h).sum()
    return f, (rng.standard_normal((WIDTH, WIDTH)) / 8, rng.uniform(0.0, 1.0, WIDTH),
               rng.standard_normal((steps, WIDTH)))


def bodies(rival: Rival, steps: int) -> Program:
    """Five bodies that attract each other."""
    lax, rng = rival.module.lax, _random()

    def f(p: Any, v: Any) -> Any:
        def step(state: Any, _: Any) -> Any:
            p, v = state
            d = p[:, None, :] - p[None, :, :]
            r = (d * d).sum(2) + 0.01
            force = 1.0 / (r * lax.sqrt(r))
            v = v - 0.001 * (d * force[:, :, None]).sum(1)
            return (p + 0.001 * v, v), None
        (p, v), _ = lax.scan(step, (p, v), None, length=steps)
        return (p * p).sum() + (v * v).sum()
    return f, (rng.standard_normal((5, 3)), rng.standard_normal((5, 3)) * 0.1)


PROGRAMS: dict[str, Callable[[Rival, int], Program]] = {
    "a scalar recurrence": scalar, "an RNN of 64": rnn, "xs and ys of 64": outputs, "a softmax of 64": softmax,
    "five bodies": bodies}


def gradient(rival: Rival, name: str, steps: int = STEPS) -> tuple[Function, tuple[Any, ...]]:
    """The compiled gradient of a program with respect to everything but the inputs of steps; and its arguments."""
    program, args = PROGRAMS[name](rival, steps)
    wanted = tuple([i for i, x in enumerate(args) if x.shape[:1] != (steps,)])
    jit, device_put = rival.module.jit, rival.module.device_put
    return jit(rival.module.grad(program, wanted)), tuple([device_put(x) for x in args])


def one_gradient(name: str) -> Measure:
    """The compiled gradient of a loop with one of these bodies."""
    def measure(rivals: Mapping[str, Rival], effort: Effort) -> Iterator[Row]:
        def make(rival: str) -> Task:
            rivals[rival].module.clear_caches()
            return _run(*gradient(rivals[rival], name))
        yield Row(f"gradient of {STEPS:,} steps: {name}", measured(make, _both(rivals), effort), {"jax": CLOSE})
    return measure


def temporaries(rivals: Mapping[str, Rival], _: Effort) -> Iterator[Row]:
    """What the compiled gradients allocate besides their arguments, according to the compiler."""
    for name in PROGRAMS:
        found = {}
        for rival in _both(rivals):
            function, args = gradient(rivals[rival], name)
            analysis = function.lower(*args).compile().memory_analysis()
            found[rival] = Timing.exact(analysis.temp_size_in_bytes + analysis.output_size_in_bytes)
        yield Row(f"temporary memory of {STEPS:,} steps: {name}", found, {"jax": CLOSE}, "B")


def tracing(rivals: Mapping[str, Rival], effort: Effort) -> Iterator[Row]:
    """The cost of a gradient before it is compiled, which is the same for a long loop and a short one."""
    def make(name: str) -> Task:
        return _lower(rivals[name], MANY) if name in rivals else _lower(rivals["corejax"], 1_000)

    yield Row(f"tracing and lowering the gradient of {MANY:,} steps",
              measured(make, [*_both(rivals), "corejax, 1,000 steps"], effort),
              {"jax": 1.0, "corejax, 1,000 steps": 0.9})


def searching(rivals: Mapping[str, Rival], effort: Effort) -> Iterator[Row]:
    """A while loop over 10,000 numbers, each with its own end."""
    def make(rival: str) -> Task:
        module = rivals[rival].module
        module.clear_caches()
        function = module.jit(module.vmap(_collatz(module.lax)))
        return _run(function, (module.device_put(np.arange(1, 10_001)),))

    yield Row("10,000 while loops by vmap, of up to 261 steps", measured(make, _both(rivals), effort), {"jax": CLOSE})


def _collatz(lax: Any) -> Function:
    def steps(n: Any) -> Any:
        def body(state: Any) -> Any:
            n, count = state
            return lax.select(n % 2 == 0, n // 2, 3 * n + 1), count + 1
        return lax.while_loop(lambda state: state[0] > 1, body, (n, 0))[1]
    return steps


def _both(rivals: Mapping[str, Rival]) -> list[str]:
    return [name for name, rival in rivals.items() if rival.module is not None]


def _random() -> np.random.Generator:
    return np.random.default_rng(_RNG_SEED)


def _run(function: Function, args: tuple[Any, ...]) -> Task:
    return Task(lambda _: ready(function(*args)))


def _lower(rival: Rival, steps: int) -> Task:
    """Tracing and lowering a new program each time, with the same arguments: new ones would empty the caches."""
    _, args = scalar(rival, steps)

    def prepare() -> Function:
        program, _ = scalar(rival, 1)
        return rival.module.jit(rival.module.grad(program))  # type: ignore[no-any-return]
    return Task(lambda prepared: prepared.lower(*args), prepare)


LOOPS: dict[str, Measure] = {
    "scalar": one_gradient("a scalar recurrence"), "rnn": one_gradient("an RNN of 64"),
    "outputs": one_gradient("xs and ys of 64"), "softmax": one_gradient("a softmax of 64"),
    "bodies": one_gradient("five bodies"),
    "temporaries": temporaries, "tracing": tracing, "while": searching}
