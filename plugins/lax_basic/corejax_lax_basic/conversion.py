"""Conversion from one dtype to another, by the compiler's rules.

To booleans: True where it isn't zero. From complex to real: the real part. From floats to integers: rounded towards
zero, NaN to 0, and values out of range to the nearest integer in range. Between integers: the low bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from corejax.core import Array, ArrayLike, DTypeLike, ShapedArray, Zero, aval_of, dtypes, here
from corejax.errors import CorejaxTypeError
from corejax.plugin import Sample, define, families, hookimpl, partials, public

__all__ = ["convert_element_type", "dtype"]


def _cast(x: Any, new_dtype: np.dtype) -> Any:
    if x.dtype == new_dtype:
        return x
    have, want = dtypes.kind(x.dtype), dtypes.kind(new_dtype)
    if want == "b":
        return x != 0
    if have == "c" and want != "c":
        return _cast(x.real, new_dtype)
    if have == "f" and want in "iu":
        return _to_integer(x, new_dtype)
    if have == want == "f" and x.dtype.itemsize == new_dtype.itemsize == 1:  # not all of which are cast to each other
        x = x.astype(np.float32)
    return x.astype(new_dtype)


def _to_integer(x: Any, new_dtype: np.dtype) -> Any:
    info = dtypes.integer_limits(new_dtype)
    wide = np.asarray(x, x.dtype if x.dtype.itemsize >= 4 else np.float32)
    low, high = wide.dtype.type(info.min), wide.dtype.type(info.max)  # high may be rounded up, out of range
    if not wide.size or (wide.min() >= low and wide.max() < high):  # not of NaNs
        return wide.astype(new_dtype)
    inside = (wide >= low) & (wide < high)
    out = np.where(inside, wide, 0).astype(new_dtype)
    return np.where(inside | np.isnan(wide), out, np.where(wide < 0, info.min, info.max).astype(new_dtype))


def _clamped(ctx: Any, x: Any, dtype: np.dtype) -> Any:
    """Bytes in the range of integers that have less."""
    limits = dtypes.integer_limits(dtype)
    low, high = [ctx.constant(np.asarray(limit, dtype)) for limit in (limits.min, limits.max)]
    return ctx.op("stablehlo.clamp", [low, x, high])


def _fits_default(value: int) -> bool:
    """Whether it is a number of the default integers, whose low bits are taken; others have no bits to take."""
    info = np.iinfo(dtypes.default_dtype("i"))
    return bool(info.min <= value <= info.max)


def _tangent(tangent: Any, out: Any, x: Any, *, new_dtype: np.dtype) -> Any:
    return _to(tangent, new_dtype) if dtypes.is_inexact(new_dtype) else Zero(out.aval.tangent)


class ConvertElementType:
    """`convert_element_type(operand, new_dtype)`: the same numbers in another dtype, as far as it can hold them.

    >>> convert_element_type(np.array([1.9, -1.9, np.nan, 300.0]), np.int8).tolist()
    [1, -1, 0, 127]
    """

    name = "convert_element_type"
    cheap = True
    jvp = partials(_tangent)

    def function(self, bind: Callable[..., Array]) -> Callable[..., Any]:
        def convert_element_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
            wanted = dtypes.canonical(new_dtype)
            if type(operand) is int and not _fits_default(operand):
                return Array.from_host(dtypes.number(operand, wanted), ShapedArray((), wanted))
            return bind(operand, new_dtype=wanted, weak_type=False)
        return convert_element_type

    @hookimpl
    def impl(self, args: Any, *, new_dtype: np.dtype) -> Any:
        return _cast(args[0], new_dtype)

    @hookimpl
    def abstract_eval(self, avals: Sequence[ShapedArray], *, new_dtype: np.dtype, weak_type: bool) -> ShapedArray:
        (x,) = avals
        if dtypes.float0 in (x.dtype, new_dtype):
            raise CorejaxTypeError("convert_element_type: float0 holds no numbers", primitive=self.name, got=str(x),
                                   wanted="a dtype of numbers", where=here(),
                                   todo="tangents of integers are zero: make zeros of the type that you want")
        return ShapedArray(x.shape, new_dtype, weak_type)

    @hookimpl
    def transpose(self, cotangents: Any, args: Any) -> Any:
        found, wanted = aval_of(cotangents), args[0].aval
        if dtypes.is_inexact(wanted.dtype) and not dtypes.is_inexact(found.dtype):
            return [None]  # rounded
        if found.dtype == wanted.dtype and (wanted.weak_type or not found.weak_type):
            return [cotangents]
        return [_bind(cotangents, new_dtype=wanted.dtype, weak_type=False)]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, new_dtype: np.dtype, weak_type: bool) -> Any:
        return _bind(args[0], new_dtype=new_dtype, weak_type=weak_type), dims[0]

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, new_dtype: np.dtype) -> Any:
        x, = ctx.avals_in
        have, want = dtypes.kind(x.dtype), dtypes.kind(new_dtype)
        if x.dtype == new_dtype:
            return args[0]
        if want == "b":
            differs = {"comparison_direction": ctx.ir.Attribute.parse("#stablehlo<comparison_direction NE>")}
            return ctx.op("stablehlo.compare", [args[0], families.constant_like(ctx, 0)], differs)
        if have == "c" and want != "c":
            part = ShapedArray(x.shape, np.dtype(f"float{4 * x.dtype.itemsize}"))
            value = ctx.op("stablehlo.real", args, None, [ctx.type_of(part)])
            value = value if part.dtype == new_dtype else ctx.op("stablehlo.convert", [value])
            return _clamped(ctx, value, new_dtype) if new_dtype in dtypes.PACKED else value
        if have == "f" and dtypes.bits_of(x.dtype) < 8:  # its largest number would be the largest integer
            args = [ctx.op("stablehlo.convert", args, None, [ctx.type_of(x.update(dtype=dtypes.float32))])]
        if have == "f" and new_dtype in dtypes.PACKED:
            return _clamped(ctx, ctx.op("stablehlo.convert", args), new_dtype)
        return ctx.op("stablehlo.convert", args)

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        for i, have in enumerate(("bool", "int8", "uint32", "int64", "float32", "float64", "complex64")):
            for k, want in enumerate(("bool", "int32", "uint8", "float32", "float64", "complex128")):
                if (i + k) % 2 or have == "float64":  # about half of the pairs: each dtype with several others
                    x = np.asarray(rng.uniform(0, 3, (2, 3))).astype(have)
                    yield Sample([x], {"new_dtype": np.dtype(want), "weak_type": False})
        for shape in ((), (0,)):
            x = rng.standard_normal(shape)
            weak = Array.from_host(x.astype(np.float32), ShapedArray(shape, dtypes.float32, weak_type=True))
            yield Sample([x], {"new_dtype": dtypes.float32, "weak_type": True}, results=weak)
        yield Sample([np.array([2.0 ** 31, -2.0 ** 31, 2.0 ** 31 - 128, 1.9, -1.9], np.float32)],
                     {"new_dtype": dtypes.int32, "weak_type": False},
                     results=np.array([2 ** 31 - 1, -2 ** 31, 2 ** 31 - 128, 1, -1], np.int32))
        yield Sample([np.array([np.nan, np.inf, -np.inf, 1e30, -0.0])], {"new_dtype": dtypes.int32, "weak_type": False})


convert_element_type = define(ConvertElementType())
_bind = convert_element_type.primitive.bind  # type: ignore[attr-defined]


def _to(x: Any, dtype: np.dtype) -> Any:
    return x if aval_of(x).dtype == dtype else _bind(x, new_dtype=dtype, weak_type=False)


@public
def dtype(x: ArrayLike | DTypeLike) -> np.dtype:
    """The dtype of a value, or the one that a type or a name stands for.

    >>> dtype(np.zeros(2, np.float32)).name, dtype(1).name, dtype("bfloat16").name
    ('float32', 'int64', 'bfloat16')
    """
    return dtypes.canonical(x) if isinstance(x, (type, str, np.dtype)) else aval_of(x).dtype
