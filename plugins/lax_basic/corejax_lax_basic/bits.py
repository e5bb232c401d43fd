"""What numbers look like in bits: how many are set, the next number, the same bits as another dtype, fewer bits."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from corejax.core import Array, ArrayLike, DTypeLike, ShapedArray, Zero, dtypes, here
from corejax.errors import CorejaxNotImplementedError, CorejaxValueError
from corejax.plugin import Sample, define, families, hookimpl, not_differentiable, not_linear, partials, shaping
from corejax_lax_basic._lowering import bits_alone
from corejax_lax_basic.shapes import move_axis

__all__ = ["bitcast_convert_type", "clz", "mulhi", "nextafter", "population_count", "reduce_precision"]


def _ones(x: Any) -> Any:
    return np.bitwise_count(x.view(f"u{x.dtype.itemsize}")).astype(x.dtype)


def _leading_zeros(x: Any) -> Any:
    bits = np.asarray(x).view(f"u{x.dtype.itemsize}")
    for k in range(6):  # 1, 2, 4, ... bits at a time, set everything below the highest bit
        shift = 1 << k
        if shift < 8 * x.dtype.itemsize:
            bits = bits | bits >> bits.dtype.type(shift)
    return np.bitwise_count(~bits).astype(x.dtype)


def _high_bits(x: Any, y: Any, bits: int = 0) -> Any:
    """By NumPy, and in programs, too: the operation of CHLO doesn't survive being divided among devices.

    In programs, integers of less `bits` than a byte are bytes.
    """
    bits = bits or dtypes.bits_of(x.dtype)
    if bits < 64:
        wide = np.dtype(f"{x.dtype.kind}{max(1, bits // 4)}")
        return (x.astype(wide) * y.astype(wide) >> wide.type(bits)).astype(x.dtype)
    half = x.dtype.type(32)
    low = x.dtype.type(0xFFFFFFFF)
    cross = (x & low) * (y >> half) + (((x & low).astype(np.uint64) * (y & low).astype(np.uint64)) >> np.uint64(32)
                                       ).astype(x.dtype)
    other = (x >> half) * (y & low) + (cross & low)
    return (x >> half) * (y >> half) + (cross >> half) + (other >> half)


def _lower_high_bits(ctx: Any, args: Any) -> Any:
    bits = dtypes.bits_of(ctx.avals_out[0].dtype)
    return ctx.lower(lambda x, y: _high_bits(x, y, bits), *args)


def _lower_ones(ctx: Any, args: Any) -> Any:
    return ctx.op("stablehlo.popcnt", [bits_alone(ctx, args[0])])


def _lower_leading_zeros(ctx: Any, args: Any) -> Any:
    zeros, aval = ctx.op("stablehlo.count_leading_zeros", [bits_alone(ctx, args[0])]), ctx.avals_out[0]
    if aval.dtype not in dtypes.PACKED:
        return zeros
    return ctx.op("stablehlo.subtract", [zeros, families.constant_like(ctx, 8 - dtypes.bits_of(aval.dtype),
                                                                       aval.stored)])


def _next(x: Any, y: Any) -> Any:
    return np.where(x == y, y, np.nextafter(x, y))  # of zeros, too, which differ in sign: half floats keep x's


population_count = define(families.unary(
    "population_count", _ones, hlo=_lower_ones, dtypes="iu", jvp=partials(None), doc="How many bits are 1.",
    example="population_count(np.array([0, 7, -1], np.int8)).tolist() -> [0, 3, 8]"))
clz = define(families.unary(
    "clz", _leading_zeros, hlo=_lower_leading_zeros, dtypes="iu", jvp=partials(None),
    doc="How many bits are 0 before the first that is 1: the leading zeros.",
    example="clz(np.array([0, 7, -1], np.int8)).tolist() -> [8, 5, 0]"))
mulhi = define(families.binary(
    "mulhi", _high_bits, hlo=_lower_high_bits, dtypes="iu", jvp=partials(None, None),
    doc="The upper half of the bits of the product x * y, which has twice as many as x and y.",
    example="mulhi(np.array([100, -100], np.int8), np.int8(100)).tolist() -> [39, -40]"))
nextafter = define(families.binary(
    "nextafter", _next, hlo="chlo.next_after", dtypes="f",
    jvp=not_differentiable("it steps from one representable number to the next"),
    doc="The next number after x1 in the direction of x2 that the dtype can represent.",
    example="nextafter(1.0, 2.0).item() -> 1.0000000000000002"))


def _as_bytes(x: Any, bits: int) -> Any:
    """The bytes of an array along its last axis; of two numbers of half a byte, the first is the lower half."""
    whole = x.view(np.uint8)
    return whole if bits >= 8 else whole[..., ::2] & 15 | whole[..., 1::2] << 4


def _of_bytes(whole: Any, dtype: np.dtype, bits: int) -> Any:
    if bits < 8:
        whole = np.stack([whole & 15, whole >> 4], -1).reshape(*whole.shape[:-1], -1)
    return whole.view(dtype)


def _own(ctx: Any, aval: ShapedArray) -> Any:
    """The compiler's own type of integers of less than a byte."""
    return ctx.ir.RankedTensorType.get(aval.shape, ctx.types.element(aval.dtype))


class BitcastConvertType:
    """`bitcast_convert_type(operand, new_dtype)`: the same bits, taken as numbers of another dtype.

    A wider operand is split: the result has one more axis, over its parts. Elements of a narrower operand are put
    together along the last axis, which must have as many of them as are needed. Least significant parts come first.

    >>> bitcast_convert_type(np.float32(1.0), np.int32).item() == 0x3F800000
    True
    >>> bitcast_convert_type(np.array([1, 258], np.uint16), np.uint8).tolist()
    [[1, 0], [2, 1]]
    """

    name = "bitcast_convert_type"
    cheap = True
    transpose = not_linear("bits aren't linear in what they stand for")

    def function(self, bind: Callable[..., Array]) -> Callable[..., Any]:
        def bitcast_convert_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
            return bind(operand, new_dtype=dtypes.canonical(new_dtype))
        return bitcast_convert_type

    @hookimpl
    def abstract_eval(self, avals: Sequence[ShapedArray], *, new_dtype: np.dtype) -> ShapedArray:
        (x,) = avals
        if x.dtype == new_dtype:
            return x
        for dtype in (x.dtype, new_dtype):
            if dtypes.kind(dtype) not in "iuf":
                raise shaping.refused(
                    self.name, f"{dtypes.short_name(dtype)} has no bits to take as another dtype's, or from one",
                    got=f"{x}, new_dtype={new_dtype}", wanted="integers or floats, or the same dtype",
                    todo="convert with convert_element_type, or take lax.real and lax.imag")
        have, want = dtypes.bits_of(x.dtype), dtypes.bits_of(new_dtype)
        if have == want:
            return ShapedArray(x.shape, new_dtype)
        if have > want:
            return ShapedArray((*x.shape, have // want), new_dtype)
        if not x.ndim or x.shape[-1] != want // have:
            raise shaping.refused(
                self.name, f"{want // have} elements of {dtypes.short_name(x.dtype)} make one of "
                f"{dtypes.short_name(new_dtype)}, along the last axis", got=str(x),
                wanted=f"a last axis of size {want // have}", todo="reshape the operand first", kind=CorejaxValueError)
        return ShapedArray(x.shape[:-1], new_dtype)

    @hookimpl
    def impl(self, args: Any, *, new_dtype: np.dtype) -> Any:
        x = np.ascontiguousarray(args[0]).reshape(np.shape(args[0]))
        have, want = dtypes.bits_of(x.dtype), dtypes.bits_of(new_dtype)
        if have > want:
            x = x[..., None]
        halves = have != want and 4 in (have, want)  # those of float4, which NumPy keeps in a byte each
        out = _of_bytes(_as_bytes(x, have), new_dtype, want) if halves else x.view(new_dtype)
        return out[..., 0] if have < want else out

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, new_dtype: np.dtype) -> Any:
        (x,), (tangent,) = primals, tangents
        out = _bind(x, new_dtype=new_dtype)
        if out.aval.dtype == x.aval.dtype:
            return out, tangent
        if dtypes.is_inexact(new_dtype):
            raise CorejaxNotImplementedError(
                "bitcast_convert_type is not differentiable: bits of one dtype, taken as numbers of another, jump",
                primitive=self.name, hook="jvp", where=here(), got=f"{x.aval.dtype} as {new_dtype}",
                wanted="operands that don't depend on what is differentiated",
                todo="convert with convert_element_type; or, if it is meant to be constant, differentiate around "
                     "lax.stop_gradient")
        return out, Zero(out.aval.tangent)

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, new_dtype: np.dtype) -> Any:
        (x,), (dim,) = args, dims
        joined = dtypes.bits_of(x.dtype) < dtypes.bits_of(new_dtype)
        if joined and dim == x.ndim - 1:  # the last axis is that of the parts
            x, dim = move_axis(x, dim, 0), 0
        return _bind(x, new_dtype=new_dtype), dim

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, new_dtype: np.dtype) -> Any:
        (aval,), (out,) = ctx.avals_in, ctx.avals_out
        if aval.dtype == new_dtype:
            return args[0]
        x = args[0] if aval.dtype not in dtypes.PACKED else ctx.op("stablehlo.convert", args, None, [_own(ctx, aval)])
        if new_dtype not in dtypes.PACKED:
            return ctx.op("stablehlo.bitcast_convert", [x])
        return ctx.op("stablehlo.convert", [ctx.op("stablehlo.bitcast_convert", [x], None, [_own(ctx, out)])])

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        for have, want, shape in (("float64", "int64", (2, 3)), ("float32", "uint32", ()), ("int32", "float32", (3,)),
                                  ("uint16", "uint8", (2, 3)), ("uint64", "int16", ()), ("int8", "int64", (3, 8)),
                                  ("uint8", "int16", (2, 0, 2)), ("int16", "int16", (2,)), ("bool", "bool", (2,)),
                                  ("complex64", "complex64", (2,))):
            x = np.asarray(rng.integers(0, 100, shape)).astype(have)
            yield Sample([x], {"new_dtype": np.dtype(want)})
        yield Sample([np.float32(1.0)], {"new_dtype": dtypes.int32}, results=np.int32(0x3F800000))
        yield Sample([np.array([0x0102], np.uint16)], {"new_dtype": np.dtype("uint8")},
                     results=np.array([[2, 1]], np.uint8))
        yield Sample([np.ones(3, bool)], {"new_dtype": np.dtype("uint8")}, error=TypeError)
        yield Sample([np.ones(3, np.complex64)], {"new_dtype": np.dtype("float32")}, error=TypeError)
        yield Sample([np.ones(3, np.uint8)], {"new_dtype": np.dtype("uint16")}, error=ValueError)


bitcast_convert_type = define(BitcastConvertType())
_bind = bitcast_convert_type.primitive.bind  # type: ignore[attr-defined]


class ReducePrecision:
    """`reduce_precision(operand, exponent_bits, mantissa_bits)`: rounded as if floats had only so many bits.

    Numbers that are too large become infinite, and those that are too small zero. Tangents are rounded likewise: the
    derivative is that of the identity, in this precision.

    >>> reduce_precision(np.float32(1.2345), exponent_bits=5, mantissa_bits=3).item()
    1.25
    """

    name = "reduce_precision"
    cheap = True
    linear = (0,)

    def function(self, bind: Callable[..., Array]) -> Callable[..., Any]:
        def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
            return bind(operand, exponent_bits=shaping.as_int(self.name, "exponent_bits", exponent_bits),
                        mantissa_bits=shaping.as_int(self.name, "mantissa_bits", mantissa_bits))
        return reduce_precision

    @hookimpl
    def abstract_eval(self, avals: Sequence[ShapedArray], *, exponent_bits: int, mantissa_bits: int) -> ShapedArray:
        (x,) = avals
        if dtypes.kind(x.dtype) != "f":
            raise shaping.refused(self.name, f"dtype {dtypes.short_name(x.dtype)} has no mantissa to round", got=str(x),
                                  wanted="floats", todo="convert integers with x.astype(float); of complex numbers, "
                                  "round each part")
        for what, bits, least in (("exponent_bits", exponent_bits, 1), ("mantissa_bits", mantissa_bits, 0)):
            if not least <= bits < 2 ** 31:
                raise shaping.refused(self.name, f"{what} can't be {bits}", got=bits, wanted=f"at least {least}",
                                      todo="bfloat16 has 8 bits of exponent and 7 of mantissa, float16 5 and 10",
                                      kind=CorejaxValueError)
        return x

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, exponent_bits: int, mantissa_bits: int) -> Any:
        return [reduce_precision(cotangents, exponent_bits, mantissa_bits)]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, exponent_bits: int, mantissa_bits: int) -> Any:
        return reduce_precision(args[0], exponent_bits, mantissa_bits), dims[0]

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, exponent_bits: int, mantissa_bits: int) -> Any:
        return ctx.op("stablehlo.reduce_precision", args, {
            "exponent_bits": ctx.attribute(f"{exponent_bits} : i32"),
            "mantissa_bits": ctx.attribute(f"{mantissa_bits} : i32")})

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        rounded = {"derivative": "gradients go through, rounded likewise"}
        for shape, exponent_bits, mantissa_bits in (((2, 3), 8, 45), ((), 5, 48), ((0,), 11, 52)):
            yield Sample([rng.uniform(-2, 2, shape)],
                         {"exponent_bits": exponent_bits, "mantissa_bits": mantissa_bits},
                         atol=2.0 ** -mantissa_bits, exempt=rounded)
        few = {"exponent_bits": 5, "mantissa_bits": 3}
        yield Sample([np.array([1.2345, -100.0, 1e6, -1e6, 1e-9, 0.0, np.inf])], few, atol=8.0, exempt=rounded,
                     results=np.array([1.25, -104.0, np.inf, -np.inf, 0.0, 0.0, np.inf]))
        yield Sample([np.ones(2, np.int32)], few, error=TypeError)
        yield Sample([np.ones(2)], {"exponent_bits": 0, "mantissa_bits": 3}, error=ValueError)
        yield Sample([np.ones(2)], {"exponent_bits": 5, "mantissa_bits": -1}, error=ValueError)


reduce_precision: Any = define(ReducePrecision())
