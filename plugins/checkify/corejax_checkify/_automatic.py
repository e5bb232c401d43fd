"""The checks that are added to operations: for NaN, for indices out of bounds, and for division by zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import JaxprEqn, ShapedArray, aval_of, describe, dtypes
from corejax_checkify._following import DEFAULT, RULES, Rule, Walk
from corejax_checkify._sites import Site, Sites
from corejax_checkify.failures import DivisionByZeroError, Errors, NaNError, OOBError

__all__: list[str] = []

_LAX = "corejax-lax-basic"

#: Operations of which NaN isn't checked, as in JAX: they pass on what others made, or report it in ways of their own.
LEFT_OUT: dict[str, str] = {
    _LAX: "abs bitcast_convert_type ceil clamp clz complex conj convert_element_type copy exp2 floor imag iota max min "
          "neg nextafter ragged_dot_general real reduce_precision rng_bit_generator round sign square stop_gradient "
          "scatter_sub with_accuracy",
    "corejax-reductions": "reduce_max reduce_min",
    "corejax-control-flow": "checkpoint_name custom_pullback exported_call optimization_barrier stage_value to_memory",
    "corejax-special": "polygamma random_gamma_grad zeta",
    "corejax-sorting": "approx_top_k sort top_k",
    "corejax-collectives": "all_gather all_gather_invariant all_to_all pbroadcast pcast pmax pmin ppermute precv psend "
                           "ragged_all_to_all reduce_scatter sharding_constraint",
    "corejax-windows": "reduce_window_max reduce_window_min select_and_gather_add select_and_scatter "
                       "select_and_scatter_add",
    "corejax-linear-algebra": "cholesky cholesky_update eig eigh geqp3 geqrf hessenberg householder_product lu ormqr "
                              "qr schur svd symmetric_product triangular_solve tridiagonal tridiagonal_solve",
}
_LEFT_OUT = frozenset([(pack, name) for pack, names in LEFT_OUT.items() for name in names.split()])


# NaN

def _is_float(aval: ShapedArray) -> bool:
    return dtypes.kind(aval.dtype) in "fc"


def of_nan(eqn: JaxprEqn, errors: Errors) -> Sites:
    """The check for NaN among the results, if there can be any."""
    primitive = eqn.primitive
    if NaNError not in errors or not any([_is_float(v.aval) for v in eqn.outvars]):
        return ()
    if (primitive.pack, primitive.name) in _LEFT_OUT or (primitive.structural and primitive.name != "pad"):
        return ()
    return (Site(NaNError, primitive.name, describe(eqn.source)),)


def bound(eqn: JaxprEqn, args: Sequence[Any]) -> list[Any]:
    """The results of an equation, as they are."""
    out = eqn.primitive.bind(*args, **eqn.params)
    return list(out) if eqn.primitive.multiple_results else [out]


def check_nan(walk: Walk, eqn: JaxprEqn, outs: Sequence[Any]) -> None:
    """Check results for NaN."""
    for site in of_nan(eqn, walk.plan.errors):
        failed = [_any(lax.ne(x, x)) for x in outs if _is_float(aval_of(x))]
        walk.fail(site, _either(failed))


def _computed(walk: Walk, eqn: JaxprEqn, args: Sequence[Any]) -> Any:
    outs = bound(eqn, args)
    check_nan(walk, eqn, outs)
    return outs if eqn.primitive.multiple_results else outs[0]


def _any(found: Any) -> Any:
    rank = len(aval_of(found).shape)
    return lax.reduce_or(found, tuple(range(rank))) if rank else found


def _either(flags: Sequence[Any]) -> Any:
    first, *rest = flags
    for flag in rest:
        first = lax.bitwise_or(first, flag)
    return first


DEFAULT.append(Rule(of_nan, _computed))


# Division by zero

def _of_division(eqn: JaxprEqn, errors: Errors) -> Sites:
    own = (Site(DivisionByZeroError, eqn.primitive.name, describe(eqn.source)),)
    return (own if DivisionByZeroError in errors else ()) + of_nan(eqn, errors)


def _divided(walk: Walk, eqn: JaxprEqn, args: Sequence[Any]) -> Any:
    if DivisionByZeroError in walk.plan.errors:
        site = _of_division(eqn, walk.plan.errors)[0]
        divisor = args[1]
        walk.fail(site, _any(lax.eq(divisor, np.zeros((), aval_of(divisor).dtype))))
    return _computed(walk, eqn, args)


RULES[_LAX, "div"] = Rule(_of_division, _divided)


# Indices out of bounds

def _bounds(eqn: JaxprEqn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The axes of the operand along which indices say where, and how far each may go."""
    name, shape, params = eqn.primitive.name, eqn.invars[0].aval.shape, eqn.params
    if name in ("dynamic_slice", "dynamic_update_slice"):
        axes, sizes = tuple(range(len(shape))), params.get("slice_sizes", eqn.invars[1].aval.shape if shape else ())
    elif name == "gather":
        axes, sizes = params["dimension_numbers"][2], params["slice_sizes"]
    else:
        window, inserted, axes, batch, _ = params["dimension_numbers"]
        updates = iter([eqn.invars[2].aval.shape[i] for i in window])
        sizes = [1 if i in inserted or i in batch else next(updates) for i in range(len(shape))]
    return tuple(axes), tuple([shape[i] - sizes[i] for i in axes])


def _of_indexing(eqn: JaxprEqn, errors: Errors) -> Sites:
    found: Sites = ()
    axes, _ = _bounds(eqn)
    if OOBError in errors and axes:
        index = _indices_of(eqn, eqn.invars)[0].aval
        reported = (ShapedArray((), index.dtype), ShapedArray((), np.dtype(np.int32)))
        found = (Site(OOBError, eqn.primitive.name, describe(eqn.source), reported, None, axes,
                      tuple(eqn.invars[0].aval.shape)),)
    if eqn.primitive.name.startswith("scatter"):
        found += _of_scattered(eqn, errors)
    return found


def _of_scattered(eqn: JaxprEqn, errors: Errors) -> Sites:
    """Scattering moves elements, but JAX looks for NaN in what it makes."""
    if NaNError not in errors or not _is_float(eqn.outvars[0].aval) or eqn.primitive.name == "scatter_sub":
        return ()
    return (Site(NaNError, eqn.primitive.name, describe(eqn.source)),)


def _indices_of(eqn: JaxprEqn, items: Sequence[Any]) -> list[Any]:
    """Of the operands, those that are indices."""
    name = eqn.primitive.name
    return list(items[1:] if name == "dynamic_slice" else items[2:] if name == "dynamic_update_slice" else items[1:2])


def _indexed(walk: Walk, eqn: JaxprEqn, args: Sequence[Any]) -> Any:
    out = eqn.primitive.bind(*args, **eqn.params)
    for site in _of_indexing(eqn, walk.plan.errors):
        if site.kind is NaNError:
            walk.fail(site, _any(lax.ne(out, out)))
            continue
        _, most = _bounds(eqn)
        found = _indices_of(eqn, args)
        dtype = aval_of(found[0]).dtype
        if eqn.primitive.name.startswith("dynamic"):
            indices = lax.concatenate([lax.reshape(lax.convert_element_type(x, dtype), (1,)) for x in found], 0)
        else:
            (indices,) = found
        outside = _outside(indices, most)
        count = int(np.prod(aval_of(indices).shape))
        if not count:
            continue
        flat, values = lax.reshape(outside, (count,)), lax.reshape(indices, (count,))
        first = lax.argmax(flat, 0, np.int32)
        which = lax.rem(first, np.int32(len(most)))
        walk.fail(site, _any(flat), [lax.dynamic_index_in_dim(values, first, 0, keepdims=False), which])
    return out


def _outside(indices: Any, most: Sequence[int]) -> Any:
    """Which indices, along the last axis, are below 0 or above these bounds."""
    aval = aval_of(indices)
    kind = dtypes.kind(aval.dtype)
    largest = int(np.iinfo(aval.dtype).max)
    bounds = lax.broadcast_in_dim(np.array([min(n, largest) for n in most], aval.dtype), aval.shape, (aval.ndim - 1,))
    above = lax.gt(indices, bounds)
    return above if kind == "u" else lax.bitwise_or(above, lax.lt(indices, lax.full_like(indices, 0)))


for _name in ("dynamic_slice", "dynamic_update_slice", "gather", "scatter", "scatter_add", "scatter_max", "scatter_min",
              "scatter_mul", "scatter_sub"):
    RULES[_LAX, _name] = Rule(_of_indexing, _indexed)
