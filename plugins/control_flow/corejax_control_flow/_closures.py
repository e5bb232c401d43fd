"""What Python functions can read besides their arguments: the traced values, and a key for the rest.

A function reads variables of enclosing scopes, defaults, globals, and what these refer to: other functions, containers,
objects with attributes. Nothing is run to find that out, so it may be more than the function really uses.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Hashable, Iterable, Iterator
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from corejax.core import Array, Trace, Tracer, flatten
from corejax.errors import CorejaxError
from corejax.ir import atom

#: So many objects are looked at. What refers to more (a whole application) is taken to be different each time.
MOST = 10_000
#: Longer arrays of NumPy aren't compared.
LONGEST = 65_536

_PLAIN = frozenset({bool, int, float, complex, str, bytes, type(None)})
_OWN = "corejax"


class Reached(NamedTuple):
    """The traced values that functions can read, each with the name of the variable that leads to it (or "").

    `key` is equal for two findings only if the functions would read the same values.
    """

    tracers: list[tuple[Tracer, str]]
    key: Hashable


class _Same:
    """Represents an object in a key: equal to itself while the object lives, which it doesn't prolong if it can."""

    __slots__ = ("held", "number")

    def __init__(self, held: object) -> None:
        self.number = id(held)
        try:
            self.held: Any = weakref.ref(held)
        except TypeError:
            self.held = lambda: held

    def __hash__(self) -> int:
        return self.number

    def __eq__(self, other: object) -> bool:
        if type(other) is not _Same or self.number != other.number:
            return False
        held = self.held()
        return held is not None and held is other.held()


_NOTHING = Reached([], ())


class HashedOnce:
    """A key, or a part of one, that is looked up many times."""

    __slots__ = ("_parts", "_hash")

    def __init__(self, parts: tuple[Hashable, ...]) -> None:
        self._parts = parts
        self._hash = hash(parts)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            type(other) is HashedOnce and self._hash == other._hash and self._parts == other._parts)


def has_no_variables(fun: object) -> bool:
    """Whether a function certainly reads arguments and globals alone."""
    return type(fun) is FunctionType and not (
        fun.__closure__ or fun.__defaults__ or fun.__kwdefaults__ or fun.__dict__)


def reached_at_once(functions: Iterable[object], owner: object, with_key: bool) -> Reached | None:
    """What these functions can read, if that is just numbers and their `owner`; else None. A quick answer for most.

    `owner` is an object that has only these functions; what has it as its `implementation` stands for it. The key, with
    which globals count too, says nothing of the functions themselves.
    """
    parts: list[Hashable] = []
    for fun in functions:
        if type(fun) is not FunctionType or fun.__defaults__ or fun.__kwdefaults__ or fun.__dict__:
            return None
        values: list[Any] = []
        for cell in fun.__closure__ or ():
            try:
                values.append(cell.cell_contents)
            except ValueError:  # a variable that isn't set yet
                return None
        if with_key:
            space = fun.__globals__
            values += [space[used] for used in fun.__code__.co_names if used in space]
        for value in values:
            kind = type(value)
            if kind in _PLAIN:
                if with_key:
                    parts.append(atom(value) if kind is float or kind is complex else (kind, value))
            elif kind is ModuleType or _belongs_to(value, owner):
                parts.append(None)
            elif with_key or not has_no_variables(value):
                return None
    return Reached([], HashedOnce(tuple(parts))) if with_key else _NOTHING


def reached(*roots: object, owner: object = None) -> Reached:
    """What these functions can read. They may refer to their `owner`, see `reached_at_once`."""
    return _Search(owner).run(roots)


def _belongs_to(x: object, owner: object) -> bool:
    """Whether this is the public function of an owner. Objects that make up attributes when asked aren't asked."""
    try:
        return object.__getattribute__(x, "implementation") is owner
    except AttributeError:
        return False


class _Search:
    def __init__(self, owner: object) -> None:
        self.owner = owner
        self.seen: dict[int, object] = {}  # holds the objects, so that no id is used twice
        self.tracers: list[tuple[Tracer, str]] = []
        self.parts: list[Hashable] = []
        self.queue: list[tuple[Any, str]] = []

    def run(self, roots: tuple[object, ...]) -> Reached:
        queue = self.queue
        queue += [(root, "") for root in roots]
        done = 0
        while done < len(queue) and done < MOST:
            x, name = queue[done]
            done += 1
            kind = type(x)
            if kind in _PLAIN:
                self.parts.append((kind, x) if kind is not float and kind is not complex else atom(x))
            elif id(x) in self.seen:
                self.parts.append(None)
            else:
                self.seen[id(x)] = x
                self._visit(x, kind, name)
        # traced values are new each time, so nothing that reads them is ever the same
        return Reached(self.tracers, object() if self.tracers or done < len(queue) else HashedOnce(tuple(self.parts)))

    def _visit(self, x: Any, kind: type, name: str) -> None:
        parts, queue = self.parts, self.queue
        if issubclass(kind, Tracer):
            self.tracers.append((x, name))
        elif kind is FunctionType:
            self._function(x, name)
        elif kind in (tuple, list, set, frozenset):
            parts.append((kind.__name__, len(x)))
            queue += [(item, name) for item in x]
        elif kind is dict:
            parts.append(("dict", len(x)))
            queue += [(item, name) for pair in x.items() for item in pair]
        elif kind is MethodType:
            queue += [(x.__self__, name), (x.__func__, name)]
        elif kind is partial:
            queue += [(x.func, name), (x.args, name), (x.keywords, name)]
        elif issubclass(kind, (np.ndarray, np.generic)):
            parts.append((kind, x.dtype, x.shape, x.tobytes()) if x.nbytes <= LONGEST and not x.dtype.hasobject
                         else object())
        elif issubclass(kind, type):
            parts.append(_Same(x))
            if "<locals>" in x.__qualname__:
                queue += [(item, name) for item in vars(x).values()]
        else:
            parts.append(_Same(x))
            if kind is not Array and not issubclass(kind, (ModuleType, CodeType, BuiltinFunctionType, Trace)):
                queue += [(item, name) for item in _parts_of(x, kind)]

    def _is_owner(self, x: object) -> bool:
        return self.owner is not None and _belongs_to(x, self.owner)

    def _function(self, fun: FunctionType, name: str) -> None:
        code = fun.__code__
        self.parts.append(_Same(code))
        queue = self.queue
        wrapped = fun.__dict__.get("__wrapped__") if fun.__dict__ else None
        if wrapped is not None:
            queue.append((wrapped, name))
        space = fun.__globals__
        if (space.get("__name__") or "").partition(".")[0] == _OWN:
            if wrapped is not None:
                return  # what `jit` and others return: its other variables are ours
        else:
            for used in code.co_names:
                value = space.get(used)
                if value is not None and not isinstance(value, _NO_VALUES) and not self._is_owner(value):
                    queue.append((value, used))
        if fun.__closure__ is not None:
            for variable, cell in zip(code.co_freevars, fun.__closure__, strict=True):
                try:
                    value = cell.cell_contents
                except ValueError:  # a variable that isn't set yet
                    self.parts.append("unset")
                    continue
                if not self._is_owner(value):
                    queue.append((value, name or variable))
        if fun.__defaults__ is not None:
            names = code.co_varnames[code.co_argcount - len(fun.__defaults__):code.co_argcount]
            queue += [(value, name or variable) for variable, value in zip(names, fun.__defaults__, strict=True)]
        if fun.__kwdefaults__ is not None:
            queue += [(value, name or variable) for variable, value in fun.__kwdefaults__.items()]


#: What globals aren't followed to: it is the same in each call, as a rule, and refers to the whole application.
_NO_VALUES = ModuleType, FunctionType, BuiltinFunctionType, type


def _parts_of(x: Any, kind: type) -> Iterator[Any]:
    """What an object of another class refers to."""
    reads = getattr(kind, "__corejax_reads__", None)
    if reads is not None:
        yield from reads(x)
        return
    if kind.__module__.startswith(_OWN):  # a linear function, say, or something that holds programs
        try:
            leaves = flatten(x)[0]
        except CorejaxError:
            leaves = [x]
        if len(leaves) != 1 or leaves[0] is not x:
            yield from leaves
        return
    for item in gc.get_referents(x):
        if item is not kind and not isinstance(item, (ModuleType, CodeType)):
            yield item
