"""Shared by reductions along axes: their params, and the hooks that differ only in the operation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from corejax.core import Array, ArrayLike, ShapedArray, aval_of, dtypes
from corejax.plugin import Sample, define, hookimpl, not_linear, refused, shaping
from corejax_reductions import _lowering

Axes = tuple[int, ...]

_ALL_AXES = tuple([tuple(range(ndim)) for ndim in range(5)])
_ONE_AXIS = tuple([(axis,) for axis in range(5)])


def canonical_axes(primitive: str, axes: Any, ndim: int) -> Axes:
    """Sorted axes from 0 to ndim - 1; None stands for all of them, a single integer for one."""
    if axes is None:
        return _ALL_AXES[ndim] if ndim < len(_ALL_AXES) else tuple(range(ndim))
    if type(axes) is int and -ndim <= axes < ndim <= len(_ONE_AXIS):
        return _ONE_AXIS[axes % ndim]
    if type(axes) is tuple and len(axes) == 1 and type(axes[0]) is int and 0 <= axes[0] < ndim:
        return axes
    found = shaping.canonical_axes(primitive, axes, ndim)
    return found if len(found) == 1 else tuple(sorted(found))


def check_dtype(primitive: str, aval: ShapedArray, kinds: str, todo: str) -> None:
    """Check that the operand's dtype has one of the kinds (`b`, `i`, `u`, `f`, `c`)."""
    if dtypes.kind(aval.dtype) not in kinds:
        names = {"b": "bool", "i": "integer", "u": "unsigned integer", "f": "float", "c": "complex"}
        raise refused(primitive, f"an operand of dtype {aval.dtype} can't be reduced this way", got=str(aval),
                      wanted=" or ".join([names[kind] for kind in kinds]), todo=todo)


def accumulator(dtype: np.dtype) -> np.dtype:
    """The dtype in which sums and products run: float32 for narrower floats, else the operand's."""
    return dtypes.float32 if dtypes.is_float(dtype) and dtype.itemsize < 4 else dtype


class Reduction:
    """A plugin that reduces its operand along `axes` with an associative operation that has an identity.

    Subclasses specify the name, the operation as a NumPy ufunc and in StableHLO, its identity, the accepted kinds of
    dtypes, and the derivative.
    """

    name = ""
    transpose: Any = not_linear("of its operand; only its derivative is")

    _ufunc: np.ufunc
    _operation: str  # in StableHLO
    _kinds = "iufc"
    _todo = "convert it first, with lax.convert_element_type or x.astype(...)"
    _wide = False  # narrow floats accumulate in float32
    _exempt_of_several: Mapping[str, str] = {}  # checks that don't hold for more than two elements, and why

    def _identity(self, dtype: np.dtype) -> Any:
        raise NotImplementedError(type(self).__name__)

    def _combine(self, ctx: Any, dtype: np.dtype) -> _lowering.Combine:
        return _lowering.binary(ctx, self._operation)

    def function(self, bind: Callable[..., Array]) -> Any:
        def reduce(operand: ArrayLike, axes: int | Sequence[int] | None) -> Array:
            return bind(operand, axes=canonical_axes(self.name, axes, aval_of(operand).ndim))
        return reduce

    @hookimpl
    def impl(self, args: Any, *, axes: Axes) -> Any:
        (x,) = args
        dtype = x.dtype
        if not x.size:
            return np.full(shaping.without(x.shape, axes), self._identity(dtype), dtype)
        wide = accumulator(dtype) if self._wide else dtype
        out = self._ufunc.reduce(x, axes, wide)
        if out.size == x.size:  # like XLA, which doesn't add 0 to a single -0
            return x.reshape(out.shape)
        return out if wide is dtype else np.asarray(out).astype(dtype)

    @hookimpl
    def abstract_eval(self, avals: Any, *, axes: Axes) -> ShapedArray:
        (x,) = avals
        shaping.check_axes(self.name, "axes", axes, x.ndim)
        check_dtype(self.name, x, self._kinds, self._todo)
        return ShapedArray(shaping.without(x.shape, axes), x.dtype, x.weak_type)

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, axes: Axes) -> Any:
        moved = shaping.shifted(axes, dims[0])
        return self._bind(args[0], axes=moved), shaping.dim_without(dims[0], moved)

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, axes: Axes) -> Any:
        dtype = ctx.avals_in[0].dtype
        wide = accumulator(dtype) if self._wide else dtype
        (x,) = args
        if wide is not dtype:
            x = _lowering.convert(ctx, x, ctx.avals_in[0].shape, wide)
        out_aval = ShapedArray(ctx.avals_out[0].shape, wide)
        out = _lowering.reduce(ctx, x, out_aval, axes, np.asarray(self._identity(wide), wide),
                               self._combine(ctx, wide))
        return out if wide is dtype else _lowering.convert(ctx, out, out_aval.shape, dtype)

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        for shape, axes in [((), ()), ((5,), (0,)), ((2, 3), (1,)), ((2, 3, 4), (0, 2)), ((2, 3), ()), ((0, 3), (0,)),
                            ((2, 3), (0, 1)), ((2, 3, 4), (1,)), ((2, 0, 3), (0,)), ((1, 1), (1,))]:
            exempt = self._exempt_of_several if prod([shape[axis] for axis in axes]) > 2 else None
            yield Sample([self._sample(rng, shape)], {"axes": axes}, domain=(-3.0, 3.0), exempt=exempt)
        if "i" in self._kinds:
            yield Sample([rng.integers(-4, 4, (3, 2)).astype(np.int8)], {"axes": (0,)})
        if "b" in self._kinds:
            yield Sample([rng.integers(0, 2, (3, 2)).astype(np.bool_)], {"axes": (1,)})
        yield Sample([self._sample(rng, (3,))], {"axes": (1,)}, error=IndexError)

    def _sample(self, rng: Any, shape: Axes) -> Any:
        # distinct values, far from each other, so that differences don't see ties
        return (rng.permutation(prod(shape)).reshape(shape) - 2.3) * 0.5

    _bind: Callable[..., Any]


def defined(plugin: Any) -> Any:
    """The public function of a plugin whose hooks bind its own primitive."""
    handle: Any = define(plugin)
    plugin._bind = lambda *args, **params: handle.primitive.bind(*args, **params)
    return handle
