"""Windows as a program of whole arrays, for derivatives and for compilers without windows of several operands.

Along each axis, what windows of two sizes give is combined to what a window of both sizes gives; so there are about
twice as many calls as the window's size has binary digits. What is padding is left out of every combination, as
compilers do it, so that initial values needn't be those that change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax import lax
from corejax_windows._windowing import Window, shape_of

#: Combines arrays of one shape with arrays of that shape, elementwise.
Combine = Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]

#: Where there are elements along one axis, rather than padding.
Present = np.ndarray


def doubled(combine: Combine, xs: Sequence[Any], inits: Sequence[Any], window: Window,
            fillers: Sequence[Any] | None = None) -> list[Any]:
    """What `combine` makes of each window, in row-major order, beginning with an initial value for each operand.

    The initial values may have axes, the first of the operands, as in a batch of them. What is computed of the
    `fillers`, which stand in the places of padding, isn't used; they must have no derivative, as that may be NaN there.
    """
    shape = shape_of(xs[0])
    out_shape, window = window.out_shape(shape), window.trimmed(shape)
    starts = _spread(inits, out_shape)
    if not window.size or 0 in out_shape:
        return starts
    if fillers is None:
        fillers = [lax.stop_gradient(init) for init in inits]
    xs = [_padded(x, filler, window) for x, filler in zip(xs, fillers, strict=True)]
    present = {}
    for axis in reversed(range(len(shape))):
        xs, present[axis] = _along(combine, xs, axis, window.along(axis), shape[axis], out_shape[axis])
    used = starts
    for axis, flags in present.items():
        used = _where(flags, axis, used, _spread(fillers, out_shape))
    outs = list(combine(used, xs))
    for axis, flags in present.items():
        outs = _where(flags, axis, outs, starts)
    return outs


def _along(combine: Combine, xs: Sequence[Any], axis: int, window: Window, n: int, count: int
           ) -> tuple[list[Any], Present]:
    """The windows along one axis, of which there are `count`, and which of them have elements."""
    (size,), (stride,), _, _, (dilation,) = window
    present = window.present(n)

    def part(start: int, count: int, stride: int) -> tuple[list[Any], Present]:
        stop = start + (count - 1) * stride + 1
        return [lax.slice_in_dim(x, start, stop, stride, axis) for x in xs], present[start:stop:stride]

    def joined(one: tuple[list[Any], Present], other: tuple[list[Any], Present]) -> tuple[list[Any], Present]:
        (xs, x_is), (ys, y_is) = one, other
        # A derivative at padding may be NaN, which second derivatives multiply by 0: it never meets an element.
        both = combine(_where(x_is, axis, xs, ys), _where(y_is, axis, ys, xs))
        return _where(y_is, axis, _where(x_is, axis, both, ys), xs), x_is | y_is

    found, done, power = None, 0, 1
    while power <= size:
        if size & power:  # the next places of the windows, which begin after those that are done
            more = part(done * dilation, count, stride)
            found, done = more if found is None else joined(found, more), done + power
        power *= 2
        if power <= size:
            reach = power // 2 * dilation
            rest = present.size - reach
            xs, present = joined(part(0, rest, 1), part(reach, rest, 1))
    assert found is not None
    return found


def _spread(inits: Sequence[Any], shape: Sequence[int]) -> list[Any]:
    return [lax.broadcast_in_dim(init, shape, range(len(shape_of(init)))) for init in inits]


def _where(present: Present, axis: int, xs: Sequence[Any], ys: Sequence[Any]) -> list[Any]:
    """Arrays like xs, with what ys have where flags along an axis aren't set."""
    if present.all():
        return list(xs)
    flags = lax.broadcast_in_dim(present, shape_of(xs[0]), (axis,))
    return [lax.select(flags, x, y) for x, y in zip(xs, ys, strict=True)]


def _padded(x: Any, filler: Any, window: Window) -> Any:
    """The operand with a scalar, or the first of a batch of them, in the places of padding and dilation."""
    return window.padded(x, lax.reshape(lax.slice_in_dim(filler, 0, 1), ()) if shape_of(filler) else filler)
