"""Loops: their gradients compiled, the memory that these take, and what tracing costs by length."""

from __future__ import annotations

import gc
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.measure import Task, Timing, interleaved, rebuilt
from benchmarks.rivals import Function, Rival, installed
from benchmarks.rows import Row

STEPS = 10_000
MANY = 1_000_000
WIDTH = 64

#: Within 5% of the rival.
CLOSE = 1 / 1.05

#: A program of one argument, a tuple of arrays; and that argument for so many steps.
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
    """Inputs and outputs of 64 numbers, without products of matrices."""
    lax, rng = rival.module.lax, _random()

    def f(a: Any, b: Any, c: Any, xs: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            c = c * a + lax.sin(x) * b
            return c, c * x
        c, ys = lax.scan(step, c, xs)
        return c.sum() + (ys * ys).sum()
    return f, (rng.uniform(0.9, 0.95, WIDTH), *rng.standard_normal((2, WIDTH)), rng.standard_normal((steps, WIDTH)))


def softmax(rival: Rival, steps: int) -> Program:
    """A product with a matrix and a softmax."""
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
    """The compiled gradient of a program with respect to all but the inputs of its steps; and its arguments."""
    program, args = PROGRAMS[name](rival, steps)
    wanted = tuple([i for i, x in enumerate(args) if x.shape[:1] != (steps,)])
    jit, device_put = rival.module.jit, rival.module.device_put
    return jit(rival.module.grad(program, wanted)), tuple([device_put(x) for x in args])


def gradients(rivals: Mapping[str, Rival], rounds: int) -> Iterator[Row]:
    """A compiled gradient, once for each body of a loop."""
    for name in PROGRAMS:
        timings = rebuilt(lambda rival, name=name: _run(*gradient(rivals[rival], name)), _both(rivals), rounds)
        yield Row(f"gradient of {STEPS:,} steps: {name}", timings, {"jax": CLOSE})


def temporaries(rivals: Mapping[str, Rival]) -> Iterator[Row]:
    """What the compiled gradients allocate beside their arguments, as the compiler says."""
    for name in PROGRAMS:
        found = {}
        for rival in _both(rivals):
            function, args = gradient(rivals[rival], name)
            analysis = function.lower(*args).compile().memory_analysis()
            found[rival] = Timing.exact(analysis.temp_size_in_bytes + analysis.output_size_in_bytes)
        yield Row(f"temporary memory of {STEPS:,} steps: {name}", found, {"jax": CLOSE}, "B")


def resident(rivals: Mapping[str, Rival], rounds: int) -> Row:
    """By how much the most that a process has ever held grows when it runs a gradient of a long loop."""
    samples: dict[str, list[float]] = {rival: [] for rival in _both(rivals)}
    for _ in range(max(3, rounds // 8)):
        for rival, found in samples.items():
            found.append(_resident_once(rival))
    return Row(f"growth of a process by {STEPS * 10:,} steps: an RNN of 64",
               {rival: Timing.of(found) for rival, found in samples.items()}, {"jax": CLOSE}, "B")


def _resident_once(rival: str) -> float:
    root = Path(__file__).resolve().parent.parent
    done = subprocess.run([sys.executable, "-m", "benchmarks.loops", rival], capture_output=True, text=True, check=True,
                          cwd=root)
    return float(done.stdout)


def tracing(rivals: Mapping[str, Rival], rounds: int) -> Row:
    """What a gradient costs before it is compiled, for a long loop and for a short one: the same."""
    tasks = {}
    for rival in _both(rivals):
        tasks[rival] = _lower(rivals[rival], MANY)
    tasks["corejax, 1,000 steps"] = _lower(rivals["corejax"], 1_000)
    return Row(f"tracing and lowering the gradient of {MANY:,} steps", interleaved(tasks, rounds),
               {"jax": 1.0, "corejax, 1,000 steps": 0.9})


def searching(rivals: Mapping[str, Rival], rounds: int) -> Row:
    """A while loop that each of 10,000 numbers ends for itself."""
    def make(rival: str) -> Task:
        module = rivals[rival].module
        function = module.jit(module.vmap(_collatz(module.lax)))
        return _run(function, (module.device_put(np.arange(1, 10_001)),))

    return Row("10,000 while loops by vmap, of up to 261 steps", rebuilt(make, _both(rivals), rounds), {"jax": CLOSE})


def _collatz(lax: Any) -> Function:
    def steps(n: Any) -> Any:
        def body(state: Any) -> Any:
            n, count = state
            return lax.select(n % 2 == 0, n // 2, 3 * n + 1), count + 1
        return lax.while_loop(lambda state: state[0] > 1, body, (n, 0))[1]
    return steps


def measure(rivals: Mapping[str, Rival], rounds: int) -> Iterator[Row]:
    """Each row of this section; none without the rival."""
    if "jax" not in rivals:
        return
    yield from gradients(rivals, rounds)
    yield from temporaries(rivals)
    yield resident(rivals, rounds)
    yield tracing(rivals, rounds)
    yield searching(rivals, rounds)


def _both(rivals: Mapping[str, Rival]) -> list[str]:
    return [name for name, rival in rivals.items() if rival.module is not None]


def _random() -> np.random.Generator:
    return np.random.default_rng(_RNG_SEED)


def _run(function: Function, args: tuple[Any, ...]) -> Task:
    def run(_: Any) -> None:
        found = function(*args)
        for x in found if isinstance(found, (tuple, list)) else [found]:
            x.block_until_ready()
    return Task(run)


def _lower(rival: Rival, steps: int) -> Task:
    """Tracing and lowering a program that is new each time."""
    def prepare() -> tuple[Function, tuple[Any, ...]]:
        program, args = scalar(rival, steps)
        return rival.module.jit(rival.module.grad(program)), args
    return Task(lambda prepared: prepared[0].lower(*prepared[1]), prepare)


def _grow(name: str) -> int:
    """By how many bytes this process grows at most while it runs a gradient."""
    function, args = gradient(installed()[name], "an RNN of 64", STEPS * 10)
    short, short_args = gradient(installed()[name], "an RNN of 64", 100)
    _run(short, short_args).run(None)
    compiled = function.lower(*args).compile()
    gc.collect()
    before = _most_resident(forget=True)
    _run(compiled, args).run(None)
    return _most_resident() - before


def _most_resident(forget: bool = False) -> int:
    """The most memory that this process has held, in bytes; with `forget`, from now on (where Linux lets us)."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if forget:
        Path("/proc/self/clear_refs").write_text("5")
    (line,) = [line for line in status.read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    print(_grow(sys.argv[1]))
