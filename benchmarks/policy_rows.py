"""Memory and time of a gradient through twelve transformer blocks, by what `checkpoint` saves, beside jax."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.measure import Effort, Task, Timing
from benchmarks.rivals import Rival
from benchmarks.rows import Measure, Row, ready, timed_alike

BLOCKS, WIDTH, HEADS, POSITIONS, BATCH = 12, 128, 4, 128, 4

#: The policies, by what is said of them: functions of `checkpoint_policies`.
POLICIES: dict[str, Callable[[Any], Any]] = {
    "everything_saveable": lambda policies: policies.everything_saveable,
    "nothing_saveable": lambda policies: policies.nothing_saveable,
    "dots_saveable": lambda policies: policies.dots_saveable,
    "dots_with_no_batch_dims_saveable": lambda policies: policies.dots_with_no_batch_dims_saveable,
    "offload_dot_with_no_batch_dims": lambda policies: policies.offload_dot_with_no_batch_dims("device", "pinned_host"),
    "save_only_these_names": lambda policies: policies.save_only_these_names("attention"),
    "save_any_names_but_these": lambda policies: policies.save_any_names_but_these("attention"),
    "save_anything_except_these_names": lambda policies: policies.save_anything_except_these_names("up"),
    "save_and_offload_only_these_names": lambda policies: policies.save_and_offload_only_these_names(
        names_which_can_be_saved=["attention"], names_which_can_be_offloaded=["up"], offload_src="device",
        offload_dst="pinned_host"),
    "save_from_both_policies": lambda policies: policies.save_from_both_policies(
        policies.dots_with_no_batch_dims_saveable, policies.save_only_these_names("attention"))}


def _block(module: Any) -> Callable[[Any, Any], tuple[Any, None]]:
    jnp, lax, named = module.numpy, module.lax, import_module(f"{module.__name__}.ad_checkpoint").checkpoint_name

    def normed(x: Any) -> Any:
        apart = x - x.mean(-1, keepdims=True)
        return apart * lax.rsqrt((apart * apart).mean(-1, keepdims=True) + 1e-5)

    def block(x: Any, weights: Any) -> tuple[Any, None]:
        queries, keys, values, mixed, up, down = weights
        q, k, v = [(normed(x) @ w).reshape(BATCH, POSITIONS, HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3)
                   for w in (queries, keys, values)]
        scores = q @ k.swapaxes(-1, -2) * (WIDTH // HEADS) ** -0.5
        powers = jnp.exp(scores - scores.max(-1, keepdims=True))
        found = powers / powers.sum(-1, keepdims=True) @ v
        x = x + named(found.transpose(0, 2, 1, 3).reshape(x.shape) @ mixed, "attention")
        h = named(normed(x) @ up, "up")
        return x + h * lax.logistic(1.7 * h) @ down, None
    return block


def _gradient(module: Any, policy: Callable[[Any], Any] | None) -> tuple[Any, tuple[Any, Any]]:
    """A compiled function and its operands; without a policy, nothing is checkpointed."""
    rng = np.random.default_rng(0)
    shapes = [*[(WIDTH, WIDTH)] * 4, (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH)]
    weights = tuple([(rng.standard_normal((BLOCKS, *shape)) * shape[0] ** -0.5).astype(np.float32) for shape in shapes])
    x = rng.standard_normal((BATCH, POSITIONS, WIDTH)).astype(np.float32)
    block: Any = _block(module)
    if policy is not None:
        block = module.checkpoint(block, policy=policy(module.checkpoint_policies), prevent_cse=False)
    function = module.jit(module.value_and_grad(lambda weights, x: (module.lax.scan(block, x, weights)[0] ** 2).mean()))
    return function.lower(weights, x).compile(), module.device_put((weights, x))


def memory(what: str, policy: Callable[[Any], Any] | None) -> Measure:
    """What the compiled program takes beside operands and results: at most as much as jax's."""
    def measure(rivals: Mapping[str, Rival], effort: Effort) -> Iterator[Row]:
        found = {name: Timing.exact(_gradient(rival.module, policy)[0].memory_analysis().temp_size_in_bytes)
                 for name, rival in rivals.items() if rival.module}
        yield Row(f"memory of a gradient, {what}", found, {"jax": 1.0}, "B")
    return measure


def time(what: str, policy: Callable[[Any], Any] | None) -> Measure:
    def make(module: Any) -> Task:
        function, operands = _gradient(module, policy)
        return Task(lambda _: ready(function(*operands)))
    return timed_alike(f"time of a gradient, {what}", make, {"jax": 0.98})


_ALL: dict[str, tuple[str, Callable[[Any], Any] | None]] = {
    "none": ("nothing checkpointed", None), **{name: (f"`{name}`", policy) for name, policy in POLICIES.items()}}

SAVED: dict[str, Measure] = {
    **{f"memory_{name}": memory(*row) for name, row in _ALL.items()},
    **{f"time_{name}": time(*row) for name, row in _ALL.items()}}
