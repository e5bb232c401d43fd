"""A walk through a grid learned from rewards alone: REINFORCE, with a value of each place as its baseline.

    python examples/sampling/reinforce.py

An agent starts in the upper left corner and has to reach the lower right one. It sees where it is, and has a table of
preferences for the four directions. One step in ten goes somewhere else than it wanted; stepping into a wall, or into a
hole, costs.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import corejax as cj
import corejax.numpy as jnp
from corejax import lax, random

WORLD = ("...#.",
         ".#...",
         ".#o#.",
         "...#.",
         "o#...")

WALLS = np.array([[dot == "#" for dot in row] for row in WORLD])
HOLES = np.array([[dot == "o" for dot in row] for row in WORLD])
SIZE = len(WORLD)
MOVES = np.array([[-1, 0], [1, 0], [0, -1], [0, 1]])


def stepped(key: Any, place: Any, move: Any) -> tuple[Any, Any, Any]:
    """Where the agent is after a move, what it gets for that, and whether it has arrived."""
    of_slip, of_other = random.split(key)
    move = jnp.where(random.bernoulli(of_slip, 0.1), random.randint(of_other, (), 0, 4), move)
    there = place + jnp.asarray(MOVES)[move]
    inside = jnp.all(jnp.logical_and(there >= 0, there < SIZE))
    there = jnp.clip(there, 0, SIZE - 1)
    free = jnp.logical_and(inside, jnp.logical_not(jnp.asarray(WALLS)[there[0], there[1]]))
    there = jnp.where(free, there, place)
    arrived = jnp.all(there == SIZE - 1)
    reward = 10.0 * arrived - 1.0 - 3.0 * jnp.asarray(HOLES)[there[0], there[1]] - 0.5 * jnp.logical_not(free)
    return there, reward, arrived


def walked(key: Any, policy: Any, length: int) -> tuple[Any, Any, Any, Any]:
    """The places, moves and rewards of a walk, and which of its steps were taken before it arrived."""
    def step(carry: Any, key: Any) -> Any:
        place, arrived = carry
        of_move, of_world = random.split(key)
        move = random.categorical(of_move, policy[place[0], place[1]])
        there, reward, there_now = stepped(of_world, place, move)
        there = jnp.where(arrived, place, there)
        going = jnp.logical_not(arrived)
        return (there, jnp.logical_or(arrived, there_now)), (place, move, jnp.where(going, reward, 0.0), going)

    start = jnp.zeros(2, int), jnp.array(False)
    return lax.scan(step, start, random.split(key, length))[1]


def to_come(rewards: Any) -> Any:
    """For each step the sum of its reward and all later ones."""
    return jnp.cumsum(rewards[::-1])[::-1]


def surprise(policy: Any, values: Any, walk: Any) -> Any:
    """A number whose derivative by the policy is an estimate of that of the mean return, with its sign changed."""
    places, moves, rewards, going = walk
    logs = policy[places[:, 0], places[:, 1]]
    logs = logs - jnp.log(jnp.sum(jnp.exp(logs), axis=1, keepdims=True))
    taken = jnp.take_along_axis(logs, moves[:, None], axis=1)[:, 0]
    better = to_come(rewards) - values[places[:, 0], places[:, 1]]
    chance = jnp.exp(logs)
    return -jnp.sum(going * (taken * lax.stop_gradient(better) - 0.01 * jnp.sum(chance * logs, axis=1)))


@partial(cj.jit, static_argnums=(1, 2, 3))
def learned(key: Any, rounds: int, walks: int, length: int) -> tuple[Any, Any]:
    """The policy after so many rounds, and the mean return in each."""
    def learn(carry: Any, key: Any) -> Any:
        policy, values = carry
        many = cj.vmap(lambda key: walked(key, policy, length))(random.split(key, walks))
        slope = cj.grad(lambda policy: jnp.mean(cj.vmap(surprise, (None, None, 0))(policy, values, many)))(policy)
        places, _, rewards, going = many
        returns = cj.vmap(to_come)(rewards)
        error = going * (returns - values[places[..., 0], places[..., 1]])
        counts = jnp.zeros((SIZE, SIZE)).at[places[..., 0], places[..., 1]].add(going)
        change = jnp.zeros((SIZE, SIZE)).at[places[..., 0], places[..., 1]].add(error)
        values = values + 0.5 * change / jnp.maximum(counts, 1.0)
        return (policy - 0.2 * slope, values), jnp.mean(returns[:, 0])

    nothing = jnp.zeros((SIZE, SIZE, 4)), jnp.zeros((SIZE, SIZE))
    (policy, _), returns = lax.scan(learn, nothing, random.split(key, rounds))
    return policy, returns


def best(rounds: int = 200) -> Any:
    """The return of the best policy, by dynamic programming."""
    values = np.zeros((SIZE, SIZE))
    for _ in range(rounds):
        gains = np.full((SIZE, SIZE, 4), 0.0)
        for i in range(SIZE):
            for j in range(SIZE):
                for k, (down, right) in enumerate(MOVES.tolist()):
                    y, x = i + down, j + right
                    free = 0 <= y < SIZE and 0 <= x < SIZE and not WALLS[y, x]
                    y, x = (y, x) if free else (i, j)
                    arrived = y == x == SIZE - 1
                    gains[i, j, k] = (10.0 * arrived - 1.0 - 3.0 * HOLES[y, x] - 0.5 * (not free)
                                      + (0.0 if arrived else values[y, x]))
        values = 0.9 * gains.max(-1) + 0.1 * gains.mean(-1)
        values[-1, -1] = 0.0
    return values[0, 0]


def experiment(rounds: int, walks: int) -> tuple[Any, Any]:
    """The mean returns while learning, and the largest that is possible."""
    _, returns = learned(random.key(5), rounds, walks, 40)
    return returns, best()


def main() -> None:
    returns, most = experiment(400, 64)
    print(f"a walk returns {float(returns[0]):.1f} at first and {float(returns[-20:].mean()):.2f} in the end; "
          f"the best is {most:.2f}")


if __name__ == "__main__":
    main()
