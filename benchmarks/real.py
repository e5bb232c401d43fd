"""The programs in examples/, each as it is, and written for jax: the same text with a different import."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.measure import Effort, Task, measured
from benchmarks.rivals import Function, Rival
from benchmarks.rows import Measure, Row, ready

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"

#: At most 2% slower than the rival.
AS_FAST = {"jax": 1 / 1.02}

#: A function and its arguments.
Program = tuple[Function, tuple[Any, ...]]


@functools.cache
def written_for(library: str, name: str) -> ModuleType:
    """An example as a module that imports this library instead."""
    path = EXAMPLES / f"{name}.py"
    module = ModuleType(f"{name}_for_{library}")
    exec(compile(path.read_text().replace("corejax", library), str(path), "exec"), module.__dict__)
    return module


def _random() -> np.random.Generator:
    return np.random.default_rng(0)


def _perceptron(library: str) -> tuple[ModuleType, tuple[Any, ...]]:
    module, rng = written_for(library, "mlp_training"), _random()
    params = module.layers(rng, 2, 64, 64, 2)
    still = [{name: np.zeros_like(x) for name, x in layer.items()} for layer in params]
    return module, (params, still, *module.spirals(rng, 1024))


def mlp_loss(library: str) -> Program:
    module, (params, _, x, labels) = _perceptron(library)
    return module.loss, (params, x, labels)


def mlp_training(library: str) -> Program:
    module, args = _perceptron(library)
    return module.training_step, args


def _regression(library: str) -> tuple[ModuleType, tuple[Any, ...]]:
    module, rng = written_for(library, "logistic_hessian"), _random()
    truth = rng.normal(size=30)
    return module, (truth, *module.observations(rng, 2000, truth))


def logistic_loss(library: str) -> Program:
    module, args = _regression(library)
    return module.loss, args


def logistic_hessian(library: str) -> Program:
    module, args = _regression(library)
    return module.slope_and_curvature, args


def _bodies() -> tuple[Any, ...]:
    rng = _random()
    return rng.normal(size=(8, 3)) * 4.0, rng.normal(size=(8, 3)) * 0.1, rng.uniform(0.5, 1.0, 8)


def n_body(library: str) -> Program:
    module = written_for(library, "n_body")
    return lambda x, v, masses: module.travel(x, v, masses, 1e-3, 1000), _bodies()


def n_body_gradient(library: str) -> Program:
    module = written_for(library, "n_body")

    def spread(x: Any, v: Any, masses: Any) -> Any:
        x, _, _ = module.travel(x, v, masses, 1e-3, 1000)
        return (x * x).sum()
    return module.cj.grad(spread, (0, 1, 2)), _bodies()


def mandelbrot(library: str) -> Program:
    module = written_for(library, "mandelbrot")
    return module.picture, (module.plane(120, 160), 200)


def _transformer(library: str) -> tuple[ModuleType, tuple[Any, ...]]:
    module, rng = written_for(library, "attention_block"), _random()
    x = rng.normal(size=(4, 64, 64))
    return module, (module.blocks(rng, 4, 64, 4), x, np.roll(x, 1, axis=1))


def attention(library: str) -> Program:
    module, args = _transformer(library)
    return lambda params, x, target: module.loss(params, x, target, False), args


def attention_gradient(library: str) -> Program:
    module, args = _transformer(library)
    return module.cj.grad(lambda params, x, target: module.loss(params, x, target, True)), args


def _strikes() -> tuple[Any, ...]:
    return 100.0, np.linspace(50.0, 150.0, 10_000), 0.2, 0.5, 0.03


def prices(library: str) -> Program:
    module = written_for(library, "black_scholes")
    return module.cj.vmap(module.call, in_axes=(None, 0, None, None, None)), _strikes()


def greeks(library: str) -> Program:
    module = written_for(library, "black_scholes")
    return module.cj.vmap(module.greeks, in_axes=(None, 0, None, None, None)), _strikes()


PROGRAMS: dict[str, tuple[str, Callable[[str], Program]]] = {
    "mlp": ("a perceptron's loss", mlp_loss),
    "mlp_grad": ("a perceptron's training step", mlp_training),
    "logistic": ("a logistic regression's loss", logistic_loss),
    "logistic_hessian": ("a logistic regression's gradient and Hessian", logistic_hessian),
    "n_body": ("8 bodies, 1,000 steps", n_body),
    "n_body_grad": ("gradient through 8 bodies, 1,000 steps", n_body_gradient),
    "mandelbrot": ("the Mandelbrot set, 19,200 points", mandelbrot),
    "attention": ("a transformer's loss", attention),
    "attention_grad": ("a transformer's gradient with `checkpoint`", attention_gradient),
    "black_scholes": ("10,000 prices of options", prices),
    "greeks": ("Greeks of 10,000 options", greeks)}


def compiled(module: Any, program: Program) -> tuple[Function, Any]:
    """A compiled program, and its arguments on the device."""
    function, args = program
    return module.jit(function), module.tree.map(module.device_put, args)


def running(what: str, program: Callable[[str], Program]) -> Measure:
    def measure(rivals: Mapping[str, Rival], effort: Effort) -> Iterator[Row]:
        def make(name: str) -> Task | None:
            module = rivals[name].module
            if module is None:
                return None
            module.clear_caches()
            function, args = compiled(module, program(name))
            return Task(lambda _: ready(function(*args)))
        yield Row(what, measured(make, rivals, effort), AS_FAST)
    return measure


def compiling(what: str, program: Callable[[str], Program], all_stages: bool = False) -> Measure:
    """What the compiler takes for a new program each time; or all, from the Python function on."""
    def measure(rivals: Mapping[str, Rival], effort: Effort) -> Iterator[Row]:
        def make(name: str) -> Task | None:
            module = rivals[name].module
            if module is None:
                return None
            function, args = program(name)
            args = module.tree.map(module.device_put, args)

            def lowered(new: int) -> Any:
                return module.jit(lambda *args: (new, function(*args))).lower(*args)
            if all_stages:
                return Task(lambda new: lowered(new).compile(), lambda: next(_NEW))
            return Task(lambda program: program.compile(), lambda: lowered(next(_NEW)))
        yield Row(what, measured(make, rivals, effort), {"jax": 1.0})
    return measure


_NEW = iter(range(1, 1_000_000))
REAL: dict[str, Measure] = {
    **{name: running(*program) for name, program in PROGRAMS.items()},
    "compile": compiling("a perceptron's training step traced, lowered and compiled", mlp_training, all_stages=True),
    **{f"compile_{name}": compiling(f"{what}, compiled by XLA", program) for name, (what, program) in PROGRAMS.items()}}
