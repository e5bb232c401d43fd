"""Windows that slide over an array: their params, checked, and what follows from these.

Along each axis, window number `i` covers the elements at `i * stride + k * window_dilation`, for each `k` below the
window's size, of the operand with `base_dilation - 1` places after each element but the last, and padded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from corejax import lax
from corejax.core import ShapedArray, aval_of
from corejax.errors import CorejaxTypeError, CorejaxValueError
from corejax.plugin import define, refused, shaping

Ints = tuple[int, ...]
Pads = tuple[tuple[int, int], ...]

_LARGEST = 2 ** 62  # sizes beyond are no 64-bit integers


class Window(NamedTuple):
    """The params of a windowed reduction, one entry for each axis of the operand."""

    window_dimensions: Ints
    window_strides: Ints
    padding: Pads
    base_dilation: Ints
    window_dilation: Ints

    def params(self) -> dict[str, Any]:
        """The params as a primitive takes them."""
        return self._asdict()

    @property
    def size(self) -> int:
        """How many elements there are in a window."""
        return prod(self.window_dimensions)

    @property
    def extent(self) -> Ints:
        """How far a window reaches along each axis."""
        return _dilated(self.window_dimensions, self.window_dilation)

    @property
    def is_dilated(self) -> bool:
        """Whether there are gaps between the elements of a window, or between those of the operand."""
        return any([d != 1 for d in (*self.base_dilation, *self.window_dilation)])

    def padded_shape(self, shape: Sequence[int]) -> Ints:
        """The shape that windows slide over: the operand's with dilation and padding."""
        return tuple([max(n + low + high, 0)
                      for n, (low, high) in zip(_dilated(shape, self.base_dilation), self.padding, strict=True)])

    def out_shape(self, shape: Sequence[int]) -> Ints:
        """How many windows there are along each axis."""
        return tuple([max((n - reach) // stride + 1, 0) for n, reach, stride in zip(
            self.padded_shape(shape), self.extent, self.window_strides, strict=True)])

    def with_axis(self, at: int) -> Window:
        """The same windows over an operand with one more axis, such as that of a batch."""
        return Window(*[shaping.insert(entries, at, (0, 0) if what == "padding" else 1)
                        for what, entries in self._asdict().items()])

    def along(self, axis: int) -> Window:
        """What there is of these windows along one axis."""
        one: list[Any] = [entries[axis:axis + 1] for entries in self]
        return Window(*one)

    def padded(self, x: Any, filler: Any) -> Any:
        """The operand with places for dilation and padding, which hold a scalar."""
        ways = [(low, high, d - 1) for (low, high), d in zip(self.padding, self.base_dilation, strict=True)]
        return x if not any([any(way) for way in ways]) else lax.pad(x, filler, ways)

    def present(self, n: int) -> np.ndarray:
        """For windows along one axis: where a padded operand has one of the n elements, rather than padding."""
        ((low, _),), (base,) = self.padding, self.base_dilation
        found = np.zeros(self.padded_shape((n,)), np.bool_)
        places = low + base * np.arange(n)
        found[places[(places >= 0) & (places < found.size)]] = True
        return found

    def offsets(self) -> Iterator[Ints]:
        """Where the elements of a window are in the padded operand, from its first place on, in row-major order."""
        return product(*[range(0, reach, d) for reach, d in zip(self.extent, self.window_dilation, strict=True)])

    def part(self, x: Any, offset: Ints, out_shape: Ints) -> Any:
        """What a padded operand has at one place of each window."""
        stops = [start + stride * (n - 1) + 1
                 for start, stride, n in zip(offset, self.window_strides, out_shape, strict=True)]
        return lax.slice(x, offset, stops, self.window_strides)

    def trimmed(self, shape: Sequence[int]) -> Window:
        """The same windows without their places at which none of them ever has an element; of size 0 if none is left.

        Compilers go through all places, also through 2**40 of padding.
        """
        entries = list(zip(*self, shape, self.out_shape(shape), strict=True))
        sizes, pads = [], []
        for size, stride, (low, high), base, dilation, n, count in entries:
            first = max(0, -((stride * (count - 1) - low) // dilation))
            last = min(size - 1, ((n - 1) * base + low) // dilation)
            sizes.append(max(last - first + 1, 0) if n and count else 0)
            pads.append((low - first * dilation, high - (size - 1 - last) * dilation))
        return self._replace(window_dimensions=tuple(sizes), padding=tuple(pads))

    def check(self, name: str, ndim: int) -> None:
        """Raise unless these are windows over an operand of so many axes."""
        for what, entries in self._asdict().items():
            if type(entries) is not tuple or len(entries) != ndim:
                raise refused(name, f"{what} must have one entry for each axis of the operand", got=f"{what}={entries}",
                              wanted=f"a tuple of {ndim}" if ndim else "(): it is a scalar", kind=CorejaxTypeError,
                              todo="give batch and feature axes windows of size 1, with stride 1 and padding (0, 0)")
            if what != "padding" and any([type(n) is not int or not 1 <= n <= _LARGEST for n in entries]):
                raise refused(name, f"{what} must be positive", got=f"{what}={entries}",
                              wanted="integers from 1 to 2**62", kind=CorejaxValueError,
                              todo="leave an axis as it is with 1")
        if any([type(pair) is not tuple or len(pair) != 2 or any(
                [type(n) is not int or abs(n) > _LARGEST for n in pair]) for pair in self.padding]):
            raise refused(name, "padding must say how many places to add before and after each axis",
                          got=f"padding={self.padding}", wanted="a pair of integers for each axis",
                          todo='write ((0, 0), (1, 1)), or "SAME" or "VALID"', kind=CorejaxTypeError)


def plain(window_dimensions: Ints, window_strides: Ints, padding: Pads) -> Window:
    """Windows without dilation."""
    ones = (1,) * len(window_dimensions)
    return Window(window_dimensions, window_strides, padding, ones, ones)


def check_windows(name: str, window: Window, shape: Sequence[int]) -> Ints:
    """The shape of what is reduced by windows over an array of this shape, after the checks."""
    window.check(name, len(shape))
    out = window.out_shape(shape)
    if max((*out, *window.padded_shape(shape), *window.extent), default=0) > _LARGEST:
        raise refused(name, "a size doesn't fit into 64 bits", got=str(window.params()), wanted="sizes up to 2**62",
                      todo="make the dilation or the padding smaller", kind=CorejaxValueError)
    return out


def canonical(name: str, shape: Sequence[int], window_dimensions: Any, window_strides: Any, padding: Any,
              base_dilation: Any = None, window_dilation: Any = None) -> Window:
    """What a user wrote as a window; None stands for ones, text for the padding that `padtype_to_pads` finds."""
    sizes = _entries(name, "window_dimensions", window_dimensions)
    ones = (1,) * len(sizes)
    strides, base, dilation = [ones if given is None else _entries(name, what, given) for what, given in (
        ("window_strides", window_strides), ("base_dilation", base_dilation), ("window_dilation", window_dilation))]
    without_padding = Window(sizes, strides, ((0, 0),) * len(sizes), base, dilation)
    without_padding.check(name, len(shape))
    pads = (lax.padtype_to_pads(shape, without_padding.extent, strides, padding) if isinstance(padding, str) else
            _pairs(name, padding))
    return without_padding._replace(padding=tuple(pads))


def reduce_window(ctx: Any, xs: Sequence[Any], inits: Sequence[Any], out_types: Sequence[Any], window: Window,
                  combine: Callable[..., Sequence[Any]]) -> list[Any]:
    """`stablehlo.reduce_window` of several operands; `combine` inserts what it does to two scalars of each."""
    entries = {"window_dimensions": window.window_dimensions, "window_strides": window.window_strides,
               "base_dilations": window.base_dilation, "window_dilations": window.window_dilation}
    attributes = {name: ctx.ir.DenseI64ArrayAttr.get(list(values)) for name, values in entries.items()}
    pads = np.asarray(window.padding, np.int64).reshape(len(window.padding), 2)
    outs = ctx.op("stablehlo.reduce_window", [*xs, *inits],
                  {**attributes, "padding": ctx.ir.DenseIntElementsAttr.get(pads)}, out_types, 1)
    outs = outs if isinstance(outs, list) else [outs]
    scalars = [init.type for init in inits]
    ctx.fill(ctx.regions[0], [*scalars, *scalars], lambda *pair: list(combine(*pair)))
    return outs


def handle_of(plugin: Any) -> Any:
    """The public function of a plugin, whose hooks bind its own primitive by `_bind`."""
    handle: Any = define(plugin)
    plugin._bind = lambda *args, **params: handle.primitive.bind(*args, **params)
    return handle


def same_types(name: str, avals: Sequence[ShapedArray], what: str) -> None:
    """Raise unless all operands have one dtype."""
    if len({aval.dtype for aval in avals}) > 1:
        raise refused(name, f"{what} must have one dtype", got=", ".join(map(str, avals)), wanted="one dtype for all",
                      todo="convert them first, with lax.convert_element_type", kind=CorejaxTypeError)


def shape_of(x: Any) -> Ints:
    """The shape of an array, a number or a traced value."""
    return aval_of(x).shape


def _dilated(sizes: Iterable[int], dilation: Iterable[int]) -> Ints:
    return tuple([max((n - 1) * d + 1, 0) if n else 0 for n, d in zip(sizes, dilation, strict=True)])


def _entries(name: str, what: str, values: Any) -> Ints:
    if isinstance(values, str) or not (isinstance(values, Sequence) or getattr(values, "ndim", 0) == 1):
        raise refused(name, f"{what} must be a sequence", got=f"{what}={values!r}",
                      wanted="an integer for each axis of the operand", kind=CorejaxTypeError,
                      todo="write one entry for each axis: (1, 2, 2, 1)")
    return shaping.as_ints(name, what, values)


def _pairs(name: str, padding: Any) -> Pads:
    try:
        given = [tuple(pair) for pair in padding]
    except TypeError:
        given = None
    if given is None or any([len(pair) != 2 for pair in given]):
        raise refused(name, "padding must say how many places to add before and after each axis",
                      got=f"padding={padding!r}", wanted='a pair of integers for each axis, "SAME", "SAME_LOWER" or '
                      '"VALID"', todo="write ((0, 0), (1, 1))", kind=CorejaxTypeError)
    return tuple([(shaping.as_int(name, "an entry of padding", low), shaping.as_int(name, "an entry of padding", high))
                  for low, high in given])
