"""Leaves of pytrees as values, functions of pytrees as functions of leaves, and the names of leaves in errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from corejax.arrays.array import Array, as_array
from corejax.arrays.datamodel import DataModel
from corejax.base import trees
from corejax.base.dtypes import PYTHON_SCALARS
from corejax.base.errors import CorejaxError, CorejaxTypeError, kind_of
from corejax.base.holders import HolderType, as_users_see, check_once, is_holder
from corejax.base.keypaths import Path, keystr
from corejax.base.source import here
from corejax.base.standins import array_for, stands_for_array
from corejax.base.tracebacks import calls_users, check_call, stands_for
from corejax.base.trees import TreeDef
from corejax.kernel.trace import Tracer


def check_callable(fun: object, what: str) -> None:
    """Raise unless `fun` is callable."""
    if not callable(fun):
        raise CorejaxTypeError(f"{what}: expected a function", got=f"{kind_of(fun)}: {fun!r:.80}",
                               wanted="a callable", where=here(),
                               todo=f"pass the function itself: {what}(f)(x), not {what}(f(x))")


def name_of(fun: object) -> str:
    """The name given to programs made from a function."""
    return str(getattr(fun, "__name__", None) or name_of(getattr(fun, "func", type(fun))))


#: Maps i to a name for the i-th leaf, such as `args[0]['w']`. Only called for errors.
Namer: TypeAlias = Callable[[int], str]


def namer(root: str, tree: object) -> Namer:
    """Names the leaves of a tree."""
    return lambda i: root + trees.paths_of(tree)[i]


def argument_namer(args: object, kwargs: object) -> Namer:
    """Names the leaves of `(args, kwargs)`."""
    return lambda i: call_root(trees.flatten_with_path((args, kwargs))[0][i][0])


def call_root(path: Path) -> str:
    """Names a node of `(args, kwargs)`."""
    return ("args", "kwargs")[path[0].idx] + keystr(path[1:]) if path else "the arguments"


def is_value(x: object) -> bool:
    """Whether `x` is an `Array` or a tracer."""
    return type(x) is Array or isinstance(x, Tracer)


def is_single_leaf(x: object) -> bool:
    """Whether `x` is certainly a leaf, judging by its class alone."""
    kind = type(x)
    if kind is Array or kind is np.ndarray or kind in PYTHON_SCALARS:
        return True
    return isinstance(x, (Tracer, np.ndarray, np.generic)) and not trees.is_registered(kind)


def not_an_array(x: object, what: str, name: str, error: CorejaxError) -> CorejaxTypeError:
    """The error for a leaf that isn't an array or has an unsupported type: `error`, with the leaf's name added."""
    if isinstance(x, (np.ndarray, np.generic)):
        return CorejaxTypeError(f"{what}: {name}: {error.message}", got=error.got, wanted=error.wanted, where=here(),
                                todo=error.todo)
    return CorejaxTypeError(
        f"{what}: {name} is {kind_of(x)}, not an array", got=repr(x)[:80],
        wanted="an array, a NumPy scalar, or a bool, int, float or complex", where=here(),
        todo="pass anything that isn't data with static_argnums, or close over it" if what == "jit" else
             "keep anything that isn't an array out of arguments and results: close over it")


def values(leaves: Sequence[object], what: str, name: Namer) -> list[Any]:
    """The leaves as arrays and tracers; an ndarray is copied, since it may change."""
    check_once(leaves)
    return [x if type(x) is Array else leaf_value(i, x, what, name) for i, x in enumerate(leaves)]


def leaf_value(i: int, x: object, what: str, name: Namer) -> Any:
    """One leaf, the i-th, as an array or a tracer."""
    if is_value(x) or is_holder(x):
        return x
    if stands_for_array(x):
        return leaf_value(i, array_for(x), what, name)
    try:
        return as_array(x, copy=True)
    except CorejaxTypeError as error:
        raise not_an_array(x, what, name(i), error) from error


class FlatFun:
    """A function of pytrees as one of leaves.

    After a call, `out_tree` is the structure of its result; None if that is a single leaf. `in_tree` is the structure
    of the tuple of its arguments; None if each is a leaf. With `has_aux` the function returns a pair whose second part
    is only passed through: its arrays follow the outputs, so tracers in it get unboxed with them.
    """

    __slots__ = ("fun", "in_tree", "what", "has_aux", "out_tree", "n_outs", "_aux_leaves", "_aux_tree")

    def __init__(self, fun: Callable[..., Any], in_tree: TreeDef | None, what: str, has_aux: bool = False) -> None:
        self.fun, self.in_tree, self.what, self.has_aux = fun, in_tree, what, has_aux
        self.out_tree: TreeDef | None = None
        self.n_outs = 1

    @calls_users
    def __call__(self, *leaves: Any) -> Sequence[Any]:
        fun = self.fun
        try:
            given = as_users_see(leaves)
            out = fun(*(given if self.in_tree is None else self.in_tree.unflatten(given)))
        except TypeError as error:
            check_call(error, self.what, fun)
            raise
        if self.has_aux:
            return self._with_aux(out)
        if isinstance(out, DataModel):
            return (out,)
        return self._flatten(out)

    def _flatten(self, out: object) -> list[Any]:
        leaves, self.out_tree = trees.flatten(out, None, "result")
        self.n_outs = len(leaves)
        self._check_returned(leaves, namer("result", out))
        return values(leaves, self.what, namer("result", out))

    def _check_returned(self, leaves: Sequence[Any], name: Namer) -> None:
        for i, x in enumerate(leaves) if HolderType.exist else ():
            if is_holder(x):
                raise x.returned(self.what, name(i))

    def _with_aux(self, pair: object) -> list[Any]:
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise CorejaxTypeError(f"{self.what}: with has_aux=True the function must return a pair (output, aux)",
                                   got=_describe_result(pair), wanted="(output, aux)", where=here(),
                                   todo="return both, or leave out has_aux")
        outs = self._flatten(pair[0])
        self._aux_leaves, self._aux_tree = trees.flatten(pair[1])
        self._check_returned(self._aux_leaves, namer("result[1]", pair[1]))
        return outs + [x for x in self._aux_leaves if isinstance(x, DataModel)]

    def unflatten(self, outs: Sequence[object]) -> Any:
        """The result with these leaves."""
        return outs[0] if self.out_tree is None else self.out_tree.unflatten(outs[: self.n_outs])

    def aux(self, outs: Sequence[object]) -> Any:
        """The second part of the pair; its arrays are at the end of `outs`."""
        arrays = iter(outs[self.n_outs:])
        return self._aux_tree.unflatten([next(arrays) if isinstance(x, DataModel) else x for x in self._aux_leaves])


def _describe_result(out: object) -> str:
    size = f" of {len(out)}" if isinstance(out, (tuple, list, dict)) else ""
    return str(out.aval) if isinstance(out, DataModel) else kind_of(out) + size


@calls_users
def with_kwargs(fun: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """`fun` as a function of two arguments: a tuple of positional and a dict of keyword arguments."""
    return stands_for(fun, lambda args, kwargs: fun(*args, **kwargs))


@calls_users
def call_user(fun: Callable[..., Any], args: Sequence[object], what: str) -> Any:
    """Call a user's function; if it doesn't accept these arguments, the error is one of ours and calls it `what`."""
    try:
        return fun(*args)
    except TypeError as error:
        check_call(error, what, fun)
        raise
