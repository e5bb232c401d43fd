"""`corejax.image`: arrays resized, scaled and moved, by filters along each axis.

>>> from corejax import image
>>> image.resize(np.array([1.0, 3.0]), (4,), "linear")
Array([1. , 1.5, 2.5, 3. ], dtype=float64)
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from math import pi
from typing import Any

import numpy as np

import corejax_numpy as jnp
from corejax import lax
from corejax.core import Array, ArrayLike, aval_of, dtypes
from corejax.dtypes import result_type
from corejax.errors import CorejaxTypeError, CorejaxValueError
from corejax.plugin import public, refused, shaping
from corejax_nn._operands import floating, operand

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]

NAMESPACE = "image"


class ResizeMethod(enum.Enum):
    """How a number between others is made of them.

    NEAREST: it is the nearest. LINEAR: a line between two. CUBIC: Keys' cubic between four; CUBIC_PYTORCH: PyTorch's,
    which repeats the edges. LANCZOS3, LANCZOS5: a windowed sinc of this radius. AREA: the mean over what it covers.
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    @public
    def from_string(s: str) -> ResizeMethod:
        """The method of a name, such as "bilinear".

        >>> ResizeMethod.from_string("bilinear")
        <ResizeMethod.LINEAR: 1>
        """
        found = _NAMES.get(s) if isinstance(s, str) else None
        if found is None:
            raise refused("resize", "there is no such method", got=repr(s)[:80], wanted=", ".join(sorted(_NAMES)),
                          todo="use one of these, or a ResizeMethod", kind=CorejaxValueError)
        return found


_NAMES = {
    "nearest": ResizeMethod.NEAREST, "lanczos3": ResizeMethod.LANCZOS3, "lanczos5": ResizeMethod.LANCZOS5,
    "area": ResizeMethod.AREA,
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR),
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), ResizeMethod.CUBIC),
    **dict.fromkeys(("cubic-pytorch", "bicubic-pytorch"), ResizeMethod.CUBIC_PYTORCH)}


# Filters, of a distance of 0 or more

def _line(x: Any) -> Any:
    return jnp.maximum(0, 1 - x)


def _cubic(a: float) -> Callable[[Any], Any]:
    def weight(x: Any) -> Any:
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        return jnp.where(x <= 1, near, jnp.where(x < 2, far, 0))
    return weight


def _lanczos(radius: float) -> Callable[[Any], Any]:
    def weight(x: Any) -> Any:
        away = jnp.where(x < 1e-3, 1, x)  # where the quotient is 1, nearly
        found = radius * jnp.sin(pi * away) * jnp.sin(pi * away / radius) / (pi ** 2 * away ** 2)
        return jnp.where(x > radius, 0, jnp.where(x < 1e-3, 1, found))
    return weight


_FILTERS = {ResizeMethod.LINEAR: _line, ResizeMethod.CUBIC: _cubic(-0.5), ResizeMethod.CUBIC_PYTORCH: _cubic(-0.5),
            ResizeMethod.LANCZOS3: _lanczos(3.0), ResizeMethod.LANCZOS5: _lanczos(5.0)}


def _weights(method: ResizeMethod, size: int, out: int, scale: Any, translation: Any, antialias: bool, dtype: np.dtype
             ) -> Any:
    """How much each number along an axis counts in each result: `[size, out]`.

    They are computed in this dtype: places in a large image have more digits than numbers in float16.
    """
    scale, translation = [jnp.asarray(x).astype(dtype) for x in (scale, translation)]
    inverse = 1 / scale
    places = (jnp.arange(out, dtype=dtype) + 0.5) * inverse - translation * inverse - 0.5
    is_inside = (places >= -0.5) & (places <= size - 0.5)
    if method is ResizeMethod.AREA:
        return jnp.where(is_inside, _covered(size, out, inverse, translation, dtype), 0)
    wide = jnp.maximum(inverse, 1) if antialias else 1
    repeats = method is ResizeMethod.CUBIC_PYTORCH and not antialias
    weight = _cubic(-0.75) if repeats else _FILTERS[method]
    border = 2 if repeats else 0  # so many numbers beyond the edges, which count for these
    found = weight(jnp.abs(places - jnp.arange(-border, size + border, dtype=dtype)[:, None]) / wide)
    if border:
        found = jnp.zeros((size, out), dtype).at[np.clip(np.arange(-border, size + border), 0, size - 1)].add(found)
    total = found.sum(0, keepdims=True)
    tiny = 1000 * float(np.finfo(np.float32).eps)
    found = jnp.where(jnp.abs(total) > tiny, found / jnp.where(total == 0, 1, total), 0)
    return found if repeats else jnp.where(is_inside, found, 0)


def _covered(size: int, out: int, inverse: Any, translation: Any, dtype: np.dtype) -> Any:
    """For each result, the shares of the numbers in what it covers."""
    edges = (jnp.arange(out + 1, dtype=dtype) - translation) * inverse
    starts = jnp.arange(size, dtype=dtype)[:, None]
    shared = jnp.maximum(0, jnp.minimum(edges[1:], starts + 1) - jnp.maximum(edges[:-1], starts))
    total = shared.sum(0, keepdims=True)
    return jnp.where(total > 0, shared / jnp.where(total > 0, total, 1), 0)


# Images

@public
def resize(image: ArrayLike, shape: Sequence[int], method: str | ResizeMethod, antialias: bool = True,
           precision: Any = lax.Precision.HIGHEST) -> Array:
    """The array in another shape with as many axes. Axes of the same size are left as they are.

    `method` is a `ResizeMethod` or its name. Unless `antialias` is False, filters are as wide as what a result covers.

    >>> resize(np.arange(4.0), (2,), "linear").tolist(), resize(np.array([1, 2]), (4,), "nearest").tolist()
    ([0.7142857142857..., 2.285714285714...], [1, 1, 2, 2])
    """
    values, sizes, how = _given("resize", image, shape, method)
    old = aval_of(values).shape
    axes = [i for i, (before, after) in enumerate(zip(old, sizes, strict=True)) if before != after]
    if how is ResizeMethod.NEAREST:
        for i in axes:
            places: Any = np.floor((np.arange(sizes[i]) + 0.5) * old[i] / sizes[i]).astype(np.int32) if old[i] else []
            values = jnp.take(values, np.asarray(places, np.int32), axis=i)
        return values  # type: ignore[no-any-return]
    scales = [sizes[i] / old[i] if old[i] else 1.0 for i in axes]
    return _transformed(floating("resize", values, True), sizes, axes, scales, [0.0] * len(axes), how,  # type: ignore[no-any-return]
                        shaping.as_flag("resize", "antialias", antialias), precision)


@public
def scale_and_translate(image: ArrayLike, shape: Sequence[int], spatial_dims: Sequence[int], scale: ArrayLike,
                        translation: ArrayLike, method: str | ResizeMethod, antialias: bool = True,
                        precision: Any = lax.Precision.HIGHEST) -> Array:
    """The array, scaled and moved along some axes: what is at `x` comes to `x * scale + translation`.

    `scale` and `translation` have a number for each of `spatial_dims`, and derivatives. Places are counted from the
    edge, so that the first number is around 0.5. Results from beyond the edges are 0.

    >>> scale_and_translate(np.array([1.0, 2.0, 3.0]), (3,), (0,), np.ones(1), np.ones(1), "linear").tolist()
    [0.0, 1.0, 2.0]
    """
    name = "scale_and_translate"
    values, sizes, how = _given(name, image, shape, method)
    if how is ResizeMethod.NEAREST:
        raise refused(name, "the nearest number has no filter", got="NEAREST", wanted="another method",
                      todo="use resize, or index the array", kind=CorejaxValueError)
    axes = shaping.canonical_axes(name, tuple(spatial_dims), aval_of(values).ndim)
    numbers: list[list[Any]] = []
    for what, x in (("scale", scale), ("translation", translation)):
        x = floating(name, x)
        if aval_of(x).shape != (len(axes),):
            raise refused(name, f"{what} needs a number for each axis", got=aval_of(x), wanted=f"shape ({len(axes)},)",
                          todo="check spatial_dims", kind=CorejaxValueError)
        numbers.append([x[i] for i in range(len(axes))])
    return _transformed(floating(name, values, True), sizes, axes, numbers[0], numbers[1], how,  # type: ignore[no-any-return]
                        shaping.as_flag(name, "antialias", antialias), precision)


def _given(name: str, image: Any, shape: Any, method: Any) -> tuple[Any, tuple[int, ...], ResizeMethod]:
    values = operand(name, image)
    if dtypes.kind(aval_of(values).dtype) not in "biufc":
        raise refused(name, "this isn't an image", got=aval_of(values), wanted="an array of numbers",
                      todo="pass numbers", kind=CorejaxTypeError)
    sizes = shaping.as_ints(name, "shape", shape)
    if len(sizes) != aval_of(values).ndim or min(sizes, default=0) < 0:
        raise refused(name, "the shape must have a size for each axis", got=f"{tuple(sizes)} for {aval_of(values)}",
                      wanted=f"{aval_of(values).ndim} sizes of 0 or more", kind=CorejaxValueError,
                      todo="repeat the sizes of axes that stay as they are")
    return values, sizes, method if isinstance(method, ResizeMethod) else ResizeMethod.from_string(method)


def _transformed(values: Any, sizes: tuple[int, ...], axes: Sequence[int], scales: Sequence[Any],
                 translations: Sequence[Any], method: ResizeMethod, antialias: bool, precision: Any) -> Any:
    dtype = aval_of(values).dtype
    real = dtype if dtypes.is_float(dtype) else np.dtype(f"f{dtype.itemsize // 2}")
    for axis, scale, translation in zip(axes, scales, translations, strict=True):
        size = aval_of(values).shape[axis]
        precise = result_type(real, np.float32, aval_of(scale).dtype, aval_of(translation).dtype)
        weights = _weights(method, size, sizes[axis], scale, translation, antialias, precise).astype(dtype)
        values = jnp.moveaxis(jnp.tensordot(values, weights, axes=(axis, 0), precision=precision), -1, axis)
    return values
