"""`reduce`: any associative function of two elements, along axes, of several arrays at once.

The function is a jaxpr of scalars: first those of the elements so far, then those of the next. What adds, multiplies,
or takes the largest is a primitive of its own, with better derivatives, and is bound as that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any, TypeVar

import numpy as np

from corejax import lax
from corejax.core import (
    Jaxpr,
    ShapedArray,
    aval_of,
    dtypes,
    is_concrete,
    stage,
    to_dim,
)
from corejax.plugin import Sample, carrying, hookimpl, not_linear, roles, shaping
from corejax_reductions._reduction import Axes, canonical_axes, defined
from corejax_reductions.combining import (
    Combining,
    Program,
    converted,
    halves,
    is_compiled,
    norm,
    only_equation,
    product_of_complex,
    program_of,
    with_tangents,
)
from corejax_reductions.extrema import reduce_max, reduce_min
from corejax_reductions.logic import reduce_and, reduce_or, reduce_xor
from corejax_reductions.products import reduce_prod
from corejax_reductions.sums import reduce_sum

__all__ = ["reduce"]

Elements = TypeVar("Elements")

_NAME = "reduce"


class Reduce(Combining):
    """`reduce(operands, init_values, computation, dimensions)`: combine all elements along axes by a function.

    `operands` is an array, or a pytree of arrays of one shape; `init_values` has a scalar for each, which changes
    nothing that it is combined with; `computation(x, y)` combines two scalars, or two pytrees of them, and must be
    associative and commutative, since the order isn't specified. Without elements, the results are the `init_values`.

    >>> lax.reduce(np.array([[1.0, 5.0], [3.0, 4.0]]), 0.0, lambda x, y: x + y, (0,)).tolist()
    [4.0, 9.0]
    >>> x, y = lax.reduce((np.array([3.0, 1.0]), np.array([1, 2])), (np.inf, 0),
    ...                   lambda a, b: lax.cond(a[0] < b[0], lambda: a, lambda: b), (0,))
    >>> float(x), int(y)
    (1.0, 2)
    """

    name = _NAME
    transpose = not_linear("a reduction by a function is differentiated as a tree of calls of it")

    def function(self, bind: Callable[..., Any]) -> Any:
        def reduce(operands: Elements, init_values: Any, computation: Callable[[Any, Any], Any],
                   dimensions: int | Sequence[int]) -> Elements:
            xs, starts, tree = self._operands(operands, init_values)
            inits = [converted(init, x) for init, x in zip(starts, xs, strict=True)]
            axes = canonical_axes(_NAME, dimensions, aval_of(xs[0]).ndim)
            self._check_types([aval_of(x) for x in (*xs, *inits)])
            scalars = [ShapedArray((), x.dtype, x.weak_type and init.weak_type)
                       for x, init in zip(map(aval_of, xs), map(aval_of, inits), strict=True)]
            staged = self._staged(computation, tree, scalars)
            if staged.consts:  # a region can't refer to values outside of it
                outs = _combined(Program(staged.jaxpr, staged.consts), xs, inits, axes)
            else:
                outs = _by_known(staged.jaxpr, xs, inits, axes) or bind(
                    *xs, *inits, jaxpr=staged.jaxpr, dimensions=axes)
            results: Elements = tree.unflatten([roles.convert(out, aval.dtype, aval.weak_type)
                                                for out, aval in zip(outs, scalars, strict=True)])
            return results
        return reduce

    @hookimpl
    def abstract_eval(self, avals: Any, *, jaxpr: Jaxpr, dimensions: Axes) -> list[ShapedArray]:
        self._check_types(avals)
        xs, inits = halves(avals)
        shaping.check_axes(_NAME, "dimensions", dimensions, xs[0].ndim)
        self._check_program(jaxpr, xs)
        return [ShapedArray(shaping.without(x.shape, dimensions), x.dtype, x.weak_type and init.weak_type)
                for x, init in zip(xs, inits, strict=True)]

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, jaxpr: Jaxpr, dimensions: Axes) -> Any:
        outs = self._bind(*primals, jaxpr=jaxpr, dimensions=dimensions)
        return with_tangents(outs, primals, tangents, jaxpr, lambda program, xs, inits: _combined(
            program, xs, inits, dimensions))

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, jaxpr: Jaxpr, dimensions: Axes) -> Any:
        (xs, inits), (x_dims, init_dims) = halves(args), halves(dims)
        xs = [to_dim(x, dim, 0, axis.size) for x, dim in zip(xs, x_dims, strict=True)]
        moved = tuple([d + 1 for d in dimensions])
        batch = [0] * len(xs)
        if all([dim is None for dim in init_dims]):
            return self._bind(*xs, *inits, jaxpr=jaxpr, dimensions=moved), batch
        shape = aval_of(xs[0]).shape
        out_shape = shaping.without(shape, moved)
        starts = [lax.broadcast_in_dim(to_dim(init, dim, 0, axis.size), out_shape, (0,))
                  for init, dim in zip(inits, init_dims, strict=True)]
        if not prod([shape[d] for d in moved]):
            return starts, batch
        # Each element of the batch has an initial value of its own, and a reduction starts from one for all: from
        # nothing, told by a flag.
        program = _from_nothing(jaxpr)
        nothing = [lax.full((), 0, x.dtype) for x in xs]
        outs = self._bind(lax.full(shape, True), *xs, np.False_, *nothing, jaxpr=program, dimensions=moved)[1:]
        return Program(jaxpr)(starts, outs), batch

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, jaxpr: Jaxpr, dimensions: Axes) -> Any:
        def tree(*args: Any) -> list[Any]:
            return _combined(Program(jaxpr), *halves(args), dimensions)

        if prod([ctx.avals_in[0].shape[d] for d in dimensions]) == 1:  # the compiler would leave out the initial values
            return ctx.lower(tree, *args)
        scalars = [ctx.type_of(aval.update(shape=())) for aval in ctx.avals_out]
        outs = ctx.op("stablehlo.reduce", args, {"dimensions": ctx.ir.DenseI64ArrayAttr.get(list(dimensions))},
                      ctx.out_types, 1)
        outs = outs if isinstance(outs, list) else [outs]
        reduction = outs[0].owner
        ctx.fill(reduction.regions[0], [*scalars, *scalars],
                 lambda *pair: ctx.lower(lambda *xs: carrying.run(jaxpr, xs), *pair))
        return outs if is_compiled(reduction) else ctx.lower(tree, *args)

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        yield from _samples(rng)


# Programs of two elements

def _combined(program: Program, xs: Sequence[Any], inits: Sequence[Any], axes: Axes) -> list[Any]:
    """The reduction as a tree of calls of the program: as many as there are doublings, each of whole arrays.

    For derivatives: reverse mode needs the operands of each call, which an equation of `reduce` doesn't keep.
    """
    shape = aval_of(xs[0]).shape
    rest = [d for d in range(len(shape)) if d not in axes]
    count, out_shape = prod([shape[d] for d in axes]), tuple([shape[d] for d in rest])
    starts = [lax.broadcast_in_dim(init, out_shape, ()) for init in inits]
    if not count:
        return starts
    xs = [lax.reshape(lax.transpose(x, (*axes, *rest)), (count, *out_shape)) for x in xs]
    while count > 1:
        pairs, odd = divmod(count, 2)
        outs = program([lax.slice_in_dim(x, 0, 2 * pairs, 2) for x in xs],
                       [lax.slice_in_dim(x, 1, 2 * pairs, 2) for x in xs])
        if odd:
            outs = [lax.concatenate([out, lax.slice_in_dim(x, count - 1, count)], 0)
                    for out, x in zip(outs, xs, strict=True)]
        xs, count = outs, pairs + odd
    return program(starts, [lax.reshape(x, out_shape) for x in xs])


@carrying.remembered
def _from_nothing(jaxpr: Jaxpr) -> Jaxpr:
    """The program of flags and elements: those whose flag isn't set count as nothing."""
    half = len(jaxpr.outvars)

    def combine(x_is, *rest):  # type: ignore[no-untyped-def]
        xs, y_is, ys = rest[:half], rest[half], rest[half + 1:]
        both = carrying.run(jaxpr, [*xs, *ys])
        return [lax.bitwise_or(x_is, y_is), *[lax.select(x_is, lax.select(y_is, out, x), y)
                                              for out, x, y in zip(both, xs, ys, strict=True)]]

    flag = ShapedArray((), dtypes.bool_)
    xs, ys = halves(jaxpr.in_avals)
    return stage(combine, [flag, *xs, flag, *ys]).jaxpr


# What is known

def _by_known(jaxpr: Jaxpr, xs: Sequence[Any], inits: Sequence[Any], axes: Axes) -> list[Any] | None:
    """The result by a primitive for what the program does to two elements; None if there is none."""
    eqn = only_equation(jaxpr)
    if eqn is None or not is_concrete(inits[0]):
        return None
    known = {lax.add.primitive: reduce_sum, lax.mul.primitive: reduce_prod, lax.max.primitive: reduce_max,
             lax.min.primitive: reduce_min, lax.bitwise_and.primitive: reduce_and,
             lax.bitwise_or.primitive: reduce_or, lax.bitwise_xor.primitive: reduce_xor}.get(eqn.primitive)
    if known is None:
        return None
    reduction, dtype = known.primitive.plugin, aval_of(xs[0]).dtype
    if dtypes.kind(dtype) not in reduction._kinds:
        return None
    identity = np.asarray(reduction._identity(dtype)).astype(dtype)
    return [known(xs[0], axes)] if np.asarray(inits[0]) == identity else None


def _samples(rng: Any) -> Iterator[Sample]:
    f64 = np.float64
    for shape, axes in [((3,), (0,)), ((2, 3, 2), (0, 2)), ((2, 3), ()), ((0, 3), (0,)),
                        ((2, 1), (1,))]:
        x = rng.uniform(0.5, 2.0, shape)
        yield Sample([x, np.zeros(())], {"jaxpr": program_of(norm, f64), "dimensions": axes}, domain=(0.5, 2.0),
                     results=[np.sqrt(np.sum(x * x, axes))])
    x, y = rng.standard_normal((2, 2, 4))
    z = np.prod(x + 1j * y, 1)
    product = program_of(product_of_complex, f64, f64)
    yield Sample([x, y, np.ones(()), np.zeros(())], {"jaxpr": product, "dimensions": (1,)}, results=[z.real, z.imag])
    z = rng.uniform(0.5, 2.0, (3, 2))
    yield Sample([z, -z, np.ones(()), np.full((), -np.inf)],
                 {"jaxpr": program_of(lambda a, b, c, d: [lax.mul(a, c), lax.max(b, d)], f64, f64), "dimensions": (0,)},
                 results=[np.prod(z, 0), np.max(-z, 0)])
    n = rng.integers(1, 60, (2, 3))
    yield Sample([n, np.zeros((), n.dtype)], {"jaxpr": program_of(lambda x, y: [lax.bitwise_or(x, y)], n.dtype),
                                              "dimensions": (0,)}, results=[np.bitwise_or.reduce(n, 0)])
    yield Sample([np.ones(3), np.ones(3)], {"jaxpr": program_of(norm, f64), "dimensions": (0,)}, error=ValueError)
    yield Sample([np.ones(3), np.zeros(())], {"jaxpr": program_of(norm, f64), "dimensions": (1,)}, error=IndexError)


reduce = defined(Reduce())
