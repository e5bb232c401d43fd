"""`vmap`: turns a function of one example into a function of a batch."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Sequence
from typing import Any, ParamSpec, TypeVar

from corejax.api.arguments import wraps
from corejax.base import trees
from corejax.base.errors import CorejaxAxisError, CorejaxTypeError, CorejaxValueError
from corejax.base.keypaths import keystr
from corejax.base.prefixes import broadcast_prefix
from corejax.base.source import here
from corejax.base.tracebacks import public
from corejax.interpreters import batching
from corejax.interpreters.leaves import (
    FlatFun,
    Namer,
    argument_namer,
    call_root,
    check_callable,
    leaf_value,
    namer,
    with_kwargs,
)

P = ParamSpec("P")
R = TypeVar("R")


@public
def vmap(fun: Callable[P, R], in_axes: Any = 0, out_axes: Any = 0, axis_name: Hashable = None,
         axis_size: int | None = None, spmd_axis_name: Hashable = None) -> Callable[P, R]:
    """Map `fun` along an axis of its arguments, all elements at once.

    `in_axes` says which axis of each argument is mapped: an int (negative ones count from the end), None for a shared
    argument, or a tuple with an entry for each positional argument, which may be a pytree that is a prefix of the
    argument. Keyword arguments are mapped along axis 0. In the same way, `out_axes` says where the axis is in the
    results. `axis_name` names it for primitives that combine values along it. `spmd_axis_name`: an axis of a mesh, or
    several, along which the mapped axis is divided where the function says how its values are.

    >>> import corejax as cj, numpy as np
    >>> cj.vmap(lambda x, y: x * y, in_axes=(0, None))(np.array([1.0, 2.0]), 10.0).tolist()
    [10.0, 20.0]
    """
    check_callable(fun, "vmap")
    in_axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    _check_axes(in_axes, "in_axes")
    _check_axes(out_axes, "out_axes")
    if axis_size is not None and (not _is_axis(axis_size) or axis_size < 0):
        raise CorejaxTypeError("vmap: axis_size must be a size", got=repr(axis_size)[:80], wanted="a non-negative int",
                               where=here(), todo="leave it out where an argument is mapped")
    if in_axes is not None and type(in_axes) is not tuple and not _is_axis(in_axes):
        raise CorejaxTypeError("vmap: in_axes must have one entry for each positional argument", got=repr(in_axes)[:80],
                               wanted="an int, None, or a tuple", where=here(),
                               todo=f"write in_axes=({in_axes!r:.40},)")

    def vmap_f(*args: Any, **kwargs: Any) -> Any:
        tree: Any = (args, kwargs) if kwargs else args
        leaves, in_tree = trees.flatten(tree, None, call_root if kwargs else "args")
        name = argument_namer(args, kwargs)
        dims = _in_dims(in_axes, args, kwargs, len(leaves))
        leaves = [x if dim is None else leaf_value(i, x, "vmap", name)
                  for i, (x, dim) in enumerate(zip(leaves, dims, strict=True))]
        dims = [None if dim is None else _axis_of(x, dim, i, name)
                for i, (x, dim) in enumerate(zip(leaves, dims, strict=True))]
        size = _size(leaves, dims, axis_size, name)
        flat = FlatFun(with_kwargs(fun) if kwargs else fun, in_tree, "vmap")
        outs, out_dims = batching.vmap(flat, size, axis_name, leaves, dims, spmd_axis_name)
        result_axes = [out_axes] * len(outs) if out_axes is None or _is_axis(out_axes) else _out_dims(out_axes, flat)
        return flat.unflatten([_place(x, dim, wanted, size, i, flat) for i, (x, dim, wanted) in
                               enumerate(zip(outs, out_dims, result_axes, strict=True))])

    return wraps(fun, vmap_f)


def _is_none(x: object) -> bool:
    return x is None


def _is_axis(x: object) -> bool:
    return not isinstance(x, bool) and hasattr(x, "__index__")


def _check_axes(axes: object, what: str) -> None:
    if axes is None or type(axes) is int:
        return
    for path, axis in trees.flatten_with_path(axes, _is_none)[0]:
        if axis is not None and not _is_axis(axis):
            raise CorejaxTypeError(f"vmap: {what}{keystr(path)} must be an axis", got=repr(axis)[:80],
                                   wanted="an int or None", where=here(),
                                   todo=f"{what} is a pytree of ints and None, and a prefix of what it describes")


def _in_dims(in_axes: object, args: tuple[object, ...], kwargs: dict[str, Any], n_leaves: int) -> list[Any]:
    """An axis or None for each leaf."""
    if type(in_axes) is not tuple:
        n_kwargs = len(trees.flatten(kwargs)[0]) if kwargs else 0
        return [in_axes] * (n_leaves - n_kwargs) + [0] * n_kwargs
    if len(in_axes) != len(args):
        raise CorejaxValueError("vmap: in_axes must have one entry for each positional argument", where=here(),
                                got=f"{len(in_axes)} entries in in_axes, {len(args)} positional arguments",
                                wanted="the same number", todo="for an argument that is not mapped write None")
    dims = broadcast_prefix(in_axes, args, _is_none, names=("in_axes", "args"))
    return dims + [0] * (n_leaves - len(dims))


def _axis_of(x: Any, axis: int, i: int, name: Namer) -> int:
    """The axis counted from the front, within the leaf's rank."""
    axis, ndim = operator.index(axis), len(x.aval.shape)
    if not -ndim <= axis < ndim:
        if not ndim:
            raise CorejaxValueError(f"vmap: {name(i)} is a scalar, which has no axis to map", got=str(x.aval),
                                    wanted=f"an array with an axis {axis}", where=here(),
                                    todo="pass in_axes=None for it, so that all share it")
        raise CorejaxAxisError(f"vmap: {name(i)} has no axis {axis}", got=str(x.aval), where=here(),
                                wanted=f"an axis from {-ndim} to {ndim - 1} in in_axes",
                                todo="map another axis, or pass None not to map the argument")
    return int(axis + ndim if axis < 0 else axis)


def _size(leaves: Sequence[Any], dims: Sequence[int | None], axis_size: int | None, name: Namer) -> int:
    """The size of the mapped axis, on which all arguments must agree."""
    size = axis_size
    for x, dim in zip(leaves, dims, strict=True):
        if dim is None:
            continue
        if size is None:
            size = x.aval.shape[dim]
        elif x.aval.shape[dim] != size:
            raise _inconsistent(leaves, dims, axis_size, name)
    if size is None:
        raise CorejaxValueError("vmap: no argument is mapped, so the size of the axis is not known", where=here(),
                                got="no arguments" if not leaves else "in_axes that are None throughout",
                                wanted="an argument with an axis to map",
                                todo="give the size: vmap(f, ..., axis_size=n)")
    return size


def _inconsistent(leaves: Sequence[Any], dims: Sequence[int | None], axis_size: int | None, name: Namer
                  ) -> CorejaxValueError:
    mapped = [f"{name(i)}: {x.aval} has size {x.aval.shape[dim]} at axis {dim}"
              for i, (x, dim) in enumerate(zip(leaves, dims, strict=True)) if dim is not None]
    return CorejaxValueError("vmap: the mapped axes differ in size", got="; ".join(mapped), where=here(),
                             wanted="one size for all" if axis_size is None else f"axis_size={axis_size} for all",
                             todo="map other axes with in_axes; None means that all share the argument")


def _out_dims(out_axes: object, flat: FlatFun) -> list[Any]:
    """An axis or None for each leaf of the result."""
    result = 0 if flat.out_tree is None else flat.out_tree.unflatten([0] * flat.n_outs)
    return broadcast_prefix(out_axes, result, _is_none, names=("out_axes", "result"))


def _place(x: Any, dim: int | None, wanted: Any, size: int, i: int, flat: FlatFun) -> Any:
    """A result with its mapped axis at the position from `out_axes`."""
    if wanted is None:
        if dim is not None:
            raise CorejaxValueError(f"vmap: out_axes is None for {_result_name(flat, i)}, which differs along the axis",
                                    got=str(x.aval), wanted="a result that doesn't depend on mapped arguments",
                                    where=here(), todo="give it an axis in out_axes")
        return x
    ndim = len(x.aval.shape) + (dim is None)
    axis = operator.index(wanted)
    if not -ndim <= axis < ndim:
        raise CorejaxAxisError(f"vmap: out_axes puts the mapped axis of {_result_name(flat, i)} at {axis}",
                                got=f"a result that has {ndim} ax{'es' if ndim > 1 else 'is'}, the mapped one included",
                                where=here(),
                                wanted=f"{-ndim} to {ndim - 1}",
                                todo="put it at an axis that the result will have")
    return batching.to_dim(x, dim, axis + ndim if axis < 0 else axis, size)


def _result_name(flat: FlatFun, i: int) -> str:
    return "the result" if flat.out_tree is None else namer("result", flat.out_tree.unflatten([0] * flat.n_outs))(i)
