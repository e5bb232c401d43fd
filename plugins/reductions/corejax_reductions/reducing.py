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
    Staged,
    Zero,
    aval_of,
    dtypes,
    flatten,
    instantiate,
    is_concrete,
    jvp_jaxpr,
    namer,
    stage,
    stage_function,
    to_dim,
    values,
    vmap_jaxpr,
)
from corejax.errors import CorejaxTypeError, CorejaxValueError
from corejax.ir.surgery import dce
from corejax.plugin import Sample, carrying, families, hookimpl, not_linear, refused, roles, shaping, structures
from corejax_reductions._reduction import Axes, canonical_axes, defined
from corejax_reductions.extrema import reduce_max, reduce_min
from corejax_reductions.logic import reduce_and, reduce_or, reduce_xor
from corejax_reductions.products import reduce_prod
from corejax_reductions.sums import reduce_sum

__all__ = ["reduce"]

Elements = TypeVar("Elements")

_NAME = "reduce"


class Reduce:
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
    multiple_results = True
    symbolic_zeros = True
    transpose = not_linear("a reduction by a function is differentiated as a tree of calls of it")

    def function(self, bind: Callable[..., Any]) -> Any:
        def reduce(operands: Elements, init_values: Any, computation: Callable[[Any, Any], Any],
                   dimensions: int | Sequence[int]) -> Elements:
            leaves, tree = flatten(operands)
            init_leaves, init_tree = flatten(init_values)
            other = structures.tree_difference(init_tree, tree)
            if other is not None or not leaves:
                raise refused(_NAME, "there must be an initial value for each operand", wanted=structures.shown(tree),
                              got=structures.shown(init_tree), todo="pass init_values in the structure of the operands",
                              kind=CorejaxValueError)
            xs = values(leaves, _NAME, namer("operands", operands))
            fitting = [families.match_scalars((x, init))[1] for x, init in zip(xs, init_leaves, strict=True)]
            starts = values(fitting, _NAME, namer("init_values", init_values))
            inits = [_converted(init, x) for init, x in zip(starts, xs, strict=True)]
            axes = canonical_axes(_NAME, dimensions, aval_of(xs[0]).ndim)
            _check([aval_of(x) for x in (*xs, *inits)], axes)
            scalars = [ShapedArray((), x.dtype, x.weak_type and init.weak_type)
                       for x, init in zip(map(aval_of, xs), map(aval_of, inits), strict=True)]
            staged = _staged(computation, tree, scalars)
            if staged.consts:  # a region can't refer to values outside of it
                outs = _combined(_Program(staged.jaxpr, staged.consts), xs, inits, axes)
            else:
                outs = _by_known(staged.jaxpr, xs, inits, axes) or bind(
                    *xs, *inits, jaxpr=staged.jaxpr, dimensions=axes)
            results: Elements = tree.unflatten([roles.convert(out, aval.dtype, aval.weak_type)
                                                for out, aval in zip(outs, scalars, strict=True)])
            return results
        return reduce

    @hookimpl
    def abstract_eval(self, avals: Any, *, jaxpr: Jaxpr, dimensions: Axes) -> list[ShapedArray]:
        _check(avals, dimensions)
        xs, inits = _halves(avals)
        scalars = [ShapedArray((), x.dtype) for x in xs]
        carrying.check_operands(_NAME, jaxpr, [*scalars, *scalars])
        if len(jaxpr.out_avals) != len(xs) or not all([out.matches(x) for out, x in zip(jaxpr.out_avals, scalars,
                                                                                         strict=True)]):
            raise refused(_NAME, "the jaxpr returns something else than it takes", got=jaxpr.out_avals, wanted=scalars,
                          todo="return one scalar for each operand, of its dtype", kind=CorejaxTypeError)
        if jaxpr.effects:
            raise refused(_NAME, "what is combined in any order can't have effects", wanted="no effects",
                          got=sorted(map(str, jaxpr.effects)), todo="move the effect out of the reduction")
        return [ShapedArray(shaping.without(x.shape, dimensions), x.dtype, x.weak_type and init.weak_type)
                for x, init in zip(xs, inits, strict=True)]

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, jaxpr: Jaxpr, dimensions: Axes) -> Any:
        outs = self._bind(*primals, jaxpr=jaxpr, dimensions=dimensions)
        (xs, inits), (x_dots, init_dots) = _halves(primals), _halves(tangents)
        dual, flags = _forward(jaxpr, carrying.either(carrying.nonzero(x_dots), carrying.nonzero(init_dots)))
        operands, starts = [[*group, *[instantiate(dot) for dot in carrying.marked(dots, flags)]]
                            for group, dots in ((xs, x_dots), (inits, init_dots))]
        found = iter(_combined(_Program(dual), operands, starts, dimensions)[len(xs):])
        avals = [aval_of(out).tangent for out in outs]
        return outs, [roles.convert(next(found), aval.dtype, aval.weak_type) if nonzero else Zero(aval)
                      for nonzero, aval in zip(flags, avals, strict=True)]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, jaxpr: Jaxpr, dimensions: Axes) -> Any:
        (xs, inits), (x_dims, init_dims) = _halves(args), _halves(dims)
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
        return _Program(jaxpr)(starts, outs), batch

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, jaxpr: Jaxpr, dimensions: Axes) -> Any:
        def tree(*args: Any) -> list[Any]:
            return _combined(_Program(jaxpr), *_halves(args), dimensions)

        if prod([ctx.avals_in[0].shape[d] for d in dimensions]) == 1:  # the compiler would leave out the initial values
            return ctx.lower(tree, *args)
        scalars = [ctx.type_of(aval.update(shape=())) for aval in ctx.avals_out]
        outs = ctx.op("stablehlo.reduce", args, {"dimensions": ctx.ir.DenseI64ArrayAttr.get(list(dimensions))},
                      ctx.out_types, 1)
        outs = outs if isinstance(outs, list) else [outs]
        reduction = outs[0].owner
        ctx.fill(reduction.regions[0], [*scalars, *scalars],
                 lambda *pair: ctx.lower(lambda *xs: carrying.run(jaxpr, xs), *pair))
        # Over a condition, a loop or a call of such in a reduction's region, XLA aborts the process.
        if any([op.operation.name == "func.call" or len(op.regions) for op in reduction.regions[0].blocks[0]]):
            reduction.erase()
            return ctx.lower(tree, *args)
        return outs

    @hookimpl
    def dce(self, eqn: Any, used_out: Any) -> Any:
        if True not in used_out:
            return [False] * len(eqn.invars), None
        flags, smaller = _shorter(eqn.params["jaxpr"], tuple(used_out))
        if all(flags):
            return [True] * len(eqn.invars), eqn
        used = [*flags, *flags]
        return used, eqn.replace(invars=carrying.marked(eqn.invars, used), outvars=carrying.marked(eqn.outvars, flags),
                                 params={**eqn.params, "jaxpr": smaller})

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        yield from _samples(rng)

    _bind: Callable[..., Any]


# Programs of two elements

class _Program:
    """A jaxpr of scalars, with constants first, as a function of arrays of one shape, elementwise."""

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any] = ()) -> None:
        self.jaxpr, self.consts = jaxpr, consts

    def __call__(self, xs: Sequence[Any], ys: Sequence[Any]) -> list[Any]:
        shape = aval_of(xs[0]).shape
        size = prod(shape)
        dims = [*[None] * len(self.consts), *[0] * 2 * len(xs)]
        mapped, _ = vmap_jaxpr(self.jaxpr, size, None, dims, [0] * len(xs))
        flat = [lax.reshape(x, (size,)) for x in (*xs, *ys)]
        return [lax.reshape(out, shape) for out in carrying.run(mapped, [*self.consts, *flat])]


def _combined(program: _Program, xs: Sequence[Any], inits: Sequence[Any], axes: Axes) -> list[Any]:
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
def _forward(jaxpr: Jaxpr, nonzero: carrying.Flags) -> tuple[Jaxpr, carrying.Flags]:
    """The program of elements and tangents, and which results have one: then both operands have, too."""
    def step(flags: carrying.Flags) -> tuple[Jaxpr, Sequence[bool]]:
        return jvp_jaxpr(jaxpr, [*flags, *flags], flags)

    flags, dual = carrying.fixed_point(nonzero, step)
    return carrying.in_groups(dual, (flags, flags), (flags,)), flags


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
    xs, ys = _halves(jaxpr.in_avals)
    return stage(combine, [flag, *xs, flag, *ys]).jaxpr


@carrying.remembered
def _shorter(jaxpr: Jaxpr, used_out: carrying.Flags) -> tuple[carrying.Flags, Jaxpr]:
    """Which elements are used, given which results are; and the program of those."""
    def step(flags: carrying.Flags) -> tuple[Jaxpr, Sequence[bool]]:
        smaller, used = dce(jaxpr, flags, [*flags, *flags])
        return smaller, carrying.either(*_halves(used))

    flags, smaller = carrying.fixed_point(used_out, step)
    return flags, smaller.replace()


# What is known

def _by_known(jaxpr: Jaxpr, xs: Sequence[Any], inits: Sequence[Any], axes: Axes) -> list[Any] | None:
    """The result by a primitive for what the program does to two elements; None if there is none."""
    if len(xs) != 1 or len(jaxpr.eqns) != 1 or not is_concrete(inits[0]):
        return None
    (eqn,), (out,) = jaxpr.eqns, jaxpr.outvars
    if out is not eqn.outvars[0] or {*map(id, eqn.invars)} != {*map(id, jaxpr.invars)}:
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


# Checks

def _halves(items: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    half = len(items) // 2
    return [*items[:half]], [*items[half:]]


def _converted(init: Any, x: Any) -> Any:
    """The initial value, in the dtype of the operand if it is weak and that dtype can hold its kind of numbers."""
    own, wanted = aval_of(init), aval_of(x).dtype
    order = "biufc"
    fits = own.weak_type and order.find(dtypes.kind(own.dtype)) <= order.find(dtypes.kind(wanted))
    return roles.convert(init, wanted, True) if fits and own.dtype != wanted else init


def _staged(computation: Callable[[Any, Any], Any], tree: Any, scalars: Sequence[ShapedArray]) -> Staged:
    """The program of a computation, which must return what it gets."""
    what = "reduce: the computation"
    example = tree.unflatten(range(len(scalars)))
    staged = stage_function(computation, [*scalars, *scalars], flatten((example, example))[1], what)
    structures.check_carry(what, tree, scalars, staged.out_tree, staged.closed.out_avals, "operands")
    return staged


def _check(avals: Sequence[ShapedArray], axes: Axes) -> None:
    """Raise unless these are operands of one shape, and a scalar of the same dtype for each."""
    xs, inits = _halves(avals)
    if not xs or len(avals) % 2:
        raise refused(_NAME, "there must be an initial value for each operand", got=f"{len(avals)} operands",
                      wanted="operands, and as many initial values", todo="pass one scalar for each array",
                      kind=CorejaxTypeError)
    if len({x.shape for x in xs}) > 1:
        raise refused(_NAME, "the operands differ in shape", got=", ".join(map(str, xs)), wanted="one shape for all",
                      todo="broadcast them first", kind=CorejaxValueError)
    if any([init.shape for init in inits]):
        raise refused(_NAME, "initial values must be scalars", got=", ".join(map(str, inits)), wanted="rank 0",
                      todo="combine the result with an array afterwards", kind=CorejaxValueError)
    if [x.dtype for x in xs] != [init.dtype for init in inits]:
        raise refused(_NAME, "initial values must have the dtypes of the operands", got=", ".join(map(str, inits)),
                      wanted=", ".join([dtypes.long_name(x.dtype) for x in xs]),
                      todo="convert them: np.asarray(init, x.dtype)", kind=CorejaxTypeError)
    shaping.check_axes(_NAME, "dimensions", axes, xs[0].ndim)


def _samples(rng: Any) -> Iterator[Sample]:
    def program(computation: Callable[..., Any], *dtypes_: Any) -> Jaxpr:
        scalars = [ShapedArray((), dtype) for dtype in dtypes_]
        return stage(computation, [*scalars, *scalars]).jaxpr

    def norm(x, y):  # type: ignore[no-untyped-def]
        return [lax.sqrt(lax.add(lax.mul(x, x), lax.mul(y, y)))]

    def product(a, b, c, d):  # type: ignore[no-untyped-def]
        return [lax.sub(lax.mul(a, c), lax.mul(b, d)), lax.add(lax.mul(a, d), lax.mul(b, c))]

    f64 = np.float64
    for shape, axes in [((3,), (0,)), ((2, 3, 2), (0, 2)), ((2, 3), ()), ((0, 3), (0,)),
                        ((2, 1), (1,))]:
        x = rng.uniform(0.5, 2.0, shape)
        yield Sample([x, np.zeros(())], {"jaxpr": program(norm, f64), "dimensions": axes}, domain=(0.5, 2.0),
                     results=[np.sqrt(np.sum(x * x, axes))])
    x, y = rng.standard_normal((2, 2, 4))
    z = np.prod(x + 1j * y, 1)
    yield Sample([x, y, np.ones(()), np.zeros(())], {"jaxpr": program(product, f64, f64), "dimensions": (1,)},
                 results=[z.real, z.imag])
    z = rng.uniform(0.5, 2.0, (3, 2))
    yield Sample([z, -z, np.ones(()), np.full((), -np.inf)],
                 {"jaxpr": program(lambda a, b, c, d: [lax.mul(a, c), lax.max(b, d)], f64, f64), "dimensions": (0,)},
                 results=[np.prod(z, 0), np.max(-z, 0)])
    n = rng.integers(1, 60, (2, 3))
    yield Sample([n, np.zeros((), n.dtype)], {"jaxpr": program(lambda x, y: [lax.bitwise_or(x, y)], n.dtype),
                                              "dimensions": (0,)}, results=[np.bitwise_or.reduce(n, 0)])
    yield Sample([np.ones(3), np.ones(3)], {"jaxpr": program(norm, f64), "dimensions": (0,)}, error=ValueError)
    yield Sample([np.ones(3), np.zeros(())], {"jaxpr": program(norm, f64), "dimensions": (1,)}, error=IndexError)


reduce = defined(Reduce())
