"""What every transformation does with arguments and results: flatten, check, and name the faulty leaf."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

import numpy as np

from corejax.arrays.array import Array, as_array
from corejax.arrays.storage import host_in_order, is_on_device
from corejax.base.avals import ShapedArray, Zero, aval_of
from corejax.base.dtypes import PYTHON_SCALARS, float0, kind
from corejax.base.errors import CorejaxIndexError, CorejaxTypeError, CorejaxValueError
from corejax.base.holders import is_holder
from corejax.base.source import here
from corejax.base.standins import StandIn
from corejax.base.tracebacks import as_entry, guarded, is_entry
from corejax.installed.roles import roles
from corejax.interpreters.forward import JVPTracer
from corejax.interpreters.leaves import Namer, is_value, not_an_array
from corejax.kernel.factors import instantiate


def wraps(fun: Callable[..., Any], wrapper: Callable[..., Any]) -> Callable[..., Any]:
    """`wrapper` as an entry, with the name and documentation of `fun`.

    Attributes of `fun` aren't copied: they belong to another function.
    """
    return as_entry(update_wrapper(wrapper if is_entry(wrapper) else guarded(wrapper), fun, updated=()))


def check_argnums(argnums: Any, what: str) -> int | tuple[int, ...]:
    """Positions of arguments, as an int or a tuple of ints."""
    try:
        if not isinstance(argnums, (bool, tuple, list)):
            return operator.index(argnums)
        if not isinstance(argnums, bool):
            return tuple([operator.index(i) for i in argnums])
    except TypeError:
        pass
    raise CorejaxTypeError(f"{what}: argnums must be positions of arguments", got=repr(argnums),
                           wanted="an int or a sequence of ints", where=here(),
                           todo="count the positional arguments from 0; arguments given by keyword have no number")


def positions(argnums: tuple[int, ...], n_args: int, what: str) -> tuple[int, ...]:
    """Positions within the given arguments; negative ones are counted from the end."""
    found = tuple([i + n_args if i < 0 else i for i in argnums])
    for i, given in zip(found, argnums, strict=True):
        if not 0 <= i < n_args:
            raise CorejaxIndexError(f"{what}: there is no argument number {given}",
                                    got=f"{n_args} positional arguments", where=here(),
                                    wanted=f"argnums from 0 to {n_args - 1}",
                                    todo="pass that argument by position, or change argnums")
    if len(set(found)) != len(found):
        raise CorejaxValueError(f"{what}: argnums names the same argument twice", got=argnums, where=here(),
                                wanted="distinct arguments",
                                todo="name each one once; negative ones count from the end")
    return found


# Tangents and cotangents

def tangents_like(leaves: Sequence[object], avals: Sequence[ShapedArray], what: str, name: Namer, of: str,
                  dropped: bool = False) -> list[Any]:
    """Tangents or cotangents from the user, as values of these types; `Zero` for float0.

    With `dropped`, whatever array is given for float0 is taken: the cotangent of an integer has no effect.
    """
    return [x if type(x) is Array and x.aval is aval and aval.dtype is not float0 else
            _tangent_like(i, x, aval, what, name, of, dropped)
            for i, (x, aval) in enumerate(zip(leaves, avals, strict=True))]


def _tangent_like(i: int, x: object, aval: ShapedArray, what: str, name: Namer, of: str, dropped: bool) -> Any:
    scalar = PYTHON_SCALARS.get(type(x))
    if scalar is not None and not aval.shape and scalar == kind(aval.dtype):
        return Array.from_host(np.array(x, aval.dtype), aval.invariant)
    try:
        got = aval_of(x)
    except StandIn:
        raise
    except CorejaxTypeError as error:
        raise not_an_array(x, what, name(i), error) from error
    if dropped and aval.dtype is float0 and got.shape == aval.shape:
        return Zero(aval)
    if got is aval or got is aval.invariant:
        return Zero(aval) if aval.dtype is float0 else x if is_value(x) or is_holder(x) else as_array(x, copy=True)
    if not got.matches(aval) or aval.dtype is float0:
        raise CorejaxTypeError(f"{what}: {name(i)} doesn't fit {of}", got=str(got), wanted=str(aval), where=here(),
                               todo=_todo(got, aval))
    return x if is_holder(x) else roles.convert(x, aval.dtype)


def _todo(got: ShapedArray, aval: ShapedArray) -> str:
    if got.shape != aval.shape:
        return "give it the same shape as the value that it is for"
    if aval.dtype is float0:
        return "the only tangent of integers is np.zeros(shape, cj.float0)"
    return f"convert it: x.astype({aval.dtype.name!r})"


def finish_cotangent(ct: object, aval: ShapedArray) -> Any:
    """The cotangent (or tangent) of a value of type `aval` in the form that the user gets.

    It is an array: zeros if nothing flows, float0 for an integer; weak if `aval` is, though tangents never are inside.
    """
    if ct is None or (type(ct) is Zero and ct.aval.dtype is float0):
        return Array.from_host(np.zeros(aval.shape, float0), aval.tangent.invariant)
    return as_weak_as(instantiate(ct), aval)


def as_weak_as(x: object, aval: ShapedArray) -> Any:
    """A value of type `aval.tangent` as one of type `aval`, without a copy."""
    if not aval.weak_type:
        return x
    if type(x) is JVPTracer:  # tangents are never weak, so its own also fits the weak primal
        return JVPTracer(x._trace, as_weak_as(x.primal, aval), x.tangent)
    if type(x) is not Array:
        return roles.convert(x, aval.dtype, weak_type=True)
    aval = aval.invariant
    return Array.from_device(x._buffer, aval) if is_on_device(x) else Array.from_host(host_in_order(x), aval)
