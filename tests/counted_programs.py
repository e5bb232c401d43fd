"""Programs whose equations are counted after each transformation, here and in jax.

A program is one text for both: it takes `(api, lax)`, which are `corejax` and `corejax.lax` or `jax` and `jax.lax`, and
returns a function to a scalar that is differentiated by its first argument. Only calls that both have are used, so that
what is counted is what the transformations make of the same equations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

BATCH = 5


@dataclass(frozen=True)
class Counted:
    """A program, with arguments; `modes` are the transformations that it allows."""

    name: str
    make: Callable[[Any, Any], Callable[..., Any]]
    args: tuple[Any, ...]
    modes: tuple[str, ...]

    def __str__(self) -> str:
        return self.name


FORWARD = ("program", "jvp", "vmap", "vmap of jvp", "jvp of jvp")
REVERSE = ("grad", "vmap of grad", "grad of vmap", "grad of grad", "jvp of grad")
PROGRAMS: list[Counted] = []


def program(*args: Any, modes: tuple[str, ...] = FORWARD + REVERSE) -> Callable[[Callable[..., Any]], None]:
    def enter(make: Callable[[Any, Any], Callable[..., Any]]) -> None:
        PROGRAMS.append(Counted(make.__name__, make, args, modes))
    return enter


def transformed(counted: Counted, mode: str, api: Any, lax: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A program under a transformation, and arguments for it. Batches are of the first argument, or of all others."""
    leaves, build = _tree(counted.args[0])
    fun, rest = counted.make(api, lax), counted.args[1:]
    stacked = build([np.stack([x] * BATCH) for x in leaves])
    first = 0, *[None] * len(rest)

    def energy(*args: Any) -> Any:
        total: Any = 0.0
        for slope in _tree(api.grad(fun)(*args))[0]:
            total = total + lax.reduce_sum(lax.mul(slope, slope), tuple(range(slope.ndim)))
        return total

    def mean(*args: Any) -> Any:
        return lax.reduce_sum(api.vmap(fun, in_axes=first)(*args), (0,))

    def push(fun: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x, x_dot, *rest: api.jvp(lambda x: fun(x, *rest), (x,), (x_dot,))

    args = counted.args
    twice = args[0], args[0], *rest
    if mode in ("vmap of grad", "vmap of jvp") and rest:
        batched = [np.stack([x] * BATCH) for x in rest]
        if mode == "vmap of grad":
            return api.vmap(api.grad(fun), in_axes=(None, *[0] * len(rest))), (args[0], *batched)
        return api.vmap(push(fun), in_axes=(None, None, *[0] * len(rest))), (args[0], args[0], *batched)
    return {
        "program": (fun, args),
        "jvp": (push(fun), twice),
        "vmap": (api.vmap(fun, in_axes=first), (stacked, *rest)),
        "vmap of jvp": (api.vmap(push(fun), in_axes=(0, *first)), (stacked, stacked, *rest)),
        "jvp of jvp": (push(lambda x, *rest: push(fun)(x, x, *rest)[1]), twice),
        "grad": (api.grad(fun), args),
        "vmap of grad": (api.vmap(api.grad(fun), in_axes=first), (stacked, *rest)),
        "grad of vmap": (api.grad(mean), (stacked, *rest)),
        "grad of grad": (api.grad(energy), args),
        "jvp of grad": (push(api.grad(fun)), twice),
    }[mode]


def _tree(x: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    """The leaves of nested tuples, and what builds the same tuples of others."""
    if not isinstance(x, tuple):
        return [x], lambda leaves: leaves[0]
    parts = [_tree(item) for item in x]

    def build(leaves: list[Any]) -> Any:
        built, at = [], 0
        for found, make in parts:
            built.append(make(leaves[at: at + len(found)]))
            at += len(found)
        return tuple(built)

    return [leaf for found, _ in parts for leaf in found], build


def _normal(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape)


def _matmul(lax: Any, x: Any, y: Any) -> Any:
    return lax.dot_general(x, y, (((x.ndim - 1,), (0,)), ((), ())))


def _rows(lax: Any, x: Any, shape: tuple[int, int]) -> Any:
    """A vector, once for each row of a matrix of that shape."""
    return lax.broadcast_in_dim(x, shape, (1,))


def _columns(lax: Any, x: Any, shape: tuple[int, int]) -> Any:
    return lax.broadcast_in_dim(x, shape, (0,))


# Without control flow

@program(((_normal(0, 3, 8), _normal(1, 8)), (_normal(2, 8, 4), _normal(3, 4))), _normal(4, 6, 3),
         np.eye(4)[[0, 1, 2, 3, 1, 0]])
def mlp_with_softmax_loss(api: Any, lax: Any) -> Callable[..., Any]:
    def loss(params: Any, x: Any, targets: Any) -> Any:
        (w, b), (v, c) = params
        hidden = lax.tanh(lax.add(_matmul(lax, x, w), _rows(lax, b, (6, 8))))
        logits = lax.add(_matmul(lax, hidden, v), _rows(lax, c, (6, 4)))
        top = lax.stop_gradient(lax.reduce_max(logits, (1,)))
        shifted = lax.sub(logits, _columns(lax, top, (6, 4)))
        norm = lax.log(lax.reduce_sum(lax.exp(shifted), (1,)))
        likelihood = lax.mul(lax.sub(shifted, _columns(lax, norm, (6, 4))), targets)
        return lax.neg(lax.div(lax.reduce_sum(likelihood, (0, 1)), 6.0))
    return loss


@program(_normal(5, 3), _normal(6, 6, 3), np.array([0.0, 1.0, 1.0, 0.0, 1.0, 0.0]))
def logistic_regression(api: Any, lax: Any) -> Callable[..., Any]:
    def loss(w: Any, x: Any, y: Any) -> Any:
        p = lax.logistic(_matmul(lax, x, w))
        gain = lax.add(lax.mul(y, lax.log(p)), lax.mul(lax.sub(1.0, y), lax.log1p(lax.neg(p))))
        return lax.add(lax.neg(lax.reduce_sum(gain, (0,))), lax.mul(0.1, lax.reduce_sum(lax.mul(w, w), (0,))))
    return loss


@program(_normal(7, 4), _normal(8, 4))
def chain_of_operations(api: Any, lax: Any) -> Callable[..., Any]:
    def chain(x: Any, y: Any) -> Any:
        for _ in range(3):
            x = lax.tanh(lax.div(lax.sub(x, y), lax.max(lax.sub(y, x), lax.exp(x))))
            x = lax.sub(lax.min(x, y), lax.mul(lax.abs(x), lax.sqrt(lax.add(lax.square(y), 1.0))))
        return lax.reduce_sum(x, (0,))
    return chain


@program(_normal(9, 3, 4))
def norm(api: Any, lax: Any) -> Callable[..., Any]:
    def normalized(x: Any) -> Any:
        mean = lax.div(lax.reduce_sum(x, (1,)), 4.0)
        centered = lax.sub(x, _columns(lax, mean, (3, 4)))
        variance = lax.div(lax.reduce_sum(lax.integer_pow(centered, 2), (1,)), 4.0)
        scaled = lax.mul(centered, _columns(lax, lax.rsqrt(lax.add(variance, 1e-5)), (3, 4)))
        return lax.sqrt(lax.reduce_sum(lax.integer_pow(scaled, 4), (0, 1)))
    return normalized


@program(_normal(10, 3, 4))
def logsumexp(api: Any, lax: Any) -> Callable[..., Any]:
    def log_of_sum(x: Any) -> Any:
        top = lax.reduce_max(x, (1,))
        summed = lax.reduce_sum(lax.exp(lax.sub(x, _columns(lax, top, (3, 4)))), (1,))
        return lax.reduce_sum(lax.add(lax.log(summed), top), (0,))
    return log_of_sum


@program(_normal(11, 6, 4), np.array([2, 0, 5]), np.int64(1))
def indexing(api: Any, lax: Any) -> Callable[..., Any]:
    def picked(x: Any, rows: Any, start: Any) -> Any:
        numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
        gathered = lax.gather(x, lax.expand_dims(rows, (1,)), numbers, (1, 4), mode="fill")
        window = lax.dynamic_slice(x, (start, 0), (3, 4))
        fixed = lax.slice(x, (1, 0), (4, 4))
        mixed = lax.add(lax.mul(gathered, window), lax.rev(fixed, (0,)))
        wider = lax.dynamic_update_slice(lax.mul(x, 2.0), mixed, (start, 0))
        joined = lax.concatenate([wider, lax.pad(mixed, 1.0, [(0, 1, 0), (0, 0, 0)])], 0)
        return lax.reduce_sum(lax.mul(joined, joined), (0, 1))
    return picked


@program(_normal(12, 3, 2), _normal(13, 10, 2))
def convolution(api: Any, lax: Any) -> Callable[..., Any]:
    def convolved(kernel: Any, signal: Any) -> Any:
        windows = lax.concatenate([lax.expand_dims(lax.slice(signal, (i, 0), (i + 8, 2)), (1,)) for i in range(3)], 1)
        out = lax.dot_general(windows, kernel, (((1, 2), (0, 1)), ((), ())))
        pooled = lax.reduce_max(lax.reshape(lax.tanh(out), (4, 2)), (1,))
        return lax.reduce_sum(lax.mul(pooled, pooled), (0,))
    return convolved


@program(_normal(14, 5), _normal(15, 6))
def polynomial(api: Any, lax: Any) -> Callable[..., Any]:
    def summed(x: Any, coefficients: Any) -> Any:
        value = lax.full_like(x, 0.0)
        for i in range(6):
            coefficient = lax.reshape(lax.slice(coefficients, (i,), (i + 1,)), ())
            value = lax.add(lax.mul(value, x), lax.broadcast_in_dim(coefficient, (5,), ()))
        return lax.reduce_sum(lax.add(value, lax.integer_pow(x, 3)), (0,))
    return summed


@program(_normal(16, 6), _normal(17, 6))
def cumulative_sum(api: Any, lax: Any) -> Callable[..., Any]:
    def summed(x: Any, y: Any) -> Any:
        steps = lax.cumsum(lax.mul(x, y), axis=0)
        back = lax.cumsum(lax.sin(steps), axis=0, reverse=True)
        return lax.reduce_sum(lax.select(lax.gt(back, 0.0), back, lax.mul(steps, 0.1)), (0,))
    return summed


@program(_normal(18, 4), np.float64(0.7))
def operators_with_scalars(api: Any, lax: Any) -> Callable[..., Any]:
    def mixed(x: Any, scale: Any) -> Any:
        y = 2.0 - x * scale
        y = (1.0 / (y * y + 3.0) - x) * scale + (y - scale) / 2.0
        return (y ** 2 * 0.5 + scale).sum() - scale * scale
    return mixed


# With control flow

@program(_normal(20, 4, 4), _normal(21, 3, 4), _normal(22, 7, 3), _normal(23, 4))
def scan_of_a_recurrent_network(api: Any, lax: Any) -> Callable[..., Any]:
    def loss(w: Any, v: Any, xs: Any, start: Any) -> Any:
        def step(carry: Any, x: Any) -> Any:
            hidden, total = carry
            hidden = lax.tanh(lax.add(_matmul(lax, hidden, w), _matmul(lax, x, v)))
            return (hidden, lax.add(total, lax.reduce_sum(hidden, (0,)))), lax.mul(hidden, 0.5)

        (hidden, total), outs = lax.scan(step, (start, 0.0), xs)
        return lax.add(lax.add(total, lax.reduce_sum(outs, (0, 1))), lax.reduce_sum(hidden, (0,)))
    return loss


@program(_normal(24, 5), np.array([True, False, True]), _normal(25, 5))
def cond_in_scan(api: Any, lax: Any) -> Callable[..., Any]:
    def loss(x: Any, choices: Any, y: Any) -> Any:
        def step(carry: Any, choice: Any) -> Any:
            carry = lax.cond(choice, lambda c: lax.mul(lax.sin(c), y), lambda c: lax.add(c, x), carry)
            return carry, None

        last, _ = lax.scan(step, x, choices)
        return lax.reduce_sum(last, (0,))
    return loss


@program(_normal(26, 4), _normal(27, 4), modes=FORWARD)
def while_loop(api: Any, lax: Any) -> Callable[..., Any]:
    def grown(x: Any, y: Any) -> Any:
        def step(state: Any) -> Any:
            count, z = state
            return lax.add(count, 1), lax.add(lax.mul(z, y), lax.sin(x))

        _, z = lax.while_loop(lambda state: lax.lt(state[0], 5), step, (0, x))
        return lax.reduce_sum(z, (0,))
    return grown


@program(_normal(28, 4), _normal(29, 4))
def fori_loop(api: Any, lax: Any) -> Callable[..., Any]:
    def summed(x: Any, y: Any) -> Any:
        def step(i: Any, z: Any) -> Any:
            return lax.add(lax.mul(lax.sin(z), y), lax.mul(z, lax.convert_element_type(i, np.float64)))

        return lax.reduce_sum(lax.fori_loop(0, 6, step, x), (0,))
    return summed


@program((_normal(30, 4, 8), _normal(31, 8, 4)), _normal(32, 3, 4))
def checkpointed_mlp(api: Any, lax: Any) -> Callable[..., Any]:
    def loss(params: Any, x: Any) -> Any:
        def layer(w: Any, v: Any, x: Any) -> Any:
            return lax.tanh(_matmul(lax, lax.sin(_matmul(lax, x, w)), v))

        for _ in range(2):
            x = api.checkpoint(layer)(*params, x)
        return lax.reduce_sum(lax.mul(x, x), (0, 1))
    return loss


@program(_normal(33, 5), _normal(34, 5))
def rule_for_jvp(api: Any, lax: Any) -> Callable[..., Any]:
    @api.custom_jvp
    def softplus(x: Any) -> Any:
        return lax.add(lax.max(x, 0.0), lax.log1p(lax.exp(lax.neg(lax.abs(x)))))

    @softplus.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (x,), (x_dot,) = primals, tangents
        return softplus(x), lax.mul(x_dot, lax.logistic(x))

    return lambda x, y: lax.reduce_sum(lax.mul(softplus(lax.mul(x, y)), softplus(x)), (0,))


@program(_normal(35, 5), _normal(36, 5),
         modes=("program", "vmap", "grad", "vmap of grad", "grad of vmap", "grad of grad"))
def rule_for_vjp(api: Any, lax: Any) -> Callable[..., Any]:
    @api.custom_vjp
    def product(x: Any, y: Any) -> Any:
        return lax.mul(lax.sin(x), y)

    def forward(x: Any, y: Any) -> Any:
        return product(x, y), (lax.cos(x), lax.sin(x), y)

    def backward(kept: Any, ct: Any) -> Any:
        slope, value, y = kept
        return lax.mul(lax.mul(ct, slope), y), lax.mul(ct, value)

    product.defvjp(forward, backward)
    return lambda x, y: lax.reduce_sum(lax.mul(product(x, y), x), (0,))


@program(_normal(37, 4), np.array([-1.0, 2.0, 0.5]))
def cond_with_a_batched_predicate(api: Any, lax: Any) -> Callable[..., Any]:
    def loss(x: Any, thresholds: Any) -> Any:
        def one(threshold: Any) -> Any:
            total = lax.reduce_sum(x, (0,))
            return lax.cond(lax.gt(total, threshold), lambda z: lax.mul(lax.sin(z), lax.cos(z)),
                            lambda z: lax.mul(z, threshold), x)
        return lax.reduce_sum(api.vmap(one)(thresholds), (0, 1))
    return loss
