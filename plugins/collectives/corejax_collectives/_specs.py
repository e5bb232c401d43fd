"""How arguments and results of `shard_map` are divided: what users pass for it, and the types of parts and wholes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from math import prod
from typing import Any, TypeAlias

from corejax import tree
from corejax.core import AnyMesh, NamedAxis, PartitionSpec, ShapedArray, aval_of, context, current_mesh, keystr
from corejax.errors import CorejaxError, CorejaxValueError
from corejax.plugin import refused

Axes: TypeAlias = tuple[NamedAxis, ...]
Specs: TypeAlias = tuple[PartitionSpec, ...]


# Types

def part_of(whole: ShapedArray, spec: PartitionSpec, axes: Axes) -> ShapedArray:
    """The type of each device's part of an array that is divided along these axes of a mesh."""
    sizes = {axis.name: axis.size for axis in axes}
    shape = list(whole.shape)
    for dimension in range(len(spec)):
        names = spec.names(dimension)
        if dimension >= len(shape):
            raise refused("shard_map", "a spec has more entries than the array has dimensions",
                          got=f"{spec} for {whole}", wanted=f"at most {len(shape)} entries",
                          todo="leave out the last ones; P() divides nothing", kind=CorejaxValueError)
        count = prod([sizes[name] for name in names])
        if shape[dimension] % count:
            raise refused("shard_map", f"dimension {dimension} can't be divided evenly over {_shown(names, sizes)}",
                          got=f"{whole} with {spec}", wanted=f"a multiple of {count}", kind=CorejaxValueError,
                          todo="pad it, or divide another dimension")
        shape[dimension] //= count
    tracked = frozenset([axis.name for axis in axes if axis.tracked])
    return whole.update(shape=tuple(shape), varying=whole.varying | tracked.intersection(spec.all_names()))


def whole_of(part: ShapedArray, spec: PartitionSpec, axes: Axes) -> ShapedArray:
    """The type of an array that consists of parts of this type."""
    sizes = {axis.name: axis.size for axis in axes}
    if len(spec) > len(part.shape):
        raise refused("shard_map", "a spec has more entries than the result has dimensions", got=f"{spec} for {part}",
                      wanted=f"at most {len(part.shape)} entries", kind=CorejaxValueError,
                      todo="leave out the last ones; P() is for a result that is the same on all devices")
    shape = [size * prod([sizes[name] for name in spec.names(i)]) for i, size in enumerate(part.shape)]
    return part.update(shape=tuple(shape), varying=part.varying - sizes.keys())


def varying_names(aval: ShapedArray, axes: Axes) -> tuple[Hashable, ...]:
    """The axes along which values of this type may differ, in the order of the mesh."""
    return tuple([axis.name for axis in axes if axis.name in aval.varying or not axis.tracked])


def inserted(spec: PartitionSpec, dimension: int, entry: Any) -> PartitionSpec:
    """The spec for an array with another dimension at this position."""
    entries = [*spec, *[None] * (dimension - len(spec))]
    return PartitionSpec(*entries[:dimension], entry, *entries[dimension:])


def _shown(names: Iterable[Hashable], sizes: dict[Hashable, int]) -> str:
    return " and ".join([f"axis {name!r} of size {sizes[name]}" for name in names])


# What users pass

def mesh_around() -> Any:
    """The mesh of the map over devices around the call, or else of `with mesh:`."""
    around = [axis.mesh for axis in context.axes if axis.mesh is not None]
    return around[-1] if around else current_mesh()


def _mesh_for(mesh: Any) -> AnyMesh:
    """The mesh that is meant: that of an enclosing map, or of `with mesh:`, if none is given."""
    if isinstance(mesh, AnyMesh):
        return mesh
    if mesh is not None:
        raise refused("shard_map", "needs a mesh", got=repr(mesh)[:80], wanted="a Mesh",
                      todo="make one: cj.make_mesh((8,), ('x',))")
    found: AnyMesh | None = mesh_around()
    if found is None:
        raise refused("shard_map", "doesn't know on which devices to run", got="mesh=None", wanted="a Mesh",
                      todo="pass mesh=cj.make_mesh((8,), ('x',)), or call it within `with mesh:`",
                      kind=CorejaxValueError)
    return found


def _manual_names(mesh: AnyMesh, axis_names: Any) -> tuple[Hashable, ...]:
    """The axes along which each device has its own part, in the order of the mesh."""
    wanted = {axis_names} if isinstance(axis_names, str) else set(axis_names)
    for name in wanted:
        if name not in mesh.shape:
            raise _no_axis("axis_names", name, mesh.axis_names)
    return tuple([name for name in mesh.axis_names if not wanted or name in wanted])


def free_axes(mesh: AnyMesh, names: tuple[Hashable, ...], tracked: bool) -> Axes:
    """These axes, which no enclosing map may have divided along already."""
    for axis in context.axes:
        if axis.mesh is not None and axis.name in names:
            raise refused("shard_map", f"axis {axis.name!r} is mapped over already, by the shard_map around this one",
                          got=f"axes {', '.join(map(repr, names))} of {mesh}", wanted="other axes",
                          todo="name in axis_names those axes that are left for it", kind=CorejaxValueError)
    return tuple([NamedAxis(name, mesh.shape[name], mesh, tracked) for name in names])


def divided_along(axis: Any, axes: Axes, specs: Specs) -> Axes:
    """Those of these axes along which a mapped axis is divided, if the user has said so for `vmap`."""
    names = axis.spmd if isinstance(axis.spmd, tuple) else (axis.spmd,)
    along = tuple([own for own in axes if own.name in names])
    count = prod([own.size for own in along])
    for own in along:
        if any([own.name in spec.all_names() for spec in specs]):
            raise refused("shard_map", f"vmap divides the mapped axis along {own.name!r}, and so do in_specs",
                          got=f"spmd_axis_name={axis.spmd!r}", wanted="another axis of the mesh",
                          todo="leave that axis out of in_specs", kind=CorejaxValueError)
    if axis.size % count:
        raise refused("shard_map", f"a mapped axis of size {axis.size} can't be divided along {axis.spmd!r}",
                      got=f"spmd_axis_name={axis.spmd!r}", wanted=f"a multiple of {count}",
                      todo="pad it, or leave spmd_axis_name out", kind=CorejaxValueError)
    return along


_ABSENT = object()


def given(mesh: AnyMesh | None, axis_names: Any, in_specs: Any, out_specs: Any
          ) -> tuple[AnyMesh, tuple[Hashable, ...], Any, Any]:
    """The mesh, its axes along which each device has its own part, and the specs after checking them."""
    chosen = _mesh_for(mesh)
    names = _manual_names(chosen, axis_names)
    for what, specs in (("in_specs", in_specs), ("out_specs", out_specs)):
        if specs is None:
            raise refused("shard_map", f"doesn't know its {what}", got=f"{what}=None", wanted="a PartitionSpec, or a "
                          "pytree of them", todo="write P() for what is the same on all devices")
    return chosen, names, _checked(in_specs, "in_specs", names), _checked(out_specs, "out_specs", names)


def _is_spec(x: object) -> bool:
    return x is None or isinstance(x, PartitionSpec)


def _checked(specs: Any, what: str, names: tuple[Hashable, ...]) -> Any:
    """The specs, after checking each of them. In the place of None, which is for what is None, stands `_ABSENT`."""
    for path, spec in tree.flatten_with_path(specs, is_leaf=_is_spec)[0]:
        where = f"{what}{keystr(path)}"
        if spec is None:
            continue
        if not isinstance(spec, PartitionSpec):
            raise refused("shard_map", f"{where} isn't a PartitionSpec", got=repr(spec)[:80],
                          wanted="a PartitionSpec, such as P('x')",
                          todo="write P(...)")
        used: set[Hashable] = set()
        for name in spec.all_names():
            if name not in names:
                raise _no_axis(where, name, names)
            if name in used:
                raise refused("shard_map", f"{where} divides two dimensions along axis {name!r}", got=str(spec),
                              wanted="each axis at most once", todo="put None in place of one of them",
                              kind=CorejaxValueError)
            used.add(name)
        if PartitionSpec.UNCONSTRAINED in tuple(spec):
            raise refused("shard_map", f"{where} leaves a dimension open", got=str(spec),
                          wanted="names of axes, or None", todo="write None", kind=CorejaxValueError)
    return tree.map(lambda spec: _ABSENT if spec is None else spec, specs, is_leaf=_is_spec)


def _no_axis(what: str, name: Hashable, known: Sequence[Hashable]) -> CorejaxError:
    return refused("shard_map", f"{what} names an axis {name!r} that isn't mapped over", got=repr(name)[:80],
                   wanted=f"one of: {', '.join(map(repr, known))}", kind=CorejaxValueError,
                   todo="use an axis of the mesh, and one of axis_names if these are given")


def for_arguments(specs: Any, args: tuple[Any, ...], xs: Sequence[Any], axes: Axes) -> Specs:
    """A spec for each leaf of the arguments."""
    if isinstance(specs, PartitionSpec):
        found = [specs] * len(xs)
    else:
        wanted = tuple(specs) if isinstance(specs, list) else specs
        if isinstance(wanted, tuple) and len(wanted) != len(args):
            raise refused("shard_map", "in_specs must have one entry for each argument", kind=CorejaxValueError,
                          got=f"{len(wanted)} entries, {len(args)} arguments", wanted="the same number",
                          todo="write P() for an argument that isn't divided")
        found = tree.leaves(tree.broadcast(wanted, args, is_leaf=_is_spec))
    paths = tree.flatten_with_path(args)[0]
    for x, spec, (path, _) in zip(xs, found, paths, strict=True):
        _check_spec(spec, f"args{keystr(path)}")
        _named(lambda x=x, spec=spec: part_of(aval_of(x), spec, axes), f"args{keystr(path)}")
    return tuple(found)


def for_results(specs: Any, out_tree: Any, avals: Sequence[ShapedArray], axes: Axes) -> Specs:
    """A spec for each leaf of the result, after checking that the result is what the spec says."""
    result = out_tree.unflatten(list(avals))
    found = [specs] * len(avals) if isinstance(specs, PartitionSpec) else tree.leaves(tree.broadcast(
        specs, result, is_leaf=_is_spec))
    paths = tree.flatten_with_path(result)[0]
    for aval, spec, (path, _) in zip(avals, found, paths, strict=True):
        name = f"result{keystr(path)}"
        _check_spec(spec, name)
        _named(lambda aval=aval, spec=spec: whole_of(aval, spec, axes), name)
        for axis in axes:
            if axis.name in aval.varying and axis.name not in spec.all_names():
                raise refused("shard_map", f"{name} varies along axis {axis.name!r}, of which its out_spec says "
                              "nothing", got=f"{aval} with {spec}", kind=CorejaxValueError,
                              wanted=f"a spec with {axis.name!r}, or a result that is the same on all devices along "
                              f"{axis.name!r}",
                              todo=f"put {axis.name!r} in its out_spec, or reduce the result: lax.psum(x, "
                                   f"{axis.name!r}), lax.pmean, lax.pmax; check_vma=False leaves it unchecked")
    return tuple(found)


def _check_spec(spec: object, name: str) -> None:
    if spec is _ABSENT:
        raise refused("shard_map", f"{name}: None stands for what is None, and this is an array", got="None",
                      wanted="a PartitionSpec", todo="write P() for what is the same on all devices")


def _named(check: Any, name: str) -> None:
    try:
        check()
    except CorejaxError as error:
        error.rephrase(error.message.replace("shard_map: ", f"shard_map: {name}: ", 1))
        raise
