"""`fft`, discrete Fourier transforms along the last one to three axes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from math import prod
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, ShapedArray, aval_of, dtypes, to_dim
from corejax.errors import CorejaxTypeError, CorejaxValueError
from corejax.plugin import Sample, define, hookimpl, refused, shaping
from corejax_fft._host import transformed
from corejax_fft._lowering import lower

__all__ = ["FftType", "fft"]

Shape = tuple[int, ...]


class FftType(IntEnum):
    """Which transform: from complex to complex numbers and back, or from real numbers to half a spectrum and back.

    >>> fft(np.array([1.0, 0.0]), FftType.RFFT, (2,)).tolist()
    [(1+0j), (1+0j)]
    """

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


_NAMES = {name: kind for kind in FftType for name in (kind.name, kind.name.lower())}

#: The numbers that each transform takes, and those that it makes of them.
_RESULTS = {np.dtype(x): np.dtype(y) for x, y in [
    ("float32", "complex64"), ("float64", "complex128"), ("complex64", "float32"), ("complex128", "float64")]}
_REAL, _COMPLEX = tuple(_RESULTS)[:2], tuple(_RESULTS)[2:]
_WIDE = tuple(map(np.dtype, ("int64", "uint64", "float64", "complex128")))

#: Operands that are transformed as they are.
_TO_TRANSFORM = {(dtype, kind): dtype for kind in FftType for dtype in (_REAL if kind == FftType.RFFT else _COMPLEX)}


class Fft:
    """`fft(x, fft_type, fft_lengths)`: the discrete Fourier transform along as many last axes as there are lengths.

    `fft_type` is a `FftType`, or its name. "fft" and "ifft" are from complex to complex numbers; "rfft" is from real
    numbers to the `n // 2 + 1` first ones of the last axis, the others being their conjugates; "irfft" is its inverse.
    `fft_lengths` are the numbers of points, n: from one axis to three. Inverses divide by the number of points.

    >>> lax.fft(np.array([1.0, 2.0, 3.0, 4.0]), "fft", (4,)).tolist()
    [(10+0j), (-2+2j), (-2+0j), (-2-2j)]
    >>> spectrum = lax.fft(np.array([1.0, 2.0, 3.0, 4.0]), "rfft", (4,))
    >>> spectrum.tolist(), lax.fft(spectrum, "irfft", (4,)).tolist()
    ([(10+0j), (-2+2j), (-2+0j)], [1.0, 2.0, 3.0, 4.0])
    """

    name = "fft"
    operands = ("x",)
    linear = (0,)

    def function(self, bind: Callable[..., Array]) -> Any:
        def fft(x: ArrayLike, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Array:
            kind = _canonical_type(fft_type)
            lengths = shaping.as_ints("fft", "fft_lengths", fft_lengths)
            aval = aval_of(x)
            wanted = _TO_TRANSFORM.get((aval.dtype, kind)) or _dtype_to_transform(aval, kind)
            if aval.dtype != wanted or aval.weak_type or not lengths:
                x = lax.convert_element_type(x, wanted)
            return bind(x, fft_type=int(kind), fft_lengths=lengths) if lengths else x  # type: ignore[return-value]
        return fft

    @hookimpl
    def impl(self, args: Any, *, fft_type: int, fft_lengths: Shape) -> Any:
        (x,) = args
        if 0 in x.shape or 0 in fft_lengths:
            shape = _result_shape(x.shape, fft_type, fft_lengths)
            return np.zeros(shape, _RESULTS[x.dtype] if fft_type >= FftType.RFFT else x.dtype)
        return transformed(x, fft_type, fft_lengths)

    @hookimpl
    def abstract_eval(self, avals: Any, *, fft_type: int, fft_lengths: Shape) -> ShapedArray:
        (x,) = avals
        if fft_type not in range(len(FftType)):
            raise refused(self.name, "there is no such transform", got=f"fft_type={fft_type!r}",
                          wanted="a number from 0 to 3, of a FftType", todo="use lax.FftType.FFT",
                          kind=CorejaxValueError)
        kind = FftType(fft_type)
        takes = _REAL if kind is FftType.RFFT else _COMPLEX
        if x.dtype not in takes:
            raise refused(self.name, f"{kind.name} doesn't transform numbers of this type", got=str(x),
                          wanted=" or ".join(map(dtypes.long_name, takes)), kind=CorejaxValueError,
                          todo=f"convert the operand with x.astype(np.{takes[0]})")
        _check_lengths(x, kind, fft_lengths)
        return ShapedArray(_result_shape(x.shape, kind, fft_lengths),
                           _RESULTS[x.dtype] if kind >= FftType.RFFT else x.dtype, x.weak_type)

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, fft_type: int, fft_lengths: Shape) -> Any:
        ct, wanted = cotangents, args[0].aval
        if fft_type == FftType.RFFT:
            scale = float(prod(fft_lengths))
            return [fft(_times(lax.conj(ct), fft_lengths, scale, 0.5 * scale), FftType.IRFFT, fft_lengths)]
        if fft_type == FftType.IRFFT:
            if not wanted.size:
                return [lax.full(wanted.shape, 0, wanted.dtype)]
            scale = 1 / max(1, prod(fft_lengths))
            return [lax.conj(_times(fft(ct, FftType.RFFT, fft_lengths), fft_lengths, scale, 2.0 * scale))]
        return [fft(ct, FftType(fft_type), fft_lengths)]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, fft_type: int, fft_lengths: Shape) -> Any:
        (x,), (dim,) = args, dims
        if dim >= aval_of(x).ndim - len(fft_lengths):  # transforms are along the last axes
            x, dim = to_dim(x, dim, 0, axis.size), 0
        return fft.primitive.bind(x, fft_type=fft_type, fft_lengths=fft_lengths), dim

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, fft_type: int, fft_lengths: Shape) -> Any:
        return lower(ctx, args[0], FftType(fft_type).name, fft_lengths)

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        def numbers(*shape: int) -> Any:
            return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)

        def params(kind: FftType, *lengths: int) -> dict[str, Any]:
            return {"fft_type": int(kind), "fft_lengths": lengths}

        for shape, axes in [((4,), 1), ((3,), 1), ((1,), 1), ((2, 6), 1), ((2, 3), 2), ((2, 2, 3, 4), 3), ((0, 4), 1),
                            ((2, 0), 1)]:
            lengths = shape[len(shape) - axes:]
            for kind in (FftType.FFT, FftType.IFFT):
                yield Sample([numbers(*shape)], params(kind, *lengths))
            half = (*shape[:-1], shape[-1] // 2 + 1)
            yield Sample([rng.standard_normal(shape)], params(FftType.RFFT, *lengths))
            yield Sample([numbers(*half)], params(FftType.IRFFT, *lengths))
        ramp = np.arange(4.0)
        yield Sample([ramp + 0j], params(FftType.FFT, 4), results=np.array([6, -2 + 2j, -2, -2 - 2j]))
        yield Sample([ramp], params(FftType.RFFT, 4), results=np.array([6, -2 + 2j, -2]))
        for x, refused_params in [
                (ramp, params(FftType.FFT, 4)), (ramp + 0j, params(FftType.RFFT, 4)), (ramp, params(FftType.IRFFT, 6)),
                (ramp + 0j, params(FftType.FFT, 5)), (ramp + 0j, params(FftType.FFT)),
                (ramp + 0j, params(FftType.FFT, 1, 4)), (ramp, params(FftType.RFFT, 3)),
                (ramp + 0j, params(FftType.IRFFT, 4)), (np.ones((1, 1, 1, 1)), params(FftType.RFFT, 1, 1, 1, 1)),
                (ramp + 0j, {"fft_type": 4, "fft_lengths": (4,)})]:
            yield Sample([x], refused_params, error=ValueError)


def _canonical_type(fft_type: Any) -> FftType:
    """The transform of this name."""
    if isinstance(fft_type, FftType):
        return fft_type
    if isinstance(fft_type, str) and fft_type in _NAMES:
        return _NAMES[fft_type]
    raise refused("fft", "there is no such transform", got=f"fft_type={fft_type!r}",
                  wanted=f"a FftType, or one of {', '.join(map(repr, _NAMES))}",
                  todo="pass 'fft', 'ifft', 'rfft' or 'irfft'",
                  kind=CorejaxValueError if isinstance(fft_type, str) else CorejaxTypeError)


def _dtype_to_transform(aval: ShapedArray, kind: FftType) -> np.dtype:
    """What an operand is converted to: a complex type, or for RFFT the float for an integer."""
    if dtypes.kind(aval.dtype) not in "biufc":
        raise refused("fft", "only numbers can be transformed", got=str(aval), wanted="an array of numbers",
                      todo="transform numbers that stand for these elements")
    if kind is FftType.RFFT:
        if dtypes.kind(aval.dtype) == "c":
            raise refused("fft", "RFFT is of real numbers", got=str(aval), wanted="a real operand",
                          todo="use 'fft', or take lax.real(x) first", kind=CorejaxValueError)
        return aval.dtype if dtypes.kind(aval.dtype) == "f" else _REAL[aval.dtype in _WIDE]
    return _COMPLEX[aval.dtype in _WIDE]


def _check_lengths(x: ShapedArray, kind: FftType, lengths: Shape) -> None:
    """Raise unless the last axes have these numbers of points."""
    if type(lengths) is not tuple or not 1 <= len(lengths) <= 3 or any([type(n) is not int or n < 0 for n in lengths]):
        raise refused("fft", "fft_lengths isn't a number of points for each of up to three axes",
                      got=f"fft_lengths={lengths}", wanted="one to three sizes", kind=CorejaxValueError,
                      todo="take them from x.shape; transform one axis after the other if there are more")
    if len(lengths) > x.ndim:
        raise refused("fft", "there are more lengths than axes", got=f"fft_lengths={lengths} for {x}",
                      wanted=f"at most {x.ndim} lengths", todo="give a length for each axis to transform",
                      kind=CorejaxValueError)
    sizes = (*lengths[:-1], lengths[-1] // 2 + 1) if kind is FftType.IRFFT else lengths
    if x.shape[x.ndim - len(lengths):] != sizes:
        what = f"sizes {sizes}, for which IRFFT has" if kind is FftType.IRFFT else "the sizes that are"
        raise refused("fft", "the last axes don't have the sizes to transform", got=f"{x}, fft_lengths={lengths}",
                      wanted=f"{what} fft_lengths={lengths}", kind=CorejaxValueError,
                      todo="fft neither pads nor cuts off: do so first, with lax.pad or by slicing")


def _result_shape(shape: Shape, fft_type: int, lengths: Shape) -> Shape:
    if fft_type == FftType.RFFT:
        return (*shape[:-1], lengths[-1] // 2 + 1)
    return (*shape[:-1], lengths[-1])


def _times(spectrum: Any, lengths: Shape, single: float, paired: float) -> Any:
    """Half a spectrum times `single` where a number is its own conjugate one, and times `paired` elsewhere."""
    aval = aval_of(spectrum)
    place = lax.broadcasted_iota(np.int32, aval.shape, aval.ndim - 1)
    own = (place == 0) | (place == lengths[-1] - place)
    factors = [lax.full(aval.shape, factor, aval.dtype) for factor in (single, paired)]
    return spectrum * lax.select(own, *factors)


fft: Any = define(Fft())
