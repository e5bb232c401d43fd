"""What every transformation does with arguments and results: flatten, check, and name the leaf that is wrong."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any, TypeAlias

import numpy as np

from corejax import trees
from corejax.avals import ShapedArray, Zero, aval_of
from corejax.datamodel import DataModel
from corejax.dtypes import PYTHON_SCALARS, float0, kind
from corejax.errors import CorejaxError, CorejaxIndexError, CorejaxTypeError, CorejaxValueError
from corejax.interpreters.forward import instantiate
from corejax.interpreters.trace import Tracer
from corejax.plugin.roles import roles
from corejax.source import here
from corejax.xla.array import Array, as_array


def check_callable(fun: Any, what: str) -> None:
    """Refuse what can't be transformed."""
    if not callable(fun):
        raise CorejaxTypeError(f"{what} transforms functions", got=f"a {type(fun).__name__}: {fun!r:.80}",
                               wanted="a callable", where=here(),
                               todo=f"pass the function itself: {what}(f)(x), not {what}(f(x))")


def wraps(fun: Callable[..., Any], wrapper: Callable[..., Any]) -> Any:
    """`wrapper` with the name and documentation of `fun`, without its attributes: those are of another function."""
    return update_wrapper(wrapper, fun, updated=())


def name_of(fun: Any) -> str:
    """The name that programs made from a function get."""
    return str(getattr(fun, "__name__", None) or name_of(getattr(fun, "func", type(fun))))


def check_argnums(argnums: Any, what: str) -> int | tuple[int, ...]:
    """Positions of arguments, as an int or a tuple of ints."""
    try:
        if not isinstance(argnums, (bool, tuple, list)):
            return operator.index(argnums)
        if not isinstance(argnums, bool):
            return tuple([operator.index(i) for i in argnums])
    except TypeError:
        pass
    raise CorejaxTypeError(f"{what}: argnums are positions of arguments", got=repr(argnums),
                           wanted="an int or a sequence of ints", where=here(),
                           todo="count the positional arguments from 0; arguments given by keyword have no number")


def positions(argnums: tuple[int, ...], n_args: int, what: str) -> tuple[int, ...]:
    """Positions with negative ones counted from the end, within the arguments that there are."""
    found = tuple([i + n_args if i < 0 else i for i in argnums])
    for i, given in zip(found, argnums, strict=True):
        if not 0 <= i < n_args:
            raise CorejaxIndexError(f"{what}: there is no argument number {given}",
                                    got=f"{n_args} positional arguments", where=here(),
                                    wanted=f"argnums from 0 to {n_args - 1}",
                                    todo="pass that argument by position, or change argnums")
    if len(set(found)) != len(found):
        raise CorejaxValueError(f"{what}: argnums name an argument twice", got=argnums, where=here())
    return found


# Leaves

#: Tells what to call the i-th leaf: `args[0]['w']`. Asked only for errors.
Namer: TypeAlias = Callable[[int], str]


def namer(root: str, tree: Any) -> Namer:
    """Names the leaves of a tree."""
    return lambda i: root + trees.paths_of(tree)[i]


def argument_namer(args: Any, kwargs: Any) -> Namer:
    """Names the leaves of `(args, kwargs)`."""
    def name(i: int) -> str:
        path = trees.flatten_with_path((args, kwargs))[0][i][0]
        return ("args", "kwargs")[path[0].idx] + trees.keystr(path[1:])
    return name


def is_value(x: Any) -> bool:
    """Is it an `Array` or a tracer?"""
    return type(x) is Array or isinstance(x, Tracer)


def is_single_leaf(x: Any) -> bool:
    """Is it certainly a leaf, as can be told without flattening it?"""
    return type(x) is Array or isinstance(x, (Tracer, np.ndarray, np.generic)) or type(x) in PYTHON_SCALARS


def not_an_array(x: Any, what: str, name: str, error: CorejaxError) -> CorejaxTypeError:
    """The error for a leaf that is no array, or none that can be computed with; `error` says so without its name."""
    if isinstance(x, (np.ndarray, np.generic)):
        return CorejaxTypeError(f"{what}: {name}: {error.message}", got=error.got, wanted=error.wanted, where=here(),
                                todo=error.todo)
    kind_ = type(x).__name__
    return CorejaxTypeError(
        f"{what}: {name} is {'an' if kind_[0] in 'aeiou' else 'a'} {kind_}, not an array", got=repr(x)[:80],
        wanted="an array, a NumPy scalar, or a bool, int, float or complex", where=here(),
        todo="pass what is no data with static_argnums, or close over it" if what == "jit" else
             "keep what is no array out of arguments and results: close over it")


def values(leaves: Sequence[Any], what: str, name: Namer) -> list[Any]:
    """The leaves as arrays and tracers; an ndarray is copied, as it may change."""
    return [x if type(x) is Array else as_value(i, x, what, name) for i, x in enumerate(leaves)]


def as_value(i: int, x: Any, what: str, name: Namer) -> Any:
    """One leaf, the i-th, as an array or a tracer."""
    if is_value(x):
        return x
    try:
        return as_array(x, copy=True)
    except CorejaxTypeError as error:
        raise not_an_array(x, what, name(i), error) from error


class FlatFun:
    """A function of pytrees as one of leaves.

    After a call, `out_tree` is the structure of its result; None if that is a single leaf. `in_tree` is the structure
    of the tuple of its arguments; None if each is a leaf. With `has_aux` the function returns a pair, of which the
    second part is only handed on: its arrays follow the outputs, so that tracers in it are unboxed with them.
    """

    __slots__ = ("fun", "in_tree", "what", "has_aux", "out_tree", "n_outs", "_aux_leaves", "_aux_tree")

    def __init__(self, fun: Callable[..., Any], in_tree: Any, what: str, has_aux: bool = False) -> None:
        self.fun, self.in_tree, self.what, self.has_aux = fun, in_tree, what, has_aux
        self.out_tree: Any = None
        self.n_outs = 1

    def __call__(self, *leaves: Any) -> Sequence[Any]:
        out = self.fun(*(leaves if self.in_tree is None else self.in_tree.unflatten(leaves)))
        if self.has_aux:
            return self._with_aux(out)
        if isinstance(out, DataModel):
            return (out,)
        return self._flatten(out)

    def _flatten(self, out: Any) -> list[Any]:
        leaves, self.out_tree = trees.flatten(out)
        self.n_outs = len(leaves)
        return values(leaves, self.what, namer("result", out))

    def _with_aux(self, pair: Any) -> list[Any]:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise CorejaxTypeError(f"{self.what}: with has_aux=True the function returns a pair (output, aux)",
                                   got=_describe_result(pair), wanted="(output, aux)", where=here(),
                                   todo="return both, or leave out has_aux")
        outs = self._flatten(pair[0])
        self._aux_leaves, self._aux_tree = trees.flatten(pair[1])
        return outs + [x for x in self._aux_leaves if isinstance(x, DataModel)]

    def unflatten(self, outs: Sequence[Any]) -> Any:
        """The result with these leaves."""
        return outs[0] if self.out_tree is None else self.out_tree.unflatten(outs[: self.n_outs])

    def aux(self, outs: Sequence[Any]) -> Any:
        """The second part of the pair, whose arrays are the last of `outs`."""
        arrays = iter(outs[self.n_outs:])
        return self._aux_tree.unflatten([next(arrays) if isinstance(x, DataModel) else x for x in self._aux_leaves])


def _describe_result(out: Any) -> str:
    size = f" of {len(out)}" if isinstance(out, (tuple, list, dict)) else ""
    return f"a {type(out).__name__}{size}"


def with_kwargs(fun: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """`fun` as a function of its tuple of positional and its dict of keyword arguments."""
    return lambda args, kwargs: fun(*args, **kwargs)


# Tangents and cotangents

def tangents_like(leaves: Sequence[Any], avals: Sequence[ShapedArray], what: str, name: Namer, of: str) -> list[Any]:
    """Tangents or cotangents given by the user as values of these types; `Zero` for float0."""
    return [x if type(x) is Array and x.aval is aval and aval.dtype is not float0 else
            _tangent_like(i, x, aval, what, name, of) for i, (x, aval) in enumerate(zip(leaves, avals, strict=True))]


def _tangent_like(i: int, x: Any, aval: ShapedArray, what: str, name: Namer, of: str) -> Any:
    scalar = PYTHON_SCALARS.get(type(x))
    if scalar is not None and not aval.shape and scalar == kind(aval.dtype):
        return Array.from_host(np.array(x, aval.dtype), aval)
    try:
        got = aval_of(x)
    except CorejaxTypeError as error:
        raise not_an_array(x, what, name(i), error) from error
    if got is aval:
        return Zero(aval) if aval.dtype is float0 else x if is_value(x) else as_array(x, copy=True)
    if not got.matches(aval) or aval.dtype is float0:
        raise CorejaxTypeError(f"{what}: {name(i)} doesn't fit {of}", got=str(got), wanted=str(aval), where=here(),
                               todo=_todo(got, aval))
    return roles.convert(x, aval.dtype)


def _todo(got: ShapedArray, aval: ShapedArray) -> str:
    if got.shape != aval.shape:
        return "give it the shape of what it belongs to"
    if aval.dtype is float0:
        return "integers have no tangent but np.zeros(shape, cj.float0)"
    return f"convert it: x.astype({aval.dtype.name!r})"


def finish_cotangent(ct: Any, aval: ShapedArray) -> Any:
    """What the user gets for a cotangent: an array, of zeros if nothing flows, of float0 for an integer input."""
    if ct is None or (type(ct) is Zero and ct.aval.dtype is float0):
        return Array.from_host(np.zeros(aval.shape, float0), aval.tangent)
    return instantiate(ct)
