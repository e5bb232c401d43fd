"""StableHLO of sorts and of the largest elements.

XLA for CPUs has one fast sort: of a single array whose comparator is a plain `<`. It calls any other comparator, or one
of several arrays, by a pointer for each comparison, which takes three to eight times as long. So a program for the
CPU packs what is to be compared, and the place where it stood, into single words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import ShapedArray, dtypes
from corejax_sorting._elements import place_dtype, taken

#: A comparator is faster with more passes than these, for so few elements in all, or for so few in a row.
_PASSES, _FEW, _SHORT = 3, 256, 4


def sort(ctx: Any, args: Sequence[Any], dimension: int, is_stable: bool, num_keys: int) -> Sequence[Any]:
    """The operands, rearranged so that the first `num_keys` of them are sorted lexicographically."""
    avals = [aval.stored for aval in ctx.avals_in]
    if avals[0].shape[dimension] <= 1 or not avals[0].size:
        return args
    places: Any = None
    if ctx.platform == "cpu" and avals[0].size >= _FEW:
        if len(args) == 1 and not dtypes.is_complex(avals[0].dtype):
            return [_alone(ctx, args[0], avals[0], dimension)]
        if avals[0].shape[dimension] >= _SHORT:
            places = _permutation(ctx, args[:num_keys], avals[:num_keys], dimension)
    if places is None:
        return _by_comparator(ctx, args, avals, dimension, is_stable, num_keys)
    return [ctx.lower(lambda x, places: taken(x, places, dimension, unique=True), x, places) for x in args]


def largest(ctx: Any, x: Any, k: int, dimension: int) -> Sequence[Any]:
    """The k largest along an axis and their places, in the total order of floats."""
    aval, (out, places) = ctx.avals_in[0].stored, ctx.avals_out
    if not out.size:
        return [ctx.constant(np.zeros(kind.shape, kind.dtype)) for kind in (out, places)]
    order = [d for d in range(aval.ndim) if d != dimension] + [dimension]
    last = order == sorted(order)
    if not last:
        x = ctx.lower(lambda x: lax.transpose(x, order), x)
    shape = tuple([aval.shape[d] for d in order])
    wide = _as_float32(ctx, x, ShapedArray(shape, aval.dtype)) if ctx.platform == "cpu" else x
    values, places = _top_k(ctx, wide, ShapedArray(shape, aval.dtype if wide is x else dtypes.float32), k)
    if wide is not x:
        values = _from_float32(ctx, values, ShapedArray((*shape[:-1], k), aval.dtype))
    if last:
        return values, places
    back = [int(d) for d in np.argsort(order)]
    return [ctx.lower(lambda x: lax.transpose(x, back), y) for y in (values, places)]


# By a comparator

def _by_comparator(ctx: Any, args: Sequence[Any], avals: Sequence[ShapedArray], dimension: int, is_stable: bool,
                   num_keys: int) -> list[Any]:
    """Any number of arrays in one operation, whose comparator says what comes first."""
    def precedes(*pairs: Any) -> list[Any]:
        first: Any = None
        for i in reversed(range(num_keys)):
            for a, b in reversed(_comparable(ctx, pairs[2 * i], pairs[2 * i + 1], avals[i].dtype)):
                less = _compare(ctx, "LT", a, b)
                first = less if first is None else _op(ctx, "or", less, _op(ctx, "and", _compare(ctx, "EQ", a, b),
                                                                            first))
        return [first]

    moved = [_moved(ctx, aval) for aval in avals]
    stable = is_stable or ctx.platform == "cpu"  # as the sort by words is, and NumPy's
    outs = _sort(ctx, [_bits_as(ctx, x, aval) for x, aval in zip(args, moved, strict=True)], moved, dimension,
                 stable, precedes)
    return [_bits_as(ctx, x, aval) for x, aval in zip(outs, avals, strict=True)]


def _moved(ctx: Any, aval: ShapedArray) -> ShapedArray:
    """The type of what is moved: on the CPU the bits of floats, as its code takes subnormal floats for zeros."""
    if ctx.platform != "cpu" or not dtypes.is_float(aval.dtype):
        return aval
    return aval.update(dtype=np.dtype(f"uint{8 * aval.dtype.itemsize}"))


def _comparable(ctx: Any, a: Any, b: Any, dtype: np.dtype) -> list[tuple[Any, Any]]:
    """What is compared of two elements: the parts of complex numbers, and all zeros and all NaNs as one."""
    if ctx.platform == "cpu":
        scalar = ShapedArray((), dtype)
        return [(x, y) for (x, _), (y, _) in zip(*[_ordered_bits(ctx, x, scalar) for x in (a, b)], strict=True)]
    if dtypes.is_complex(dtype):
        return [(_one_zero_and_nan(ctx, _part(ctx, part, a)), _one_zero_and_nan(ctx, _part(ctx, part, b)))
                for part in ("real", "imag")]
    if dtypes.is_float(dtype):
        return [(_one_zero_and_nan(ctx, a), _one_zero_and_nan(ctx, b))]
    return [(a, b)]


def _one_zero_and_nan(ctx: Any, x: Any) -> Any:
    """Compilers for GPUs know comparators that do this, and use their fast sorts for them."""
    def replaced(x: Any) -> Any:
        zero, nan = lax.full_like(x, 0), lax.full_like(x, np.nan)
        without_sign = lax.select(lax.eq(x, zero), zero, x)
        return lax.select(lax.ne(x, x), nan, without_sign)
    return ctx.lower(replaced, x)


# On the CPU: a single array

def _alone(ctx: Any, x: Any, aval: ShapedArray, dimension: int) -> Any:
    """One real array: its elements as integers, which the compiler sorts fastest."""
    dtype = aval.dtype
    if dtype.kind in "iu":
        return _plainly(ctx, x, aval, dimension)
    if dtype == dtypes.bool_ or dtype.itemsize == 1:
        wide = aval.update(dtype=_native(dtype))
        x = ctx.lower(lambda x: lax.convert_element_type(x, wide.dtype), x)
        return ctx.lower(lambda x: lax.convert_element_type(x, dtype), _alone(ctx, x, wide, dimension))
    ((ordered, width),) = _ordered_bits(ctx, x, aval)
    unsigned = aval.update(dtype=np.dtype(f"uint{width}"))
    negative_zeros = ctx.lower(lambda bits: lax.eq(bits, lax.full_like(bits, 1 << (width - 1))),
                               _bits_as(ctx, x, unsigned))
    scalar = ctx.type_of(ShapedArray((), dtypes.bool_))
    some = ctx.op("stablehlo.reduce", [negative_zeros, ctx.constant(np.zeros((), dtypes.bool_))],
                  {"dimensions": ctx.ir.DenseI64ArrayAttr.get(range(aval.ndim))}, [scalar], 1)
    ctx.fill(ctx.regions[0], [scalar] * 2, lambda a, b: [_op(ctx, "or", a, b)])

    def moved() -> list[Any]:  # integers don't tell which zero has the sign, places do
        places = _permutation(ctx, [x], [aval], dimension)
        return [ctx.lower(lambda x, places: taken(x, places, dimension, unique=True), x, places)]

    def made_anew() -> list[Any]:
        bits = ctx.lower(lambda bits: _float_bits(bits, width), _plainly(ctx, ordered, unsigned, dimension))
        return [_bits_as(ctx, bits, aval)]

    out = ctx.op("stablehlo.if", [some], None, [ctx.type_of(aval)], 2)
    for region, body in zip(ctx.regions, (moved, made_anew), strict=True):
        ctx.fill(region, [], body)
    return out


def _plainly(ctx: Any, x: Any, aval: ShapedArray, dimension: int) -> Any:
    """One array of integers by `<`."""
    return _sort(ctx, [x], [aval], dimension, True, lambda a, b: [_compare(ctx, "LT", a, b)])[0]


# On the CPU: several arrays

def _permutation(ctx: Any, keys: Sequence[Any], avals: Sequence[ShapedArray], dimension: int) -> Any:
    """The places to read from, found by a radix sort whose digits are as wide as a word has room for beside a place.

    None if that takes too many passes.
    """
    shape = avals[0].shape
    size = shape[dimension]
    parts = [part for key, aval in zip(keys, avals, strict=True) for part in _ordered_bits(ctx, key, aval)]
    place_bits, key_bits = (size - 1).bit_length(), sum([width for _, width in parts])
    word = np.dtype(np.uint32 if place_bits + key_bits <= 32 else np.uint64)
    room = 8 * word.itemsize - place_bits
    if key_bits > _PASSES * room:
        return None
    index = place_dtype(size)
    words = ShapedArray(shape, word)

    def packed(digit: Any) -> Any:
        return lax.bitwise_or(lax.shift_left(digit, lax.full_like(digit, place_bits)),
                              lax.broadcasted_iota(word, shape, dimension))

    def unpacked(words: Any) -> Any:
        places = lax.bitwise_and(words, lax.full_like(words, 2 ** place_bits - 1))
        return lax.convert_element_type(places, index)

    found: Any = None
    for low in range(0, key_bits, room):
        digit = ctx.lower(lambda *values, low=low: _digit(values, [width for _, width in parts], low, room, word),
                          *[value for value, _ in parts])
        if found is not None:
            digit = ctx.lower(lambda x, places: taken(x, places, dimension, unique=True), digit, found)
        places = ctx.lower(unpacked, _plainly(ctx, ctx.lower(packed, digit), words, dimension))
        found = places if found is None else ctx.lower(
            lambda x, places: taken(x, places, dimension, unique=True), found, places)
    return found


def _digit(values: Sequence[Any], widths: Sequence[int], low: int, room: int, word: np.dtype) -> Any:
    """The bits from `low` on, `room` of them, of the number that all values make up, the first being the highest."""
    digit: Any = None
    begin = 0
    for value, width in zip(reversed(values), reversed(widths), strict=True):
        shift = low - begin
        begin += width
        if shift >= width or shift + room <= 0:
            continue
        part = lax.convert_element_type(value, word)
        if shift > 0:
            part = lax.shift_right_logical(part, lax.full_like(part, shift))
        elif shift < 0:
            part = lax.shift_left(part, lax.full_like(part, -shift))
        digit = part if digit is None else lax.bitwise_or(digit, part)
    return lax.bitwise_and(digit, lax.full_like(digit, 2 ** room - 1))


def _ordered_bits(ctx: Any, x: Any, aval: ShapedArray) -> list[tuple[Any, int]]:
    """Unsigned integers in the order of the elements, or of the floats whose bits `x` has, and how wide they are."""
    if dtypes.is_complex(aval.dtype):
        part = aval.update(dtype=np.zeros((), aval.dtype).real.dtype)
        return [_ordered_bits(ctx, _part(ctx, name, x), part)[0] for name in ("real", "imag")]
    native = _native(aval.dtype)
    if native != aval.dtype:
        x = ctx.lower(lambda x: lax.convert_element_type(x, native), _bits_as(ctx, x, aval))
    width = 8 * native.itemsize
    unsigned = np.dtype(f"uint{width}")
    bits = _bits_as(ctx, x, aval.update(dtype=unsigned))
    if aval.dtype == dtypes.bool_:
        return [(bits, 1)]
    if native.kind == "u":
        return [(bits, width)]
    if native.kind == "i":
        return [(ctx.lower(lambda bits: lax.bitwise_xor(bits, lax.full_like(bits, 1 << (width - 1))), bits), width)]
    return [(ctx.lower(lambda bits: _float_order(bits, native, width), bits), width)]


def _float_order(bits: Any, dtype: np.dtype, width: int) -> Any:
    """From the bits of floats: zeros of either sign are the same, and so are all NaNs, the greatest."""
    sign = lax.full_like(bits, 1 << (width - 1))
    infinity = int(np.asarray(np.inf, np.float32).astype(dtype).view(f"uint{width}"))
    magnitude = lax.bitwise_and(bits, lax.full_like(bits, (1 << (width - 1)) - 1))
    negative = lax.bitwise_and(lax.ge(bits, sign), lax.ne(magnitude, lax.full_like(bits, 0)))
    ordered = lax.select(negative, lax.bitwise_not(bits), lax.bitwise_or(bits, sign))
    return lax.select(lax.gt(magnitude, lax.full_like(bits, infinity)), lax.full_like(bits, (1 << width) - 1), ordered)


def _float_bits(ordered: Any, width: int) -> Any:
    """The bits of floats from what `_float_order` made of them; NaNs and zeros without a sign."""
    sign = lax.full_like(ordered, 1 << (width - 1))
    return lax.select(lax.ge(ordered, sign), lax.bitwise_xor(ordered, sign), lax.bitwise_not(ordered))


# The largest

def _top_k(ctx: Any, x: Any, aval: ShapedArray, k: int) -> Any:
    shape = (*aval.shape[:-1], k)
    return ctx.op("chlo.top_k", [x], {"k": ctx.attribute(f"{k} : i64")},
                  [ctx.type_of(ShapedArray(shape, dtype)) for dtype in (aval.dtype, dtypes.int32)])


def _as_float32(ctx: Any, x: Any, aval: ShapedArray) -> Any:
    """Floats whose total order is that of the elements: the compiler has a fast program for these alone.

    Narrow numbers are floats exactly; integers of 32 bits become the floats, NaNs included, that have their order.
    """
    dtype = aval.dtype
    if dtype == dtypes.float32 or dtype.itemsize > 4:
        return x
    if dtype.itemsize < 4:
        return ctx.lower(lambda x: lax.convert_element_type(x, dtypes.float32), x)
    bits = aval.update(dtype=dtypes.int32)
    x = _bits_as(ctx, x, bits)
    if dtype.kind == "u":
        x = ctx.lower(lambda x: lax.bitwise_xor(x, lax.full_like(x, np.iinfo(np.int32).min)), x)
    return _bits_as(ctx, ctx.lower(_mirrored, x), aval.update(dtype=dtypes.float32))


def _from_float32(ctx: Any, x: Any, aval: ShapedArray) -> Any:
    dtype = aval.dtype
    if dtype.itemsize < 4:
        return ctx.lower(lambda x: lax.convert_element_type(x, dtype), x)
    x = ctx.lower(_mirrored, _bits_as(ctx, x, aval.update(dtype=dtypes.int32)))
    if dtype.kind == "u":
        x = ctx.lower(lambda x: lax.bitwise_xor(x, lax.full_like(x, np.iinfo(np.int32).min)), x)
    return _bits_as(ctx, x, aval)


def _mirrored(bits: Any) -> Any:
    """From integers to the bits of floats in the same total order, and back: for negative ones, larger is smaller."""
    negative = lax.shift_right_arithmetic(bits, lax.full_like(bits, 31))
    return lax.bitwise_xor(bits, lax.bitwise_and(negative, lax.full_like(bits, np.iinfo(np.int32).max)))


# Operations

def _native(dtype: np.dtype) -> np.dtype:
    """The dtype that holds the same numbers, and whose bits tell their order."""
    if dtype == dtypes.bool_:
        return np.dtype(np.uint8)
    if dtypes.is_float(dtype):
        return dtype if dtype.itemsize > 1 else dtypes.float32
    return dtype


def _sort(ctx: Any, args: Sequence[Any], avals: Sequence[ShapedArray], dimension: int, is_stable: bool,
          precedes: Any) -> list[Any]:
    outs = ctx.op("stablehlo.sort", args, {
        "dimension": ctx.attribute(f"{dimension} : i64"), "is_stable": ctx.ir.BoolAttr.get(is_stable)},
        [ctx.type_of(aval) for aval in avals], 1)
    outs = outs if isinstance(outs, list) else [outs]
    pairs = [ctx.type_of(ShapedArray((), aval.dtype)) for aval in avals for _ in range(2)]
    ctx.fill(ctx.regions[0], pairs, precedes)
    return outs


def _compare(ctx: Any, direction: str, a: Any, b: Any) -> Any:
    """Whether one scalar compares with another; floats by their total order."""
    attributes = {"comparison_direction": ctx.attribute(f"#stablehlo<comparison_direction {direction}>")}
    if isinstance(a.type.element_type, ctx.ir.FloatType):
        attributes["compare_type"] = ctx.attribute("#stablehlo<comparison_type TOTALORDER>")
    return ctx.op("stablehlo.compare", [a, b], attributes, [ctx.type_of(ShapedArray((), dtypes.bool_))])


def _op(ctx: Any, name: str, *operands: Any) -> Any:
    return ctx.op(f"stablehlo.{name}", operands, None, [operands[0].type])


def _part(ctx: Any, name: str, x: Any) -> Any:
    """The real or the imaginary part of a value of any shape."""
    element = x.type.element_type.element_type
    return ctx.op(f"stablehlo.{name}", [x], None, [ctx.ir.RankedTensorType.get(x.type.shape, element)])


def _bits_as(ctx: Any, x: Any, aval: ShapedArray) -> Any:
    return x if x.type == ctx.type_of(aval) else ctx.op("stablehlo.bitcast_convert", [x], None, [ctx.type_of(aval)])
