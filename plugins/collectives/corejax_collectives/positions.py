"""Where a call of a mapped function is along named axes, and how many there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ShapedArray, bound_axis, dtypes
from corejax.errors import CorejaxValueError
from corejax.plugin import Sample, define, hookimpl, not_differentiable, not_linear, public, refused
from corejax_collectives import _lowering
from corejax_collectives._axes import Names, as_names, size_of
from corejax_collectives.varying import cast

__all__ = ["axis_index", "axis_size"]


class AxisIndex:
    """`axis_index(axis_name)`: the position along a named axis, as int32; along several, the last name runs fastest.

    >>> import numpy as np, corejax as cj
    >>> cj.vmap(lambda x: x * 10 + lax.axis_index("rows"), axis_name="rows")(np.array([1, 2, 3])).tolist()
    [10, 21, 32]
    """

    name = "axis_index"
    jvp = not_differentiable("a position doesn't depend on arrays")
    transpose = not_linear("a position doesn't depend on arrays")

    def function(self, bind: Any) -> Any:
        def axis_index(axis_name: Any) -> Array:
            names = as_names(self.name, axis_name)
            if not names:
                raise refused(self.name, "needs the name of an axis", got=repr(axis_name)[:80],
                              wanted="a name, or several", todo="name the axis", kind=CorejaxValueError)
            size_of(self.name, names)
            index: Any = None
            for name in names:
                along = cast(bind(axis_name=name), (name,))
                size = bound_axis(name, self.name).size
                index = along if index is None else lax.add(lax.mul(index, np.int32(size)), along)
            return index  # type: ignore[no-any-return]
        return axis_index

    @hookimpl
    def abstract_eval(self, avals: Any, *, axis_name: Any) -> ShapedArray:
        bound_axis(axis_name, self.name)
        return ShapedArray((), dtypes.int32)

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, axis_name: Any) -> Any:
        if axis_name != axis.name:
            return axis_index.primitive.bind(axis_name=axis_name), None
        return lax.iota(np.int32, axis.size), 0

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, axis_name: Any) -> Any:
        return _lowering.position(ctx, axis_name)

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        yield Sample([], {"axis_name": "i"}, axes={"i": 3}, results=np.arange(3, dtype=np.int32))
        yield Sample([], {"axis_name": "j"}, axes={"i": 2, "j": 3}, results=np.array([[0, 1, 2]] * 2, np.int32))
        yield Sample([], {"axis_name": "k"}, axes={"i": 2}, error=NameError)


axis_index: Any = define(AxisIndex())


@public
def axis_size(axis_name: Any) -> int:
    """`axis_size(axis_name)`: the size of a named axis, or of several taken together: a Python integer.

    >>> import numpy as np, corejax as cj
    >>> cj.vmap(lambda x: x / lax.axis_size("rows"), axis_name="rows")(np.array([1.0, 2.0])).tolist()
    [0.5, 1.0]
    """
    names: Names = as_names("axis_size", axis_name)
    return size_of("axis_size", names) if names else 1
