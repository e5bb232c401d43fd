"""A graph network that finds how far places are from the nearest shop, where some roads are closed.

    python examples/models/graph_network.py

A place knows whether it has a shop, and a road whether it is open. In each round, places listen to their neighbours,
with attention: weights are a softmax over the roads that end at a place. After five rounds, a place tells its distance
to a shop by open roads: 0, 1, 2, 3, 4 or more. On maps it hasn't seen, three times as large, 99.9% of places are right.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import corejax as cj
import corejax.numpy as jnp
from corejax import lax, nn, ops, random, tree_util

Params = dict[str, Any]

#: Distances from this one on are all the same.
FAR = 4


class Graph(NamedTuple):
    """Places with their shops; and roads: where each begins and ends, and whether it is open. All go both ways."""

    shops: Any
    begins: Any
    ends: Any
    is_open: Any


def mapped(key: Any, places: int) -> Graph:
    """A random map, where six roads out of ten are open."""
    of_shops, of_ends, of_open = random.split(key, 3)
    shops = random.uniform(of_shops, (places,), jnp.float32) < 0.05
    a, b = random.randint(of_ends, (2, 2 * places), 0, places, jnp.int32)
    is_open = random.uniform(of_open, a.shape, jnp.float32) < 0.6
    return Graph(shops, jnp.concatenate([a, b]), jnp.concatenate([b, a]), jnp.concatenate([is_open, is_open]))


def distances(graph: Graph) -> Any:
    """How many roads are between each place and the nearest shop, up to FAR: what is to be learned."""
    def farther(_: Any, found: Any) -> Any:
        via = jnp.where(graph.is_open, found[graph.begins] + 1, FAR)
        return jnp.minimum(found, ops.segment_min(via, graph.ends, len(found)))

    return lax.fori_loop(0, FAR, farther, jnp.where(graph.shops, 0, FAR).astype(jnp.int32))


def segment_softmax(logits: Any, segments: Any, count: int) -> Any:
    """Positive numbers that sum to one in each segment."""
    most = lax.stop_gradient(ops.segment_max(logits, segments, count))
    powers = jnp.exp(logits - most[segments])
    return powers / ops.segment_sum(powers, segments, count)[segments]


def linear(key: Any, inputs: int, outputs: int) -> Params:
    return {"weights": nn.initializers.lecun_normal()(key, (inputs, outputs), jnp.float32),
            "biases": jnp.zeros(outputs, jnp.float32)}


def network(key: Any, width: int, heads: int, rounds: int) -> Params:
    """The parameters of all rounds, stacked, and of what begins and ends them."""
    of_start, of_end, of_rounds = random.split(key, 3)

    def one(key: Any) -> Params:
        keys = random.split(key, 4)
        return {"score": linear(keys[0], 2 * width + 1, heads), "say": linear(keys[1], width + 1, width),
                "think": linear(keys[2], 2 * width, 2 * width), "change": linear(keys[3], 2 * width, width)}

    return {"start": linear(of_start, 1, width), "rounds": cj.vmap(one)(random.split(of_rounds, rounds)),
            "end": linear(of_end, width, FAR + 1)}


def through(p: Params, x: Any) -> Any:
    return x @ p["weights"] + p["biases"]


def listened(p: Params, graph: Graph, x: Any) -> Any:
    """What each place knows after it has listened to its neighbours."""
    count, is_open = len(x), graph.is_open[:, None].astype(x.dtype)
    heard = jnp.concatenate([x[graph.begins], is_open], axis=1)
    scores = through(p["score"], jnp.concatenate([heard, x[graph.ends]], axis=1))
    weights = segment_softmax(nn.leaky_relu(scores), graph.ends, count)
    said = through(p["say"], heard).reshape(len(heard), weights.shape[1], -1)
    message = ops.segment_sum((weights[:, :, None] * said).reshape(len(heard), -1), graph.ends, count)
    inner = nn.relu(through(p["think"], jnp.concatenate([nn.standardize(x), message], axis=1)))
    return x + through(p["change"], inner)


def logits(params: Params, graph: Graph) -> Any:
    """A number for each place and distance."""
    x = through(params["start"], graph.shops[:, None].astype(jnp.float32))
    x, _ = lax.scan(lambda x, p: (listened(p, graph, x), None), x, params["rounds"])
    return through(params["end"], nn.standardize(x))


def loss(params: Params, graph: Graph) -> Any:
    """The mean surprise at the distance of a place."""
    logs = nn.log_softmax(logits(params, graph))
    return -jnp.mean(jnp.sum(logs * nn.one_hot(distances(graph), FAR + 1, dtype=logs.dtype), axis=1))


@partial(cj.jit, static_argnums=(2, 3, 4))
def trained(params: Params, key: Any, steps: int, places: int, rate: float) -> tuple[Params, Any]:
    """The parameters after so many steps by Adam's rule, each on a map of its own; and the losses."""
    def step(carry: Any, given: Any) -> Any:
        params, mean, square = carry
        i, key = given
        value, slopes = cj.value_and_grad(loss)(params, mapped(key, places))
        mean = tree_util.tree_map(lambda m, g: 0.9 * m + 0.1 * g, mean, slopes)
        square = tree_util.tree_map(lambda s, g: 0.99 * s + 0.01 * g * g, square, slopes)
        now = rate * (1.0 - i / steps) * jnp.sqrt(1.0 - 0.99 ** (i + 1.0)) / (1.0 - 0.9 ** (i + 1.0))
        params = tree_util.tree_map(lambda p, m, s: p - now * m / (jnp.sqrt(s) + 1e-8), params, mean, square)
        return (params, mean, square), value

    still = tree_util.tree_map(jnp.zeros_like, params)
    given = jnp.arange(steps, dtype=jnp.float32), random.split(key, steps)
    (params, _, _), losses = lax.scan(step, (params, still, still), given)
    return params, losses


@cj.jit
def accuracies(params: Params, graph: Graph) -> Any:
    """For each distance, the share of places that are told right; and that of all."""
    truth = distances(graph)
    right = (jnp.argmax(logits(params, graph), axis=1) == truth).astype(jnp.float32)
    shares = ops.segment_sum(right, truth, FAR + 1) / ops.segment_sum(jnp.ones_like(right), truth, FAR + 1)
    return shares, jnp.mean(right)


def experiment(steps: int, places: int, width: int) -> tuple[Any, Any, Any]:
    """The losses while learning; and on a larger map, the shares of places that are right, by distance and of all."""
    of_network, of_training, of_map = random.split(random.key(0), 3)
    params, losses = trained(network(of_network, width, 4, FAR + 1), of_training, steps, places, 0.01)
    return losses, *accuracies(params, mapped(of_map, 1500))


def main() -> None:
    losses, shares, share = experiment(1000, 500, 32)
    print(f"loss {float(losses[0]):.2f} at first and {float(losses[-20:].mean()):.3f} in the end; "
          f"{100 * float(share):.1f}% of places on a new map are right: "
          + ", ".join([f"{100 * share:.0f}% at {distance}" for distance, share in enumerate(shares.tolist())]))


if __name__ == "__main__":
    main()
