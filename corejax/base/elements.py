"""Element types of packs: values that are stored as numbers, but aren't numbers themselves.

An array of such elements has a dtype like any other. In host memory it is a structured one of NumPy's, whose single
field has the element type's name and holds what is stored: so NumPy moves elements about without looking into them. On
a device, and in compiled programs, only what is stored exists, with its own axes last.

>>> rational = ElementType("doc_rational", np.int64, (2,))
>>> elements = rational.of(np.array([[1, 2], [3, 4]]))
>>> elements.shape, elements.dtype is rational.dtype, rational.stored(elements).shape
((2,), True, (2, 2))
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from keyword import iskeyword
from threading import Lock
from types import FrameType
from typing import Any

import numpy as np

from corejax.base import dtypes
from corejax.base.errors import CorejaxTypeError, CorejaxValueError, kind_of
from corejax.base.source import here
from corejax.base.tracebacks import public


class extended(np.generic):
    """The abstract class of elements that aren't numbers. A pack may derive one for some of them, such as keys.

    It is never instantiated: `corejax.dtypes.issubdtype` asks for it.
    """


@public
class ElementType:
    """A type of elements that a pack defines, for an entry point in the group `corejax.dtypes`.

    - `name`: what it is called, also where programs are printed; the name of its entry point. An identifier, perhaps
      with another one in angle brackets: `rational`, `key<fry>`.
    - `physical`, `trailing`: each element is stored as an array of this dtype and shape.
    - `show`: from such an array, the text that one element prints as.
    - `refuses`: primitives that would accept these elements and shall not, each with the reason.
    - `todo`: what to do instead of something that these elements don't support, for its error.
    - `equal`: from two arrays of such elements, whether they are equal: what `==` gives, and `!=` the opposite of.
    - `kind`: the class that they belong to, for `corejax.dtypes.issubdtype`: `extended`, or one derived from it.
    """

    __slots__ = ("_file", "dtype", "equal", "kind", "module", "name", "physical", "refuses", "show", "todo", "trailing")
    name: str
    module: str
    """The module that declares it."""
    physical: np.dtype
    trailing: tuple[int, ...]
    dtype: np.dtype
    """What arrays of these elements have as their dtype."""

    def __init__(self, name: str, physical: dtypes.DTypeLike, trailing: Iterable[int] = (), *,
                 show: Callable[[np.ndarray], str] | None = None, refuses: Mapping[str, str] | None = None,
                 todo: str = "", equal: Callable[[Any, Any], Any] | None = None, kind: type = extended) -> None:
        if not isinstance(name, str) or not _is_spelled_well(name):
            raise _wrong("its name must be an identifier, perhaps with another one in angle brackets", repr(name),
                         "a str such as 'rational' or 'key<fry>'")
        if name not in dtypes.names() and _means_something_else(name):
            raise _wrong(f"{name!r} means something else in Python, in NumPy or where programs are printed",
                         repr(name), "a name of its own")
        self.name = name
        self.physical = dtypes.canonical(physical)
        if self.physical is dtypes.float0 or self.physical in _declared:
            raise _wrong(f"{name} can't be stored as {dtypes.short_name(self.physical)}",
                         dtypes.short_name(self.physical), "a dtype of numbers or booleans")
        self.trailing = _sizes(name, trailing)
        for what, function, wanted in (("show", show, "from an ndarray to a str"), ("equal", equal, "of two arrays")):
            if function is not None and not callable(function):
                raise _wrong(f"{what} of {name} must be a function", kind_of(function), f"a function {wanted}")
        self.show, self.equal = show, equal
        if not is_kind(kind):
            raise _wrong(f"the kind of {name} must be a class of elements", f"{kind!r:.80}",
                         "extended, or a class derived from it")
        self.refuses, self.todo, self.kind = dict(refuses or {}), todo, kind
        self.module, self._file = _declarer(sys._getframe(1), self)
        _declare(self)

    def stored(self, elements: np.ndarray) -> np.ndarray:
        """What is stored of elements in host memory, with its own axes last; shares their memory."""
        return elements[self.name]

    def of(self, stored: np.ndarray) -> np.ndarray:
        """The elements of which this is stored; the inverse of `stored`. Shares memory if that is contiguous."""
        shape = stored.shape[:stored.ndim - len(self.trailing)]
        if stored.size and stored.flags.c_contiguous and stored.dtype == self.physical:
            return stored.reshape(-1).view(self.dtype).reshape(shape)
        elements = np.empty(shape, self.dtype)
        elements[self.name] = stored
        return elements

    def text(self, element: np.ndarray) -> str:
        """How an element prints, from what is stored of it."""
        if self.show is not None:
            try:
                return str(self.show(element))
            except Exception:  # an array prints in tracebacks and debuggers, too; `python -m corejax check` says it
                pass
        return f"{self.name}({', '.join(map(str, element.reshape(-1).tolist()))})"

    def __repr__(self) -> str:
        return f"ElementType({self.name!r}, {self.physical.name!r}, {self.trailing})"

    def __reduce__(self) -> tuple[object, ...]:
        return named, (self.name,)


#: Where the frames are of which `ElementType(...)` consists.
_BASE = f"{__package__}."

#: What stands for other values in the text of programs.
_OF_PROGRAMS = frozenset(("UNCONSTRAINED", "closed", "inf", "nan"))

_declared: dict[np.dtype, ElementType] = {}
_declaring = Lock()


def _declare(element: ElementType) -> None:
    """Give it its dtype, from now on known by its name. Declaring the same again replaces how it prints."""
    dtype = np.dtype([(element.name, element.physical, element.trailing)])
    with _declaring:
        known = next((other for other in _declared.values() if other.name == element.name), None)
        if known is not None and (known.dtype != dtype or _are_rivals(element, known)):
            raise _clash(element, known)
        if known is None:
            if element.name in dtypes.names():
                raise CorejaxValueError(f"{element.name!r} is the name of a dtype of corejax's own", got=repr(element),
                                        wanted="a name of its own", where=here(), todo="choose another name")
            dtypes.declare(dtype, element.name)
        else:
            dtype = known.dtype
        element.dtype = dtype  # first: other threads may find it at once
        _declared[dtype] = element
        dtypes.stands_for(element, dtype)


def _clash(element: ElementType, known: ElementType) -> CorejaxValueError:
    other = f"and was declared by {known.module} already" if element.module != known.module else "twice"
    return CorejaxValueError(
        f"the element type {element.name!r} is declared by {element.module}, {other}", got=repr(element),
        wanted=f"one declaration; there is {known!r}", where=here(),
        todo="choose another name, since it is part of programs and of files; of two packs with the same one, leave "
             "one out: COREJAX_DISABLE_PACKS")


def _declarer(frame: FrameType | None, element: ElementType) -> tuple[str, str]:
    """The module that declares a type, by its own name if it is run by `python -m`, and its file, if it has one.

    A subclass's constructor isn't what declares it.
    """
    while frame is not None and (str(frame.f_globals.get("__name__")).startswith(_BASE)
                                 or frame.f_locals.get("self") is element):
        frame = frame.f_back
    names = {} if frame is None else frame.f_globals
    module = getattr(names.get("__spec__"), "name", None) or str(names.get("__name__", "?"))
    file = "" if frame is None else frame.f_code.co_filename
    return module, "" if file.startswith("<") else file


def _are_rivals(element: ElementType, known: ElementType) -> bool:
    """Whether they are declared by different modules; one that is gone, as its import failed, has no say any more."""
    same = element.module == known.module or element._file == known._file != ""
    return not same and known.module in sys.modules


def find(dtype: np.dtype) -> ElementType | None:
    """The element type that arrays of this dtype have; None for numbers."""
    return _declared.get(dtype) if dtype.type is np.void else None


def named(name: str) -> ElementType:
    """The element type of this name, of a pack that is installed if it wasn't declared yet."""
    found = dtypes.is_declared(name) and _declared.get(dtypes.from_short_name(name))
    if not found:
        raise dtypes.unknown_elements(name)
    return found


def to_host(stored: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """A read-only array of `dtype`, from what a device has stored of it."""
    elements = stored.astype(dtype) if dtype in dtypes.PACKED else _declared[dtype].of(stored)
    elements.flags.writeable = False
    return elements


def of_stored(host: np.ndarray | np.generic) -> Any:
    """What a device stores of an array in host memory: mostly the array itself, if it holds numbers."""
    element, as_bytes = find(host.dtype), dtypes.PACKED.get(host.dtype)
    if as_bytes is not None:
        return host.astype(as_bytes)
    return host if element is None else element.stored(host)  # type: ignore[arg-type]


def refused(dtype: np.dtype, what: str, todo: str = "") -> CorejaxTypeError:
    """The error for something that elements of this dtype don't support."""
    element = _declared[dtype]
    return CorejaxTypeError(f"{what}: elements of type {element.name} aren't numbers", got=element.name, where=here(),
                            wanted="an array of numbers or booleans",
                            todo=element.todo or todo or f"use a function of the pack that brings {element.name}")


def _sizes(name: str, trailing: Iterable[int]) -> tuple[int, ...]:
    try:
        sizes = tuple([int(size.__index__()) for size in trailing])
    except (TypeError, AttributeError):
        raise _wrong(f"the trailing shape of {name} must hold integers", repr(trailing)[:80], "a tuple of sizes"
                     ) from None
    if any([size < 1 for size in sizes]):
        raise _wrong(f"each element of {name} must be stored as something", f"trailing={sizes}", "sizes of 1 or more")
    return sizes


def is_kind(value: object) -> bool:
    """Whether it is a class that element types may belong to."""
    return isinstance(value, type) and issubclass(value, extended)


def is_reserved(name: str) -> bool:
    """Whether a name means something else already: a dtype of corejax's own, or something in Python or NumPy."""
    return name in dtypes.names() or _means_something_else(name)


def _is_spelled_well(name: str) -> bool:
    """Whether it is an identifier, or one with another one in angle brackets, as in `key<fry>`."""
    stem, bracket, rest = name.partition("<")
    return stem.isidentifier() and (not bracket or rest.endswith(">") and rest[:-1].isidentifier())


def _means_something_else(name: str) -> bool:
    stem = name.partition("<")[0]
    return iskeyword(stem) or stem in _OF_PROGRAMS or _is_of_numpy(name)


def _is_of_numpy(name: str) -> bool:
    """Whether NumPy takes the name for one of its own dtypes."""
    try:
        np.dtype(name)
    except TypeError:
        return False
    return True


def _wrong(problem: str, got: str, wanted: str) -> CorejaxTypeError:
    return CorejaxTypeError(problem, got=got, wanted=wanted, where=here(),
                            todo="write ElementType('rational', 'int64', (2,))")
