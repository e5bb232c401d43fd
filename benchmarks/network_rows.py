"""Networks beside jax.nn: one call of each function, eagerly, for a few numbers; compiled, for a million; attention.

And programs that are written with them, compiled: those of examples/models, the same text with other imports.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.measure import Effort, Task, Timing
from benchmarks.real import Program, running, written_for
from benchmarks.rivals import Rival
from benchmarks.rows import Measure, Row, ready, timed_alike

AS_FAST = 0.98
FEW, MANY = np.linspace(-3.0, 3.0, 40).reshape(4, 10), (1000, 1000)
LABELS = np.arange(10) % 4

ALONG = ("softmax", "log_softmax", "logsumexp", "standardize")
NAMES = ("relu", "relu6", "sigmoid", "softplus", "silu", "log_sigmoid", "soft_sign", "elu", "celu", "selu", "gelu",
         "leaky_relu", "hard_tanh", "hard_sigmoid", "hard_silu", "mish", "squareplus", "sparse_plus", "glu", *ALONG)

Call = Callable[[Any, Any], Any]
CALLS: dict[str, Call] = {name: (lambda nn, x, name=name: getattr(nn, name)(x)) for name in NAMES}


def eagerly(name: str) -> Measure:
    def make(module: Any) -> Task:
        nn = import_module(f"{module.__name__}.nn")
        if name == "one_hot":
            return Task(lambda _: ready(nn.one_hot(LABELS, 4)))
        x = module.numpy.asarray(FEW)
        return Task(lambda _: ready(CALLS[name](nn, x)))
    return timed_alike(f"nn `{name}` of 4 x 10, eagerly", make, {"jax": 1.0})


def compiled(name: str, slope: bool = False) -> Measure:
    def make(module: Any) -> Task:
        nn = import_module(f"{module.__name__}.nn")
        x = module.device_put(np.random.default_rng(0).standard_normal(MANY).astype(np.float32))
        function = partial(CALLS[name], nn)
        if slope:
            function = module.grad(lambda x: (CALLS[name](nn, x) ** 2).sum())
        call = module.jit(function)
        return Task(lambda _: ready(call(x)))
    return timed_alike(f"{'slope of ' if slope else ''}nn `{name}` of 10^6, float32", make, {"jax": AS_FAST})


# Attention

def _attention(module: Any, shape: tuple[int, ...], dtype: str, slopes: bool, **options: Any) -> tuple[Any, list[Any]]:
    """A compiled function and its operands."""
    nn, rng = import_module(f"{module.__name__}.nn"), np.random.default_rng(0)
    operands = [module.device_put(module.numpy.asarray(rng.standard_normal(shape), dtype)) for _ in range(4)]

    def loss(query: Any, key: Any, value: Any, weights: Any) -> Any:
        return (nn.dot_product_attention(query, key, value, **options) * weights).sum()
    return module.jit(module.value_and_grad(loss, (0, 1, 2)) if slopes else loss), operands


def attention(what: str, shape: tuple[int, ...], dtype: str = "float32", slopes: bool = True, **options: Any
              ) -> Measure:
    def make(module: Any) -> Task:
        function, operands = _attention(module, shape, dtype, slopes, **options)
        return Task(lambda _: ready(function(*operands)))
    return timed_alike(f"attention, {what}", make, {"jax": AS_FAST})


def attention_memory(positions: int) -> Measure:
    """What the compiled program takes beside operands and results."""
    def measure(rivals: Mapping[str, Rival], effort: Effort) -> Iterator[Row]:
        found = {}
        for name, rival in rivals.items():
            if rival.module:
                function, operands = _attention(rival.module, (1, positions, 8, 64), "float32", True)
                memory = function.lower(*operands).compile().memory_analysis()
                found[name] = Timing.exact(memory.temp_size_in_bytes)
        yield Row(f"memory of attention, {positions:,} positions, value and gradient", found, {"jax": 10.0}, "B")
    return measure


# Programs

def gpt(library: str) -> Program:
    module = written_for(library, "models/character_gpt")
    random = module.random
    pairs = random.randint(random.key(0), (5000, 2), 0, 100, module.jnp.int32)
    sums = module.encoded(module.spelled(pairs, 2)).reshape(-1, 10)
    return (lambda state, key, sums: module.trained(state, key, sums, 50, 64, 0.005),
            (module.begun(random.key(1), module.Shape(20, 64)), random.key(2), sums))


def diffusion(library: str) -> Program:
    module = written_for(library, "models/diffusion")
    random = module.random
    return (lambda params, key: module.trained(params, key, 200, 256),
            (module.network(random.key(0), 22, 128, 128, 128, 2), random.key(1)))


def graph_network(library: str) -> Program:
    module = written_for(library, "models/graph_network")
    random = module.random
    return (lambda params, key: module.trained(params, key, 50, 500, 0.01),
            (module.network(random.key(0), 32, 4, 5), random.key(1)))


def vision_transformer(library: str) -> Program:
    module = written_for(library, "models/vision_transformer")
    random = module.random
    images, digits = module.loaded(random.key(0))
    return (lambda params, key, images, digits: module.trained(params, key, images, digits, 1, 64, 0.004),
            (module.network(random.key(1), 64, 4, 2), random.key(2), images, digits))


PROGRAMS: dict[str, tuple[str, Callable[[str], Program]]] = {
    "gpt": ("50 steps of a GPT of characters", gpt), "diffusion": ("200 steps of a diffusion model", diffusion),
    "graph_network": ("50 steps of a graph network", graph_network),
    "vision_transformer": ("an epoch of a vision transformer", vision_transformer)}

NETWORKS: dict[str, Measure] = {
    **{f"eager_{name}": eagerly(name) for name in (*CALLS, "one_hot")},
    **{name: compiled(name) for name in ("relu", "gelu", "silu", "softplus", "mish", "elu", *ALONG)},
    **{f"slope_{name}": compiled(name, slope=True) for name in ("gelu", "silu", *ALONG)},
    "attention": attention("2,048 positions, value and gradient", (1, 2048, 8, 64)),
    "attention_forward": attention("2,048 positions", (1, 2048, 8, 64), slopes=False),
    "attention_causal": attention("2,048 positions, causal, value and gradient", (1, 2048, 8, 64), is_causal=True),
    "attention_narrow": attention("2,048 positions, bfloat16, value and gradient", (1, 2048, 8, 64), "bfloat16"),
    "attention_batches": attention("16 x 256 positions, causal, value and gradient", (16, 256, 4, 32), is_causal=True),
    "attention_small": attention("8 x 16 positions, value and gradient", (8, 16, 4, 16)),
    "attention_memory": attention_memory(8192),
    **{name: running(*program) for name, program in PROGRAMS.items()}}
