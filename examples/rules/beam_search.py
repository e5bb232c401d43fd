"""A search that keeps the best few translations as it goes, trained through the search itself.

    python examples/rules/beam_search.py

The score of the right sequence shall be above those of the others that are left at each step. How they are chosen has
no slope; their scores, which are gathered and summed on the way, have one.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import corejax as cj
import corejax.numpy as jnp
from corejax import lax

WORDS, BEAMS = 6, 4


def scores(params: Any, last: Any, position: Any) -> Any:
    """How well each word goes on after a word at a position."""
    after, at, bias = params
    return jnp.log(jnp.exp(jnp.tanh(after[last] + at[position]) @ bias + 1e-3) /
                   jnp.sum(jnp.exp(jnp.tanh(after[last] + at[position]) @ bias + 1e-3)))


def searched(params: Any, length: int) -> tuple[Any, Any]:
    """The best sequences that are found, the best one first, and the logarithms of their probabilities."""
    def grow(state: Any, position: Any) -> tuple[Any, Any]:
        total, last = state
        more = total[:, None] + cj.vmap(partial(scores, params, position=position))(last)
        best, places = lax.top_k(more.reshape(-1), BEAMS)
        return (best, places % WORDS), (places // WORDS, places % WORDS)

    start = jnp.where(jnp.arange(BEAMS) == 0, 0.0, -1e9), jnp.zeros(BEAMS, jnp.int32)
    (total, _), (parents, words) = lax.scan(grow, start, jnp.arange(length))

    def back(beam: Any, step: Any) -> tuple[Any, Any]:
        of, word = step
        return of[beam], word[beam]
    _, found = lax.scan(back, jnp.arange(BEAMS, dtype=jnp.int32), (parents, words), reverse=True)
    return found.T, total


def told(params: Any, sequence: Any) -> Any:
    """The logarithm of the probability of a sequence."""
    before = jnp.concatenate([jnp.zeros(1, int), sequence[:-1]])
    each = cj.vmap(partial(scores, params))(before, jnp.arange(len(sequence)))
    return jnp.sum(jnp.take_along_axis(each, sequence[:, None], axis=1))


def loss(params: Any, sequence: Any) -> Any:
    """How far the right sequence is behind what the search finds, softly."""
    found, total = searched(params, len(sequence))
    is_right = jnp.all(found == sequence, axis=1)
    others = jnp.where(is_right, -jnp.inf, total)
    return jnp.logaddexp(0.0, 1.0 + jnp.max(others) - told(params, sequence))


@partial(cj.jit, static_argnums=2)
def trained(params: Any, sequence: Any, steps: int) -> tuple[Any, Any]:
    """The parameters after gradient descent through the search, and the losses."""
    def step(params: Any, _: Any) -> tuple[Any, Any]:
        value, slopes = cj.value_and_grad(loss)(params, sequence)
        return cj.tree.map(lambda p, g: p - 0.2 * g, params, slopes), value
    return lax.scan(step, params, None, steps)


def begun(width: int, length: int) -> Any:
    """Parameters to begin with."""
    return (jnp.sin(jnp.arange(WORDS * width * 1.0).reshape(WORDS, width) * 1.3),
            jnp.cos(jnp.arange(length * width * 1.0).reshape(length, width) * 0.7),
            jnp.sin(jnp.arange(width * WORDS * 1.0).reshape(width, WORDS) * 2.1))


def main() -> None:
    right = jnp.array([3, 1, 4, 1, 5, 0, 2, 5])
    params, losses = trained(begun(8, 8), right, 150)
    found, total = searched(params, 8)
    print(f"loss {float(losses[0]):.2f} at first and {float(losses[-1]):.3f} in the end")
    print(f"found {found[0].tolist()} of {right.tolist()}, with probability {float(jnp.exp(total[0])):.2f}")


if __name__ == "__main__":
    main()
