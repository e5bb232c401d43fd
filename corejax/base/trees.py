"""Pytrees: nested containers of leaves, flattened to a list and rebuilt.

Containers are dict (by sorted key), list, tuple, namedtuple, None (which holds nothing), OrderedDict, defaultdict, and
classes registered here. Everything else is a leaf. The registry is corejax's own: classes registered with other
libraries aren't known here, nor the other way round.

>>> leaves, treedef = flatten({"b": (1, 2), "a": None})
>>> leaves, unflatten(treedef, [3, 4])
([1, 2], {'a': None, 'b': (3, 4)})
"""

from __future__ import annotations

import copyreg
import dataclasses
import sys
import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple, NoReturn, Protocol, TypeAlias, TypeVar, cast

from corejax.base import _jaxlib, ending
from corejax.base.errors import CorejaxTypeError, CorejaxValueError
from corejax.base.keypaths import DictKey, GetAttrKey, Path, Root, keystr, own_key
from corejax.base.source import here
from corejax.base.tracebacks import calls_users

IsLeaf: TypeAlias = Callable[[Any], bool] | None
C = TypeVar("C", bound=type)


class TreeDef(Protocol):
    """The structure of a tree, as made by jaxlib's registry."""

    @property
    def num_leaves(self) -> int: ...

    @property
    def num_nodes(self) -> int: ...

    def unflatten(self, leaves: Iterable[object], /) -> Any:
        """The tree with these leaves."""

    def flatten_up_to(self, tree: object, /) -> list[Any]:
        """The subtrees at each leaf, in a tree that this structure is a prefix of."""

    def compose(self, inner: TreeDef, /) -> TreeDef:
        """This structure, with `inner` at each leaf."""

    def children(self) -> list[TreeDef]:
        """The structures right below the root."""

    def node_data(self) -> tuple[Any, Any] | None:
        """The root's class and static part; None for a leaf."""

    def __getstate__(self) -> Any: ...


class _Registry(Protocol):
    """The methods of jaxlib's registry that are used here."""

    def flatten(self, tree: object, is_leaf: IsLeaf, /) -> tuple[list[Any], TreeDef]: ...

    def flatten_with_path(self, tree: object, is_leaf: Callable[..., bool] | None, /) -> Any: ...

    def flatten_one_level_with_keys(self, tree: object, /) -> Any: ...

    def register_node(self, cls: type, flatten: Callable[..., Any], unflatten: Callable[..., Any],
                      flatten_with_keys: Callable[..., Any] | None, /) -> None: ...

    def register_dataclass_node(self, cls: type, data: list[str], meta: list[str], /) -> None: ...

    def is_node(self, cls: type, /) -> bool: ...


# The registry

class Functions(NamedTuple):
    """Functions that take a container apart, and put it together."""

    flatten: Callable[[Any], tuple[Iterable[Any], Any]]
    unflatten: Callable[[Any, Any], Any]
    flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]] | None

    def enter(self, made: _Registry, cls: type) -> None:
        made.register_node(cls, *self)


class Fields(NamedTuple):
    """A container's fields: those that hold children, and those that are static."""

    data: list[str]
    meta: list[str]

    def enter(self, made: _Registry, cls: type) -> None:
        made.register_dataclass_node(cls, *self)


_lock = threading.RLock()
#: The C++ registry, and what is asked to flatten: the same until the interpreter ends.
_made: _Registry | None = None
_registry: _Registry | None = None
_FLATTENING = ("flatten", "flatten_one_level_with_keys", "flatten_with_path")
_registered: dict[type, Functions | Fields] = {}
_BUILTIN = (dict, list, tuple, type(None))


def registry() -> _Registry:
    """The C++ registry, made when the first tree is flattened."""
    global _registry, _made
    with _lock:
        if _registry is None:
            made: _Registry = _jaxlib.pytree.PyTreeRegistry()
            for cls, node in _registered.items():
                node.enter(made, cls)
            _registry = _made = made
            copyreg.pickle(_jaxlib.pytree.PyTreeDef, _reduced)
            ending.exchange(_exchange)  # it calls the functions of registered classes
        return _registry


def _exchange(by: ending.By) -> None:
    global _registry
    if _made is not None:
        _registry = cast("_Registry", SimpleNamespace(**{name: by(getattr(_made, name)) for name in _FLATTENING}))


def _reduced(treedef: TreeDef) -> Any:
    """A structure in a form that can be pickled and copied: its root, and the structures below."""
    if treedef.__getstate__()[0] is not _made:  # another library's
        return object.__reduce_ex__(treedef, 2)
    return _rebuilt, (treedef.node_data(), treedef.children())


def _rebuilt(node: object, children: Sequence[TreeDef]) -> TreeDef:
    registry()
    rebuilt: TreeDef = _jaxlib.pytree.PyTreeDef.from_node_data_and_children(_made, node, children)
    return rebuilt


def _register(cls: object, node: Functions | Fields) -> None:
    """Queue a registration until jaxlib is needed, or make it now if it is loaded."""
    if not isinstance(cls, type):
        raise CorejaxTypeError("only a class can be registered as a pytree node", got=repr(cls)[:80], wanted="a class",
                               where=here(), todo="register the class of the object")
    with _lock:
        if cls in _registered or cls in _BUILTIN:
            raise CorejaxValueError(f"{cls.__qualname__} is already a pytree node", got=f"{cls.__qualname__} again",
                                    wanted="a class that is not registered", where=here(),
                                    todo="register each class once, next to its definition")
        if _made is not None:
            node.enter(_made, cls)
        _registered[cls] = node


def is_registered(cls: type) -> bool:
    """Whether a class was made a container by one of the functions below."""
    return cls in _registered


def node_of(cls: type) -> Functions | Fields | None:
    """How a registered class is taken apart and put together; None for others."""
    return _registered.get(cls)


def register_node(cls: type, flatten: Callable[[Any], tuple[Iterable[Any], Any]], unflatten: Callable[[Any, Any], Any],
                  flatten_with_keys: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]] | None = None) -> None:
    """Make a class a container.

    `flatten(obj) -> (children, static)`; `unflatten(static, children) -> obj`; `static` is hashable and compares equal
    for equal structures. `flatten_with_keys(obj) -> ((key, child) pairs, static)` gives the children better names.
    """
    _register(cls, Functions(flatten, unflatten, flatten_with_keys))


def register_node_class(cls: C) -> C:
    """Class decorator: a container with methods `tree_flatten()` and `tree_unflatten(static, children)`."""
    register_node(cls, lambda obj: obj.tree_flatten(), cls.tree_unflatten)  # type: ignore[attr-defined]
    return cls


def register_dataclass(cls: C, data_fields: Sequence[str] | None = None, meta_fields: Sequence[str] | None = None,
                       drop_fields: Sequence[str] = ()) -> C:
    """Make a dataclass a container of its data fields; meta fields are static.

    Without lists of names, a field is meta if it says so: `dataclasses.field(metadata={"static": True})`.
    """
    if not dataclasses.is_dataclass(cls) and (data_fields is None or meta_fields is None):
        raise CorejaxTypeError(f"{getattr(cls, '__qualname__', cls)} is not a dataclass", where=here(),
                               todo="decorate it with dataclasses.dataclass first, or give data_fields and meta_fields")
    if (data_fields is None) != (meta_fields is None):
        raise CorejaxTypeError("data_fields and meta_fields must be given together, or not at all", where=here())
    if data_fields is None or meta_fields is None:
        own = [field for field in dataclasses.fields(cls) if field.init and field.name not in drop_fields]
        data_fields = [field.name for field in own if not field.metadata.get("static", False)]
        meta_fields = [field.name for field in own if field.metadata.get("static", False)]
    elif dataclasses.is_dataclass(cls):
        wanted = {field.name for field in dataclasses.fields(cls) if field.init} - set(drop_fields)
        if wanted != {*data_fields, *meta_fields}:
            raise CorejaxValueError(f"the fields given for {cls.__qualname__} are not its fields", where=here(),
                                    got=", ".join(sorted((*data_fields, *meta_fields))),
                                    wanted=", ".join(sorted(wanted)))
    _register(cls, Fields(list(data_fields), list(meta_fields)))
    return cls


def register_static(cls: C) -> C:
    """Class decorator: instances hold no leaves; they are part of the structure, so they need `==` and `hash`."""
    register_node(cls, lambda obj: ((), obj), lambda obj, _: obj, lambda obj: ((), obj))
    return cls


register_node(OrderedDict, lambda d: (tuple(d.values()), tuple(d)),
              lambda keys, values: OrderedDict(zip(keys, values, strict=True)),
              lambda d: ([(DictKey(k), v) for k, v in d.items()], tuple(d)))


def _flatten_defaultdict(d: Any) -> tuple[Any, Any]:
    keys = tuple(sorted(d))
    return [d[k] for k in keys], (d.default_factory, keys)


def _flatten_defaultdict_with_keys(d: Any) -> tuple[Any, Any]:
    keys = tuple(sorted(d))
    return [(DictKey(k), d[k]) for k in keys], (d.default_factory, keys)


register_node(defaultdict, _flatten_defaultdict,
              lambda static, values: defaultdict(static[0], zip(static[1], values, strict=True)),
              _flatten_defaultdict_with_keys)


# Flattening

@calls_users
def flatten(tree: object, is_leaf: IsLeaf = None, root: Root = None) -> tuple[list[Any], TreeDef]:
    """The leaves of a tree, and its structure; nodes for which `is_leaf` returns True count as leaves.

    `root` is the tree's name in errors: text, or a function from the path of a node to its name.
    """
    try:
        return (_registry or registry()).flatten(tree, is_leaf)
    except Exception as error:
        _explain_failure(tree, is_leaf, error, root)


@calls_users
def flatten_with_path(tree: object, is_leaf: Callable[..., Any] | None = None, is_leaf_takes_path: bool = False
                      ) -> tuple[list[tuple[Path, Any]], TreeDef]:
    """The (path, leaf) pairs of a tree, and its structure. With `is_leaf_takes_path`, `is_leaf` gets path and node."""
    if type(is_leaf_takes_path) is not bool:
        raise CorejaxTypeError("is_leaf_takes_path is a flag", got=repr(is_leaf_takes_path)[:80], wanted="a bool",
                               where=here(), todo="write is_leaf_takes_path=True, or leave it out")

    def predicate(path: Path, node: object) -> Any:
        return is_leaf(tuple([own_key(key) for key in path]), node) if is_leaf_takes_path else is_leaf(node)  # type: ignore[misc]

    try:
        pairs, treedef = registry().flatten_with_path(tree, None if is_leaf is None else predicate)
    except Exception as error:
        if is_leaf_takes_path and callable(is_leaf) and "is_leaf predicate returned" not in str(error):
            raise
        _explain_failure(tree, is_leaf, error)
    return [(tuple([own_key(key) for key in path]), leaf) for path, leaf in pairs], treedef


def unflatten(treedef: TreeDef, leaves: Iterable[object]) -> Any:
    """The tree of this structure with these leaves."""
    leaves = leaves if type(leaves) is list else list(leaves)
    if len(leaves) != treedef.num_leaves:
        raise CorejaxValueError("a structure must be filled with as many leaves as it has", got=len(leaves),
                                wanted=f"{treedef.num_leaves}, for {treedef}", where=here(),
                                todo="give one leaf for each of the structure's, as flatten returned them")
    return treedef.unflatten(leaves)


def paths_of(tree: object, is_leaf: IsLeaf = None) -> list[str]:
    """The path of each leaf, written as code."""
    return [keystr(path) for path, _ in flatten_with_path(tree, is_leaf)[0]]


def one_level(tree: object) -> tuple[list[tuple[Any, Any]], Any] | None:
    """The (key, child) pairs of a container with its static part; None for a leaf."""
    if isinstance(tree, tuple) and hasattr(tree, "_fields") and type(tree) not in _registered:
        return [(GetAttrKey(name), child) for name, child in zip(tree._fields, tree, strict=True)], type(tree)
    found = registry().flatten_one_level_with_keys(tree)
    return None if found is None else ([(own_key(key), child) for key, child in found[0]], found[1])


def _place(path: Path, root: Root) -> str:
    if root is None:
        return f"{keystr(path) or 'the top'} of a pytree"
    return root + keystr(path) if isinstance(root, str) else root(path)


@calls_users
def _explain_failure(tree: object, is_leaf: IsLeaf, error: Exception, root: Root = None) -> NoReturn:
    """Find the node that can't be flattened, and say where it is; an exception of the user's passes through."""
    if isinstance(error, (RecursionError, SystemError)):  # jaxlib wraps the first in the second
        raise CorejaxValueError("a pytree contains itself, or is nested too deeply", where=here(),
                                todo="break the cycle; keep back references in static fields") from error
    if (is_leaf is not None and not callable(is_leaf)) or "is_leaf predicate returned" in str(error):
        raise CorejaxTypeError("is_leaf must say whether to stop at a node", wanted="a function that returns a bool",
                               got=str(error).partition(";")[0] if callable(is_leaf) else repr(is_leaf)[:80],
                               where=here(), todo="write is_leaf=lambda node: isinstance(node, MyClass)") from error
    stack: list[tuple[Path, Any]] = [((), tree)]
    while stack:
        path, node = stack.pop()
        if len(path) > 1000:
            break
        if is_leaf is not None and is_leaf(node):
            continue
        if type(node) in (dict, defaultdict):
            try:
                sorted(node)
            except TypeError:
                kinds = ", ".join(sorted({type(key).__name__ for key in node}))
                raise CorejaxTypeError(
                    f"the keys of the dict at {_place(path, root)} can't be sorted", where=here(),
                    got=f"keys of the types {kinds}: {list(node)!r:.80}", wanted="keys that compare with each other",
                    todo="use keys of one type, or an OrderedDict, which keeps its own order") from error
        try:
            level = one_level(node)
        except (ValueError, TypeError) as own:
            if type(own) is ValueError and "to_iterable" in str(own):
                raise CorejaxTypeError(
                    f"flattening the {type(node).__qualname__} at {_place(path, root)} failed",
                    got="a flatten function that returned something else", wanted="a pair (children, static)",
                    where=here(), todo="fix the function given to register_node") from error
            break
        stack.extend([((*path, key), child) for key, child in reversed(level[0])] if level else ())
    raise error


ending.doors(sys.modules[__name__], "unflatten")
