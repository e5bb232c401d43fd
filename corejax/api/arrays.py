"""Functions on arrays: `device_put`, `device_get`, `from_dlpack`, ...; and `clear_caches`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeVar, overload

from corejax.arrays import array as arrays
from corejax.arrays.array import Array
from corejax.arrays.shardings import NamedSharding
from corejax.base import _jaxlib, caches, trees
from corejax.base.errors import CorejaxTypeError
from corejax.base.prefixes import broadcast_prefix
from corejax.base.standins import StandIn
from corejax.base.tracebacks import public
from corejax.installed.roles import roles
from corejax.interpreters.leaves import is_single_leaf, namer, not_an_array
from corejax.kernel.trace import Tracer

if TYPE_CHECKING:
    from corejax.arrays.datamodel import ArrayLike

Tree = TypeVar("Tree")


@overload
def device_put(x: ArrayLike, device: object = ...) -> Array: ...
@overload
def device_put(x: Tree, device: object = ...) -> Tree: ...
@public
def device_put(x: object, device: object = None) -> Any:
    """Put the arrays of a pytree on a device: the default one, or one of `devices()`; or divide them by a sharding.

    `device` may be a pytree of these, a prefix of `x`. Within a program, a sharding says how a value is divided there.

    >>> import corejax as cj
    >>> cj.device_put([1.0, 2])
    [Array(1., dtype=float64, weak_type=True), Array(2, dtype=int64, weak_type=True)]
    """
    if isinstance(device, (tuple, list, dict)):
        leaves, treedef = trees.flatten(x)
        each = broadcast_prefix(device, x, _is_none, names=("device", "x"))
        return treedef.unflatten([device_put(leaf, one) for leaf, one in zip(leaves, each, strict=True)])

    def put(leaf: object) -> Any:
        if isinstance(leaf, Tracer):
            if not isinstance(device, NamedSharding):
                return leaf
            device.shard_shape(leaf.aval.shape)  # raises if it doesn't fit
            return roles.constrain(leaf, device)
        return arrays.device_put(leaf, device)
    return _on_leaves(put, x, "device_put")


def _is_none(x: object) -> bool:
    return x is None


@public
def device_get(x: object) -> Any:
    """Get the arrays of a pytree as read-only ndarrays in host memory; of elements such as keys, as arrays there.

    >>> import corejax as cj
    >>> cj.device_get({"x": cj.device_put(1.0)})
    {'x': array(1.)}
    """
    def get(leaf: object) -> Any:
        return arrays.device_get(leaf.concrete("cj.device_get(x)") if isinstance(leaf, Tracer) else leaf)
    return _on_leaves(get, x, "device_get")


def _on_leaves(function: Any, x: Any, what: str) -> Any:
    if is_single_leaf(x):
        return function(x)
    leaves, treedef = trees.flatten(x)
    done = []
    for i, leaf in enumerate(leaves):
        try:
            done.append(function(leaf))
        except StandIn:
            raise
        except CorejaxTypeError as error:
            if is_single_leaf(leaf):
                raise
            raise not_an_array(leaf, what, namer("x", x)(i), error) from error
    return treedef.unflatten(done)


@public
def from_dlpack(x: object) -> Array:
    """Convert another library's array, sharing its memory: treat that array as read-only from now on.

    It must have a method `__dlpack__`, and be in host memory.

    >>> import corejax as cj, numpy as np
    >>> cj.from_dlpack(np.array([1.0, 2.0]))
    Array([1., 2.], dtype=float64)
    """
    return arrays.from_dlpack(x)


@public
def block_until_ready(x: Tree) -> Tree:
    """Wait until all arrays of a pytree are computed; returns the pytree."""
    for leaf in trees.flatten(x)[0]:
        if type(leaf) is Array:
            leaf.block_until_ready()
    return x


@public
def clear_caches() -> None:
    """Empty all caches: functions are traced and compiled again when they are next called."""
    caches.clear_all()
    if "jaxlib._jax" in sys.modules:  # the runtime frees what programs held of Python, such as callbacks, when asked to
        _jaxlib.collect_garbage()
