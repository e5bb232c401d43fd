"""Sums, means and extrema over positions along named axes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from corejax import lax, tree
from corejax.core import ShapedArray, Tracer, aval_of, dtypes
from corejax.errors import CorejaxValueError
from corejax.plugin import Sample, define, hookimpl, not_linear, partials, public, refused
from corejax_collectives import _lowering, _positions
from corejax_collectives._axes import (
    Groups,
    Names,
    as_groups,
    as_names,
    check_groups,
    is_among,
    others,
    same_along,
    size_of,
    tracked,
)
from corejax_collectives.gathering import by_gathering
from corejax_collectives.varying import cast, check_number, psum_invariant, times

__all__ = ["pmax", "pmean", "pmin", "psum"]

#: A pytree of arrays.
Tree = TypeVar("Tree")


class _AllReduce:
    """A plugin that reduces over positions along the axes in its param `axes`, by one of the `lax` functions."""

    name = ""
    _combine: str  # combines two values
    _reduce: str  # reduces along axes of one array
    _numpy: str  # the same in NumPy

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, axes: Names, axis_index_groups: Groups) -> Any:
        (x,), (dim,) = args, dims
        if not is_among(axes, axis.name):
            return self._bind(x, axes=axes, axis_index_groups=axis_index_groups), dim
        reduce = getattr(lax, self._reduce)
        if axis_index_groups is not None:
            return by_gathering(axis, x, dim, axes, lambda whole: _positions.reduced(
                whole, axis_index_groups, lambda y, at: reduce(y, (at,))))
        out = self._repeated(x, axis.size) if dim is None else reduce(x, (dim,))
        rest = others(axes, axis.name)
        return (self._bind(out, axes=rest, axis_index_groups=None) if rest else out), None

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, axes: Names, axis_index_groups: Groups) -> Any:
        return _lowering.all_reduce(ctx, args[0], axes, axis_index_groups, getattr(lax, self._combine))

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        # far from each other, so that differences don't see ties
        x = (rng.permutation(24).reshape(3, 2, 4) - 2.3) * 0.5
        ufunc, whole = getattr(np, self._numpy), {"axis_index_groups": None}
        yield Sample([x], {"axes": ("i",), **whole}, axes={"i": 3, "j": 2}, results=np.stack([ufunc(x, 0)] * 3))
        yield Sample([x], {"axes": ("j", "i"), **whole}, axes={"i": 3, "j": 2},
                     results=np.broadcast_to(ufunc(x, (0, 1)), x.shape))
        x = (rng.permutation(8).reshape(4, 2) - 2.3) * 0.5
        even, odd = ufunc(x[::2], 0), ufunc(x[1::2], 0)
        yield Sample([x], {"axes": ("i",), "axis_index_groups": ((0, 2), (3, 1))}, axes={"i": 4},
                     results=np.stack([even, odd] * 2))
        yield Sample([x], {"axes": ("i",), "axis_index_groups": ((2, 0, 1), (3,))}, axes={"i": 4},
                     results=np.stack([ufunc(x[:3], 0)] * 3 + [x[3]]))
        yield Sample([rng.integers(-4, 4, (3, 2)).astype(np.int8)], {"axes": ("i",), **whole}, axes={"i": 3})
        yield Sample([x], {"axes": ("k",), **whole}, axes={"i": 4}, error=NameError)
        yield Sample([x], {"axes": ("i",), "axis_index_groups": ((0, 1), (2,))}, axes={"i": 4}, error=ValueError)

    def _repeated(self, x: Any, size: int) -> Any:
        """The reduction of `size` copies of a value."""
        return x

    def _check(self, axes: Names, groups: Groups) -> None:
        check_groups(self.name, groups, size_of(self.name, axes))

    _bind: Callable[..., Any]


class PSum(_AllReduce):
    """`psum(x, axis_name, *, axis_index_groups=None)`: the sum over the positions along named axes.

    `x` may be a pytree; booleans are counted as int32. An integer among the names is an axis of the arrays themselves.
    With groups of positions, each position gets the sum over its group. Of a value that isn't traced, the sum is found
    at once: `psum(1, name)` is the size of the axis, a Python integer.

    >>> import numpy as np, corejax as cj
    >>> cj.vmap(lambda x: x / lax.psum(x, "rows"), axis_name="rows")(np.array([1.0, 2.0, 5.0])).tolist()
    [0.125, 0.25, 0.625]
    """

    name = "psum"
    linear = (0,)
    _combine, _reduce, _numpy = "add", "reduce_sum", "sum"

    def function(self, bind: Any) -> Any:
        def psum(x: Tree, axis_name: Any, *, axis_index_groups: Any = None) -> Tree:
            names, along, groups = _canonical("psum", axis_name, axis_index_groups)
            return tree.map(lambda leaf: _sum(_reduced_along("reduce_sum", _counted(leaf), along), names, groups), x)  # type: ignore[no-any-return]
        return psum

    @hookimpl
    def abstract_eval(self, avals: Any, *, axes: Names, axis_index_groups: Groups) -> ShapedArray:
        self._check(axes, axis_index_groups)
        check_number(self.name, avals[0])
        return avals[0]  # type: ignore[no-any-return]

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, axes: Names, axis_index_groups: Groups) -> Any:
        # each position's cotangent is its own, as if the sum were followed by a copy for each
        return [self._bind(cotangents, axes=axes, axis_index_groups=axis_index_groups)]

    def _repeated(self, x: Any, size: int) -> Any:
        return times(x, size)


def _shared_by_ties(x_dot: Any, out: Any, x: Any, *, axes: Names, axis_index_groups: Groups) -> Any:
    """The mean of the tangents at the positions whose values are equal to the result."""
    ties = lax.eq(x, out)
    wide = dtypes.float32 if x.dtype.itemsize < 4 else x.dtype  # narrow floats don't count far
    chosen = lax.convert_element_type(ties, wide)
    total = _sum(lax.mul(lax.convert_element_type(x_dot, wide), chosen), axes, axis_index_groups)
    return lax.convert_element_type(lax.div(total, _sum(chosen, axes, axis_index_groups)), x.dtype)


class _Extremum(_AllReduce):
    tracks_varying = True
    jvp = partials(_shared_by_ties)
    transpose = not_linear("of its operand; only its derivative is")

    def function(self, bind: Any) -> Any:
        def extremum(x: Tree, axis_name: Any, *, axis_index_groups: Any = None) -> Tree:
            names, along, groups = _canonical(self.name, axis_name, axis_index_groups)

            def of_leaf(leaf: Any) -> Any:
                reduced = _reduced_along(self._reduce, leaf, along)
                return bind(cast(reduced, names), axes=names, axis_index_groups=groups) if names else reduced
            return tree.map(of_leaf, x)  # type: ignore[no-any-return]
        extremum.__name__ = self.name
        return extremum

    @hookimpl
    def abstract_eval(self, avals: Any, *, axes: Names, axis_index_groups: Groups) -> ShapedArray:
        self._check(axes, axis_index_groups)
        (x,) = avals
        if dtypes.kind(x.dtype) not in "biufc":
            raise refused(self.name, f"values of type {dtypes.short_name(x.dtype)} have no order", got=str(x),
                          wanted="numbers or booleans", todo="convert them first, with lax.convert_element_type")
        return same_along(x, axes) if axis_index_groups is None else x


class PMax(_Extremum):
    """`pmax(x, axis_name, *, axis_index_groups=None)`: the largest of the values at the positions along named axes.

    `x` may be a pytree. NaN wins over every number. Positions that tie share the derivative equally. See `psum`.

    >>> import numpy as np, corejax as cj
    >>> cj.vmap(lambda x: x - lax.pmax(x, "rows"), axis_name="rows")(np.array([1.0, 5.0, 3.0])).tolist()
    [-4.0, 0.0, -2.0]
    """

    name = "pmax"
    _combine, _reduce, _numpy = "max", "reduce_max", "max"


class PMin(_Extremum):
    """`pmin(x, axis_name, *, axis_index_groups=None)`: the smallest of the values at the positions along named axes.

    `x` may be a pytree. NaN wins over every number. Positions that tie share the derivative equally. See `psum`.

    >>> import numpy as np, corejax as cj
    >>> cj.vmap(lambda x: x - lax.pmin(x, "rows"), axis_name="rows")(np.array([1.0, 5.0, 3.0])).tolist()
    [0.0, 4.0, 2.0]
    """

    name = "pmin"
    _combine, _reduce, _numpy = "min", "reduce_min", "min"


def _defined(plugin: Any) -> Any:
    handle: Any = define(plugin)
    plugin._bind = lambda *args, **params: handle.primitive.bind(*args, **params)
    return handle


psum = _defined(PSum())
pmax = _defined(PMax())
pmin = _defined(PMin())


@public
def pmean(x: Tree, axis_name: Any, *, axis_index_groups: Any = None) -> Tree:
    """`pmean(x, axis_name, *, axis_index_groups=None)`: the mean over the positions along named axes. See `psum`.

    >>> import numpy as np, corejax as cj
    >>> cj.vmap(lambda x: x - lax.pmean(x, "rows"), axis_name="rows")(np.array([1.0, 2.0, 6.0])).tolist()
    [-2.0, -1.0, 3.0]
    """
    names, along, groups = _canonical("pmean", axis_name, axis_index_groups)
    count = _sum(1, names, groups)

    def of_leaf(leaf: Any) -> Any:
        total = _sum(_reduced_along("reduce_sum", _counted(leaf), along), names, groups)
        shape = aval_of(leaf).shape
        return total / (count * int(np.prod([shape[axis] for axis in along])) if along else count)
    return tree.map(of_leaf, x)  # type: ignore[no-any-return]


# Public functions

def _canonical(primitive: str, axis_name: Any, axis_index_groups: Any) -> tuple[Names, tuple[int, ...], Groups]:
    """The names, the axes of the arrays themselves, and the groups; raises if these don't fit."""
    given = as_names(primitive, axis_name)
    names = tuple([name for name in given if type(name) is not int])
    along = tuple([name for name in given if type(name) is int])
    groups = as_groups(primitive, axis_index_groups)
    if groups is not None and (along or not names):
        raise refused(primitive, "groups are of positions along named axes", got=f"axis_name={axis_name!r}"[:80],
                      wanted="names only", todo=f"reduce along axes of the arrays by lax.reduce_{primitive[1:]} first",
                      kind=CorejaxValueError)
    if names:
        check_groups(primitive, groups, size_of(primitive, names))
    return names, along, groups


def _reduced_along(reduce: str, x: Any, along: Sequence[int]) -> Any:
    return getattr(lax, reduce)(x, along) if along else x


def _counted(x: Any) -> Any:
    """Booleans as integers."""
    return lax.convert_element_type(x, np.int32) if aval_of(x).dtype == dtypes.bool_ else x


def _sum(x: Any, names: Names, groups: Groups) -> Any:
    """The sum over named axes. Where types say what varies, it doesn't vary along them any more."""
    if not names:
        return x
    if not isinstance(x, Tracer) and len({len(group) for group in groups or ()}) <= 1:
        size = size_of("psum", names) if groups is None else len(groups[0])
        return _of_constant(x, size)
    by_type = () if groups is not None else tracked("psum", names)
    x = cast(x, names)
    rest = tuple([name for name in names if name not in by_type])
    if rest:
        x = psum.primitive.bind(x, axes=rest, axis_index_groups=groups)
    return psum_invariant.primitive.bind(x, axes=by_type) if by_type else x


def _of_constant(x: Any, size: int) -> Any:
    """The sum of as many equal values, without tracing: of Python's numbers a Python number, of NumPy's arrays one."""
    if type(x) in (int, float, complex):
        return x * size
    check_number("psum", aval_of(x))
    return x * np.asarray(size).astype(x.dtype) if isinstance(x, (np.ndarray, np.generic)) else times(x, size)
