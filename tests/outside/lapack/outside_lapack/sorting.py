"""Sorting along the last axis; NaN comes last, as in NumPy."""

import numpy as np

from corejax import lax
from corejax.core import dtypes, to_dim
from corejax.plugin import Sample, define, hookimpl, not_differentiable, not_linear, partials, public, refused

__all__ = ["argsort", "partition", "searchsorted", "sort_rows"]


def _take(x, places):
    """x[..., places[..., i]] along the last axis."""
    return x[(*np.ogrid[tuple(map(slice, x.shape))][:-1], places)]


def _check(name, x):
    if dtypes.kind(x.dtype) not in "iuf" or not x.shape:
        raise refused(name, "wrong operand", got=x, wanted="real numbers along an axis",
                      todo="sort a key of each: real(x), for example")


def _lower(ctx, x, aval):
    """The elements and their places, sorted: StableHLO's sort carries the places along."""
    places = np.broadcast_to(np.arange(aval.shape[-1], dtype=np.int64), aval.shape)
    out_types = [ctx.type_of(aval), ctx.type_of(aval.update(dtype=np.dtype(np.int64), weak_type=False))]
    values, places = ctx.op("stablehlo.sort", [x, ctx.constant(places)], {
        "dimension": ctx.attribute(f"{aval.ndim - 1} : i64"), "is_stable": ctx.attribute("true")}, out_types, regions=1)
    scalars = [ctx.type_of(aval.update(shape=(), dtype=dtype)) for dtype in (aval.dtype, np.dtype(np.int64))]
    ctx.fill(values.owner.regions[0], [scalars[0]] * 2 + [scalars[1]] * 2,
             lambda a, b, i, j: [ctx.lower(lambda a, b: (a < b) | ((b != b) & (a == a)), a, b)])
    return values, places


class Sort:
    """The elements in rising order, along the last axis."""

    name = "sort_rows"
    operands = ("x",)
    jvp = partials(lambda x_dot, out, x: _take(x_dot, argsort(x)))

    @hookimpl
    def abstract_eval(self, avals):
        (x,) = avals
        _check(self.name, x)
        return x

    @hookimpl
    def vmap(self, axis, args, dims):
        return sort_rows(to_dim(args[0], dims[0], 0, axis.size)), 0

    @hookimpl
    def xla_translation(self, ctx, args):
        return _lower(ctx, args[0], ctx.avals_in[0])[0]

    @hookimpl
    def samples(self, rng):
        yield Sample([rng.normal(size=(2, 5))])
        yield Sample([np.array([2, -1, 2, 0])], results=np.array([-1, 0, 2, 2]))
        yield Sample([np.ones(2, complex)], error=TypeError)


class Argsort:
    """The places of the elements in rising order, along the last axis."""

    name = "argsort"
    operands = ("x",)
    jvp = partials(None)
    transpose = not_linear()

    @hookimpl
    def abstract_eval(self, avals):
        (x,) = avals
        _check(self.name, x)
        return x.update(dtype=np.dtype(np.int64), weak_type=False)

    @hookimpl
    def vmap(self, axis, args, dims):
        return argsort(to_dim(args[0], dims[0], 0, axis.size)), 0

    @hookimpl
    def xla_translation(self, ctx, args):
        return _lower(ctx, args[0], ctx.avals_in[0])[1]

    @hookimpl
    def samples(self, rng):
        yield Sample([rng.normal(size=(2, 5))])
        yield Sample([np.array([2, -1, 2, 0])], results=np.array([1, 3, 0, 2]),
                     exempt={"weak types pass through": "places are int64, whatever is sorted"})


class SearchSorted:
    """How many elements of a rising vector are smaller than each of the others."""

    name = "searchsorted"
    operands = ("rising", "x")
    jvp = not_differentiable("places are constant between their jumps")
    transpose = not_linear()

    @hookimpl
    def abstract_eval(self, avals):
        rising, x = avals
        _check(self.name, rising)
        if rising.ndim != 1 or rising.dtype != x.dtype:
            raise refused(self.name, "wrong operands", got=f"{rising}, {x}", todo="convert: x.astype(...)",
                          wanted="a vector and an array of one dtype")
        return x.update(dtype=np.dtype(np.int64), weak_type=False)

    @hookimpl
    def xla_translation(self, ctx, args):
        return ctx.lower(lambda rising, x: (rising < lax.expand_dims(x, (x.ndim,))).sum(-1), *args)

    @hookimpl
    def samples(self, rng):
        rising, x = np.sort(rng.normal(size=5)), rng.normal(size=(2, 3))
        yield Sample([rising, x], domain=(None, (-2.0, 2.0)), results=np.searchsorted(rising, x),
                     exempt={"no fallback is hidden": "one vector cannot be searched for a batch of vectors"})


sort_rows, argsort, searchsorted = define(Sort()), define(Argsort()), define(SearchSorted())


@public
def partition(x, kth, axis=-1):
    """The element that belongs at `kth`, and smaller ones before it, along an axis: here, all of them in order."""
    order = sorted(range(x.ndim), key=lambda i: (i == axis % x.ndim, i))
    return lax.transpose(sort_rows(lax.transpose(x, order)), np.argsort(order).tolist())
