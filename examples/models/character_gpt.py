"""A language model of characters, built as GPT is, that learns to add by reading sums.

    python examples/models/character_gpt.py

The text is one sum after another, with digits from the ones on: "21+93=150;" says that 12 + 39 is 51. The digits to add
can't be guessed, and all else can: so the best loss is known. Half of all sums of two digits are read; for the others,
the loss ends within 0.02 nats of the best, and 98% are continued correctly.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

import corejax as cj
import corejax.numpy as jnp
from corejax import lax, nn, random, tree_util
from corejax.flatten_util import ravel_pytree

CHARACTERS = "0123456789+=;"

Params = dict[str, Any]


class Shape(NamedTuple):
    """How large a model is: how many characters it sees, and the rest."""

    length: int
    width: int = 64
    heads: int = 4
    blocks: int = 2


class State(NamedTuple):
    """What training goes on from: parameters, the means of their slopes and of the squares of these, and a count."""

    params: Params
    mean: Params
    square: Params
    count: Any


def backwards(number: int, digits: int) -> str:
    return f"{number:0{digits}}"[::-1]


def spelled(pairs: Any, digits: int) -> str:
    """Sums of these pairs of numbers, as text."""
    return "".join([f"{backwards(a, digits)}+{backwards(b, digits)}={backwards(a + b, digits + 1)};"
                    for a, b in pairs.tolist()])


def encoded(text: str) -> Any:
    """The numbers of characters."""
    return jnp.array([CHARACTERS.index(character) for character in text], jnp.int32)


def decoded(tokens: Any) -> str:
    return "".join([CHARACTERS[token] for token in tokens.tolist()])


def block(key: Any, shape: Shape) -> Params:
    """The parameters of one block."""
    of_qkv, of_mix, of_up, of_down = random.split(key, 4)
    width, drawn = shape.width, nn.initializers.normal(shape.width ** -0.5, jnp.float32)
    return {"qkv": drawn(of_qkv, (width, 3, shape.heads, width // shape.heads)), "mix": drawn(of_mix, (width, width)),
            "up": drawn(of_up, (width, 4 * width)), "down": 0.5 * drawn(of_down, (4 * width, width)),
            "scale": jnp.ones((2, width), jnp.float32), "shift": jnp.zeros((2, width), jnp.float32)}


def begun(key: Any, shape: Shape) -> State:
    """A model that has learned nothing yet."""
    of_characters, of_places, *of_blocks = random.split(key, 2 + shape.blocks)
    drawn = nn.initializers.normal(0.02, jnp.float32)
    params = {"characters": drawn(of_characters, (len(CHARACTERS), shape.width)),
              "places": drawn(of_places, (shape.length, shape.width)),
              "blocks": [block(key, shape) for key in of_blocks]}
    return State(params, *[tree_util.tree_map(jnp.zeros_like, params) for _ in range(2)], jnp.zeros((), jnp.float32))


def applied(p: Params, x: Any) -> Any:
    """One block: each place looks at itself and those before, then thinks for itself."""
    inner = nn.standardize(x) * p["scale"][0] + p["shift"][0]
    q, k, v = jnp.einsum("btd,dcnh->cbtnh", inner, p["qkv"])
    x = x + nn.dot_product_attention(q, k, v, is_causal=True).reshape(x.shape) @ p["mix"]
    inner = nn.standardize(x) * p["scale"][1] + p["shift"][1]
    return x + nn.gelu(inner @ p["up"]) @ p["down"]


def logits(params: Params, tokens: Any) -> Any:
    """For each place, a number for each character that may come next."""
    x = params["characters"][tokens] + params["places"][:tokens.shape[1]]
    for p in params["blocks"]:
        x = applied(p, x)
    return nn.standardize(x) @ params["characters"].T


def loss(params: Params, tokens: Any) -> Any:
    """The mean surprise at each character but the first, in nats."""
    logs = nn.log_softmax(logits(params, tokens[:, :-1]))
    return -jnp.mean(jnp.take_along_axis(logs, tokens[:, 1:, None], axis=-1))


def adam(state: State, slopes: Params, rate: Any) -> State:
    """One step of Adam, by slopes whose norm is made 1 at most."""
    flat, unravel = ravel_pytree(slopes)
    slopes = unravel(flat / jnp.maximum(1.0, jnp.linalg.norm(flat)))
    count = state.count + 1
    mean = tree_util.tree_map(lambda m, g: 0.9 * m + 0.1 * g, state.mean, slopes)
    square = tree_util.tree_map(lambda s, g: 0.95 * s + 0.05 * g * g, state.square, slopes)
    now = rate * jnp.sqrt(1.0 - 0.95 ** count) / (1.0 - 0.9 ** count)
    params = tree_util.tree_map(lambda p, m, s: p - now * m / (jnp.sqrt(s) + 1e-8), state.params, mean, square)
    return State(params, mean, square, count)


@partial(cj.jit, donate_argnums=0, static_argnums=(3, 4, 5))
def trained(state: State, key: Any, sums: Any, steps: int, batch: int, rate: float) -> tuple[State, Any]:
    """The state after so many steps, each with as many pieces of the text as fit a model's places; and the losses."""
    each, seen = sums.shape[1], len(state.params["places"]) // sums.shape[1]

    def step(state: State, key: Any) -> tuple[State, Any]:
        starts = random.randint(key, (batch, 1), 0, len(sums) - seen + 1, jnp.int32)
        tokens = sums[starts + jnp.arange(seen)].reshape(batch, seen * each)
        value, slopes = cj.value_and_grad(loss)(state.params, tokens)
        return adam(state, slopes, rate * jnp.minimum((state.count + 1) / 50, 1.0 - state.count / steps)), value

    return lax.scan(step, state, random.split(key, steps))


@partial(cj.jit, static_argnums=3)
def continued(params: Params, key: Any, tokens: Any, count: int, temperature: Any = 1.0) -> Any:
    """Beginnings of texts with so many more characters, each drawn by what the model expects."""
    known = tokens.shape[1]

    def write(i: Any, tokens: Any) -> Any:
        expected = logits(params, tokens)[:, i - 1] / temperature
        return tokens.at[:, i].set(random.categorical(random.fold_in(key, i), expected).astype(tokens.dtype))

    return lax.fori_loop(known, known + count, write, jnp.pad(tokens, ((0, 0), (0, count))))


def experiment(steps: int, batch: int, width: int, seen: int, rate: float, digits: int = 2
               ) -> tuple[Any, Any, float, Any, str]:
    """The losses while learning half of all sums, by texts of so many; that of the others and the best there is; the
    share of these that is continued correctly, and a text.
    """
    of_order, of_model, of_training, of_text = random.split(random.key(0), 4)
    order, half = random.permutation(of_order, jnp.arange(100 ** digits, dtype=jnp.int32)), 100 ** digits // 2
    pairs = jnp.stack([order // 10 ** digits, order % 10 ** digits], axis=1)
    sums = encoded(spelled(pairs, digits)).reshape(len(order), -1)
    length = seen * sums.shape[1]
    state, losses = trained(begun(of_model, Shape(length, width)), of_training, sums[:half], steps, batch, rate)
    new = sums[half:half + 500 * seen].reshape(500, length)
    best = (2 * digits * seen - 1) * np.log(10) / (length - 1)  # the first character isn't asked for
    written = continued(state.params, of_text, new[:, :-digits - 2], digits + 2, 0.1)
    right = jnp.mean(jnp.all(written == new, axis=1), dtype=jnp.float32)
    return losses, cj.jit(loss)(state.params, new), best, right, decoded(written[0])


def main() -> None:
    losses, unseen, best, right, text = experiment(1200, 64, 64, 2, 0.005)
    print(f"loss {float(losses[0]):.3f} at first and {float(unseen):.3f} for new sums in the end, where {best:.3f} is "
          f"the best; {100 * float(right):.1f}% of these are right: {text}")


if __name__ == "__main__":
    main()
