"""What Python functions can read besides their arguments: the traced values, and a key for the rest.

A function reads variables of enclosing scopes, defaults, globals, and what these refer to: other functions, containers,
objects with attributes, classes. Nothing is run to find that out, so it may be more than the function really uses.
Functions, classes and modules of libraries are taken to be always the same: they are followed only if they belong to
the packages of the functions that are asked about.
"""

from __future__ import annotations

import gc
import hashlib
import weakref
from array import array
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from functools import partial
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import Any, NamedTuple

import numpy as np

from corejax.core import Array, Trace, Tracer, flatten, is_holder
from corejax.errors import CorejaxError
from corejax.ir import atom
from corejax.plugin import Holder

#: So many objects are looked at. What refers to more (a whole application) is like nothing else.
MOST = 10_000
#: Of NumPy's arrays, larger ones are compared by a digest, and these not at all: in bytes.
LONG, LONGEST = 1024, 2 ** 27

_PLAIN = frozenset({bool, int, float, complex, str, bytes, type(None)})
_OWN = "corejax"


class Reached(NamedTuple):
    """The traced values that functions can read, each with the name of the variable that leads to it (or "").

    `key` is equal for two findings only if the functions would read the same values; None is like nothing else.
    `holders` are the objects that hold arrays among what they can read.
    """

    tracers: list[tuple[Tracer, str]]
    key: Hashable
    holders: Sequence[tuple[Holder, str]] = ()


class _Same:
    """Represents an object in a key: equal to itself while the object lives, which it doesn't prolong."""

    __slots__ = ("held", "number")

    def __init__(self, held: object) -> None:
        self.number = id(held)
        self.held = weakref.ref(held)

    def __hash__(self) -> int:
        return self.number

    def __eq__(self, other: object) -> bool:
        if type(other) is not _Same or self.number != other.number:
            return False
        held = self.held()
        return held is not None and held is other.held()


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


_NOTHING = Reached([], ())


def reached_at_once(functions: Iterable[object], owner: object, with_key: bool) -> Reached | None:
    """What these functions can read, if that is just numbers, libraries and their `owner`; else None.

    `owner` is an object that has only these functions; what has it as its `implementation` stands for it. Only for a
    key do globals count, too. It says nothing of the functions themselves.
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
            space, code = fun.__globals__, fun.__code__
            if CodeType in map(type, code.co_consts):  # of functions within this one
                return None
            values += [space[used] for used in code.co_names if used in space]
        for value in values:
            kind = type(value)
            if kind in _PLAIN:
                parts.append(_number(value) if with_key else None)
            elif _belongs_to(value, owner):
                parts.append(None)
            elif (kind is ModuleType or kind is FunctionType) and _is_of_library(value):
                parts.append(value)
            elif with_key or kind is not FunctionType or not _has_no_variables(value):
                return None
    return Reached([], HashedOnce(tuple(parts))) if with_key else _NOTHING


def reached(*roots: object, owner: object = None, with_key: bool = True) -> Reached:
    """What these functions can read. They may refer to their `owner`, see `reached_at_once`."""
    return _Search(owner, with_key).run(roots)


def _belongs_to(x: object, owner: object) -> bool:
    """Whether this is the public function of an owner. Objects that make up attributes when asked aren't asked.

    A function that wraps it, by functools.wraps, has its attributes, and is another one.
    """
    if x is owner:
        return True
    if not hasattr(type(x), "__corejax_reads__"):
        return False
    try:
        return object.__getattribute__(x, "implementation") is owner
    except AttributeError:
        return False


def _is_of_library(x: FunctionType | ModuleType) -> bool:
    """Whether this belongs to corejax, a pack of that name, or NumPy, and refers to nothing of the user's."""
    if type(x) is FunctionType:
        return _is_library(x.__module__) and _has_no_variables(x)
    return _is_library(x.__name__)


def _is_library(module: object) -> bool:
    name = _package(module)
    return name == "numpy" or name.startswith(_OWN)


def _package(module: object) -> str:
    return module.partition(".")[0] if isinstance(module, str) else ""


def _has_no_variables(fun: FunctionType) -> bool:
    """Whether a function certainly reads arguments and globals alone."""
    return not (fun.__closure__ or fun.__defaults__ or fun.__kwdefaults__ or fun.__dict__)


def _number(x: Any) -> Hashable:
    """A number or text in a key: -0.0 isn't 0.0 there, nor True 1."""
    kind = type(x)
    return atom(x) if kind is float or kind is complex else (kind, x)


def _numbers(items: Collection[Any]) -> bytes | tuple[Hashable, ...]:
    """The numbers and texts among items, in a key: of floats their bytes; else a tuple with None for others."""
    if {*map(type, items)} == {float}:
        return array("d", items).tobytes()
    return tuple([_number(x) if type(x) in _PLAIN else None for x in items])


class _Search:
    """A search from some functions, through all that they refer to; the nearest objects first."""

    def __init__(self, owner: object, with_key: bool) -> None:
        self.owner, self.with_key = owner, with_key
        self.seen: dict[int, object] = {}  # holds the objects, so that no id is used twice
        self.tracers: list[tuple[Tracer, str]] = []
        self.holders: list[tuple[Holder, str]] = []
        self.parts: list[Hashable] = []
        self.packages: set[str] = set()  # whose functions and classes are followed
        self.queue: list[tuple[Any, str]] = []
        self.has_key = with_key

    def run(self, roots: tuple[object, ...]) -> Reached:
        queue = self.queue
        queue += [(root, "") for root in roots]
        done = 0
        while done < len(queue) and done < MOST:
            x, name = queue[done]
            done += 1
            kind = type(x)
            if kind in _PLAIN:
                self.parts.append(_number(x))
            elif id(x) in self.seen:
                self.parts.append(None)
            else:
                self.seen[id(x)] = x
                self._visit(x, kind, name)
        # traced values are new each time, so nothing that reads them is ever the same
        if self.tracers or done < len(queue) or not self.has_key:
            return Reached(self.tracers, None, self.holders)
        return Reached(self.tracers, HashedOnce(tuple(self.parts)), self.holders)

    def _visit(self, x: Any, kind: type, name: str) -> None:
        queue = self.queue
        if issubclass(kind, Tracer):
            self.tracers.append((x, name))
        elif kind is FunctionType:
            self._function(x, name)
        elif issubclass(kind, (tuple, list, set, frozenset)):
            self._items(x, kind, name)
            if kind.__module__ != "builtins":  # a subclass, which may have attributes
                queue += [(each, name) for each in getattr(x, "__dict__", {}).items()]
        elif kind is dict:
            self._items(x.keys(), kind, name)
            self._items(x.values(), kind, name)
        elif kind is MethodType:
            queue += [(x.__self__, name), (x.__func__, name)]
        elif kind is partial:
            queue += [(x.func, name), (x.args, name), (x.keywords, name)]
        elif issubclass(kind, (BuiltinFunctionType, MethodWrapperType)) and not isinstance(x.__self__, ModuleType):
            self.parts.append(x.__name__)
            queue.append((x.__self__, name))
        elif kind is ContextVar or kind is weakref.ref:
            self._identity(x, kind)
            queue.append((x.get(None) if kind is ContextVar else x(), name))
        elif issubclass(kind, (np.ndarray, np.generic)):
            self._ndarray(x, kind, name)
        elif issubclass(kind, (ModuleType, CodeType, BuiltinFunctionType, Trace)) or kind is Array:
            self._identity(x, kind)
        elif issubclass(kind, type):
            self._identity(x, kind)
            if self._is_followed(x):
                queue += [(item, name) for item in vars(x).values() if not isinstance(item, _PYTHONS_OWN)]
                queue += [(base, name) for base in x.__bases__]
        elif is_holder(x):
            self._identity(x, kind)
            self.holders.append((x, name))
        else:
            self._identity(x, kind)
            queue += [(item, name) for item in _parts_of(x, kind)]
            if self._is_followed(kind):
                queue.append((kind, name))

    def _items(self, items: Collection[Any], kind: type, name: str) -> None:
        numbers = _numbers(items)
        self.parts.append((kind, len(items), numbers))
        if type(numbers) is tuple:
            self.queue += [(item, name) for item in items if type(item) not in _PLAIN]

    def _ndarray(self, x: Any, kind: type, name: str) -> None:
        if x.dtype.hasobject:
            self.queue += [(item, name) for item in x.ravel().tolist()]
        if x.nbytes > LONGEST or x.dtype.hasobject:
            self.has_key = False
        if not self.has_key:
            return
        data = x.tobytes()
        self.parts.append((kind, x.dtype, x.shape, data if len(data) <= LONG else hashlib.sha256(data).digest()))

    def _identity(self, x: Any, kind: type) -> None:
        """Put into the key which object this is, if that matters besides what it refers to."""
        if not self.has_key:
            return
        try:
            self.parts.append(_Same(x))
        except TypeError:  # of the others, some have slots, which are looked at, and some are values, such as dtypes
            if any(["__slots__" in vars(each) for each in kind.__mro__]):
                self.parts.append(kind)
            elif not _is_value(kind):
                self.has_key = False
            else:
                self.parts.append((kind, x))

    def _is_followed(self, x: type | FunctionType | BuiltinFunctionType) -> bool:
        return _package(x.__module__) in self.packages or "<locals>" in x.__qualname__ and not _is_library(x.__module__)

    def _is_owner(self, x: object) -> bool:
        return self.owner is not None and _belongs_to(x, self.owner)

    def _function(self, fun: FunctionType, name: str) -> None:
        code, queue = fun.__code__, self.queue
        self._identity(code, CodeType)
        wrapped = fun.__dict__.get("__wrapped__") if fun.__dict__ else None
        if wrapped is not None:
            queue.append((wrapped, name))
        module = fun.__globals__.get("__name__")
        if not _is_library(module):
            self.packages.add(_package(module))
            self._globals(fun)
        elif wrapped is not None:
            return  # what `jit` and others return: its other variables are ours
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

    def _globals(self, fun: FunctionType) -> None:
        """The globals that a function reads, and data that it may read from modules among them."""
        names, space = [*_names_in(fun.__code__)], fun.__globals__
        for used in names:
            value = space.get(used)
            if isinstance(value, ModuleType):
                self.parts.append(value)
                if not _is_library(value.__name__):
                    found = [(vars(value).get(each), each) for each in names]
                    self.queue += [each for each in found if not isinstance(each[0], _CODE)]
            elif isinstance(value, (FunctionType, BuiltinFunctionType, type)) and not self._is_followed(value):
                self.parts.append(value)
            elif value is not None and not self._is_owner(value):
                self.queue.append((value, used))


_CODE = ModuleType, FunctionType, BuiltinFunctionType, type
_PYTHONS_OWN = GetSetDescriptorType, MemberDescriptorType  # what each class has for `__dict__` and for slots


def _is_value(kind: type) -> bool:
    """Whether objects of this class are compared by what they are, rather than by which they are."""
    own: Any = kind.__hash__
    return own is not None and own is not object.__hash__


def _names_in(code: CodeType) -> Iterator[str]:
    """The names of globals and attributes that a function uses, and those that functions within it use."""
    yield from code.co_names
    for const in code.co_consts:
        if type(const) is CodeType:
            yield from _names_in(const)


def _parts_of(x: Any, kind: type) -> Iterator[Any]:
    """What an object of another class refers to."""
    reads = getattr(kind, "__corejax_reads__", None)
    if reads is not None:
        yield from reads(x)
        return
    if _is_library(kind.__module__):  # a linear function, say, or something that holds programs
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
