"""`pmap`: a function mapped along an axis of its arguments, each element on a device of its own.

The primitive carries the function of one element, as `vmap` sees it. It is a `shard_map` over a mesh with one axis, in
which each device has one element: that is its decomposition, from which all its rules are derived.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cached_property, wraps
from typing import Any, TypeAlias

import numpy as np

from corejax import (
    device_put,
    lax,
    local_devices,
    make_array_from_process_local_data,
    make_array_from_single_device_arrays,
    tree,
)
from corejax.core import (
    Array,
    Jaxpr,
    Mesh,
    NamedAxis,
    NamedSharding,
    PartitionSpec,
    ShapedArray,
    aval_of,
    binding,
    check_callable,
    context,
    eval_jaxpr,
    flatten,
    keystr,
    name_of,
    namer,
    stage,
    stage_closed,
    stage_function,
    values,
    vmap_flat,
)
from corejax.errors import CorejaxAxisError, CorejaxValueError
from corejax.plugin import Sample, carrying, define, devices, hookimpl, jit, peers, public, refused, shaping
from corejax_collectives.shard_mapping import shard_map_p

__all__ = ["pmap", "xla_pmap"]

#: These are `cj.NAME`.
AT_TOP = ("pmap",)

#: For each operand or result, the axis that is mapped; None if all devices have the same.
Dims: TypeAlias = tuple[int | None, ...]

#: The name of an axis that the user hasn't named.
_UNNAMED = "_pmap"


class XlaPmap:
    """`xla_pmap(*operands, call_jaxpr, axis_name, axis_size, in_axes, out_axes, ...)`: map a program over devices.

    The program is of one element of each operand along `in_axes`, and has no constvars. `donated_invars` says of which
    operands the memory may be used for results.

    >>> import numpy as np, corejax as cj
    >>> run = cj.pmap(lax.sin)
    >>> [eqn.primitive for eqn in cj.make_jaxpr(run)(np.ones(1)).eqns]
    [xla_pmap]
    """

    name = "xla_pmap"
    operands = ("*operands",)
    multiple_results = True
    structural = True
    tracks_varying = True

    @hookimpl
    def abstract_eval(self, avals: Any, *, mesh: Mesh, axis_name: Hashable, axis_size: int, backend: str | None,
                      call_jaxpr: Jaxpr, devices: Any, donated_invars: carrying.Flags, global_axis_size: int | None,
                      in_axes: Dims, name: str, out_axes: Dims) -> list[ShapedArray]:
        for aval, axis in zip(avals, in_axes, strict=True):
            if axis is not None and aval.shape[axis] != axis_size:
                raise refused(self.name, f"axis {axis} of an operand has another size", got=str(aval),
                              wanted=f"{axis_size}, the size of the mapped axis", todo="pass operands of equal sizes")
        carrying.check_operands(self.name, call_jaxpr, [_without(aval, axis) for aval, axis in
                                                        zip(avals, in_axes, strict=True)])
        return [_with(aval, axis, axis_size) for aval, axis in zip(call_jaxpr.out_avals, out_axes, strict=True)]

    @hookimpl
    def decompose(self, args: Any, *, mesh: Mesh, axis_name: Hashable, axis_size: int, call_jaxpr: Jaxpr,
                  in_axes: Dims, out_axes: Dims) -> list[Any]:
        if _is_divided():  # each device has a whole of its own, and maps by itself
            outs, dims = vmap_flat(lambda *xs: eval_jaxpr(call_jaxpr, (), *xs), axis_size, axis_name, args, in_axes)
            return [_moved(x, dim, axis, axis_size) for x, dim, axis in zip(outs, dims, out_axes, strict=True)]
        axes = (NamedAxis(axis_name, axis_size, mesh),)
        with binding(axes):
            parts = _of_parts(call_jaxpr, in_axes, out_axes)
        return shard_map_p.primitive.bind(  # type: ignore[no-any-return]
            *args, jaxpr=parts, axes=axes, mesh=mesh, in_specs=tuple([_spec(axis_name, axis) for axis in in_axes]),
            out_specs=tuple([_spec(axis_name, axis) for axis in out_axes]))

    @hookimpl
    def effects(self, avals: Any, *, call_jaxpr: Jaxpr) -> frozenset[Any]:
        return call_jaxpr.effects

    def axes_within(self, *, axis_name: Hashable, axis_size: int, mesh: Mesh, **params: Any) -> tuple[NamedAxis, ...]:
        """The axis that the program may name."""
        return (NamedAxis(axis_name, axis_size, mesh),)

    def widened(self, axes: Sequence[Any], **params: Any) -> dict[str, Any]:
        """The program for operands that vary along these axes, of a mesh that is mapped over around it."""
        with binding(self.axes_within(**params)):
            return {"call_jaxpr": carrying.retyped(params["call_jaxpr"], axes)}

    @hookimpl
    def pretty(self, *, axis_name: Hashable, axis_size: int, backend: str | None, call_jaxpr: Jaxpr, devices: Any,
               donated_invars: carrying.Flags, global_axis_size: int | None, in_axes: Dims, name: str, out_axes: Dims
               ) -> Mapping[str, Any]:
        return {"axis_name": axis_name, "axis_size": axis_size, "backend": backend, "call_jaxpr": call_jaxpr,
                "devices": None if devices is None else tuple(map(str, devices)), "donated_invars": donated_invars,
                "global_axis_size": global_axis_size, "in_axes": in_axes, "name": name, "out_axes": out_axes}

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        x, y = rng.standard_normal(3), rng.standard_normal((1, 3))

        def params(fun: Any, in_axes: Dims, out_axes: Dims, *args: Any, name: str = "f") -> dict[str, Any]:
            mesh = Mesh(devices()[:1], (name,))  # one device is what everybody has
            with binding((NamedAxis(name, 1, mesh),)):
                jaxpr = stage(fun, [_without(aval_of(x), axis) for x, axis in zip(args, in_axes, strict=True)]).jaxpr
            return {"mesh": mesh, "axis_name": name, "axis_size": 1, "backend": None, "call_jaxpr": jaxpr, "name": name,
                    "devices": None, "donated_invars": (False,) * len(args), "global_axis_size": None,
                    "in_axes": in_axes, "out_axes": out_axes}

        one = {"each param has two values": "more devices than one aren't everywhere, and some params only say what "
                                            "the user has passed"}
        sums = params(lambda x, y: [lax.psum(lax.sin(y) * x, "f"), y + x], (None, 0), (0, 0), x, y)
        yield Sample([x, y], sums, results=[np.sin(y) * x, y + x], exempt=one)
        yield Sample([y.T], params(lambda x: [lax.sin(x)], (1,), (0,), y.T, name="g"), results=[np.sin(y)], exempt=one)
        yield Sample([x, rng.standard_normal((1, 2))], sums, error=TypeError)


xla_pmap: Any = define(XlaPmap())


def _is_divided() -> bool:
    """Whether what is bound now is about the parts that devices have."""
    return any([axis.mesh is not None for axis in context.axes])


@carrying.remembered
def _of_parts(jaxpr: Jaxpr, in_axes: Dims, out_axes: Dims) -> Jaxpr:
    """The program of parts, which have an axis of size 1 where elements have none."""
    def fun(*parts: Any) -> list[Any]:
        outs = eval_jaxpr(jaxpr, (), *[x if axis is None else lax.squeeze(x, (axis,))
                                       for x, axis in zip(parts, in_axes, strict=True)])
        return [x if axis is None else lax.expand_dims(x, (axis,)) for x, axis in zip(outs, out_axes, strict=True)]

    avals = [_with(aval, axis, 1) for aval, axis in zip(jaxpr.in_avals, in_axes, strict=True)]
    return stage_closed(fun, avals, jaxpr.name)


def _with(aval: ShapedArray, axis: int | None, size: int) -> ShapedArray:
    return aval if axis is None else aval.update(shape=(*aval.shape[:axis], size, *aval.shape[axis:]))


def _without(aval: ShapedArray, axis: int | None) -> ShapedArray:
    return aval if axis is None else aval.update(shape=(*aval.shape[:axis], *aval.shape[axis + 1:]))


def _spec(name: Hashable, axis: int | None) -> PartitionSpec:
    return PartitionSpec() if axis is None else PartitionSpec(*[None] * axis, name)


def _moved(x: Any, dim: int | None, axis: int | None, size: int) -> Any:
    """A mapped result with its axis where it is wanted."""
    if axis is None:
        return x if dim is None else lax.index_in_dim(x, 0, dim, keepdims=False)
    if dim is None:
        shape = aval_of(x).shape
        return lax.broadcast_in_dim(x, (*shape[:axis], size, *shape[axis:]),
                                    tuple([i + (i >= axis) for i in range(len(shape))]))
    order = [i for i in range(len(aval_of(x).shape)) if i != dim]
    return x if dim == axis else lax.transpose(x, (*order[:axis], dim, *order[axis:]))


# The public function

@public
def pmap(fun: Callable[..., Any], axis_name: Hashable = None, *, in_axes: Any = 0, out_axes: Any = 0,
         static_broadcasted_argnums: int | Sequence[int] = (), devices: Sequence[Any] | None = None,
         backend: str | None = None, axis_size: int | None = None, donate_argnums: int | Sequence[int] = ()) -> Any:
    """Map `fun` along an axis of its arguments, each element on a device of its own.

    `in_axes` and `out_axes` say which axis of each argument and result is mapped, as for `vmap`: an int, None for what
    all devices have alike, or a pytree of these. Functions such as `lax.psum` exchange data along `axis_name`.
    `devices`: those to use, as many as there are elements; by default the first of the default backend's, or of
    `backend`. `static_broadcasted_argnums`: arguments that aren't data. `donate_argnums`: arguments whose memory may be
    overwritten. Where every device already has a part of its own, in another `pmap` or in `shard_map`, it maps these.
    Over the devices of several processes, each passes the elements of its own devices, as many as it has, and gets
    theirs back.

    >>> import numpy as np, corejax as cj
    >>> cj.pmap(lambda x: x / lax.psum(x, "i"), axis_name="i")(np.array([[2.0]])).tolist()
    [[1.0]]
    """
    check_callable(fun, "pmap")
    _check_axes(in_axes, "in_axes")
    _check_axes(out_axes, "out_axes")
    static = _positions(static_broadcasted_argnums, "static_broadcasted_argnums")
    donated = _positions(donate_argnums, "donate_argnums")
    chosen = _Devices(devices, backend, axis_size)
    given = _UNNAMED if axis_name is None else axis_name

    def mapped(*args: Any, **kwargs: Any) -> Any:
        if chosen.by_process and not _is_divided():
            raise refused("pmap", "over the devices of several processes, it can't be part of a program, or be "
                          "differentiated", got=f"devices of the processes {chosen.by_process}", kind=CorejaxValueError,
                          wanted="a call with arrays", todo="do so inside, as in pmap(grad(f)); or use cj.shard_map")
        return mapped_over_all(*args, **kwargs)

    def mapped_over_all(*args: Any, **kwargs: Any) -> Any:
        function, dynamic = _without_static(fun, args, static)
        leaves, in_tree = flatten((dynamic, kwargs))
        xs = values(leaves, "pmap", namer("args", (dynamic, kwargs)))
        dims = _in_dims(in_axes, dynamic, kwargs, xs, static, len(args))
        size = _size(xs, dims, axis_size)
        mesh = chosen.mesh(size, given)
        avals = [_without(aval_of(x), dim) for x, dim in zip(xs, dims, strict=True)]
        with binding((NamedAxis(given, size, mesh),)):
            staged = stage_function(lambda args, kwargs: function(*args, **kwargs), avals, in_tree,
                                    "pmap: the function")
        results = _out_dims(out_axes, staged.out_tree, staged.closed.out_avals)
        n_consts = len(staged.consts)
        outs = xla_pmap.primitive.bind(
            *staged.consts, *xs, mesh=mesh, axis_name=given, axis_size=size, backend=backend,
            call_jaxpr=staged.jaxpr.replace(name=name_of(fun)), devices=chosen.devices,
            donated_invars=((False,) * n_consts + _donated(args, static, donated, len(xs))), global_axis_size=None,
            in_axes=(*[None] * n_consts, *dims), name=name_of(fun), out_axes=results)
        return staged.out_tree.unflatten(outs)

    compiled = jit(wraps(fun)(mapped), static_argnums=static, donate_argnums=donated)
    of_all = jit(wraps(fun)(mapped_over_all), static_argnums=static, donate_argnums=donated)

    def by_process(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The same where this process has some of the elements only."""
        _, dynamic = _without_static(fun, args, static)
        leaves, in_tree = flatten((dynamic, kwargs))
        xs = values(leaves, "pmap", namer("args", (dynamic, kwargs)))
        dims = _in_dims(in_axes, dynamic, kwargs, xs, static, len(args))
        parts = _Parts(chosen, given, _size(xs, dims, None if any([dim is not None for dim in dims]) else chosen.own))
        wholes, named = in_tree.unflatten([parts.whole(x, dim) for x, dim in zip(xs, dims, strict=True)])
        whole = iter(wholes)
        at = [i % len(args) for i in static if -len(args) <= i < len(args)] if args else []
        outs = of_all(*[x if i in at else next(whole) for i, x in enumerate(args)], **named)
        results, out_tree = flatten(outs)
        axes = tree.leaves(tree.broadcast(out_axes, outs, is_leaf=_is_none), is_leaf=_is_none)
        return out_tree.unflatten([parts.own(x, _counted(x.aval, axis, "a result"))
                                   for x, axis in zip(results, axes, strict=True)])

    @wraps(fun)
    def pmapped(*args: Any, **kwargs: Any) -> Any:
        if chosen.by_process and context.trace.knows_values and not _is_divided():
            return by_process(args, kwargs)
        return (compiled if context.trace.knows_values else mapped)(*args, **kwargs)

    pmapped.lower = compiled.lower  # type: ignore[attr-defined]
    return pmapped


class _Devices:
    """Which devices to use."""

    def __init__(self, chosen: Sequence[Any] | None, backend: str | None, axis_size: int | None) -> None:
        self.devices = None if chosen is None else tuple(chosen)
        self.backend, self.axis_size = backend, axis_size
        if self.devices is not None and not self.devices:
            raise refused("pmap", "devices must not be empty", got="devices=()", wanted="some of cj.devices(), or None",
                          todo="leave it out for the first devices", kind=CorejaxValueError)
        if axis_size is not None and (type(axis_size) is not int or axis_size < 1):
            raise refused("pmap", "axis_size must be a size", got=repr(axis_size)[:80], wanted="a positive int",
                          todo="leave it out where an argument is mapped")

    @cached_property
    def by_process(self) -> tuple[int, ...]:
        """The processes of the devices, if there are several: each has some of the elements. Empty otherwise."""
        if peers.joined() is None:
            return ()
        found = sorted({device.process_index for device in self.devices or devices(self.backend)})
        return tuple(found) if len(found) > 1 else ()

    @property
    def own(self) -> int:
        """How many belong to this process."""
        return sum([device in local_devices() for device in self.devices or devices(self.backend)])

    def mesh(self, size: int, name: Hashable) -> Mesh:
        """As many devices as there are elements."""
        if _is_divided():
            around = next(axis.mesh for axis in context.axes if axis.mesh is not None)
            return Mesh(around.flat_devices[:1], (name,)) if isinstance(around, Mesh) else around
        there = self.devices or tuple(devices(self.backend))
        if self.devices is not None and len(there) != size:
            raise refused("pmap", f"{size} elements are mapped over {len(there)} devices", got=f"axis size {size}",
                          wanted=f"{len(there)}, an element for each of devices=...", kind=CorejaxValueError,
                          todo="give as many devices as the mapped axis is long")
        if size > len(there):
            raise refused("pmap", f"{size} elements need {size} devices, and there are {len(there)}",
                          got=f"axis size {size}", wanted=f"at most {len(there)}", kind=CorejaxValueError,
                          todo="map a part at a time, with cj.vmap inside; or use more devices: for the processor, set "
                               "config.num_cpu_devices before the first computation")
        return Mesh(np.array(there[:size], object), (name,))


class _Parts:
    """The elements of one process among those of all."""

    def __init__(self, chosen: _Devices, name: Hashable, size: int) -> None:
        there = chosen.devices or tuple(devices(chosen.backend))
        mine = [device for device in there if device in local_devices()]
        if not mine:
            raise refused("pmap", "this process has none of the devices", got=", ".join(map(str, there[:8])),
                          wanted="some of cj.local_devices() among them", kind=CorejaxValueError,
                          todo="call it only in processes that have some of the devices")
        if chosen.axis_size not in (None, len(there)):
            raise refused("pmap", f"axis_size is {chosen.axis_size}, and there are {len(there)} devices, of several "
                          "processes", got=f"axis_size={chosen.axis_size}", wanted=f"{len(there)}, or None",
                          kind=CorejaxValueError, todo="leave it out; or pass devices=cj.local_devices()")
        if size != len(mine):
            raise refused("pmap", f"{size} elements are mapped over the {len(mine)} devices of this process",
                          got=f"axis size {size}", kind=CorejaxValueError,
                          wanted=f"{len(mine)}, an element for each of its devices, which are some of {len(there)}",
                          todo="pass this process's elements only; or devices=cj.local_devices()")
        self._mesh, self._mine = Mesh(np.array(there, object), (name,)), Mesh(np.array(mine, object), (name,))
        self._name = name

    def whole(self, x: Any, axis: int | None) -> Any:
        """An array of the elements of all processes, of those of this one; without an axis, what each has alike."""
        spec = _spec(self._name, axis)
        theirs, mine = NamedSharding(self._mesh, spec), NamedSharding(self._mine, spec)
        if isinstance(x, Array) and not x.is_deleted() and x.sharding.is_equivalent_to(mine, x.ndim):
            shape = [size * (self._mesh.size if i == axis else 1) // (self._mine.size if i == axis else 1)
                     for i, size in enumerate(x.shape)]
            pieces: list[Any] = [shard.data for shard in x.addressable_shards]
            return make_array_from_single_device_arrays(shape, theirs, pieces)
        return make_array_from_process_local_data(theirs, x)

    def own(self, x: Any, axis: int | None) -> Any:
        """The elements of this process, of those of all."""
        spec = _spec(self._name, axis)
        x = device_put(x, NamedSharding(self._mesh, spec))  # it is there, unless it has no elements
        shape = [size // self._mesh.size * self._mine.size if i == axis else size for i, size in enumerate(x.shape)]
        pieces: list[Any] = [shard.data for shard in x.addressable_shards]
        return make_array_from_single_device_arrays(shape, NamedSharding(self._mine, spec), pieces)


def _positions(argnums: Any, what: str) -> tuple[int, ...]:
    return tuple(sorted([shaping.as_int("pmap", f"a position in {what}", i) for i in
                         (argnums if isinstance(argnums, (tuple, list)) else (argnums,))]))


def _without_static(fun: Callable[..., Any], args: tuple[Any, ...], static: tuple[int, ...]
                    ) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The function of the other arguments, and these."""
    at = [i % len(args) for i in static if -len(args) <= i < len(args)] if args else []
    if not at:
        return fun, args

    def function(*dynamic: Any, **kwargs: Any) -> Any:
        rest = iter(dynamic)
        return fun(*[x if i in at else next(rest) for i, x in enumerate(args)], **kwargs)

    function.__name__ = name_of(fun)
    return function, tuple([x for i, x in enumerate(args) if i not in at])


def _donated(args: tuple[Any, ...], static: tuple[int, ...], donated: tuple[int, ...], count: int) -> carrying.Flags:
    """For each leaf, whether its memory may be overwritten."""
    flags = [i in donated or i - len(args) in donated for i, x in enumerate(args)
             if i not in static and i - len(args) not in static for _ in flatten(x)[0]]
    return (*flags, *[False] * (count - len(flags)))


def _is_none(x: object) -> bool:
    return x is None


def _check_axes(axes: Any, what: str) -> None:
    for path, axis in tree.flatten_with_path(axes, is_leaf=_is_none)[0]:
        if axis is not None and (isinstance(axis, bool) or not hasattr(axis, "__index__")):
            raise refused("pmap", f"{what}{keystr(path)} must be an axis", got=repr(axis)[:80], wanted="an int or None",
                          todo=f"{what} is a pytree of ints and None, and a prefix of what it describes")


def _in_dims(in_axes: Any, args: tuple[Any, ...], kwargs: dict[str, Any], xs: Sequence[Any], static: tuple[int, ...],
             count: int) -> Dims:
    """The mapped axis of each leaf, counted from the front; keyword arguments are mapped along axis 0."""
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if isinstance(in_axes, tuple):
        if len(in_axes) == count:
            in_axes = tuple([axis for i, axis in enumerate(in_axes) if i not in static and i - count not in static])
        if len(in_axes) != len(args):
            raise refused("pmap", "in_axes must have one entry for each positional argument", kind=CorejaxValueError,
                          got=f"{len(in_axes)} entries, {len(args)} arguments", wanted="the same number",
                          todo="write None for an argument that all devices have alike")
    spread = tree.leaves(tree.broadcast(in_axes, args, is_leaf=_is_none), is_leaf=_is_none)
    found = [*spread, *[0] * (len(xs) - len(spread))]
    return tuple([_counted(aval_of(x), axis, "an argument") for x, axis in zip(xs, found, strict=True)])


def _out_dims(out_axes: Any, out_tree: Any, avals: Sequence[ShapedArray]) -> Dims:
    """The axis of each leaf of the result at which elements are put together."""
    result = out_tree.unflatten([0] * len(avals))
    found = tree.leaves(tree.broadcast(out_axes, result, is_leaf=_is_none), is_leaf=_is_none)
    return tuple([_counted(_with(aval, 0, 1), axis, "a result") for aval, axis in zip(avals, found, strict=True)])


def _counted(aval: ShapedArray, axis: Any, what: str) -> int | None:
    if axis is None:
        return None
    ndim, position = len(aval.shape), int(axis.__index__())
    if not -ndim <= position < ndim:
        raise refused("pmap", f"{what} of rank {ndim} has no axis {position}", got=str(aval), kind=CorejaxAxisError,
                      wanted="an axis that it has, or None", todo="map another axis; None is for what all devices have "
                      "alike, such as scalars")
    return position % ndim


def _size(xs: Sequence[Any], dims: Dims, axis_size: int | None) -> int:
    """The size of the mapped axis, on which all arguments must agree."""
    sizes = {aval_of(x).shape[dim] for x, dim in zip(xs, dims, strict=True) if dim is not None}
    if axis_size is not None:
        sizes.add(axis_size)
    if len(sizes) == 1:
        return sizes.pop()
    if not sizes:
        raise refused("pmap", "no argument is mapped, so the number of elements isn't known", kind=CorejaxValueError,
                      got="in_axes of None only", wanted="an argument with an axis to map",
                      todo="give the number: pmap(f, axis_size=8)")
    raise refused("pmap", "the mapped axes differ in size", got=", ".join(map(str, sorted(sizes))), wanted="one size",
                  todo="map other axes with in_axes; None is for what all devices have alike", kind=CorejaxValueError)
