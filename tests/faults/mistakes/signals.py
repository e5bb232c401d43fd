"""corejax-signals: primitives for time series."""

import numpy as np

from corejax import lax
from corejax.core import dtypes
from corejax.errors import CorejaxIndexError, CorejaxTypeError
from corejax.plugin import Sample, define, hookimpl, partials


class Smooth:
    """y[t] = x[t] + decay * y[t - 1], along an axis."""

    name = "smooth"
    linear = (0,)

    @hookimpl
    def abstract_eval(self, avals, *, along=0, decay=0.5):
        (x,) = avals
        if dtypes.kind(x.dtype) not in "fc":
            raise CorejaxTypeError("smooth: only floats decay", got=str(x), wanted="floats", todo="use x.astype(float)")
        if not 0 <= along < x.ndim:
            raise CorejaxIndexError(f"smooth: there is no axis {along}", got=str(x), todo="name an axis that it has")
        return x

    @hookimpl
    def impl(self, args, *, along, decay):
        y = args[0].copy()
        rows = np.moveaxis(y, along, 0)
        for t in range(1, len(rows)):
            rows[t] += decay * rows[t - 1]
        return y

    @hookimpl
    def decompose(self, args, *, along, decay):
        rows = args[0].swapaxes(along, 0)
        def step(y, x):
            return decay * y + x, decay * y + x
        _, rows = lax.scan(step, lax.full_like(rows.sum(axis=0), 0), rows)
        return rows.swapaxes(along, 0)

    @hookimpl
    def transpose(self, cotangents, args, *, along, decay):
        backward = lax.rev(cotangents, (along,))
        return [lax.rev(smooth(backward, along=along, decay=decay), (along,))]

    @hookimpl
    def vmap(self, axis, args, dims, *, along, decay):
        return smooth(args[0], along=along + (dims[0] <= along), decay=decay), dims[0]

    @hookimpl
    def samples(self, rng):
        for shape, along, decay in [((5,), 0, 0.5), ((2, 3), 1, 0.25), ((3, 2, 2), 0, 0.5), ((0,), 0, 0.5)]:
            yield Sample([rng.normal(size=shape)], {"along": along, "decay": decay}, domain=(-2.0, 2.0), exempt={
                "zeros keep their signs": "compiled, it starts from 0, and 0 + -0 is 0"})
        yield Sample([np.ones(3)], {"along": 1, "decay": 0.5}, error=IndexError)


class Huber:
    """x * x / 2 where |x| < 1, |x| - 1/2 elsewhere."""

    name = "huber"
    jvp = partials(lambda x_dot, out, x: lax.clamp(-1.0, x, 1.0) * x_dot)

    @hookimpl
    def decompose(self, args):
        size = lax.abs(args[0])
        return lax.select(size < 1.0, args[0] * args[0] / 2.0, size - 0.5)

    @hookimpl
    def samples(self, rng):
        for shape in [(), (4,), (2, 3), (0,)]:
            yield Sample([rng.normal(size=shape)], domain=(-3.0, 3.0), singular=(-1.0, 1.0))
        yield Sample([np.array([0.5, -2.0])], results=np.array([0.125, 1.5]))


smooth = define(Smooth())
huber = define(Huber())
