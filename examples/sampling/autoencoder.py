"""A variational autoencoder of pictures of bars: draws through which a derivative goes.

    python examples/sampling/autoencoder.py

The encoder gives the mean and width of a normal distribution of codes, and a code is drawn as mean + width * noise. So
the loss, a bound of the pictures' likelihood, has derivatives by both.
"""

from __future__ import annotations

from typing import Any

import corejax as cj
import corejax.numpy as jnp
from corejax import lax, random


def bars(key: Any, count: int, size: int) -> Any:
    """Pictures of rows and columns that are each there with a probability of 1/4, where one in fifty dots is wrong."""
    of_rows, of_columns, of_dots = random.split(key, 3)
    rows = random.bernoulli(of_rows, 0.25, (count, size, 1))
    columns = random.bernoulli(of_columns, 0.25, (count, 1, size))
    wrong = random.bernoulli(of_dots, 0.02, (count, size, size))
    return jnp.logical_xor(jnp.logical_or(rows, columns), wrong).reshape(count, size * size).astype(float)


def layers(key: Any, *widths: int) -> list[Any]:
    """Weights and biases of layers."""
    return [(random.normal(key, (m, n)) / jnp.sqrt(m), jnp.zeros(n))
            for key, m, n in zip(random.split(key, len(widths) - 1), widths[:-1], widths[1:], strict=True)]


def applied(layers: list[Any], x: Any) -> Any:
    for weights, biases in layers[:-1]:
        x = jnp.tanh(x @ weights + biases)
    weights, biases = layers[-1]
    return x @ weights + biases


def model(key: Any, dots: int, hidden: int, codes: int) -> dict[str, Any]:
    of_encoder, of_decoder = random.split(key)
    return {"encoder": layers(of_encoder, dots, hidden, 2 * codes), "decoder": layers(of_decoder, codes, hidden, dots)}


def loss(params: dict[str, Any], key: Any, pictures: Any) -> Any:
    """Minus the bound of the log-likelihood, in nats for each picture."""
    mean, log_width = jnp.split(applied(params["encoder"], pictures), 2, axis=1)
    codes = mean + jnp.exp(log_width) * random.normal(key, mean.shape)
    logits = applied(params["decoder"], codes)
    seen = jnp.sum(jnp.logaddexp(0.0, logits) - pictures * logits, axis=1)
    apart = 0.5 * jnp.sum(mean ** 2 + jnp.exp(2.0 * log_width) - 1.0 - 2.0 * log_width, axis=1)
    return jnp.mean(seen + apart)


def adam(state: Any, slopes: Any, rate: float) -> Any:
    """One step of Adam; the state is a tuple of parameters, two means, and a count."""
    params, first, second, count = state
    count = count + 1
    first = cj.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, slopes)
    second = cj.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, slopes)
    scale = rate * jnp.sqrt(1.0 - 0.999 ** count) / (1.0 - 0.9 ** count)
    params = cj.tree.map(lambda p, m, v: p - scale * m / (jnp.sqrt(v) + 1e-8), params, first, second)
    return params, first, second, count


@cj.jit
def trained(key: Any, params: dict[str, Any], pictures: Any) -> tuple[Any, Any]:
    """The parameters after learning from each row of batches once, and the losses."""
    def learn(state: Any, given: Any) -> Any:
        value, slopes = cj.value_and_grad(loss)(state[0], *given)
        return adam(state, slopes, 0.005), value

    still = cj.tree.map(jnp.zeros_like, params)
    state, losses = lax.scan(learn, (params, still, still, 0.0), (random.split(key, len(pictures)), pictures))
    return state[0], losses


def experiment(steps: int, batch: int, size: int = 6) -> tuple[Any, Any, Any]:
    """The losses while learning; that of pictures that it hasn't seen; and pictures that it draws itself."""
    of_data, of_model, of_training, of_test, of_noise, of_codes = random.split(random.key(1), 6)
    pictures = bars(of_data, steps * batch, size).reshape(steps, batch, -1)
    params, losses = trained(of_training, model(of_model, size * size, 64, 2 * size), pictures)
    unseen = loss(params, of_noise, bars(of_test, 2000, size))
    drawn = applied(params["decoder"], random.normal(of_codes, (4, 2 * size))) > 0.0
    return losses, unseen, drawn.reshape(4, size, size)


def main() -> None:
    losses, unseen, drawn = experiment(3000, 64)
    print(f"{float(losses[0]):.1f} nats for a picture at first, {float(unseen):.1f} in the end, for new ones")
    for row in zip(*drawn.tolist(), strict=True):
        print("   ".join(["".join([".#"[dot] for dot in part]) for part in row]))


if __name__ == "__main__":
    main()
