"""Annotations of other modules, written anew where their names may mean something else: in a stub.

A stub can import what it names. Which module a name comes from is read from the source, since much of it is imported
for type checkers only.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import sys
import types
import typing
import weakref
from collections import ChainMap, Counter, OrderedDict, abc, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from importlib.util import resolve_name
from pathlib import Path

#: A module and a name in it; no name stands for the module itself.
Origin = tuple[str, str | None]

_ONE = (type, map, filter, zip, reversed, Counter, abc.AsyncIterator, abc.Collection, abc.Iterator, abc.KeysView,
        abc.MutableSequence, abc.MutableSet, abc.Reversible, abc.Sequence, abc.Set, abc.ValuesView)
_TWO = (dict, defaultdict, OrderedDict, ChainMap, abc.Mapping, abc.MutableMapping, abc.ItemsView, abc.AsyncGenerator,
        types.AsyncGeneratorType, types.MappingProxyType, weakref.WeakKeyDictionary, weakref.WeakValueDictionary)
_THREE = (abc.Generator, abc.Coroutine, types.GeneratorType, types.CoroutineType)

#: What Python's own generic types are written with where they stand alone, if that isn't what their classes say.
_ARGUMENTS: dict[object, str] = {
    tuple: "Any, ...", abc.Callable: "..., Any", abc.MappingView: "", **dict.fromkeys(_ONE, "Any"),
    **dict.fromkeys(_TWO, "Any, Any"), **dict.fromkeys(_THREE, "Any, Any, Any")}


def origins(source: str, module: str, package: str) -> dict[str, Origin]:
    """Where each name that a module imports or defines at its top level comes from."""
    found: dict[str, Origin] = {}
    for node in _statements(ast.parse(source).body):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0], None)
        elif isinstance(node, ast.ImportFrom):
            home = resolve_name("." * node.level + (node.module or ""), package) if node.level else node.module or ""
            found |= {alias.asname or alias.name: (home, alias.name) for alias in node.names}
        elif isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            found.setdefault(node.name, (module, node.name))
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, (module, target.id))
    return found


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements at the top level, those under a condition included."""
    for node in body:
        yield node
        if isinstance(node, (ast.If, ast.Try)):
            yield from _statements([*node.body, *node.orelse])


@lru_cache(maxsize=256)
def origins_in(module: str) -> Mapping[str, Origin]:
    """The same for a module that is imported; nothing if it has no source."""
    try:
        loaded = sys.modules[module]
        return origins(inspect.getsource(loaded), module, getattr(loaded, "__package__", None) or "")
    except (KeyError, OSError, TypeError, SyntaxError):
        return {}


@lru_cache(maxsize=256)
def is_typed(module: str) -> bool:
    """Whether type checkers read a module, as PEP 561 has it: a package that is marked, or one with stubs.

    Stubs must not name what is in another one, as that is an error to strict checkers.
    """
    top = module.partition(".")[0]
    if top in sys.stdlib_module_names:
        return True
    folders = [Path(folder) for folder in getattr(sys.modules.get(top), "__path__", ())]
    return any([(folder / "py.typed").is_file() for folder in folders]) or any(
        [Path(folder, f"{top}-stubs").is_dir() for folder in sys.path])


class Scope:
    """The names of a stub: `taken` ones are its own, others are imported as annotations need them.

    >>> scope = Scope(["complex"], {})
    >>> scope.annotation("Callable[[complex], 'Sequence[int]']", ["corejax_authoring.annotations"])
    'Any'
    >>> scope.annotation("Collection[complex]", ["corejax_authoring.annotations"])
    'Collection[builtins.complex]'
    >>> print(*scope.imports(), sep="\\n")
    import builtins
    from collections.abc import Collection
    from typing import Any
    """

    def __init__(self, taken: Collection[str], public: Mapping[Origin, str]) -> None:
        self._taken, self._public = frozenset(taken), public
        self._names: dict[str, Origin] = {}
        self._exported: set[str] = set()

    def export(self, name: str, origin: Origin) -> None:
        """Have something from elsewhere as a name of the stub's own."""
        self._names[name] = origin
        self._exported.add(name)

    def annotation(self, annotation: object, modules: Iterable[str]) -> str:
        """An annotation as this stub writes it, given the modules whose names it may use; `Any` if one is unknown."""
        text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
        known = [origins_in(module) for module in modules]
        if not isinstance(annotation, str):  # an object is written without the name of this module
            known.insert(0, {name: ("typing", name) for name in typing.__all__})
        try:
            tree = ast.parse(text.strip(), mode="eval")
            return ast.unparse(_Rename(self, known).visit(tree))
        except (SyntaxError, LookupError):
            return self.name(("typing", "Any"))

    def name(self, origin: Origin) -> str:
        """The name of something in this stub, which imports it."""
        module, name = origin
        module = self._public.get(origin, module)
        wanted = name or module
        if name is None and "." in module:
            self._names[module] = module, None  # `import a.b` can't be renamed and stay an expression a.b
            return module
        while wanted in self._taken or self._names.get(wanted, (module, name)) != (module, name):
            wanted = f"_{wanted}"
        self._names[wanted] = module, name
        return wanted

    def imports(self) -> list[str]:
        """The import statements, sorted."""
        modules = [f"import {module}" + (f" as {alias}" if alias != module else "")
                   for alias, (module, name) in self._names.items() if name is None]
        froms: dict[str, list[str]] = {}
        for alias, (module, name) in self._names.items():
            if name is not None:
                renamed = alias != name or alias in self._exported
                froms.setdefault(module, []).append(f"{name} as {alias}" if renamed else name)
        return [*sorted(modules), *[f"from {module} import {', '.join(sorted(froms[module]))}"
                                    for module in sorted(froms)]]


class _Rename(ast.NodeTransformer):
    """Gives names the meaning that they have in their module."""

    def __init__(self, scope: Scope, known: Iterable[Mapping[str, Origin]]) -> None:
        self._scope, self._known = scope, list(known)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._complete(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        return self._complete(node)

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        if not isinstance(node.value, str):
            return node
        return self.visit(ast.parse(node.value, mode="eval").body)  # type: ignore[no-any-return]

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        value = self._bare(node.value)
        if ast.unparse(value).rpartition(".")[2] == "Literal":
            return ast.Subscript(value, node.slice)
        return ast.Subscript(value, self.visit(node.slice))

    def _complete(self, node: ast.expr) -> ast.expr:
        """A type that stands alone: a generic one gets `Any` for its parameters, since strict checkers want them."""
        written, arguments = self._bare(node), _arguments(self._meaning(node))
        if not arguments:
            return written
        text = arguments.replace("Any", self._scope.name(("typing", "Any")))
        return ast.Subscript(written, typing.cast(ast.Subscript, ast.parse(f"_[{text}]", mode="eval").body).slice)

    def _bare(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Name):
            return self._name(node)
        return self._attribute(node) if isinstance(node, ast.Attribute) else self.visit(node)

    def _origin(self, name: str) -> Origin | None:
        return next((names[name] for names in self._known if name in names), None)

    def _meaning(self, node: ast.expr) -> object:
        """What a name stands for, as far as that is loaded."""
        if isinstance(node, ast.Attribute):
            return sys.modules.get(ast.unparse(node)) or inspect.getattr_static(
                self._meaning(node.value), node.attr, None)
        if not isinstance(node, ast.Name):
            return None
        module, name = self._origin(node.id) or ("builtins", node.id)
        loaded = sys.modules.get(module)
        return loaded if name is None else inspect.getattr_static(loaded, name, sys.modules.get(name))

    def _name(self, node: ast.Name) -> ast.expr:
        origin = self._origin(node.id)
        if origin is not None:
            if not is_typed(origin[0]):
                raise LookupError(node.id)
            return ast.Name(self._scope.name(origin))
        if node.id in vars(builtins):
            if node.id not in self._scope._taken:
                return node
            return ast.Attribute(ast.Name(self._scope.name(("builtins", None))), node.id)
        # An annotation that was an object is written with whole module names.
        if node.id in sys.modules and is_typed(node.id):
            return ast.Name(self._scope.name((node.id, None)))
        raise LookupError(node.id)

    def _attribute(self, node: ast.Attribute) -> ast.expr:
        dotted = ast.unparse(node)
        if dotted in sys.modules and not any([dotted.partition(".")[0] in names for names in self._known]):
            if not is_typed(dotted):
                raise LookupError(dotted)
            return ast.parse(self._scope.name((dotted, None)), mode="eval").body
        return ast.Attribute(self._bare(node.value), node.attr)


def _arguments(found: object) -> str:
    """What a type that stands alone is to be written with, in brackets; nothing if it isn't generic."""
    kind = found if hasattr(found, "__args__") else typing.get_origin(found) or found  # typing.List stands for list
    if isinstance(kind, type) and kind in _ARGUMENTS:
        return _ARGUMENTS[kind]
    parameters = getattr(kind, "__parameters__", ())
    if isinstance(parameters, tuple) and parameters:
        if any([isinstance(each, typing.TypeVarTuple) for each in parameters]):
            raise LookupError(kind)
        return ", ".join(["..." if isinstance(each, typing.ParamSpec) else "Any" for each in parameters])
    is_pythons = isinstance(kind, type) and kind.__module__.partition(".")[0] in sys.stdlib_module_names
    return "Any" if is_pythons and "__class_getitem__" in vars(kind) else ""
