"""A table that is filled row by row, in place, within a function that is mapped and differentiated."""

import numpy as np

import corejax as cj
from corejax import lax, numpy as jnp


def path_cost(costs):
    """The cheapest way through a grid, from the upper left corner to the lower right one, softly at the ties."""
    rows, columns = costs.shape
    best = cj.new_ref(jnp.full((rows + 1, columns + 1), 1e3))
    best[0, 1] = 0.0

    def cell(k, _):
        i, j = k // columns, k % columns
        ways = jnp.stack([best[i, j + 1], best[i + 1, j]])
        least = jnp.min(ways)
        best[i + 1, j + 1] = costs[i, j] + least - jnp.log(jnp.sum(jnp.exp(-20.0 * (ways - least)))) / 20.0

    lax.fori_loop(0, rows * columns, cell, None)
    return best[rows, columns]


def experiment():
    """Costs of a batch of grids; and for one, how its cost changes if each cell costs more: by the way's length."""
    costs = jnp.asarray(np.random.default_rng(1).uniform(size=(3, 4, 5)))
    change = cj.jit(lambda costs: cj.jvp(path_cost, (costs,), (jnp.ones_like(costs),))[1])
    return cj.jit(cj.vmap(path_cost))(costs), change(costs[0])


if __name__ == "__main__":
    found, change = experiment()
    print(np.round(found, 4), round(float(change), 3))
