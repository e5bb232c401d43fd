"""Looking into a network without changing what it returns: a reference that is passed in collects what passes by."""

import numpy as np

import corejax as cj
from corejax import numpy as jnp


def network(params, x, norms):
    """A network of some layers, which writes the norm of each layer's output down."""
    for i, weights in enumerate(params):
        x = jnp.tanh(x @ weights)
        norms[i] = jnp.linalg.norm(x)
    return jnp.sum(x)


def experiment():
    """The result and the norms, of a call and of a second one with other data, in the same reference."""
    generator = np.random.default_rng(0)
    params = [jnp.asarray(generator.normal(size=(4, 4)) / 2.0) for _ in range(3)]
    norms = cj.new_ref(jnp.zeros(3))
    compiled = cj.jit(network)
    first = compiled(params, jnp.ones(4), norms)
    before = norms[...]
    second = compiled(params, 2.0 * jnp.ones(4), norms)
    return first, before, second, norms[...]


if __name__ == "__main__":
    for value in experiment():
        print(np.round(value, 4))
