"""A small transformer that predicts the next token, as one writes it with jax.numpy.

    python examples/jnp/transformer.py

The sequences repeat themselves with some period: a token is known from the one that many places before.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import corejax as cj
import corejax.numpy as jnp
from corejax import lax

Params = dict[str, Any]


def block(rng: np.random.Generator, width: int, heads: int) -> Params:
    """The parameters of one block."""
    def drawn(*shape: int) -> Any:
        return jnp.array(rng.normal(size=shape) / np.sqrt(shape[0]))
    return {"qkv": drawn(width, 3, heads, width // heads), "mix": drawn(width, width), "up": drawn(width, 4 * width),
            "down": drawn(4 * width, width), "scale": jnp.ones((2, width)), "shift": jnp.zeros((2, width))}


def model(rng: np.random.Generator, tokens: int, length: int, width: int, heads: int, blocks: int) -> Params:
    """The parameters of everything."""
    return {"tokens": jnp.array(rng.normal(size=(tokens, width)) * 0.5),
            "places": jnp.array(rng.normal(size=(length, width)) * 0.5),
            "blocks": [block(rng, width, heads) for _ in range(blocks)]}


def softmax(x: Any) -> Any:
    """Along the last axis."""
    grown = jnp.exp(x - jnp.max(x, axis=-1, keepdims=True))
    return grown / jnp.sum(grown, axis=-1, keepdims=True)


def gelu(x: Any) -> Any:
    """A smooth ramp."""
    return 0.5 * x * (1.0 + jnp.tanh(jnp.sqrt(2.0 / jnp.pi) * (x + 0.044715 * x ** 3)))


def normalized(x: Any, scale: Any, shift: Any) -> Any:
    """Each vector with mean zero and variance one, then scaled and shifted."""
    mean = jnp.mean(x, axis=-1, keepdims=True)
    return (x - mean) / jnp.sqrt(jnp.var(x, axis=-1, keepdims=True) + 1e-6) * scale + shift


def attention(p: Params, x: Any) -> Any:
    """Each place looks at itself and those before."""
    q, k, v = jnp.einsum("btd,dchk->cbhtk", x, p["qkv"])
    scores = jnp.einsum("bhtk,bhsk->bhts", q, k) / jnp.sqrt(q.shape[-1])
    seen = jnp.tril(jnp.ones((x.shape[1], x.shape[1]), bool))
    weights = softmax(jnp.where(seen, scores, -1e30))
    return jnp.moveaxis(jnp.matmul(weights, v), 1, 2).reshape(x.shape) @ p["mix"]


def applied(p: Params, x: Any) -> Any:
    """One block."""
    x = x + attention(p, normalized(x, p["scale"][0], p["shift"][0]))
    return x + gelu(normalized(x, p["scale"][1], p["shift"][1]) @ p["up"]) @ p["down"]


def block_loss(p: Params, x: Any, target: Any) -> Any:
    """The mean square distance of a block's output from a target."""
    return jnp.mean(jnp.square(applied(p, x) - target))


def loss(params: Params, tokens: Any) -> Any:
    """The mean cross entropy of each token but the first."""
    x = jnp.take(params["tokens"], tokens[:, :-1], axis=0) + params["places"][:tokens.shape[1] - 1]
    for each in params["blocks"]:
        x = applied(each, x)
    z = x @ params["tokens"].T
    z = z - jnp.max(z, axis=-1, keepdims=True)
    right = jnp.take_along_axis(z, tokens[:, 1:, None], axis=-1)[..., 0]
    return jnp.mean(jnp.log(jnp.sum(jnp.exp(z), axis=-1)) - right)


@partial(cj.jit, static_argnums=2)
def trained(params: Params, batches: Any, rate: float) -> tuple[Params, Any]:
    """The parameters after a step by Adam's rule for each batch, and the losses."""
    def step(carry: Any, each: Any) -> tuple[Any, Any]:
        params, mean, square = carry
        i, tokens = each
        value, slopes = cj.value_and_grad(loss)(params, tokens)
        mean = cj.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, slopes)
        square = cj.tree.map(lambda s, g: 0.99 * s + 0.01 * jnp.square(g), square, slopes)
        now = rate * jnp.sqrt(1.0 - 0.99 ** (i + 1.0)) / (1.0 - 0.9 ** (i + 1.0))
        params = cj.tree.map(lambda p, m, s: p - now * m / (jnp.sqrt(s) + 1e-8), params, mean, square)
        return (params, mean, square), value
    still = cj.tree.map(jnp.zeros_like, params)
    (params, _, _), losses = lax.scan(step, (params, still, still), (jnp.arange(len(batches)), batches))
    return params, losses


def drawn(rng: np.random.Generator, batches: int, size: int, length: int, tokens: int, period: int) -> np.ndarray:
    """Sequences that repeat themselves."""
    once = rng.integers(0, tokens, (batches, size, period))
    return np.tile(once, (1, 1, length // period + 1))[..., :length]


def main() -> None:
    rng = np.random.default_rng(0)
    params = model(rng, 8, 16, 32, 4, 2)
    _, losses = trained(params, drawn(rng, 200, 32, 17, 8, 4), 0.003)
    print(f"loss {float(losses[0]):.3f} -> {float(losses[-1]):.3f}; the best there is {4 / 16 * np.log(8) * 3 / 4:.3f}")


if __name__ == "__main__":
    main()
