"""Choosing between values: by a predicate or an index (`select_n`, `select`), or by bounds (`clamp`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from corejax.core import Array, ArrayLike, Linear, ShapedArray, Zero, aval_of, dtypes
from corejax.plugin import Sample, define, families, hookimpl, partials, public
from corejax_lax_basic.comparison import gt, lt
from corejax_lax_basic.logic import bitwise_and, bitwise_or

__all__ = ["clamp", "select", "select_n"]


def _choose(which: Any, *cases: Any) -> Any:
    if len(cases) == 2:
        return np.where(which if which.dtype == dtypes.bool_ else which > 0, cases[1], cases[0])
    shape = np.broadcast_shapes(which.shape, *[case.shape for case in cases])
    out = np.array(np.broadcast_to(cases[0], shape))
    for i, case in enumerate(cases[1:], 1):
        chosen = which >= i if i == len(cases) - 1 else which == i  # an index out of range is clamped
        np.copyto(out, case, where=chosen)
    return out


class SelectN(families.Elementwise):
    """`select_n(which, *cases)`: each element comes from the case that `which` selects at its place.

    `which` is boolean for one or two cases (False is the first), or an integer, clamped to the number of cases. It is
    a scalar, or has the cases' shape.

    >>> select_n(np.array([True, False]), np.zeros(2), np.ones(2)).tolist()
    [1.0, 0.0]
    """

    _typed_from = 1
    symbolic_zeros = True
    structural = True

    def __init__(self) -> None:
        super().__init__("select_n", _choose, arity=None, hlo=_lower_select, dtypes="biufc", jvp=None, cheap=True,
                         doc=str(SelectN.__doc__))

    def function(self, bind: Callable[..., Array]) -> Any:
        def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
            return bind(which, *families.match_scalars(cases))
        return select_n

    @hookimpl
    def abstract_eval(self, avals: Sequence[ShapedArray]) -> ShapedArray:
        if len(avals) < 2:
            raise families.refused(self.name, "there is nothing to choose from", avals,
                                   "an index and at least one case", "pass the cases after the index")
        which, cases = avals[0], len(avals) - 1
        if not dtypes.is_integer(which.dtype) and (which.dtype != dtypes.bool_ or cases > 2):
            raise families.refused(self.name, "the first operand must be the index of a case", avals,
                                   f"an integer dtype, as there are {cases} cases" if cases > 2 else
                                   "bool, or an integer dtype",
                                   "convert it: x.astype(int)" if which.dtype == dtypes.bool_ else
                                   "compare to get a boolean, or convert with x.astype(int)")
        return self._type(avals)

    @hookimpl
    def jvp(self, primals: Any, tangents: Any) -> Any:
        which, *cases = primals
        out = self._bind(*primals)
        dots = tangents[1:]
        if all([type(t) is Zero for t in dots]):
            return out, Zero(out.aval.tangent)
        zero = families.weak_scalar(0, out.aval.dtype)
        return out, families.spread(self._bind(which, *[zero if type(t) is Zero else t for t in dots]), out)

    @hookimpl
    def transpose(self, cotangents: Any, args: Any) -> Any:
        which, *cases = args
        zero = families.weak_scalar(0, cotangents.aval.dtype)
        found: list[Any] = [None]
        for i, case in enumerate(cases):
            if type(case) is not Linear:
                found.append(None)
                continue
            part = self._bind(which, *[cotangents if k == i else zero for k in range(len(cases))])
            found.append(families.unspread(part, case))
        return found

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        def arrays(*shapes: tuple[int, ...]) -> list[Any]:
            return [rng.standard_normal(shape) for shape in shapes]

        for shape in ((), (3,), (2, 3), (0,)):
            yield Sample([rng.integers(0, 2, shape).astype(bool), *arrays(shape, shape)])
            yield Sample([rng.integers(-1, 4, shape).astype(np.int32), *arrays(shape, shape, shape)])
            yield Sample([np.array(True), *arrays(shape, shape)])
        yield Sample([np.array([True, False]), *arrays((2,), ())])
        yield Sample([np.array(False), *arrays((), (2, 3))])
        yield Sample([np.array([True, False]), *arrays((), ())])
        yield Sample([np.array([1, 0], np.int32), np.array([1, 2]), np.array([3, 4])])
        yield Sample([np.array([2 ** 40, -2 ** 40, 1, 0]), *arrays((4,), (4,), (4,))])
        yield Sample([np.array([255, 0, 1], np.uint8), *arrays((3,), (3,), (3,))])
        yield Sample([np.array([2 ** 63, 1], np.uint64), *arrays((2,), (2,))])
        yield Sample([np.array([1.0, 0.0]), *arrays((2,), (2,))], error=TypeError)
        yield Sample([np.array([True, False]), *arrays((2,), (2,), (2,))], error=TypeError)


def _lower_select(ctx: Any, args: Sequence[Any]) -> Any:
    """Nested two-way selections, each halving the remaining cases."""
    which, *cases = args
    if len(cases) == 1:
        return cases[0]
    x = ctx.avals_in[0]
    if x.dtype == dtypes.bool_:
        return ctx.op("stablehlo.select", [which, cases[1], cases[0]])
    aval, largest = ShapedArray(ctx.avals_out[0].shape, x.dtype), dtypes.integer_limits(x.dtype).max
    below = ctx.ir.Attribute.parse("#stablehlo<comparison_direction LT>")

    def choose(first: int, values: list[Any]) -> Any:
        if len(values) == 1:
            return values[0]
        middle = len(values) // 2
        if first + middle > largest:  # no index says so
            return choose(first, values[:middle])
        bound = families.constant_like(ctx, first + middle, aval)
        is_below = ctx.op("stablehlo.compare", [which, bound], {"comparison_direction": below},
                          [ctx.type_of(ShapedArray(aval.shape, dtypes.bool_))])
        return ctx.op("stablehlo.select", [is_below, choose(first, values[:middle]),
                                           choose(first + middle, values[middle:])])
    return choose(0, cases)


select_n = define(SelectN())


@public
def select(pred: ArrayLike, on_true: ArrayLike, on_false: ArrayLike) -> Array:
    """The elements of `on_true` where `pred` holds, and of `on_false` elsewhere.

    >>> select(np.array([True, False]), np.zeros(2), np.ones(2)).tolist()
    [0.0, 1.0]
    """
    return select_n(pred, on_false, on_true)  # type: ignore[no-any-return]


def _where(pred: Any, x: Any) -> Any:
    return select_n(pred, families.weak_scalar(0, aval_of(x).dtype), x)


def limited(low: Any, x: Any, high: Any) -> Any:
    """NumPy's `minimum(maximum(x, low), high)`: in one pass, a fifth of the time, where the sign of 0 can't differ."""
    if x.size > 1000 and x.dtype.char in "fd" and np.ndim(low) == np.ndim(high) == 0 and high != 0 and not (
            low == 0 and np.signbit(low)):
        found = np.clip(x, low, high)
        return found if low != 0 else np.add(found, 0, out=found)
    return np.minimum(np.maximum(x, low), high)


class Clamp(families.Elementwise):
    """`clamp(min, x, max)`: x limited to the bounds, which may be scalars; `max` wins if they cross.

    >>> clamp(0.0, np.array([-1.0, 0.5, 2.0]), 1.0).tolist()
    [0.0, 0.5, 1.0]
    """

    def __init__(self) -> None:
        super().__init__(
            "clamp", lambda low, x, high: limited(low, x, high), arity=3, hlo="clamp", dtypes="iuf",
            jvp=partials(lambda t, out, low, x, high: _where(bitwise_and(gt(low, x), lt(low, high)), t),
                         lambda t, out, low, x, high: _where(bitwise_and(gt(x, low), lt(x, high)), t),
                         lambda t, out, low, x, high: _where(bitwise_or(lt(high, x), lt(high, low)), t)),
            doc=str(Clamp.__doc__), exempt={"f": {
                "derivatives agree at special points": "where x is equal to a bound, each derivative counts as 0"}})

    def function(self, bind: Callable[..., Array]) -> Any:
        def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
            return bind(*families.match_scalars((min, x, max)))
        return clamp


clamp = define(Clamp())
