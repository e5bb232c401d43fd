"""Structures of pytrees and types of arrays to plain data and back. The data is a closed set, without any code.

A leaf is `"*"`, None is null; every other node is a list that starts with its kind.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from corejax.base import dtypes, elements, trees
from corejax.base.avals import ShapedArray
from corejax.base.errors import CorejaxError, CorejaxTypeError, CorejaxValueError, kind_of
from corejax.base.keypaths import keystr
from corejax.base.source import here
from corejax.base.tracebacks import public
from corejax.base.trees import TreeDef

_LEAF = "*"

#: Before the name of a pack's own element type.
_OF_PACKS = "elements:"
_KINDS: dict[type, str] = {list: "list", tuple: "tuple", dict: "dict", OrderedDict: "OrderedDict"}
_CLASSES = {kind: cls for cls, kind in _KINDS.items()}

_names: dict[type, str] = {}


@public
def register_namedtuple(cls: object, name: str) -> type:
    """Allow exported functions to take and return this namedtuple, which files refer to by `name`.

    Before loading such a file, register a class with the same fields under that name. Returns the class.

    >>> import corejax as cj
    >>> from collections import namedtuple
    >>> Point = cj.export.register_namedtuple(namedtuple("Point", "x y"), "geometry.Point")
    """
    if not (isinstance(cls, type) and issubclass(cls, tuple) and hasattr(cls, "_fields")):
        raise CorejaxTypeError("register_namedtuple: only namedtuples can be exported by name", where=here(),
                               got=f"{kind_of(cls)}: {cls!r:.80}", wanted="a class made by namedtuple or NamedTuple",
                               todo="pass the class; make other containers dicts before they are exported")
    if not isinstance(name, str) or not name:
        raise CorejaxTypeError("register_namedtuple: a class must be registered under a name", got=repr(name)[:80],
                               wanted="a string that other programs will know it by", where=here())
    if _names.get(cls, name) != name or any([known == name and other is not cls for other, known in _names.items()]):
        raise CorejaxValueError("register_namedtuple: each class can have one name, and each name one class",
                                where=here(),
                                got=f"{cls.__qualname__} as {name!r}", wanted="a class and a name that are not taken",
                                todo="choose another name")
    _names[cls] = name
    return cls


# Writing

def tree_to_data(treedef: TreeDef, what: str) -> Any:
    """A structure as plain data; `what` is its name in errors."""
    return _to_data(treedef.unflatten([0] * treedef.num_leaves), what, ())


def _to_data(node: Any, what: str, path: tuple[Any, ...]) -> Any:
    level = trees.one_level(node)
    if node is None or level is None:
        return None if node is None else _LEAF
    kind, children = type(node), [(key, _to_data(child, what, (*path, key))) for key, child in level[0]]
    if kind in (list, tuple):
        return [_KINDS[kind], *[data for _, data in children]]
    if kind in (dict, OrderedDict):
        return [_KINDS[kind], *[[_plain_key(key.key, what, path), data] for key, data in children]]
    if kind in _names:
        return ["namedtuple", _names[kind], *[[field, data] for field, (_, data) in
                                              zip(kind._fields, children, strict=True)]]
    named = issubclass(kind, tuple) and hasattr(kind, "_fields")
    raise CorejaxTypeError(
        f"{what}{keystr(path)} is {kind_of(node)}, which an exported function can't take or return", where=here(),
        got=kind.__qualname__, wanted="dicts, OrderedDicts, lists, tuples, None, and registered namedtuples",
        todo=f"call cj.export.register_namedtuple({kind.__name__}, name) first" if named else
             "make it a dict around the function that is exported")


def _plain_key(key: object, what: str, path: tuple[object, ...]) -> object:
    if type(key) not in (str, int, bool):
        raise CorejaxTypeError(f"{what}{keystr(path)} is a dict with a key that can't be exported", where=here(),
                               got=f"{kind_of(key)}: {key!r:.80}", wanted="keys that are strings, ints or bools",
                               todo="rename the key")
    return key


def aval_to_data(aval: ShapedArray) -> list[object]:
    """A type as plain data."""
    of_packs = _OF_PACKS if elements.find(aval.dtype) is not None else ""
    return [of_packs + dtypes.short_name(aval.dtype), list(aval.shape), aval.weak_type]


# Reading

class Malformed(Exception):
    """The data wasn't written by this module; the text says which part is wrong."""


def aval_from_data(data: object) -> ShapedArray:
    """Read a type."""
    dtype, shape, weak = _list(data, 3)
    if type(dtype) is not str or type(weak) is not bool:
        raise Malformed(f"{data!r:.60} is not a type")
    if type(shape) is not list or not all([type(size) is int and size >= 0 for size in shape]):
        raise Malformed(f"{shape!r:.60} is not a shape")
    if dtype.startswith(_OF_PACKS):
        return ShapedArray(tuple(shape), elements.named(dtype.removeprefix(_OF_PACKS)).dtype, weak)
    try:
        return ShapedArray(tuple(shape), dtypes.from_short_name(dtype), weak)
    except CorejaxError as error:
        raise Malformed(error.message) from error


def tree_from_data(data: object) -> Any:
    """Read a structure."""
    return trees.flatten(_from_data(data))[1]


def _from_data(data: object) -> Any:
    if data is None:
        return None
    if data == _LEAF:
        return 0
    kind, *parts = _list(data)
    if kind in ("list", "tuple"):
        return _CLASSES[kind]([_from_data(part) for part in parts])
    if kind in ("dict", "OrderedDict"):
        return _CLASSES[kind](_items(parts))
    if kind == "namedtuple" and parts and type(parts[0]) is str:
        fields = dict(_items(parts[1:]))
        return _namedtuple(parts[0], tuple(fields))(**fields)
    raise Malformed(f"{kind!r:.60} is not a kind of node")


def _items(parts: list[Any]) -> Iterator[tuple[Any, Any]]:
    seen = set()
    for part in parts:
        key, child = _list(part, 2)
        if type(key) not in (str, int, bool) or key in seen:
            raise Malformed(f"{key!r:.60} isn't a key, or is there twice")
        seen.add(key)
        yield key, _from_data(child)


def _namedtuple(name: str, fields: tuple[object, ...]) -> Any:
    cls = next((cls for cls, known in _names.items() if known == name), None)
    if cls is None:
        raise CorejaxTypeError("the exported function takes or returns a namedtuple that isn't known here",
                               got=f"no class under the name {name!r:.80}",
                               wanted=f"a namedtuple with the fields {fields}", where=here(),
                               todo=f"call cj.export.register_namedtuple(cls, {name!r:.80}) before it is loaded")
    if cls._fields != fields:  # type: ignore[attr-defined]
        raise CorejaxTypeError(f"the namedtuple {name!r:.80} has different fields than when the function was exported",
                               got=cls._fields, wanted=fields, where=here(),  # type: ignore[attr-defined]
                               todo="register a class with these fields")
    return cls


def _list(data: object, length: int | None = None) -> list[Any]:
    if type(data) is not list or not data or (length is not None and len(data) != length):
        raise Malformed(f"{data!r:.60} is not a list of {length or 'one or more'}")
    return data
