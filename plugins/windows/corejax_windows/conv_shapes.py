"""Shapes of convolutions, and the padding of the convolutions that are their derivatives.

Along an axis in space, a convolution dilates and pads the operand, dilates the window, and has one result for every
stride at which the window fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax import lax
from corejax.errors import CorejaxValueError
from corejax.plugin import public, refused, shaping
from corejax_windows.conv_dimension_numbers import Numbers, canonical_numbers

__all__ = ["conv_general_shape_tuple", "conv_shape_tuple", "conv_transpose_shape_tuple"]

Shape = tuple[int, ...]
Pads = tuple[tuple[int, int], ...]

#: The compiler computes places with 64 bits.
_MOST = 2 ** 62


@public
def conv_shape_tuple(lhs_shape: Sequence[int], rhs_shape: Sequence[int], strides: Sequence[int],
                     pads: str | Sequence[tuple[int, int]], batch_group_count: int = 1) -> Shape:
    """`conv_shape_tuple(lhs_shape, rhs_shape, strides, pads, batch_group_count=1)`: the shape of a convolution.

    All shapes have batch and features first; that of rhs has output and input features first.

    >>> conv_shape_tuple((1, 3, 9, 9), (5, 3, 2, 2), (2, 1), "VALID")
    (1, 5, 4, 8)
    """
    name = "conv_shape_tuple"
    lhs, rhs = _shape(name, "lhs_shape", lhs_shape), _shape(name, "rhs_shape", rhs_shape)
    canonical_numbers(name, len(lhs), len(rhs), None)
    steps = positive(name, "strides", strides, len(lhs) - 2)
    groups = group_count(name, "batch_group_count", batch_group_count)
    padding = canonical_pads(name, pads, lhs[2:], rhs[2:], steps)
    return result_shape(name, lhs, rhs, steps, padding, groups)


@public
def conv_general_shape_tuple(lhs_shape: Sequence[int], rhs_shape: Sequence[int], window_strides: Sequence[int],
                             padding: str | Sequence[tuple[int, int]],
                             dimension_numbers: tuple[str, str, str]) -> Shape:
    """`conv_general_shape_tuple(lhs_shape, rhs_shape, window_strides, padding, dimension_numbers)`: likewise.

    >>> conv_general_shape_tuple((1, 9, 9, 3), (2, 2, 3, 5), (2, 1), "SAME", ("NHWC", "HWIO", "NHWC"))
    (1, 5, 9, 5)
    """
    name = "conv_general_shape_tuple"
    lhs, rhs, out = _ordered(name, lhs_shape, rhs_shape, dimension_numbers)
    return reordered(conv_shape_tuple(lhs, rhs, window_strides, padding), out)


@public
def conv_transpose_shape_tuple(lhs_shape: Sequence[int], rhs_shape: Sequence[int], window_strides: Sequence[int],
                               padding: str | Sequence[tuple[int, int]],
                               dimension_numbers: tuple[str, str, str]) -> Shape:
    """`conv_transpose_shape_tuple(lhs_shape, rhs_shape, window_strides, ...)`: that of a transposed convolution.

    >>> conv_transpose_shape_tuple((1, 4, 4, 3), (2, 2, 3, 5), (2, 2), "SAME", ("NHWC", "HWIO", "NHWC"))
    (1, 8, 8, 5)
    """
    name = "conv_transpose_shape_tuple"
    lhs, rhs, out = _ordered(name, lhs_shape, rhs_shape, dimension_numbers)
    steps = positive(name, "window_strides", window_strides, len(lhs) - 2)
    pads = transposed_pads(name, rhs[2:], steps, padding) if isinstance(padding, str) else as_pads(
        name, padding, len(steps))
    space = [(n - 1) * step - k + 2 + low + high
             for n, k, step, (low, high) in zip(lhs[2:], rhs[2:], steps, pads, strict=True)]
    return reordered((lhs[0], rhs[0], *space), out)


def _ordered(name: str, lhs_shape: Sequence[int], rhs_shape: Sequence[int],
             dimension_numbers: Any) -> tuple[Shape, Shape, Shape]:
    """Both shapes with batch and features first, and the axes of the result."""
    lhs, rhs = _shape(name, "lhs_shape", lhs_shape), _shape(name, "rhs_shape", rhs_shape)
    numbers = canonical_numbers(name, len(lhs), len(rhs), dimension_numbers)
    return tuple([lhs[d] for d in numbers[0]]), tuple([rhs[d] for d in numbers[1]]), numbers[2]


def _shape(name: str, what: str, shape: Sequence[int]) -> Shape:
    sizes = shaping.as_ints(name, what, shape)
    if any([size < 0 for size in sizes]):
        raise refused(name, f"{what} has a negative size", got=sizes, wanted="sizes from 0 on",
                      todo="pass x.shape", kind=CorejaxValueError)
    return sizes


def reordered(shape: Sequence[int], axes: Shape) -> Shape:
    """A shape with batch and features first, as that of an array in which these are `axes`."""
    return tuple([shape[axes.index(d)] for d in range(len(axes))])


# Params of one convolution

def positive(name: str, what: str, values: Any, count: int) -> Shape:
    """Strides or dilations: an integer from 1 on for each of `count` axes in space; None for 1."""
    numbers = (1,) * count if values is None else shaping.as_ints(name, what, values)
    if len(numbers) != count or any([not 1 <= number < _MOST for number in numbers]):
        raise refused(name, f"{what}={numbers} must have an integer from 1 on for each axis in space", got=numbers,
                      wanted=f"{count} positive integer{'s' * (count != 1)} below 2**62", kind=CorejaxValueError,
                      todo="the axes in space are all but batch and features")
    return numbers


def group_count(name: str, what: str, value: Any) -> int:
    """How many groups there are."""
    count = shaping.as_int(name, what, value)
    if count < 1:
        raise refused(name, f"{what} must be positive", got=f"{what}={count}", wanted="an integer from 1 on",
                      todo="leave it out for a convolution without groups", kind=CorejaxValueError)
    return count


def as_pads(name: str, padding: Any, count: int) -> Pads:
    """How many elements to pad before and after, a pair for each of `count` axes in space."""
    try:
        pairs = [(low, high) for low, high in padding]
    except (TypeError, ValueError) as error:
        raise _wrong_padding(name, padding, count) from error
    if len(pairs) != count:
        raise _wrong_padding(name, padding, count)
    pads = tuple([(shaping.as_int(name, "an entry of padding", low), shaping.as_int(name, "an entry of padding", high))
                  for low, high in pairs])
    if any([abs(n) >= _MOST for pair in pads for n in pair]):
        raise _wrong_padding(name, padding, count)
    return pads


def canonical_pads(name: str, padding: Any, space: Shape, window: Shape, strides: Shape) -> Pads:
    """The same, from pairs or from words; the sizes are those after dilation."""
    if not isinstance(padding, str):
        return as_pads(name, padding, len(space))
    if padding.upper() not in ("SAME", "SAME_LOWER", "VALID"):
        raise _wrong_padding(name, padding, len(space))
    return tuple(lax.padtype_to_pads(space, window, strides, padding))


def _wrong_padding(name: str, padding: Any, count: int) -> Exception:
    return refused(name, "padding has the wrong form", got=f"padding={padding!r:.80}",
                   wanted=f"'SAME', 'SAME_LOWER' or 'VALID', or {count} pair{'s' * (count != 1)} of integers",
                   todo="give a pair (before, after) for each axis in space, such as [(1, 1), (0, 2)]",
                   kind=CorejaxValueError)


def transposed_pads(name: str, window: Shape, strides: Shape, padding: Any) -> Pads:
    """The padding of a transposed convolution, from that of the convolution which it transposes; windows are dilated.

    A word makes the result as large as what the convolution would have taken.
    """
    if not isinstance(padding, str):
        pads = as_pads(name, padding, len(window))
        return tuple([(k - low - 1, k - high - 1) for k, (low, high) in zip(window, pads, strict=True)])
    if padding not in ("SAME", "VALID"):
        raise refused(name, "a transposed convolution has no such padding", got=f"padding={padding!r:.80}",
                      wanted="'SAME' or 'VALID', or pairs of integers", todo="give a pair (before, after) for each "
                      "axis in space", kind=CorejaxValueError)
    pairs = []
    for k, step in zip(window, strides, strict=True):
        total = k + step - 2 + (max(k - step, 0) if padding == "VALID" else 0)
        before = k - 1 if padding == "VALID" or step > k - 1 else -(-total // 2)
        pairs.append((before, total - before))
    return tuple(pairs)


# Sizes

def dilated(sizes: Sequence[int], dilation: Sequence[int]) -> Shape:
    """Sizes after putting `dilation - 1` zeros between neighbors."""
    return tuple([max(0, 1 + step * (size - 1)) for size, step in zip(sizes, dilation, strict=True)])


def result_shape(name: str, lhs: Shape, rhs: Shape, strides: Shape, pads: Pads, batch_groups: int) -> Shape:
    """The shape of a convolution of dilated operands that have batch and features first."""
    padded = [size + low + high for size, (low, high) in zip(lhs[2:], pads, strict=True)]
    if any([size < 0 for size in padded]):
        raise refused(name, "padding removes more elements than there are", got=f"padding={pads} for sizes {lhs[2:]}",
                      wanted="pairs whose sum is at least the negative of the size, after dilation",
                      todo="check the padding, or slice the operand first", kind=CorejaxValueError)
    if any([size >= _MOST for size in (*padded, *rhs[2:])]):
        raise refused(name, "places can't be counted with 64 bits", got=f"sizes {tuple(padded)} and {rhs[2:]}",
                      wanted="sizes below 2**62 after dilation and padding", todo="check the padding and the dilations",
                      kind=CorejaxValueError)
    if lhs[0] % batch_groups or rhs[0] % batch_groups:
        raise refused(name, f"batch_group_count={batch_groups} doesn't divide the batch and the output features",
                      got=f"a batch of {lhs[0]}, {rhs[0]} output features", wanted="multiples of batch_group_count",
                      todo="choose another number of groups", kind=CorejaxValueError)
    space = [max(0, (size - k) // step + 1) for size, k, step in zip(padded, rhs[2:], strides, strict=True)]
    return (lhs[0] // batch_groups, rhs[0], *space)


# Derivatives

class Geometry:
    """The sizes in space of lhs, rhs and the result, each dilated, from which follows the padding of transposes.

    The cotangent of lhs is a convolution of the result's cotangent, dilated by the strides, with the reversed window;
    that of rhs is one of lhs with the cotangent as window.
    """

    def __init__(self, shapes: Sequence[Shape], numbers: Numbers, pads: Pads, dilations: Sequence[Shape]) -> None:
        lhs, rhs, out = [dilated([shape[d] for d in axes[2:]], steps)
                         for shape, axes, steps in zip(shapes, numbers, dilations, strict=True)]
        self._sizes = [*zip(lhs, rhs, out, pads, strict=True)]

    def lhs_pads(self) -> Pads:
        """The padding of the convolution that gives the cotangent of lhs."""
        return tuple([(k - low - 1, n - m + low) for n, k, m, (low, _) in self._sizes])

    def rhs_pads(self) -> Pads:
        """The padding of the convolution that gives the cotangent of rhs."""
        return tuple([(low, m - n + k - low - 1) for n, k, m, (low, _) in self._sizes])
