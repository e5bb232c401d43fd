"""Structural identity: when two programs are the same program.

Two jaxprs that differ only in their `Var` objects have the same `structural_key`. Params are compared bit by bit and
by exact type: -0.0 is not 0.0, True is not 1, NaN equals itself.

>>> atom(1) == atom(True), atom(0.0) == atom(-0.0), atom(float("nan")) == atom(float("nan"))
(False, False, True)
"""

from __future__ import annotations

import dataclasses
import enum
import struct
import sys
import threading
import weakref
from collections.abc import Callable, Hashable, Mapping
from types import BuiltinMethodType, MethodType
from typing import Any

import numpy as np

from corejax.base.caches import generation
from corejax.base.errors import CorejaxError, CorejaxTypeError
from corejax.base.source import at_hand, here, tell_where
from corejax.kernel.binding import check_bound
from corejax.kernel.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal


class StructuralKey:
    """The identity of a program. Equal programs share one object, so comparing and hashing cost nothing."""

    __slots__ = ("_content", "_hash", "__weakref__")

    def __init__(self, content: tuple[object, ...]) -> None:
        self._content = content
        self._hash = hash(content)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is StructuralKey and self._hash == other._hash
                                 and self._content == other._content)

    def __repr__(self) -> str:
        return f"StructuralKey({self._hash:#x})"


# Weak on both sides: a key may hold a function whose closure holds the jaxpr that in turn holds the key.
_keys: weakref.WeakKeyDictionary[StructuralKey, weakref.ref[StructuralKey]] = weakref.WeakKeyDictionary()
_keys_lock = threading.Lock()


def structural_key(jaxpr: Jaxpr) -> StructuralKey:
    """The identity of a jaxpr as a program; computed once for each jaxpr."""
    return _interned(jaxpr, "key", _eqn_param_key)


def compiled_key(jaxpr: Jaxpr) -> StructuralKey:
    """The identity of what a jaxpr compiles to: ignores params that no lowering reads, such as rules."""
    return _interned(jaxpr, f"compiled key {generation()}", _lowered_param_key)  # other rules read other params


def _interned(jaxpr: Jaxpr, name: str, key_of_params: Callable[[JaxprEqn], tuple[Any, ...]]) -> StructuralKey:
    key: StructuralKey | None = jaxpr._memo.get(name)
    if key is None:
        key = StructuralKey(_canonical(jaxpr, key_of_params))
        with _keys_lock:
            known = _keys.get(key)
            first = None if known is None else known()
            if first is None:
                _keys[key] = weakref.ref(key)
            else:
                key = first
        jaxpr._memo[name] = key
    return key


def _canonical(jaxpr: Jaxpr, key_of_params: Callable[[JaxprEqn], tuple[Any, ...]]) -> tuple[Any, ...]:
    """The jaxpr as one flat tuple, with variables numbered in order of binding. It has counts to be unambiguous."""
    number: dict[Any, int] = {var: i for i, var in enumerate((*jaxpr.constvars, *jaxpr.invars))}
    flat: list[Any] = [len(jaxpr.constvars), len(jaxpr.invars), len(jaxpr.outvars), jaxpr.effects]
    flat += [var.aval for var in number]
    try:
        outer, around = at_hand.eqn, at_hand.around
        try:
            at_hand.around = sys._getframe(), outer, around
            for eqn in jaxpr.eqns:
                at_hand.eqn = eqn
                invars, outvars = eqn.invars, eqn.outvars
                flat += (eqn.primitive, len(invars), len(outvars))
                flat += [_literal_atom(x) if type(x) is Literal else number[x] for x in invars]
                for var in outvars:
                    number[var] = len(number)
                    flat.append(var.aval)
                flat += (key_of_params(eqn) if eqn.params else (), eqn.effects)
        except CorejaxError as error:
            tell_where(error)
            raise
        finally:
            at_hand.eqn, at_hand.around = outer, around
        flat += [_literal_atom(x) if type(x) is Literal else number[x] for x in jaxpr.outvars]
    except KeyError:
        check_bound(jaxpr)
        raise
    return tuple(flat)


def _literal_atom(literal: Literal) -> tuple[Hashable, ...]:
    value = literal.val
    aval = literal.aval
    return Literal, aval, np.asarray(value, aval.dtype).tobytes()


def param_key(params: Mapping[str, object], owner: str = "") -> tuple[Hashable, ...]:
    """The identity of an equation's params: equal iff they are the same to the bit, in any order.

    >>> param_key({"axes": (0, 1), "exact": True})
    (('axes', (0, 1)), ('exact', (<class 'bool'>, True)))
    """
    name = None
    try:
        if len(params) == 1:
            for name, value in params.items():
                return ((name, atom(value)),)
        atoms = []
        for name in sorted(params):
            atoms.append((name, atom(params[name])))
        return tuple(atoms)
    except CorejaxTypeError as error:
        error.rephrase(f"{owner + ': ' if owner else ''}param {name!r}: {error.message}")
        raise


def _eqn_param_key(eqn: JaxprEqn) -> tuple[Hashable, ...]:
    return param_key(eqn.params, eqn.primitive.name)


def _lowered_param_key(eqn: JaxprEqn) -> tuple[Hashable, ...]:
    names = getattr(eqn.primitive, "lowered_params", None)
    atoms = []
    for name in sorted(eqn.params if names is None else names & eqn.params.keys()):
        value = eqn.params[name]
        atoms.append((name, _compiled_atom(value)))
    return tuple(atoms)


def _compiled_atom(value: object) -> Hashable:
    if type(value) is Jaxpr:
        return compiled_key(value)
    if type(value) is tuple and any([type(item) is Jaxpr for item in value]):
        return tuple, *map(_compiled_atom, value)
    return atom(value)


def atom(value: object) -> Hashable:
    """A hashable stand-in for a param, equal for two values iff a program can't tell them apart.

    A plain value is identified by its value and exact type; a callable or an object that compares by identity, by the
    object itself, which the key holds. An object with `__corejax_key__()` is identified by what that returns.
    """
    kind = type(value)
    if kind is int or kind is str or value is None:
        return value
    make = _EXACT.get(kind)
    return make(value) if make is not None else _other_atom(kind, value)


#: Tuples that have been seen to be their own atoms, by identity: many params are the same object in each call. Long
#: ones aren't kept alive for that.
plain_tuples: dict[int, tuple[object, ...]] = {}
_MOST_KEPT, _LONGEST_KEPT = 4096, 32

_FLAGS = frozenset((bool,))
_PLAIN = frozenset((int, str, type(None)))  # types whose values are their own atoms


def _tuple_atom(value: tuple[object, ...]) -> tuple[object, ...]:
    # Most tuples hold integers, names and such tuples. These are their own atoms, since no other atom looks like one.
    if plain_tuples.get(id(value)) is value:
        return value
    if _PLAIN.issuperset(map(type, value)) or _is_plain(value):
        if len(value) <= _LONGEST_KEPT:
            if len(plain_tuples) >= _MOST_KEPT:
                plain_tuples.clear()
            plain_tuples[id(value)] = value
        return value
    return (bool, value) if _FLAGS.issuperset(map(type, value)) else (tuple, *map(atom, value))


def _is_plain(value: tuple[object, ...]) -> bool:
    for item in value:
        if type(item) not in _PLAIN and (type(item) is not tuple or not _is_plain(item)):
            return False
    return True


def _closed_atom(value: ClosedJaxpr) -> tuple[object, ...]:
    return ClosedJaxpr, structural_key(value.jaxpr), *[_Identity(const) for const in value.consts]


_EXACT: dict[type, Callable[[Any], Any]] = {
    bool: lambda value: (bool, value),
    float: lambda value: (float, struct.pack("<d", value)),
    complex: lambda value: (complex, struct.pack("<dd", value.real, value.imag)),
    bytes: lambda value: (bytes, value),
    tuple: _tuple_atom,
    frozenset: lambda value: (frozenset, frozenset(map(atom, value))),
    Jaxpr: structural_key,
    ClosedJaxpr: _closed_atom,
    MethodType: lambda value: (MethodType, _Identity(value.__self__), _Identity(value.__func__)),
    BuiltinMethodType: lambda value: (BuiltinMethodType, _Identity(value.__self__), value.__name__),
}


class _Identity:
    """Holds an object, and equals any other that holds the same object."""

    __slots__ = ("held",)

    def __init__(self, held: object) -> None:
        self.held = held

    def __hash__(self) -> int:
        return object.__hash__(self.held)

    def __eq__(self, other: object) -> bool:
        return type(other) is _Identity and self.held is other.held


def _other_atom(kind: type, value: object) -> Hashable:
    """The atom of a value that isn't of a built-in type."""
    own_key = getattr(kind, "__corejax_key__", None)
    if own_key is not None:
        return kind, atom(own_key(value))
    if isinstance(value, np.dtype):
        return np.dtype, value
    if isinstance(value, np.generic):
        return kind, value.dtype, value.tobytes()
    if isinstance(value, enum.Enum):
        return kind, value.name
    if isinstance(value, tuple):
        return kind, *[atom(item) for item in value]
    if isinstance(value, np.ndarray) or hasattr(value, "aval"):
        raise CorejaxTypeError("an array can't be a param", got=f"{kind.__name__}: {str(value)[:60]}",
                               wanted="static metadata", where=here(), todo="pass arrays as positional operands")
    if callable(value) or kind.__eq__ is object.__eq__:  # type: ignore[comparison-overlap]
        return _Identity(value)
    if dataclasses.is_dataclass(kind) and kind.__hash__ is not None:
        return kind, *[atom(getattr(value, field.name)) for field in dataclasses.fields(kind) if field.compare]
    try:
        hash(value)
    except TypeError as error:
        raise CorejaxTypeError(
            f"a value of type {kind.__name__} is unhashable", got=f"{kind.__name__}: {repr(value)[:60]}",
            wanted="a bool, int, float, complex, string, None, dtype, jaxpr, callable, an object with __corejax_key__, "
                   "or a tuple of these", where=here(), todo=_remedy(kind)) from error
    return kind, value


def static_atom(value: Any) -> Hashable:
    """The same for a value that the user marked as static: if it defines its own equality, that decides.

    >>> static_atom((1, True, 2.5)) == static_atom((1, 1, 2.5)), shown(static_atom((1, True, 2.5)))
    (False, '(1, True, 2.5)')
    """
    kind: type = type(value)
    if kind in _PLAIN:
        return kind, value
    if kind in _SCALARS:
        return kind, *_EXACT[kind](value)[1:]
    if kind is tuple:
        return kind, *[static_atom(x) for x in value]
    if isinstance(value, tuple):
        return kind, value, *[static_atom(x) for x in value]
    return kind, frozenset([static_atom(x) for x in value]) if kind is frozenset else value


_SCALARS = frozenset((bool, float, complex))


def shown(atom: Any) -> str:
    """The value that a static atom stands for, as text."""
    kind, *rest = atom
    if kind is float:
        return repr(*struct.unpack("<d", rest[0]))
    if kind is complex:
        return repr(complex(*struct.unpack("<dd", rest[0])))
    if kind is tuple:
        return f"({', '.join(map(shown, rest))}{',' * (len(rest) == 1)})"
    return "{" + ", ".join(map(shown, rest[0])) + "}" if kind is frozenset else repr(rest[0])


def _remedy(kind: type) -> str:
    if kind in (list, bytearray):
        return "make it a tuple"
    return "make it a tuple of (name, value) pairs" if kind is dict else "make it hashable, or give it __corejax_key__"
