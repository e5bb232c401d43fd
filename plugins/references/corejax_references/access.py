"""Reading and writing parts of what references hold: `get`, `set`, `swap`, `addupdate`."""

from __future__ import annotations

from typing import Any

from corejax.core import Array, here
from corejax.errors import CorejaxTypeError, kind_of
from corejax.plugin import public
from corejax_references.references import Part, Ref

__all__ = ["addupdate", "get", "set", "swap"]


@public
def get(ref: Any, idx: Any = None) -> Array:
    """What a reference holds, or a part of it: `ref[idx]`.

    >>> from corejax.ref import new_ref
    >>> get(new_ref(np.arange(5.0)), slice(1, 3))
    Array([1., 2.], dtype=float64)
    """
    _check("get", ref)
    return ref[_index(idx)]  # type: ignore[no-any-return]


@public
def set(ref: Any, idx: Any, value: Any) -> None:
    """Write a part of what a reference holds: `ref[idx] = value`.

    >>> from corejax.ref import new_ref
    >>> ref = new_ref(np.zeros(3))
    >>> set(ref, 1, 10.0)
    >>> ref
    Ref([ 0., 10.,  0.], dtype=float64)
    """
    _check("set", ref)
    ref[_index(idx)] = value


@public
def swap(ref: Any, idx: Any, value: Any) -> Array:
    """Write a part of what a reference holds, and return what was there before.

    >>> from corejax.ref import new_ref
    >>> ref = new_ref(np.arange(3.0))
    >>> swap(ref, 2, 10.0), ref
    (Array(2., dtype=float64), Ref([ 0.,  1., 10.], dtype=float64))
    """
    _check("swap", ref)
    before = ref[_index(idx)]
    ref[_index(idx)] = value
    return before  # type: ignore[no-any-return]


@public
def addupdate(ref: Any, idx: Any, x: Any) -> None:
    """Add to a part of what a reference holds; to a place that is named twice, twice.

    >>> from corejax.ref import new_ref
    >>> ref = new_ref(np.zeros(3))
    >>> addupdate(ref, np.array([0, 0, 2]), 1.0)
    >>> ref
    Ref([2., 0., 1.], dtype=float64)
    """
    _check("addupdate", ref)
    ref.addupdate(x, _index(idx))


def _index(idx: Any) -> Any:
    return ... if idx is None else idx


def _check(what: str, ref: Any) -> None:
    if not isinstance(ref, (Ref, Part)):
        raise CorejaxTypeError(f"{what} needs a reference", got=f"{kind_of(ref)}: {ref!r:.80}", where=here(),
                               wanted="what cj.new_ref returned", todo="make one: ref = cj.new_ref(x)")
