"""`reduce_window`: what any associative function of two elements makes of each window, of several arrays at once.

Sums, and extrema by `lax.max` and `lax.min` themselves, are primitives of their own, with better derivatives.
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
from corejax.plugin import Sample, carrying, families, hookimpl, not_linear, refused, roles, structures
from corejax_windows import _windowing
from corejax_windows._doubling import doubled
from corejax_windows._numbers import bound
from corejax_windows._windowing import Ints, Pads, Window, canonical, check_windows, handle_of
from corejax_windows.pooling import reduce_window_max, reduce_window_min, reduce_window_sum

__all__ = ["reduce_window"]

Elements = TypeVar("Elements")

_NAME = "reduce_window"


class ReduceWindow:
    """`reduce_window(operand, init_value, computation, window_dimensions, window_strides=None, padding="VALID", ...)`.

    `operand` is an array, or a pytree of arrays of one shape; `init_value` has a scalar for each, which changes nothing
    that it is combined with; `computation(x, y)` combines two scalars, or two pytrees of them, and must be associative.
    There is one entry for each axis in `window_dimensions`, `window_strides`, `base_dilation` and `window_dilation`,
    and a pair in `padding`, unless that is "VALID", "SAME" or "SAME_LOWER".

    >>> x = np.array([[1.0, 5.0, 2.0, 0.0], [3.0, 4.0, 7.0, 6.0]])
    >>> lax.reduce_window(x, -np.inf, lax.max, (2, 2), (1, 2)).tolist()
    [[5.0, 7.0]]
    >>> lax.reduce_window(x, 1.0, lax.mul, (1, 2), padding="SAME").tolist()
    [[5.0, 10.0, 0.0, 0.0], [12.0, 28.0, 42.0, 6.0]]
    """

    name = _NAME
    multiple_results = True
    symbolic_zeros = True
    transpose = not_linear("a reduction by a function is differentiated as calls of it on whole arrays")

    def function(self, bind: Callable[..., Any]) -> Any:
        def reduce_window(operand: Elements, init_value: Any, computation: Callable[[Any, Any], Any],
                          window_dimensions: Sequence[int], window_strides: Sequence[int] | None = None,
                          padding: str | Sequence[tuple[int, int]] = "VALID",
                          base_dilation: Sequence[int] | None = None,
                          window_dilation: Sequence[int] | None = None) -> Elements:
            leaves, tree = flatten(operand)
            xs, inits = _operands(operand, init_value)
            window = canonical(_NAME, aval_of(xs[0]).shape, window_dimensions, window_strides, padding, base_dilation,
                               window_dilation)
            known = _known(computation, xs, inits)
            if known is not None:
                only: Elements = tree.unflatten([known.primitive.bind(xs[0], **window.params())])
                return only
            inits = [_converted(init, x) for init, x in zip(inits, xs, strict=True)]
            _check([aval_of(x) for x in (*xs, *inits)], window)
            scalars = [ShapedArray((), aval_of(x).dtype) for x in xs]
            staged = _staged(computation, tree, scalars)
            if _adds(staged, inits) and dtypes.kind(scalars[0].dtype) != "b":
                outs = [reduce_window_sum.primitive.bind(xs[0], **window.params())]
            elif staged.consts:  # a region can't refer to values outside of it
                outs = doubled(_Program(staged.jaxpr, staged.consts), xs, inits, window)
            else:
                outs = bind(*xs, *inits, jaxpr=staged.jaxpr, **window.params())
            results: Elements = tree.unflatten(outs)
            return results
        return reduce_window

    @hookimpl
    def abstract_eval(self, avals: Any, *, jaxpr: Jaxpr, window_dimensions: Ints, window_strides: Ints, padding: Pads,
                      base_dilation: Ints, window_dilation: Ints) -> list[ShapedArray]:
        window = Window(window_dimensions, window_strides, padding, base_dilation, window_dilation)
        shape = _check(avals, window)
        xs, _ = _halves(avals)
        scalars = [ShapedArray((), x.dtype) for x in xs]
        carrying.check_operands(_NAME, jaxpr, [*scalars, *scalars])
        outs = jaxpr.out_avals
        if len(outs) != len(xs) or not all([out.matches(x) for out, x in zip(outs, scalars, strict=True)]):
            raise refused(_NAME, "the program returns something else than it takes", got=list(outs), wanted=scalars,
                          todo="return one scalar for each operand, of its dtype", kind=CorejaxTypeError)
        if jaxpr.effects:
            raise refused(_NAME, "what is combined in any order can't have effects", wanted="no effects",
                          got=sorted(map(str, jaxpr.effects)), todo="move the effect out of the reduction")
        return [ShapedArray(shape, x.dtype) for x in xs]

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, jaxpr: Jaxpr, **params: Any) -> Any:
        outs = self._bind(*primals, jaxpr=jaxpr, **params)
        (xs, inits), (x_dots, init_dots) = _halves(primals), _halves(tangents)
        dual, flags = _forward(jaxpr, carrying.either(carrying.nonzero(x_dots), carrying.nonzero(init_dots)))
        operands, starts = [[*group, *[instantiate(dot) for dot in carrying.marked(dots, flags)]]
                            for group, dots in ((xs, x_dots), (inits, init_dots))]
        fillers = [*[lax.stop_gradient(init) for init in inits],
                   *[np.zeros((), x.dtype) for x in operands[len(xs):]]]
        found = iter(doubled(_Program(dual), operands, starts, Window(**params), fillers)[len(xs):])
        avals = [aval_of(out).tangent for out in outs]
        return outs, [roles.convert(next(found), aval.dtype, aval.weak_type) if nonzero else Zero(aval)
                      for nonzero, aval in zip(flags, avals, strict=True)]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, jaxpr: Jaxpr, **params: Any) -> Any:
        (xs, inits), (x_dims, init_dims) = _halves(args), _halves(dims)
        xs = [to_dim(x, dim, 0, axis.size) for x, dim in zip(xs, x_dims, strict=True)]
        window = Window(**params).with_axis(0)
        if all([dim is None for dim in init_dims]):
            return self._bind(*xs, *inits, jaxpr=jaxpr, **window.params()), [0] * len(xs)
        # An operation has one initial value for the whole batch.
        starts = [to_dim(init, dim, 0, axis.size) for init, dim in zip(inits, init_dims, strict=True)]
        return [roles.convert(out, aval_of(x).dtype, False)
                for out, x in zip(doubled(_Program(jaxpr), xs, starts, window), xs, strict=True)], [0] * len(xs)

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, jaxpr: Jaxpr, **params: Any) -> Any:
        window = Window(**params).trimmed(ctx.avals_in[0].shape)

        def whole(*args: Any) -> list[Any]:
            return doubled(_Program(jaxpr), *_halves(args), Window(**params))

        # Compilers leave out initial values for windows of one element; GPUs have no windows of several operands.
        if window.size <= 1 or (len(args) > 2 and ctx.platform in ("cuda", "rocm")):
            return ctx.lower(whole, *args)
        outs = _windowing.reduce_window(
            ctx, *_halves(args), ctx.out_types, window,
            lambda *pair: ctx.lower(lambda *xs: carrying.run(jaxpr, xs), *pair))
        # Over a condition, a loop or a call of such in a reduction's region, XLA aborts the process.
        reduction = outs[0].owner
        if any([op.operation.name == "func.call" or len(op.regions) for op in reduction.regions[0].blocks[0]]):
            reduction.erase()
            return ctx.lower(whole, *args)
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


@carrying.remembered
def _forward(jaxpr: Jaxpr, nonzero: carrying.Flags) -> tuple[Jaxpr, carrying.Flags]:
    """The program of elements and tangents, and which results have one: then both operands have, too."""
    def step(flags: carrying.Flags) -> tuple[Jaxpr, Sequence[bool]]:
        return jvp_jaxpr(jaxpr, [*flags, *flags], flags)

    flags, dual = carrying.fixed_point(nonzero, step)
    return carrying.in_groups(dual, (flags, flags), (flags,)), flags


@carrying.remembered
def _shorter(jaxpr: Jaxpr, used_out: carrying.Flags) -> tuple[carrying.Flags, Jaxpr]:
    """Which elements are used, given which results are; and the program of those."""
    def step(flags: carrying.Flags) -> tuple[Jaxpr, Sequence[bool]]:
        smaller, used = dce(jaxpr, flags, [*flags, *flags])
        return smaller, carrying.either(*_halves(used))

    flags, smaller = carrying.fixed_point(used_out, step)
    return flags, smaller.replace()


# What is known

def _known(computation: Any, xs: Sequence[Any], inits: Sequence[Any]) -> Any:
    """The primitive for `lax.add`, `lax.max` or `lax.min` from where it changes nothing; None if it's none of these.

    Only these functions themselves count: where elements tie, what calls them has their derivatives, which share.
    """
    if len(xs) != 1 or not is_concrete(inits[0]) or aval_of(inits[0]).shape:
        return None
    init, dtypes_ = np.asarray(inits[0]), (aval_of(xs[0]).dtype, aval_of(inits[0]).dtype)
    if computation is lax.add:
        return reduce_window_sum if init == 0 else None
    for function, known, sign in ((lax.max, reduce_window_max, -1), (lax.min, reduce_window_min, 1)):
        if computation is function and any([init == bound(dtype, sign) for dtype in dtypes_]):
            return known
    return None


def _adds(staged: Staged, inits: Sequence[Any]) -> bool:
    """Whether a program adds its two elements, from 0 on: then it has transposes, written in whatever way it is."""
    jaxpr = staged.jaxpr
    if len(inits) != 1 or len(jaxpr.eqns) != 1 or staged.consts or not is_concrete(inits[0]):
        return False
    (eqn,) = jaxpr.eqns
    return (eqn.primitive is lax.add_p and jaxpr.outvars[0] is eqn.outvars[0]
            and {*map(id, eqn.invars)} == {*map(id, jaxpr.invars)} and bool(np.asarray(inits[0]) == 0))


# Checks

def _halves(items: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    half = len(items) // 2
    return [*items[:half]], [*items[half:]]


def _operands(operand: Any, init_value: Any) -> tuple[list[Any], list[Any]]:
    """The leaves of both, which must have one structure."""
    (leaves, tree), (init_leaves, init_tree) = flatten(operand), flatten(init_value)
    if structures.tree_difference(init_tree, tree) is not None or not leaves:
        raise refused(_NAME, "there must be an initial value for each operand", wanted=structures.shown(tree),
                      got=structures.shown(init_tree), todo="pass init_value in the structure of the operand",
                      kind=CorejaxValueError)
    xs = values(leaves, _NAME, namer("operand", operand))
    fitting = [families.match_scalars((x, init))[1] for x, init in zip(xs, init_leaves, strict=True)]
    return xs, values(fitting, _NAME, namer("init_value", init_value))


def _converted(init: Any, x: Any) -> Any:
    """The initial value, in the dtype of the operand if it is weak and that dtype can hold its kind of numbers."""
    own, wanted = aval_of(init), aval_of(x).dtype
    order = "biufc"
    fits = own.weak_type and order.find(dtypes.kind(own.dtype)) <= order.find(dtypes.kind(wanted))
    return roles.convert(init, wanted, True) if fits and own.dtype != wanted else init


def _staged(computation: Callable[[Any, Any], Any], tree: Any, scalars: Sequence[ShapedArray]) -> Staged:
    """The program of a computation, which must return what it gets."""
    what = "reduce_window: the computation"
    example = tree.unflatten(range(len(scalars)))
    staged = stage_function(computation, [*scalars, *scalars], flatten((example, example))[1], what)
    structures.check_carry(what, tree, scalars, staged.out_tree, staged.closed.out_avals, "operand")
    return staged


def _check(avals: Sequence[ShapedArray], window: Window) -> Ints:
    """The shape of results; raises unless these are operands of one shape, and a scalar of the same dtype for each."""
    xs, inits = _halves(avals)
    if not xs or len(avals) % 2:
        raise refused(_NAME, "there must be an initial value for each operand", got=f"{len(avals)} operands",
                      wanted="operands, and as many initial values", todo="pass one scalar for each array",
                      kind=CorejaxTypeError)
    if len({x.shape for x in xs}) > 1:
        raise refused(_NAME, "the operands differ in shape", got=", ".join(map(str, xs)), wanted="one shape for all",
                      todo="broadcast them first", kind=CorejaxTypeError)
    if any([init.shape for init in inits]):
        raise refused(_NAME, "initial values must be scalars", got=", ".join(map(str, inits)), wanted="rank 0",
                      todo="combine the result with an array afterwards", kind=CorejaxTypeError)
    if [x.dtype for x in xs] != [init.dtype for init in inits]:
        raise refused(_NAME, "initial values must have the dtypes of the operands", got=", ".join(map(str, inits)),
                      wanted=", ".join([dtypes.long_name(x.dtype) for x in xs]),
                      todo="convert them: np.asarray(init, x.dtype)", kind=CorejaxTypeError)
    return check_windows(_NAME, window, xs[0].shape)


def _samples(rng: Any) -> Iterator[Sample]:
    f64 = np.float64
    ones = ((1,), (1,))

    def program(computation: Callable[..., Any], *dtypes_: Any) -> Jaxpr:
        scalars = [ShapedArray((), dtype) for dtype in dtypes_]
        return stage(computation, [*scalars, *scalars]).jaxpr

    def params(jaxpr: Jaxpr, *entries: Any) -> dict[str, Any]:
        return {"jaxpr": jaxpr, **Window(*entries).params()}

    def norm(x, y):  # type: ignore[no-untyped-def]
        return [lax.sqrt(lax.add(lax.mul(x, x), lax.mul(y, y)))]

    def product(a, b, c, d):  # type: ignore[no-untyped-def]
        return [lax.sub(lax.mul(a, c), lax.mul(b, d)), lax.add(lax.mul(a, d), lax.mul(b, c))]

    one = program(norm, f64)
    yield Sample([rng.uniform(0.5, 2.0, 7), np.zeros(())], params(one, (5,), (1,), ((1, 0),), *ones), domain=(0.5, 2.0))
    x = rng.uniform(0.5, 2.0, (3, 4))
    yield Sample([x, np.zeros(())], params(one, (2, 2), (1, 2), ((0, 0), (0, 0)), (1, 1), (1, 1)), domain=(0.5, 2.0),
                 results=[np.sqrt(_squares(x))])
    yield Sample([x, np.zeros(())], params(one, (2, 2), (2, 1), ((0, 1), (-1, 2)), (1, 2), (2, 1)), domain=(0.5, 2.0),
                 atol=1e-12)
    yield Sample([np.ones((0, 2)), np.zeros(())], params(one, (1, 2), (1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1)))
    yield Sample([rng.uniform(0.5, 2.0, 3), np.zeros(())], params(one, (1,), (2,), ((0, 0),), *ones), domain=(0.5, 2.0))
    y, z = rng.standard_normal((2, 4))
    w = y + 1j * z
    w = w[:3] * w[1:]
    yield Sample([y, z, np.ones(()), np.zeros(())],
                 params(program(product, f64, f64), (2,), (1,), ((0, 0),), *ones), results=[w.real, w.imag])
    n = rng.integers(1, 60, 5)
    yield Sample([n, np.zeros((), n.dtype)], params(program(lambda x, y: [lax.bitwise_or(x, y)], n.dtype), (2,), (3,),
                                                    ((0, 0),), *ones), results=[n[:4:3] | n[1::3]])
    yield Sample([np.ones(3), np.ones(3)], params(one, (2,), (1,), ((0, 0),), *ones), error=TypeError)
    yield Sample([np.ones(3), np.zeros(())], params(one, (0,), (1,), ((0, 0),), *ones), error=ValueError)


def _squares(x: Any) -> Any:
    """The sums of squares in windows of 2 by 2, one apart along the first axis and two along the other."""
    squares = x * x
    rows = squares[:-1] + squares[1:]
    return rows[:, 0::2] + rows[:, 1::2]


reduce_window: Any = handle_of(ReduceWindow())
