"""Rounding to integers, in the floating-point dtype of the operand. All of these are piecewise constant."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from typing import Any

import numpy as np

from corejax.core import Array, ArrayLike, ShapedArray, here
from corejax.errors import CorejaxValueError
from corejax.plugin import Sample, define, families, hookimpl, partials, shaping

__all__ = ["RoundingMethod", "ceil", "floor", "is_finite", "round"]


class RoundingMethod(IntEnum):
    """How `round` rounds numbers halfway between two integers.

    >>> round(2.5, RoundingMethod.TO_NEAREST_EVEN).item()
    2.0
    """

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


floor = define(families.unary("floor", np.floor, hlo="floor", dtypes="f", jvp=partials(None),
                              singular=range(-2, 3),
                              doc="The largest integer not greater than x.",
                              example="floor(np.array([1.5, -1.5])).tolist() -> [1.0, -2.0]"))
ceil = define(families.unary("ceil", np.ceil, hlo="ceil", dtypes="f", jvp=partials(None),
                             singular=range(-2, 3),
                             doc="The smallest integer not less than x.",
                             example="ceil(np.array([1.5, -1.5])).tolist() -> [2.0, -1.0]"))
is_finite = define(families.unary("is_finite", np.isfinite, hlo="is_finite", dtypes="f", jvp=partials(None),
                                  result=lambda dtype: np.dtype(bool), doc="Whether x is neither infinite nor NaN.",
                                  example="is_finite(np.array([1.5, np.inf])).tolist() -> [True, False]"))


def _half_away(x: Any) -> Any:
    whole = np.trunc(x)
    return whole + np.copysign(np.abs(x - whole) >= 0.5, x).astype(x.dtype)


class Round(families.Elementwise):
    """`round(x, rounding_method=0)`: the nearest integer; halves away from zero, or to even.

    >>> round(np.array([0.5, 1.5, -0.5]), RoundingMethod.TO_NEAREST_EVEN).tolist()
    [0.0, 2.0, -0.0]
    """

    def __init__(self) -> None:
        super().__init__("round", np.rint, arity=1, hlo="round_nearest_even", dtypes="f", jvp=partials(None),
                         doc=str(Round.__doc__))

    def function(self, bind: Callable[..., Array]) -> Callable[..., Any]:
        def round(x: ArrayLike, rounding_method: int = RoundingMethod.AWAY_FROM_ZERO) -> Array:
            return bind(x, rounding_method=shaping.as_int("round", "rounding_method", rounding_method))
        return round

    @hookimpl
    def impl(self, args: Any, *, rounding_method: int) -> Any:
        return np.rint(args[0]) if rounding_method else _half_away(args[0])

    @hookimpl
    def abstract_eval(self, avals: Sequence[ShapedArray], *, rounding_method: int  # type: ignore[override]
                      ) -> ShapedArray:
        if rounding_method not in (0, 1):
            raise CorejaxValueError("round: unknown rounding method", primitive="round", got=rounding_method,
                                    wanted="0 (away from zero) or 1 (to the nearest even)", where=here(),
                                    todo="pass a lax.RoundingMethod")
        return self._type(avals)

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, rounding_method: int) -> Any:
        return ctx.op("stablehlo.round_nearest_even" if rounding_method else "stablehlo.round_nearest_afz", args)

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        for method in RoundingMethod:
            for shape in ((), (3,), (2, 0)):
                yield Sample([rng.uniform(-3, 3, shape)], {"rounding_method": int(method)})
            yield Sample([np.array([-1.5, -0.5, -0.0, 0.5, 2.5])], {"rounding_method": int(method)},
                         domain=(-3.0, 3.0))
        yield Sample([np.ones(2)], {"rounding_method": 2}, error=ValueError)
        yield Sample([np.ones(2, np.int32)], {"rounding_method": 0}, error=TypeError)


round = define(Round())
