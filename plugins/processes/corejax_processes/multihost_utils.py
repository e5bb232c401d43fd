"""`corejax.multihost_utils`: what programs of several processes need besides computing together.

Each function must be called by all processes. Here is what they give if there is only one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import corejax as cj
from corejax import NamedSharding, P, tree
from corejax.core import Mesh, ShapedArray, flatten, here
from corejax.errors import CorejaxTypeError, CorejaxValueError
from corejax.plugin import peers, public

NAMESPACE = ("multihost_utils", "experimental.multihost_utils")

__all__ = ["assert_equal", "broadcast_one_to_all", "global_array_to_host_local_array",
           "host_local_array_to_global_array", "process_allgather", "sync_global_devices"]

_PROCESS = "process"


def _mesh() -> Mesh:
    """A device of each process."""
    return Mesh(np.array([cj.local_devices(i)[0] for i in range(cj.process_count())], object), (_PROCESS,))


@public
def process_allgather(in_tree: Any, tiled: bool = False) -> Any:
    """The values of all processes, as ndarrays that each process has.

    >>> import numpy as np, corejax as cj
    >>> cj.multihost_utils.process_allgather(np.arange(2.0))
    array([[0., 1.]])

    Arrays of one process are stacked along a new first axis, which is as long as there are processes; if `tiled`, they
    are concatenated along their first axis. Of an array that is divided among processes, each gets the whole.
    """
    return tree.map(lambda x: _gathered(x, tiled), in_tree)


def _gathered(x: Any, tiled: bool) -> np.ndarray:
    if isinstance(x, cj.Array) and not x.is_fully_addressable:
        return np.asarray(_everywhere(x))
    host = np.asarray(x)
    if tiled and not host.ndim:
        raise CorejaxValueError("process_allgather: scalars can't be concatenated", got="a scalar, with tiled=True",
                                wanted="at least one axis", where=here(), todo="leave tiled out")
    if cj.process_count() > 1:
        host = np.asarray(_everywhere(_stacked(host)))
    else:
        host = host[None]
    return host.reshape(host.shape[0] * host.shape[1], *host.shape[2:]) if tiled else host


def _stacked(host: np.ndarray) -> cj.Array:
    """An array of the values of all processes, along a new first axis that divides it among these."""
    return cj.make_array_from_process_local_data(NamedSharding(_mesh(), P(_PROCESS)), host[None])


def _everywhere(x: cj.Array) -> cj.Array:
    """The array with a copy on each device."""
    sharding: Any = x.sharding
    return cj.device_put(x, NamedSharding(sharding.mesh, P()))


@public
def broadcast_one_to_all(in_tree: Any, is_source: bool | None = None) -> Any:
    """The values of one process, which all get as ndarrays: of process 0, or where `is_source` says so.

    >>> import numpy as np, corejax as cj
    >>> cj.multihost_utils.broadcast_one_to_all({"seed": np.int32(7)})
    {'seed': array(7, dtype=int32)}

    The others pass values of the same shapes and types, whose elements don't matter.
    """
    mine = cj.process_index() == 0 if is_source is None else bool(is_source)
    if cj.process_count() == 1:
        return tree.map(np.asarray, in_tree)
    leaves, treedef = flatten(in_tree)
    sources = np.asarray(_everywhere(_stacked(np.array(mine))))
    if sources.sum() != 1:
        raise CorejaxValueError("broadcast_one_to_all: exactly one process must be the source", where=here(),
                                got=f"is_source in {sources.sum()} of {len(sources)}", wanted="is_source=True in one",
                                todo="pass is_source=cj.process_index() == 0")
    return treedef.unflatten([_of_source(leaf, int(sources.argmax())) for leaf in leaves])


def _of_source(leaf: Any, source: int) -> Any:
    return np.asarray(_everywhere(_stacked(np.asarray(leaf))))[source]


@public
def sync_global_devices(name: str) -> None:
    """Wait until all processes have called this with the same name. What devices do may not have ended.

    >>> import corejax as cj
    >>> cj.multihost_utils.sync_global_devices("all data is loaded")
    """
    if cj.process_count() > 1:
        peers.check_equal(f"the names that sync_global_devices is called with (here {name!r})", str(name),
                          range(cj.process_count()), always=True)


@public
def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Raise in all processes unless all have the same values.

    >>> import numpy as np, corejax as cj
    >>> cj.multihost_utils.assert_equal({"seed": np.int32(7)}, "seeds differ")
    """
    leaves, treedef = flatten(in_tree)
    hosts = [np.asarray(leaf) for leaf in leaves]
    text = f"{treedef} of " + ", ".join([f"{ShapedArray(x.shape, x.dtype)} {_digest(x)}" for x in hosts])
    if cj.process_count() > 1:
        peers.check_equal(fail_message or "assert_equal: the values", text, range(cj.process_count()), always=True)


def _digest(host: np.ndarray) -> str:
    from hashlib import sha256
    return repr(host.item()) if host.size == 1 else f"sha256 {sha256(host.tobytes()).hexdigest()[:16]}"


@public
def host_local_array_to_global_array(local_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """Arrays over all processes of what each of them has, divided by these specs.

    >>> import numpy as np, corejax as cj
    >>> mesh = cj.make_mesh((1,), ("x",))
    >>> cj.multihost_utils.host_local_array_to_global_array(np.ones(2), mesh, cj.P("x"))
    Array([1., 1.], dtype=float64)

    `pspecs` may be a pytree of specs, a prefix of `local_inputs`.
    """
    def whole(x: Any, spec: Any) -> Any:
        return cj.make_array_from_process_local_data(NamedSharding(global_mesh, spec), x)
    return _with_specs(whole, local_inputs, pspecs, "host_local_array_to_global_array")


@public
def global_array_to_host_local_array(global_inputs: Any, global_mesh: Mesh, pspecs: Any) -> Any:
    """The opposite: of each array, what the devices of this process hold, as an array over these.

    >>> import numpy as np, corejax as cj
    >>> mesh = cj.make_mesh((1,), ("x",))
    >>> cj.multihost_utils.global_array_to_host_local_array(np.ones(2), mesh, cj.P("x"))
    Array([1., 1.], dtype=float64)
    """
    def part(x: Any, spec: Any) -> Any:
        sharding = NamedSharding(global_mesh, spec)
        if not isinstance(x, cj.Array) or x.is_fully_addressable and not sharding.is_fully_addressable:
            x = cj.device_put(x, sharding)
        return _own_part(x if x.sharding == sharding else cj.device_put(x, sharding), spec)
    return _with_specs(part, global_inputs, pspecs, "global_array_to_host_local_array")


def _own_part(x: cj.Array, spec: Any) -> cj.Array:
    """What this process has of an array, over its own part of the mesh."""
    sharding: Any = x.sharding
    mesh = sharding.mesh
    own = _block(mesh)
    shards = x.addressable_shards
    pieces: list[Any] = [shard.data for shard in shards]
    shape = list(x.shape)
    for i, size in enumerate(x.shape):
        shape[i] = sum(_length(each, size) for each in {(s.index[i].start, s.index[i].stop) for s in shards})
    return cj.make_array_from_single_device_arrays(tuple(shape), NamedSharding(own, spec), pieces)


def _length(bounds: tuple[int | None, int | None], size: int) -> int:
    start, stop = bounds
    return (size if stop is None else stop) - (start or 0)


def _block(mesh: Mesh) -> Mesh:
    """The part of a mesh that belongs to this process."""
    mine = np.vectorize(lambda device: device in set(cj.local_devices()), otypes=[bool])(mesh.devices)
    places = [sorted(set(found.tolist())) for found in np.nonzero(mine)]
    block = mesh.devices[np.ix_(*places)]
    if block.size != mine.sum():
        raise CorejaxValueError("this process's devices aren't a block of the mesh", got=str(mesh), where=here(),
                                wanted="a mesh in which each process has a block of devices",
                                todo="take the parts from x.addressable_shards")
    return Mesh(block, mesh.axis_names)


def _with_specs(function: Any, values: Any, specs: Any, what: str) -> Any:
    if isinstance(specs, P):
        return tree.map(lambda x: function(x, specs), values)
    try:
        return tree.map(lambda spec, part: tree.map(lambda x: function(x, spec), part), specs, values,
                        is_leaf=lambda x: isinstance(x, P))
    except ValueError as error:
        raise CorejaxTypeError(f"{what}: pspecs don't fit the values", got=repr(specs)[:80], where=here(),
                               wanted="a PartitionSpec, or a pytree of them that is a prefix of the values",
                               todo="pass cj.P(...) for all") from error
