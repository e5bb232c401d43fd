"""Collectives computed on an array that has the values of all positions along its leading axis.

This is what vmap rules do where the mapped axis is one of those to communicate along. Positions along several axes are
counted as by `axis_index`: the last name runs fastest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import aval_of, bound_axis
from corejax.plugin import roles
from corejax_collectives._axes import Groups, Names, others

#: Reduces along one axis: `reduce(x, axis)`.
Reduce = Callable[[Any, int], Any]


def merged(x: Any, name: Any, names: Names) -> Any:
    """`x` with positions along the mapped axis `name` at 0 and along the others at 1, with all of them at 0."""
    sizes, here = _others_sizes(name, names), names.index(name)
    size, _, *rest = aval_of(x).shape
    return lax.reshape(moved(lax.reshape(x, (size, *sizes, *rest)), 0, here), (size * prod(sizes), *rest))


def parted(x: Any, name: Any, names: Names) -> Any:
    """The reverse of `merged`."""
    sizes, here = _others_sizes(name, names), names.index(name)
    total, *rest = aval_of(x).shape
    size = total // prod(sizes)
    x = lax.reshape(x, (*sizes[:here], size, *sizes[here:], *rest))
    return lax.reshape(moved(x, here, 0), (size, prod(sizes), *rest))


def _others_sizes(name: Any, names: Names) -> list[int]:
    return [bound_axis(each, "a collective").size for each in others(names, name)]


def moved(x: Any, source: int, destination: int) -> Any:
    """`x` with one of its axes moved."""
    if source == destination:
        return x
    order = [axis for axis in range(aval_of(x).ndim) if axis != source]
    order.insert(destination, source)
    return lax.transpose(x, order)


def folded(x: Any, axis: int) -> Any:
    """`x` with this axis and the next one as a single axis."""
    shape = aval_of(x).shape
    return lax.reshape(x, (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2:]))


def split(x: Any, axis: int, sizes: Sequence[int]) -> Any:
    """`x` with an axis as several, the last of which has what these `sizes` leave."""
    shape = aval_of(x).shape
    last = shape[axis] // max(prod(sizes), 1)
    return lax.reshape(x, (*shape[:axis], *sizes, last, *shape[axis + 1:]))


def taken(x: Any, places: Sequence[int]) -> Any:
    """The elements at these places along the leading axis."""
    size, *rest = aval_of(x).shape
    if [*places] == [*range(size)]:
        return x
    numbers = lax.GatherDimensionNumbers(tuple(range(1, len(rest) + 1)), (0,), (0,))
    return lax.gather(x, np.array(places, np.int32)[:, None], numbers, (1, *rest),
                      mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS)


# Groups

def in_groups(x: Any, groups: Groups) -> Any:
    """`x` with groups, all of one size, along axis 0 and their members along axis 1."""
    if groups is None:
        return lax.expand_dims(x, (0,))
    shape = aval_of(x).shape
    return lax.reshape(taken(x, _members(groups)), (len(groups), len(groups[0]), *shape[1:]))


def from_groups(x: Any, groups: Groups) -> Any:
    """The reverse: what each member of each group has, by positions."""
    if groups is None:
        return lax.squeeze(x, (0,))
    return taken(folded(x, 0), [int(i) for i in np.argsort(_members(groups))])


def of_groups(x: Any, groups: tuple[tuple[int, ...], ...]) -> Any:
    """For each position what its group has, of an array with groups along axis 0."""
    group_of = {i: k for k, group in enumerate(groups) for i in group}
    return taken(x, [group_of[i] for i in range(len(group_of))])


def reduced(x: Any, groups: tuple[tuple[int, ...], ...], reduce: Reduce) -> Any:
    """For each position the reduction over its group."""
    if len({len(group) for group in groups}) == 1:
        return of_groups(reduce(in_groups(x, groups), 1), groups)
    return of_groups(lax.concatenate([lax.expand_dims(reduce(taken(x, group), 0), (0,)) for group in groups], 0),
                     groups)


def _members(groups: tuple[tuple[int, ...], ...]) -> list[int]:
    return [i for group in groups for i in group]


# What each position gets

def gathered(x: Any, groups: Groups, axis: int, tiled: bool) -> Any:
    """For each group, what its members have, stacked or concatenated along an axis."""
    out = moved(in_groups(x, groups), 1, axis + 1)
    return folded(out, axis + 1) if tiled else out


def scattered(x: Any, groups: Groups, axis: int, tiled: bool) -> Any:
    """For each position its part of the sum over its group."""
    total = lax.reduce_sum(in_groups(x, groups), (1,))
    size = aval_of(x).shape[0] if groups is None else len(groups[0])
    if tiled:
        total = split(total, axis + 1, [size])
    return from_groups(moved(total, axis + 1, 1), groups)


def exchanged(x: Any, groups: Groups, split_axis: int, concat_axis: int) -> Any:
    """For each position its parts of what the members of its group have."""
    x = in_groups(x, groups)
    size = aval_of(x).shape[1]
    x = split(x, 2 + split_axis, [size])  # groups, senders, axes before, receivers, a part, axes after
    parts = [2 + axis + (axis >= split_axis) for axis in range(aval_of(x).ndim - 3)]
    order = [0, 2 + split_axis, *parts[:concat_axis], 1, *parts[concat_axis:]]
    return from_groups(folded(lax.transpose(x, order), 2 + concat_axis), groups)


def permuted(x: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """For each position what is sent to it, or zeros."""
    source, size = {receiver: sender for sender, receiver in perm}, aval_of(x).shape[0]
    if len(source) < size:  # these take what is put at the end; a select would lose the weak type of booleans
        aval = aval_of(x).invariant
        x = lax.concatenate([x, roles.zeros(aval.update(shape=(1, *aval.shape[1:])))], 0)
    return taken(x, [source.get(i, size) for i in range(size)])
