"""Functions of pytrees that users pass to higher-order primitives, as jaxprs.

Tracing a loop's body costs more than finding it again, so a function is traced once for each signature, for as long
as it lives: if what it reads from around itself is sure not to have changed. Otherwise it is traced again, and a
program that equals an earlier one becomes that one, so that nothing derived from it is made twice.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Sequence
from dis import opmap
from functools import lru_cache, partial
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from corejax import trees
from corejax.avals import ShapedArray
from corejax.caches import BoundedCache
from corejax.config import config
from corejax.interpreters.context import context
from corejax.interpreters.staging import stage
from corejax.interpreters.trace import Tracer
from corejax.ir.jaxpr import ClosedJaxpr, Jaxpr
from corejax.ir.keys import structural_key
from corejax.ir.surgery import consts_to_operands
from corejax.leaves import FlatFun, name_of
from corejax.xla.array import Array

_SIGNATURES_PER_FUNCTION = 64


class Staged(NamedTuple):
    """A function as a jaxpr: `closed` over its constants, or `jaxpr` with them as leading operands `consts`."""

    closed: ClosedJaxpr
    out_tree: Any
    jaxpr: Jaxpr
    consts: tuple[Any, ...]


_remembered: weakref.WeakKeyDictionary[Any, dict[Any, tuple[list[Any], Staged]]] = weakref.WeakKeyDictionary()
_lock = threading.Lock()
_programs: BoundedCache[Any, tuple[Jaxpr, Jaxpr]] = BoundedCache(256)


def stage_function(fun: Callable[..., Any], in_avals: Sequence[ShapedArray], in_tree: Any, what: str) -> Staged:
    """The jaxpr of `fun`, a function of pytrees; `in_tree` is the structure of the tuple of its arguments.

    `what` is what errors call it: "scan: the body".
    """
    reads = _what_it_reads(fun)
    if reads is None:
        return _stage(fun, in_avals, in_tree, what)
    key = what, in_tree, tuple(in_avals), config.default_bits, context.axes
    found = _remembered.get(fun, {}).get(key)
    if found is not None and _same(found[0], reads):
        return found[1]
    staged = _stage(fun, in_avals, in_tree, what)
    if not any([isinstance(const, Tracer) for const in staged.consts]):
        with _lock:
            signatures = _remembered.setdefault(fun, {})
            if len(signatures) >= _SIGNATURES_PER_FUNCTION:
                signatures.clear()
            signatures[key] = reads, staged
    return staged


def _stage(fun: Callable[..., Any], in_avals: Sequence[ShapedArray], in_tree: Any, what: str) -> Staged:
    flat = FlatFun(fun, in_tree, what)
    closed = stage(flat, in_avals, name_of(fun))
    out_tree = _leaf_tree() if flat.out_tree is None else flat.out_tree
    key = closed.jaxpr.name, getattr(fun, "__code__", None), structural_key(closed.jaxpr)
    found = _programs.get(key)
    if found is None:
        found = _programs.put(key, (closed.jaxpr, consts_to_operands(closed)[0]))
    jaxpr, of_operands = found
    return Staged(ClosedJaxpr(jaxpr, closed.consts), out_tree, of_operands, tuple(closed.consts))


def _leaf_tree() -> Any:
    return trees.flatten(0)[1]


def forget_functions() -> None:
    """Trace everything anew."""
    with _lock:
        _remembered.clear()
    _programs.clear()


# What a function reads from around itself

def _what_it_reads(fun: Any) -> list[Any] | None:
    """Everything that decides what `fun` computes, to be compared by identity; None if some of it might change unseen.

    These are its code, defaults, variables of enclosing scopes and names of its module, and the same for the functions
    among them. Lists, dicts, ndarrays, objects with attributes and iterators may change.
    """
    if type(fun) is not FunctionType:
        return None
    reads = _Reads()
    return reads.found if reads.function(fun) else None


def _same(before: Sequence[Any], now: Sequence[Any]) -> bool:
    return len(before) == len(now) and all([x is y for x, y in zip(before, now, strict=True)])


#: Values of these types never change.
_IMMUTABLE = frozenset((bool, int, float, complex, str, bytes, type(None), type(...), Array, ShapedArray, range, slice))

#: By these a function gets at what its code doesn't name, or acts on what is around it each time that it runs.
_DYNAMIC = frozenset(("__import__", "eval", "exec", "getattr", "globals", "input", "open", "print", "vars"))

#: What these modules contain isn't changed by users; it is not looked into.
_FIXED = frozenset(("builtins", "cmath", "corejax", "functools", "math", "ml_dtypes", "numpy", "operator", "typing"))


@lru_cache(maxsize=1024)
def _is_fixed(module: Any) -> bool:
    top = str(module).partition(".")[0]
    return (top in _FIXED or top.startswith("corejax_")) and not str(module).startswith("numpy.random")


_IMPORT = opmap["IMPORT_NAME"]


@lru_cache(maxsize=4096)
def _names_in(code: CodeType) -> tuple[str, ...]:
    """The names of globals and attributes that a function's code, or that of functions inside it, mentions."""
    names = dict.fromkeys(code.co_names)
    if _IMPORT in code.co_code[::2]:
        names["__import__"] = None
    for const in code.co_consts:
        if type(const) is CodeType:
            names.update(dict.fromkeys(_names_in(const)))
    return tuple(names)


class _Reads:
    """What a function reads, as it is collected. Each method says whether all that it met is sure to stay the same.

    Functions are held weakly: one that refers to itself would never die.
    """

    def __init__(self) -> None:
        self.found: list[Any] = []
        self._seen: set[int] = set()

    def function(self, fun: FunctionType) -> bool:
        if id(fun) in self._seen:
            return True
        self._seen.add(id(fun))
        self.found.append(weakref.ref(fun))
        names = fun.__globals__
        if _is_fixed(names.get("__name__")):
            wrapped = getattr(fun, "__wrapped__", None)  # what the library makes of a user's function
            return wrapped is None or self.value(wrapped, ())
        code = fun.__code__
        self.found.append(code)
        mentioned = _names_in(code)
        if not _DYNAMIC.isdisjoint(mentioned):
            return False
        values = [names[name] for name in mentioned if name in names]
        values += fun.__defaults__ or ()
        values += (fun.__kwdefaults__ or {}).values()
        values += fun.__dict__.values()
        for cell in fun.__closure__ or ():
            try:
                values.append(cell.cell_contents)
            except ValueError:  # a variable that isn't set yet
                self.found.append(cell)
        self.found.append(len(values))
        return self.all(values, mentioned)

    def all(self, values: Iterable[Any], mentioned: Sequence[str]) -> bool:
        for x in values:
            if type(x) in _IMMUTABLE:
                self.found.append(x)
            elif not self.value(x, mentioned):
                return False
        return True

    def value(self, x: Any, mentioned: Sequence[str]) -> bool:
        kind = type(x)
        if kind is FunctionType:
            return self.function(x)
        if kind is ModuleType:
            return self.module(x, mentioned)
        if kind is tuple or kind is partial:
            self.found.append(len(x) if kind is tuple else kind)
            return self.all(x if kind is tuple else (x.func, *x.args, *x.keywords.values()), mentioned)
        self.found.append(x)
        return kind in _IMMUTABLE or isinstance(x, (np.generic, np.dtype)) or (
            (kind is BuiltinFunctionType or isinstance(x, type)) and _is_fixed(x.__module__))

    def module(self, module: ModuleType, mentioned: Sequence[str]) -> bool:
        """What of a module may be meant by these names."""
        self.found.append(module)
        if id(module) in self._seen:
            return True
        self._seen.add(id(module))
        names = vars(module)
        present = [names[name] for name in mentioned if name in names]
        if _is_fixed(module.__name__):
            present = [x for x in present if type(x) is ModuleType]
        return not module.__name__.startswith("numpy.random") and self.all(present, mentioned)
