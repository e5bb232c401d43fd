"""Named axes in the params of collectives: what users pass for them, and whether that fits the axes that are bound."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import prod
from typing import Any, TypeAlias

from corejax.core import NamedAxis, ShapedArray, bound_axis, is_foreign
from corejax.errors import CorejaxValueError
from corejax.plugin import refused, shaping

#: Names of axes. With several, a position is counted along all of them, the last one fastest.
Names: TypeAlias = tuple[Hashable, ...]

#: Positions along the named axes, in groups within which to communicate; None for all of them in one group.
Groups: TypeAlias = tuple[tuple[int, ...], ...] | None


# What users pass

def as_names(primitive: str, axis_name: Any) -> Names:
    """One name, or a tuple or list of names, as a tuple."""
    names = tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)
    for name in names:
        if name is None or not _has_hash(name) or hasattr(name, "aval") or is_foreign(name):
            raise refused(primitive, "an axis is given by its name", got=repr(axis_name)[:80],
                          wanted="a name such as 'rows', or a tuple of names",
                          todo="pass the axis_name of the enclosing map")
    return names


def _has_hash(name: object) -> bool:
    try:
        hash(name)
    except TypeError:  # a tuple, too, may hold something without one
        return False
    return True


def as_groups(primitive: str, groups: Any) -> Groups:
    """The groups as tuples of integers; whether they fit the axes is checked by `check_groups`."""
    if groups is None:
        return None
    if not isinstance(groups, Sequence) or not all([isinstance(group, Sequence) for group in groups]):
        raise refused(primitive, "axis_index_groups must be a sequence of groups", got=repr(groups)[:80],
                      wanted="groups of positions along the axis, or None", todo="write [[0, 1], [2, 3]]")
    return tuple([tuple([shaping.as_int(primitive, "a position in axis_index_groups", i) for i in group])
                  for group in groups])


# What primitives get

def bound(primitive: str, names: Any) -> list[NamedAxis]:
    """The axes of these names, which must be a tuple of distinct ones; raises if no enclosing map has one of them."""
    if type(names) is not tuple or not names or len(set(names)) != len(names):
        raise refused(primitive, "needs distinct names of axes", got=repr(names)[:80], wanted="a tuple of names",
                      todo="name each axis once", kind=CorejaxValueError)
    return [bound_axis(name, primitive) for name in names]


def size_of(primitive: str, names: Any) -> int:
    """How many positions there are along these axes."""
    return prod([axis.size for axis in bound(primitive, names)])


def check_groups(primitive: str, groups: Any, size: int, even: bool = False) -> int:
    """The size of the (first) group; raises unless each position is in exactly one. `even`: all must be as large."""
    if groups is None:
        return size
    if type(groups) is not tuple or sorted([i for group in groups for i in group]) != list(range(size)):
        raise refused(primitive, f"axis_index_groups must have each of the {size} positions in one group",
                      got=repr(groups)[:120], wanted=f"groups in which each integer from 0 to {size - 1} is once",
                      todo="leave out axis_index_groups if all communicate with all", kind=CorejaxValueError)
    if even and len({len(group) for group in groups}) > 1:
        raise refused(primitive, "the groups must have one size, since it is a part of the result's shape",
                      got=f"groups of {', '.join([str(len(group)) for group in groups])} positions",
                      wanted="groups of the same size", todo="pad the smaller groups, or use psum or pmax, which take "
                      "groups of any sizes", kind=CorejaxValueError)
    return len(groups[0]) if groups else size


def others(names: Names, name: Hashable) -> Names:
    """The names without this one."""
    return tuple([each for each in names if each != name])


def is_among(names: Names, name: Hashable) -> bool:
    """Whether a mapped axis of this name, which may be None, is one of them."""
    return name is not None and name in names


# Types that say along which axes of a mesh a value varies

def same_along(aval: ShapedArray, names: Names) -> ShapedArray:
    """The type of a value that doesn't vary along these axes."""
    return aval.update(varying=aval.varying.difference(names)) if aval.varying else aval


def tracked(primitive: str, names: Names) -> Names:
    """Those of these axes of which types say what varies along them."""
    return tuple([axis.name for axis in bound(primitive, names) if axis.tracked])
