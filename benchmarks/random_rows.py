"""Random numbers beside jax.random: one call of each function, eagerly, for a few numbers and for a million.

And programs that live on them, compiled: those of examples/sampling, the same text with other imports.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.measure import Task
from benchmarks.real import Program, running, written_for
from benchmarks.rows import Measure, ready, timed_alike

MILLION = 10**6
LOGITS = np.log(np.random.default_rng(0).random((MILLION // 10, 10)))

#: What is timed, of a `random` module and a key; and to reach.
CALLS: dict[str, tuple[str, float, Callable[[Any, Any], Any]]] = {
    "key": ("key(0)", 5.0, lambda random, key: random.key(0)),
    "split": ("split(key)", 1.5, lambda random, key: random.split(key)),
    "unpack": ("a, b = split(key)", 1.5, lambda random, key: tuple(random.split(key))),
    "fold_in": ("fold_in(key, 3)", 1.0, lambda random, key: random.fold_in(key, 3)),
    "normal_10": ("normal(key, (10,))", 1.0, lambda random, key: random.normal(key, (10,))),
    "uniform_10": ("uniform(key, (10,))", 1.0, lambda random, key: random.uniform(key, (10,))),
    "randint_10": ("randint(key, (10,), 0, 9)", 1.0, lambda random, key: random.randint(key, (10,), 0, 9)),
    "bits": ("bits of 10^6", 0.98, lambda random, key: random.bits(key, (MILLION,))),
    "uniform": ("uniform of 10^6", 0.98, lambda random, key: random.uniform(key, (MILLION,))),
    "normal": ("normal of 10^6", 0.98, lambda random, key: random.normal(key, (MILLION,))),
    "normal_f32": ("normal of 10^6, float32", 0.98, lambda random, key: random.normal(key, (MILLION,), "float32")),
    "randint": ("randint of 10^6", 0.98, lambda random, key: random.randint(key, (MILLION,), 0, 10)),
    "categorical": ("categorical of 10^5 rows of 10", 0.98, lambda random, key: random.categorical(key, LOGITS)),
    "permutation": ("permutation of 10^6", 0.98, lambda random, key: random.permutation(key, MILLION)),
    "gamma": ("gamma of 10^4", 0.98, lambda random, key: random.gamma(key, 2.5, (10_000,)))}


def call(name: str) -> Measure:
    what, least, draw = CALLS[name]

    def make(module: Any) -> Task:
        random = import_module(f"{module.__name__}.random")
        key = random.key(7)
        return Task(lambda _: ready(draw(random, key)))
    return timed_alike(f"random `{what}`", make, {"jax": least})


def _example(library: str, name: str) -> tuple[Any, Any]:
    module = written_for(library, f"sampling/{name}")
    return module, module.random


def hamiltonian(library: str) -> Program:
    module, random = _example(library, "hamiltonian")
    return lambda key, place: module.chain(key, module.banana, place, 100, 500), (random.key(3), np.zeros(3))


def autoencoder(library: str) -> Program:
    module, random = _example(library, "autoencoder")
    pictures = module.bars(random.key(0), 200 * 64, 6).reshape(200, 64, 36)
    return module.trained, (random.key(1), module.model(random.key(2), 36, 64, 12), pictures)


def reinforce(library: str) -> Program:
    module, random = _example(library, "reinforce")
    return lambda key: module.learned(key, 50, 64, 40), (random.key(5),)


def particle_filter(library: str) -> Program:
    module, random = _example(library, "particle_filter")
    model, observed = module.swinging(), module.drawn(random.key(0), 100)[1]
    return lambda key, observed: module.filtered(key, model, observed, 4000), (random.key(1), observed)


def dropout(library: str) -> Program:
    module, random = _example(library, "dropout")
    return lambda key, x, y: module.trained(key, x, y, 100, 32, 4), (random.key(1), *module.spirals(random.key(0), 400))


#: What is timed, by name.
PROGRAMS: dict[str, tuple[str, Callable[[str], Program]]] = {
    "hamiltonian": ("600 samples by Hamiltonian Monte Carlo", hamiltonian),
    "autoencoder": ("200 steps of a variational autoencoder", autoencoder),
    "reinforce": ("50 rounds of REINFORCE in a grid", reinforce),
    "particle_filter": ("a filter of 4,000 particles, 100 turns", particle_filter),
    "dropout": ("100 steps of a network with dropout under `checkpoint`", dropout)}

RANDOM: dict[str, Measure] = {
    **{name: call(name) for name in CALLS},
    **{name: running(*program) for name, program in PROGRAMS.items()}}
