"""Users' functions, mapped over the leading axes of arrays that broadcast against each other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from corejax.core import aval_of, call_user, to_dim, values, vmap_flat
from corejax.plugin import calls_users, refused
from corejax_lax_basic import broadcast_shapes, squeeze
from corejax_numpy._arrays import array

__all__ = ["following", "over_axes", "over_elements"]

Function = Callable[..., Any]


@calls_users
def following(function: Function, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Function:
    """The user's function of arrays that these arguments follow; errors show the user's."""
    def of_arrays(*xs: Any) -> Any:
        return function(*xs, *args, **kwargs)
    of_arrays.__wrapped__ = function  # type: ignore[attr-defined]
    return of_arrays


def over_elements(name: str, function: Function, args: Sequence[Any], nout: int) -> Any:
    """The results of a function of scalars for all elements of arrays; a tuple if there are several."""
    arrays = [array(x) for x in args]
    shape = broadcast_shapes(*[aval_of(x).shape for x in arrays])
    outs = over_axes(lambda *xs: results(name, call_user(function, xs, name), nout), arrays,
                     [aval_of(x).ndim for x in arrays], shape)
    for out in outs:
        if aval_of(out).ndim != len(shape):
            raise refused(name, "the function must return scalars", got=f"{aval_of(out)} for elements of {shape}",
                          wanted="a scalar", todo="write it with jnp.vectorize and a signature")
    return outs[0] if nout == 1 else tuple(outs)


def results(name: str, found: Any, nout: int) -> list[Any]:
    """What a user's function returned, as arrays: `nout` of them."""
    parts = [found] if nout == 1 else list(found) if isinstance(found, (tuple, list)) else None
    if parts is None or len(parts) != nout:
        raise refused(name, f"the function must return {nout} results",
                      got=f"{type(found).__name__}" + ("" if parts is None else f" of {len(parts)}"),
                      wanted=f"a tuple of {nout} arrays", todo="return as many as it was declared to have")
    return values(parts, name, lambda i: "the result" if nout == 1 else f"result {i}")


def over_axes(function: Callable[..., Sequence[Any]], arrays: Sequence[Any], ranks: Sequence[int],
              shape: Sequence[int]) -> list[Any]:
    """The arrays that `function` returns, mapped over the first `ranks[i]` axes of each array.

    These broadcast to `shape`, which are the first axes of the results.
    """
    if not shape:
        return list(function(*arrays))
    size, inner = shape[0], shape[1:]
    xs, dims = [], []
    for x, rank in zip(arrays, ranks, strict=True):
        has_axis = rank == len(shape)
        if has_axis and aval_of(x).shape[0] == 1 != size:
            x, has_axis = squeeze(x, (0,)), False
        xs.append(x)
        dims.append(0 if has_axis else None)
    within = [min(rank, len(inner)) for rank in ranks]
    outs, found = vmap_flat(lambda *ys: over_axes(function, ys, within, inner), size, None, xs, dims)
    return [to_dim(out, dim, 0, size) for out, dim in zip(outs, found, strict=True)]
