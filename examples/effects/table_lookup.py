"""A function that only exists in Python: a table of measurements, looked up by a callback that has a derivative."""

import numpy as np

import corejax as cj
from corejax import lax, numpy as jnp

#: Measured densities of air by height, in km and kg/m^3.
HEIGHTS = np.array([0.0, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0])
DENSITIES = np.array([1.225, 1.007, 0.736, 0.414, 0.195, 0.089, 0.018])


def measured(height):
    """What the table says, by a library that knows nothing of tracing."""
    return np.interp(height, HEIGHTS, DENSITIES).astype(np.asarray(height).dtype)


def slope(height):
    """How the density changes by height, between two measurements."""
    place = np.clip(np.searchsorted(HEIGHTS, height, side="right") - 1, 0, len(HEIGHTS) - 2)
    return (np.diff(DENSITIES) / np.diff(HEIGHTS))[place].astype(np.asarray(height).dtype)


def called(function, height):
    """The function's result of an array, in any program."""
    height = jnp.asarray(height)
    kind = cj.ShapeDtypeStruct(height.shape, height.dtype)
    return cj.pure_callback(function, kind, height, vmap_method="expand_dims")


@cj.custom_jvp
def density(height):
    """The density of air at a height."""
    return called(measured, height)


@density.defjvp
def density_rule(primals, tangents):
    (height,), (change,) = primals, tangents
    return density(height), called(slope, height) * change


def fall(height, steps=200, step=0.25):
    """The speed and height of a parachutist, by Euler's method in a compiled loop."""
    def advance(state, _):
        height, speed = state
        drag = 0.05 * density(height) * speed ** 2
        return (height - step * speed / 1000.0, speed + step * (9.81 - drag)), speed

    (height, speed), speeds = lax.scan(advance, (jnp.asarray(height), jnp.asarray(0.0)), None, length=steps)
    return height, speed, speeds


def experiment():
    """Densities at some heights, slopes there, and the fall with its derivative by the first height."""
    heights = np.array([1.0, 7.0, 12.5])
    falling = cj.jit(lambda height: fall(height)[1])
    return (cj.jit(cj.vmap(density))(heights), cj.vmap(cj.grad(density))(heights), falling(20.0),
            cj.grad(falling)(20.0))


if __name__ == "__main__":
    for what, value in zip(("densities", "slopes", "speed", "its slope by height"), experiment()):
        print(what, np.round(value, 4))
