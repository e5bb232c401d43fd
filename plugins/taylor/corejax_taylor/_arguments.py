"""Checks of what users pass to `jet`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.core import (
    Array,
    ShapedArray,
    Tracer,
    as_value,
    dtypes,
    flatten,
    here,
    is_concrete,
    namer,
    paths_of,
    values,
)
from corejax.errors import CorejaxTypeError, CorejaxValueError, kind_of
from corejax.plugin import Zero, roles, structures

__all__: list[str] = []


def checked_primals(primals: Any) -> tuple[Any, list[Any]]:
    """The structure of the arguments, and their leaves as arrays and tracers."""
    if not isinstance(primals, (tuple, list)):
        raise CorejaxTypeError("jet: primals must be a sequence with one entry for each argument",
                               got=kind_of(primals), wanted="a tuple or a list", where=here(),
                               todo="write (x,) for one argument")
    primals = tuple(primals)
    leaves, tree = flatten(primals, None, "primals")
    return tree, values(leaves, "jet", namer("primals", primals))


def checked_series(primals: Sequence[Any], series: Any, xs: Sequence[Any]) -> tuple[int, list[list[Any]]]:
    """The order, and for each leaf of the arguments its terms."""
    if not isinstance(series, (tuple, list)) or len(series) != len(primals):
        raise CorejaxTypeError(
            "jet: series must be a sequence with a list of terms for each argument", where=here(),
            got=f"{len(series)} lists" if isinstance(series, (tuple, list)) else kind_of(series),
            wanted=f"a tuple or a list of {len(primals)}, as many as there are primals",
            todo="write ([x1, x2],) for one argument whose first two derivatives are x1 and x2")
    lists = [_terms(terms, i) for i, terms in enumerate(series)]
    orders = [len(terms) for terms in lists]
    if len({*orders}) > 1:
        raise CorejaxValueError(
            "jet: arguments have series of different lengths", got=f"lengths {', '.join(map(str, orders))}",
            wanted="as many terms for each argument", where=here(),
            todo="fill the shorter ones up with zeros, which are the higher derivatives of a shorter polynomial")
    order = orders[0] if orders else 0
    rest, found = iter(xs), []
    for i, (x, terms) in enumerate(zip(primals, lists, strict=True)):
        leaves, _ = flatten(x)
        mine = [next(rest) for _ in leaves]
        by_term = [_leaves(term, x, mine, f"series[{i}][{k}]", f"primals[{i}]") for k, term in enumerate(terms)]
        found += [list(of_one) for of_one in zip(*by_term, strict=True)] if by_term else [[] for _ in mine]
    return order, found


def _terms(terms: Any, i: int) -> list[Any]:
    """The terms of one argument: of an array, the slices along its first axis."""
    if isinstance(terms, (tuple, list)):
        return list(terms)
    if isinstance(terms, (Array, Tracer, np.ndarray)) and np.ndim(terms):
        return [*as_value(terms)]
    raise CorejaxTypeError(f"jet: series[{i}] must be a list of terms", got=kind_of(terms), where=here(),
                           wanted=f"a tuple or a list: the derivatives of primals[{i}], of which each is like it",
                           todo="write [x1] for the first derivative alone, a list of trees for a tree")


def _leaves(term: Any, x: Any, xs: Sequence[Any], name: str, whose: str) -> list[Any]:
    leaves, tree = flatten(term, None, name)
    other = structures.tree_difference(tree, flatten(x)[1])
    if other is not None:
        raise CorejaxTypeError(f"jet: {name} isn't structured like {whose}{', at ' * bool(other.path)}{other.path}",
                               got=other.got, wanted=other.wanted, where=here(),
                               todo="give each term the containers of its argument")
    found = values(leaves, "jet", namer(name, term))
    return [t if t.aval is y.aval.tangent and t.aval.dtype != dtypes.float0 else
            _fitting(t, y.aval, name + paths_of(term)[i], whose + paths_of(term)[i])
            for i, (t, y) in enumerate(zip(found, xs, strict=True))]


def _fitting(value: Any, aval: ShapedArray, name: str, whose: str) -> Any:
    """One leaf of a term, of the type of its primal's tangents."""
    wanted, got = aval.tangent, value.aval
    if wanted.dtype == dtypes.float0:
        if got.dtype == dtypes.float0 and got.shape == wanted.shape:
            return Zero(wanted)
        if got.shape == wanted.shape and is_concrete(value) and not np.any(np.asarray(value)):
            return Zero(wanted)  # as zeros, which other libraries have there
        raise CorejaxTypeError(f"jet: {whose} is an integer or boolean, and so doesn't vary along a curve",
                               got=f"{name}, which is {got}", wanted="zeros of the dtype float0", where=here(),
                               todo="make it a float: 1.0, or x.astype(float); or close over it")
    number = got.weak_type and dtypes.kind(got.dtype) in "biuf" + "c" * dtypes.is_complex(wanted.dtype)
    if not got.shape and wanted.shape and (number or got.dtype == wanted.dtype):
        value = roles.broadcast(value, wanted.shape, ())
        got = value.aval
    if got.shape != wanted.shape or not (number or got.dtype == wanted.dtype):
        raise CorejaxTypeError(f"jet: {name} doesn't fit {whose}", got=str(got), wanted=str(wanted), where=here(),
                               todo="give each term the shape and dtype of its argument"
                                    if got.shape != wanted.shape else "convert it with astype")
    return value if got is wanted else roles.convert(value, wanted.dtype)
