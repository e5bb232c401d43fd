"""`scatter_apply`: a function of elements, applied in windows of an array at places given by indices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from corejax.core import Array, ArrayLike, ShapedArray, Staged, aval_of, flatten, stage_function, vmap_jaxpr
from corejax.plugin import carrying, public, refused, roles, shaping
from corejax_lax_basic._axes import Shape, shape_of
from corejax_lax_basic._placing import Numbers, canonical_mode, canonical_numbers, wide
from corejax_lax_basic.creation import full
from corejax_lax_basic.scattering import ScatterDimensionNumbers, check_scatter, one_by_one, read_back, scatter
from corejax_lax_basic.shapes import reshape

__all__ = ["scatter_apply"]

_NAME = "scatter_apply"


@public
def scatter_apply(operand: ArrayLike, scatter_indices: ArrayLike, func: Callable[[Array], Array],
                  dimension_numbers: ScatterDimensionNumbers, *, update_shape: Sequence[int] = (),
                  indices_are_sorted: bool = False, unique_indices: bool = False, mode: str | None = None) -> Array:
    """The operand, with `func` applied to the elements of the windows at the indices; as often as there are windows.

    `func` takes and returns a scalar of the operand's dtype. `update_shape` is the shape that the updates of `scatter`
    would have; the other options are as there. With `unique_indices`, all windows are computed at once; otherwise by a
    `lax.scan`, one after the other, since they may overlap. Both have derivatives.

    >>> import numpy as np
    >>> numbers = ScatterDimensionNumbers((), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,))
    >>> indices = np.array([[2], [2], [0]])
    >>> scatter_apply(np.array([1.0, 2.0, 3.0]), indices, lambda x: x * 2, numbers, update_shape=(3,)).tolist()
    [2.0, 2.0, 12.0]
    """
    aval, numbers = aval_of(operand), canonical_numbers(dimension_numbers)
    mode = canonical_mode(_NAME, mode)
    mode = "drop" if mode == "fill" else mode
    sizes, indices = shaping.as_ints(_NAME, "update_shape", update_shape), wide(scatter_indices)
    check_scatter(_NAME, aval, aval_of(indices), ShapedArray(sizes, aval.dtype), numbers)
    staged = stage_function(func, [ShapedArray((), aval.dtype)], flatten((0,))[1], "scatter_apply: func")
    out_avals = staged.closed.out_avals
    if len(out_avals) != 1 or out_avals[0].shape or out_avals[0].dtype != aval.dtype:
        raise refused(_NAME, "func must return what it takes", got=", ".join(map(str, out_avals)) or "nothing",
                      wanted=str(ShapedArray((), aval.dtype)), todo="convert its result with lax.convert_element_type")
    fixed = {"mode": mode, "indices_are_sorted": shaping.as_flag(_NAME, "indices_are_sorted", indices_are_sorted)}
    unique = shaping.as_flag(_NAME, "unique_indices", unique_indices)
    windows = shape_of(indices)[:-1]
    if not prod(sizes):
        return roles.convert(operand, aval.dtype, False)  # type: ignore[no-any-return]
    if unique or prod([n for d, n in enumerate(windows) if d not in numbers[4]]) == 1:
        return _applied(staged, operand, indices, sizes, numbers, fixed)
    (places, part), one = one_by_one(indices, (full(sizes, 0, aval.dtype),), numbers)
    within = shape_of(part)[1:]
    out, _ = roles.scan(lambda x, place: (_applied(staged, x, place, within, one, fixed), None), operand, places)
    return out  # type: ignore[no-any-return]


def _applied(staged: Staged, x: Any, indices: Any, sizes: Shape, numbers: Numbers, fixed: dict[str, Any]) -> Array:
    """The operand with new windows, which don't overlap."""
    before = read_back(x, indices, sizes, numbers, fixed["mode"])
    count, dtype = prod(sizes), aval_of(x).dtype
    mapped, _ = vmap_jaxpr(staged.jaxpr, count, None, [*[None] * len(staged.consts), 0], [0])
    (new,) = carrying.run(mapped, [*staged.consts, reshape(before, (count,))])
    new = reshape(roles.convert(new, dtype, False), sizes)
    out: Array = scatter.primitive.bind(x, indices, new, dimension_numbers=numbers, unique_indices=True, **fixed)
    return out
