"""`reduce_window`: what any associative function of two elements makes of each window, of several arrays at once.

Sums, and extrema by `lax.max` and `lax.min` themselves, are primitives of their own, with better derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from corejax import lax
from corejax.core import (
    Jaxpr,
    ShapedArray,
    Staged,
    aval_of,
    dtypes,
    is_concrete,
    to_dim,
)
from corejax.errors import CorejaxTypeError
from corejax.plugin import Sample, carrying, hookimpl, not_linear, roles
from corejax_reductions import (
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
from corejax_windows import _windowing
from corejax_windows._doubling import doubled
from corejax_windows._numbers import bound
from corejax_windows._windowing import Ints, Pads, Window, canonical, check_windows, handle_of
from corejax_windows.pooling import reduce_window_max, reduce_window_min, reduce_window_sum

__all__ = ["reduce_window"]

Elements = TypeVar("Elements")

_NAME = "reduce_window"


class ReduceWindow(Combining):
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
    _called = ("operand", "init_value")
    _misshapen = CorejaxTypeError
    transpose = not_linear("a reduction by a function is differentiated as calls of it on whole arrays")

    def function(self, bind: Callable[..., Any]) -> Any:
        def reduce_window(operand: Elements, init_value: Any, computation: Callable[[Any, Any], Any],
                          window_dimensions: Sequence[int], window_strides: Sequence[int] | None = None,
                          padding: str | Sequence[tuple[int, int]] = "VALID",
                          base_dilation: Sequence[int] | None = None,
                          window_dilation: Sequence[int] | None = None) -> Elements:
            xs, inits, tree = self._operands(operand, init_value)
            window = canonical(_NAME, aval_of(xs[0]).shape, window_dimensions, window_strides, padding, base_dilation,
                               window_dilation)
            known = _known(computation, xs, inits)
            if known is not None:
                only: Elements = tree.unflatten([known.primitive.bind(xs[0], **window.params())])
                return only
            inits = [converted(init, x) for init, x in zip(inits, xs, strict=True)]
            self._check_types([aval_of(x) for x in (*xs, *inits)])
            scalars = [ShapedArray((), aval_of(x).dtype) for x in xs]
            staged = self._staged(computation, tree, scalars)
            if _adds(staged, inits) and dtypes.kind(scalars[0].dtype) != "b":
                outs = [reduce_window_sum.primitive.bind(xs[0], **window.params())]
            elif staged.consts:  # a region can't refer to values outside of it
                outs = doubled(Program(staged.jaxpr, staged.consts), xs, inits, window)
            else:
                outs = bind(*xs, *inits, jaxpr=staged.jaxpr, **window.params())
            results: Elements = tree.unflatten(outs)
            return results
        return reduce_window

    @hookimpl
    def abstract_eval(self, avals: Any, *, jaxpr: Jaxpr, window_dimensions: Ints, window_strides: Ints, padding: Pads,
                      base_dilation: Ints, window_dilation: Ints) -> list[ShapedArray]:
        window = Window(window_dimensions, window_strides, padding, base_dilation, window_dilation)
        self._check_types(avals)
        xs, _ = halves(avals)
        shape = check_windows(_NAME, window, xs[0].shape)
        self._check_program(jaxpr, xs)
        return [ShapedArray(shape, x.dtype) for x in xs]

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, jaxpr: Jaxpr, **params: Any) -> Any:
        outs = self._bind(*primals, jaxpr=jaxpr, **params)
        fixed = [lax.stop_gradient(init) for init in halves(primals)[1]]

        def combined(program: Program, xs: list[Any], inits: list[Any]) -> list[Any]:
            fillers = [*fixed, *[np.zeros((), x.dtype) for x in xs[len(fixed):]]]
            return doubled(program, xs, inits, Window(**params), fillers)
        return with_tangents(outs, primals, tangents, jaxpr, combined)

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, jaxpr: Jaxpr, **params: Any) -> Any:
        (xs, inits), (x_dims, init_dims) = halves(args), halves(dims)
        xs = [to_dim(x, dim, 0, axis.size) for x, dim in zip(xs, x_dims, strict=True)]
        window = Window(**params).with_axis(0)
        if all([dim is None for dim in init_dims]):
            return self._bind(*xs, *inits, jaxpr=jaxpr, **window.params()), [0] * len(xs)
        # An operation has one initial value for the whole batch.
        starts = [to_dim(init, dim, 0, axis.size) for init, dim in zip(inits, init_dims, strict=True)]
        return [roles.convert(out, aval_of(x).dtype, False)
                for out, x in zip(doubled(Program(jaxpr), xs, starts, window), xs, strict=True)], [0] * len(xs)

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, jaxpr: Jaxpr, **params: Any) -> Any:
        window = Window(**params).trimmed(ctx.avals_in[0].shape)

        def whole(*args: Any) -> list[Any]:
            return doubled(Program(jaxpr), *halves(args), Window(**params))

        # Compilers leave out initial values for windows of one element; GPUs have no windows of several operands.
        if window.size <= 1 or (len(args) > 2 and ctx.platform in ("cuda", "rocm")):
            return ctx.lower(whole, *args)
        outs = _windowing.reduce_window(
            ctx, *halves(args), ctx.out_types, window,
            lambda *pair: ctx.lower(lambda *xs: carrying.run(jaxpr, xs), *pair))
        return outs if is_compiled(outs[0].owner) else ctx.lower(whole, *args)

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        yield from _samples(rng)


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
    eqn = only_equation(staged.jaxpr)
    return (eqn is not None and eqn.primitive is lax.add_p and not staged.consts and is_concrete(inits[0])
            and bool(np.asarray(inits[0]) == 0))


def _samples(rng: Any) -> Iterator[Sample]:
    f64 = np.float64
    ones = ((1,), (1,))

    def params(jaxpr: Jaxpr, *entries: Any) -> dict[str, Any]:
        return {"jaxpr": jaxpr, **Window(*entries).params()}

    one = program_of(norm, f64)
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
    product = program_of(product_of_complex, f64, f64)
    yield Sample([y, z, np.ones(()), np.zeros(())], params(product, (2,), (1,), ((0, 0),), *ones),
                 results=[w.real, w.imag])
    n = rng.integers(1, 60, 5)
    either = program_of(lambda x, y: [lax.bitwise_or(x, y)], n.dtype)
    yield Sample([n, np.zeros((), n.dtype)], params(either, (2,), (3,), ((0, 0),), *ones), results=[n[:4:3] | n[1::3]])
    yield Sample([np.ones(3), np.ones(3)], params(one, (2,), (1,), ((0, 0),), *ones), error=TypeError)
    yield Sample([np.ones(3), np.zeros(())], params(one, (0,), (1,), ((0, 0),), *ones), error=ValueError)


def _squares(x: Any) -> Any:
    """The sums of squares in windows of 2 by 2, one apart along the first axis and two along the other."""
    squares = x * x
    rows = squares[:-1] + squares[1:]
    return rows[:, 0::2] + rows[:, 1::2]


reduce_window: Any = handle_of(ReduceWindow())
