"""Shorter ways to methods of ufuncs, by functions that reduce or accumulate along axes and by `x.at[...]`."""

# mypy: no-warn-return-any

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corejax import lax
from corejax.core import dtypes
from corejax.plugin import operators, refused
from corejax_lax_basic import promoted
from corejax_numpy._arrays import array
from corejax_numpy._picking import operand, pick
from corejax_numpy._real_functions import log_of_sum
from corejax_numpy._values import constant, spread

Function = Callable[..., Any]


def at(name: str) -> Function:
    """`ufunc.at` by a method of `x.at[indices]`."""
    return lambda a, indices, b: getattr(operators.at(a)[indices], name)(b)


def _by_method(name: str) -> Function:
    """`ufunc.reduce` by an array's method."""
    return lambda a, axes, dtype, keepdims, initial, where: getattr(operators, name)(
        a, axes, dtype, None, keepdims, initial, where)


def _extreme(name: str) -> Function:
    def reduce(a: Any, axes: Any, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Any:
        a = a if dtype is None else operators.astype(a, dtype)
        return getattr(operators, name)(a, axes, None, keepdims, initial, where)
    return reduce


def _truth(name: str, combine: Function) -> Function:
    def reduce(a: Any, axes: Any, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Any:
        found = getattr(operators, name)(a, axes, None, keepdims, where=where)
        found = found if initial is None else combine(found, operators.ne(array(initial), 0))
        return found if dtype is None else operators.astype(found, dtype)
    return reduce


def bitwise(name: str) -> Function:
    """`ufunc.reduce` of bits."""
    def reduce(a: Any, axes: Any, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Any:
        a = a if dtype is None else operators.astype(a, dtype)
        if dtypes.kind(a.aval.dtype) not in "biu":
            raise refused(f"bitwise_{name}.reduce", "only integers and booleans have bits", got=str(a.aval),
                          wanted="an integer or boolean dtype", todo="convert with x.astype(int)")
        neutral = a.aval.dtype.type(0) if name != "and" else ~a.aval.dtype.type(0)
        if where is not None:
            a = pick(operators.ne(array(where), 0), a, neutral)
        found = getattr(lax, f"reduce_{name}")(a, axes)
        if initial is not None:
            found = getattr(lax, f"bitwise_{name}")(found, constant(f"bitwise_{name}.reduce", initial, a.aval.dtype))
        return _kept(found, a.aval.shape, axes) if keepdims else found
    return reduce


def _kept(found: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    return operators.reshape(found, tuple([1 if d in axes else n for d, n in enumerate(shape)]))


def _log_of_sums(a: Any, axes: Any, dtype: Any, keepdims: bool, initial: Any, where: Any) -> Any:
    a = array(promoted((operand(a if dtype is None else operators.astype(a, dtype)),), "f")[0])
    a = a if where is None else pick(operators.ne(array(where), 0), a, a.aval.dtype.type(-float("inf")))
    size = lax.real(a) if dtypes.is_complex(a.aval.dtype) else a
    top = lax.stop_gradient(operators.max(size, axes, None, True, size.aval.dtype.type(-float("inf"))))
    top = pick(lax.is_finite(top), top, 0)
    total = lax.log(operators.sum(lax.exp(a - top), axes, None, None, keepdims))
    total = total + (top if keepdims else operators.reshape(top, total.aval.shape))
    if initial is None:
        return total
    x, y = map(array, promoted((total, operand(initial)), "f"))
    return log_of_sum(x, spread("logaddexp.reduce: initial", y, x.shape))


def _running(name: str) -> Function:
    return lambda a, axis, dtype: getattr(operators, name)(a, axis, dtype)


def _running_by(name: str, at_least: str = "b") -> Function:
    def accumulate(a: Any, axis: int, dtype: Any) -> Any:
        a = a if dtype is None else operators.astype(a, dtype)
        a = promoted((a,), at_least)[0] if a.aval.dtype != dtypes.bool_ or at_least != "b" else a
        if a.aval.dtype != dtypes.bool_:
            return getattr(lax, name)(a, axis)
        return operators.astype(getattr(lax, name)(operators.astype(a, "int8"), axis), dtypes.bool_)
    return accumulate


SUMS: dict[str, Any] = {"reduce": _by_method("sum"), "accumulate": _running("cumsum"), "at": at("add")}
PRODUCTS: dict[str, Any] = {
    "reduce": _by_method("prod"), "accumulate": _running("cumprod"), "at": at("multiply")}
MAXIMA: dict[str, Any] = {"reduce": _extreme("max"), "accumulate": _running_by("cummax"), "at": at("max")}
MINIMA: dict[str, Any] = {"reduce": _extreme("min"), "accumulate": _running_by("cummin"), "at": at("min")}
ALL: dict[str, Any] = {"reduce": _truth("all", lax.bitwise_and)}
ANY: dict[str, Any] = {"reduce": _truth("any", lax.bitwise_or)}
SUMS_OF_EXPONENTIALS: dict[str, Any] = {
    "reduce": _log_of_sums, "accumulate": _running_by("cumlogsumexp", "f")}
