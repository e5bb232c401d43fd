"""Stubs for type checkers and editors: what the installed packs add to corejax, as `.pyi` files.

The types are those that the packs' functions declare, so a stub has nothing of its own: names, annotations, defaults
and docstrings are copied.
"""

from __future__ import annotations

import ast
import inspect
import os
import pkgutil
import sys
import typing
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from importlib import import_module
from keyword import iskeyword
from math import isfinite
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import corejax
from corejax.core import Array, here
from corejax.distributions import FUNCTIONS, NAMESPACES, PRIMITIVES, ROLES, distribution, installed, load, place, words
from corejax.errors import CorejaxRuntimeError, CorejaxValueError
from corejax.plugin import PYTHON_OPERATORS, find
from corejax_authoring.annotations import Origin, Scope, is_typed, origins

_KERNEL = Path(str(corejax.__file__)).parent
_PLAIN = (type(None), bool, int, float, str)

#: The first line of each file.
MARK = "# Written by `python -m corejax stubs`: don't edit it."
_OPERATORS = "operators."

#: The distribution, and its folder, of stubs that are installed, by PEP 561.
INSTALLED = "corejax-stubs"


class Stubs:
    """The stubs for what is installed: `files` by path, and `left_out`: what couldn't be loaded, and why.

    They have everything, or what some packs provide, by the names of their distributions.
    """

    def __init__(self, packs: Collection[str] | None = None) -> None:
        self.left_out: dict[str, str] = {}
        self._packs = packs
        core = origins((_KERNEL / "core.py").read_text("utf-8"), "corejax.core", "corejax")
        self._public: dict[Origin, str] = {origin: "corejax.core" for name, origin in core.items()
                                             if origin[1] == name and origin[0].startswith("corejax.")}
        modules = self._namespaces()
        lax, experimental = [f"{name}/__init__.pyi" if any([path.startswith(f"{name}/") for path in modules])
                             else f"{name}.pyi" for name in ("lax", "experimental")]
        self.files = {
            "__init__.pyi": self._facade(),
            lax: self._functions(),
            experimental: self._experimental(),
            "arrays/__init__.pyi": f"{MARK}\n",
            "arrays/methods.pyi": self._methods(),
            **modules,
        }

    # Files

    def _facade(self) -> str:
        """`corejax` itself: its public names, without a `__getattr__` that would have any name."""
        source = (_KERNEL / "__init__.py").read_text("utf-8")
        tree = ast.parse(source)
        exported = corejax.__all__
        found = origins(source, "corejax", "corejax")
        lines = [f"from {found[name][0]} import {found[name][1]} as {name}" for name in exported]
        for module in _modules():
            if module not in exported:  # a name for what is not to be found in the folder of the stubs
                lines += [f"import corejax.{module} as _{module}", f"{module} = _{module}"]
        lines += [f"from corejax import {name} as {name}" for name in self._names(NAMESPACES) if _is_name(name)]
        names = self._functions_at("cj")
        scope, body = Scope([*exported, *names], self._public), []
        for name in names:
            function = self._loaded(f"cj.{name}", load, FUNCTIONS, names[name])
            body += ["", *self._defined(f"cj.{name}", function, scope)] if function is not None else []
        return _file(_quoted(ast.get_docstring(tree) or ""), [*lines, *scope.imports(), "", "__version__: str", *body])

    def _namespaces(self) -> dict[str, str]:
        """The modules that packs bring, each with the names of the module that it is."""
        files: dict[str, str] = {}
        for name in self._names(NAMESPACES):
            if not all(map(_is_name, name.split("."))):
                continue
            module = self._loaded(f"cj.{name}", load, NAMESPACES, name)
            for real in _tree(module) if module is not None else ():
                path = (name + real.removeprefix(module.__name__)).replace(".", "/")
                is_folder = real == module.__name__ and hasattr(module, "__path__")
                files[f"{path}/__init__.pyi" if is_folder else f"{path}.pyi"] = self._namespace(name, real)
        return files

    def _namespace(self, name: str, real: str) -> str:
        """What is in a module of a namespace: the module's names, and definitions of what checkers know as `Any`."""
        module = self._loaded(f"cj.{name}", import_module, real)
        exported = {each: self._loaded(f"cj.{name}.{each}", getattr, module, each)
                    for each in getattr(module, "__all__", ())}
        made = {each: value for each, value in exported.items()
                if hasattr(value, "primitive") and not isinstance(value, type)}
        if not is_typed(real):
            return self._untyped_namespace(name, module, exported)
        if not made and "__getattr__" not in vars(module):
            return f"{MARK}\n\nfrom {real} import *\n"
        scope, body = Scope(exported, self._public), []
        for each in exported.keys() - made.keys():
            scope.export(each, _origin(name, real, each, exported[each]))
        for each, function in sorted(made.items()):
            body += ["", *self._defined(f"{name}.{each}", function, scope)]
        return _file(_quoted(inspect.getdoc(module) or ""), [*scope.imports(), *body])

    def _untyped_namespace(self, name: str, module: Any, exported: Mapping[str, Any]) -> str:
        """What is in a module that type checkers don't read: all is defined here."""
        scope, body = Scope(exported, self._public), []
        for each, value in sorted(exported.items()):
            if isinstance(value, ModuleType):
                scope.export(each, _origin(name, module.__name__, each, value))
            else:
                body += ["", *self._defined(f"{name}.{each}", None if _is_type(value) else value, scope)]
        return _file(_quoted(inspect.getdoc(module) or ""), [*scope.imports(), *body])

    def _functions(self) -> str:
        """`corejax.lax`: the functions of all packs, and primitives that have no other function."""
        provided = {*self._names(FUNCTIONS), *self._names(PRIMITIVES)}
        names = [name for name in installed().names_in_lax() if name in provided and _is_name(name)]
        found = {name: self._loaded(f"lax.{name}", _function, name) for name in names}
        types = {name: place for name, value in found.items() if _is_type(value)
                 and is_typed((place := _place(name, value))[0])}
        functions = {name: value for name, value in found.items() if value is not None and name not in types}
        scope, body = Scope(functions, self._public), []
        for name, place in types.items():
            scope.export(name, place)
        for name, function in functions.items():
            body += ["", *self._defined(f"lax.{name}", function, scope)]
        return _file('"""Everything that the installed packs provide, by name."""',
                     [*self._modules_below("lax"), *scope.imports(), *body])

    def _experimental(self) -> str:
        """`corejax.experimental`, which several packs fill."""
        names = self._functions_at("experimental")
        scope, body = Scope(names, self._public), []
        for name, entry in names.items():
            function = self._loaded(f"experimental.{name}", load, FUNCTIONS, entry)
            body += ["", *self._defined(f"experimental.{name}", function, scope)] if function is not None else []
        return _file('"""What the installed packs provide that may change, by name."""',
                     [*self._modules_below("experimental"), *scope.imports(), *body])

    def _functions_at(self, where: str) -> dict[str, str]:
        """The functions that are there, by name, with the names of their entry points."""
        found = {place(FUNCTIONS, name): name for name in self._names(FUNCTIONS)}
        return {name: entry for (there, name), entry in sorted(found.items()) if there == where and _is_name(name)}

    def _modules_below(self, where: str) -> list[str]:
        """Imports of the modules that packs bring there."""
        found = [place(NAMESPACES, name) for name in self._names(NAMESPACES)]
        return [f"from corejax.{where} import {name} as {name}" for there, name in found
                if there == where and _is_name(name)]

    def _methods(self) -> str:
        """`corejax.arrays.methods`: the methods and properties of arrays that packs provide."""
        operators = PYTHON_OPERATORS
        names = sorted(role.removeprefix(_OPERATORS) for role in self._names(ROLES)
                       if role.startswith(_OPERATORS) and role.removeprefix(_OPERATORS) not in operators
                       and _is_name(role.removeprefix(_OPERATORS)))
        scope, body = Scope([*names, "Methods"], self._public), []
        for name in names:
            function = self._loaded(f"x.{name}", load, ROLES, f"{_OPERATORS}{name}")
            if function is None:
                continue
            if getattr(function, "is_property", False):
                body.append("    @property")
            body += [f"    {line}" if line else "" for line in self._defined(f"x.{name}", function, scope, method=True)]
            body.append("")
        head = ["class Methods:", '    """The methods of arrays that the installed packs provide."""', ""]
        return _file('"""What the installed packs add to arrays."""', [*scope.imports(), "", *head, *body])

    def _names(self, group: str) -> list[str]:
        """The names in a group that the packs provide, sorted."""
        found = installed()
        return [name for name in found.names(group) if self._packs is None or any(
            [entry.pack.name in self._packs or entry.pack.is_tool() for entry in found.providers(group, name)])]

    def _defined(self, shown: str, function: Any, scope: Scope, method: bool = False) -> list[str]:
        return self._loaded(shown, defined, shown.rpartition(".")[2], function, scope, method) or []

    def _loaded(self, name: str, load: Callable[..., Any], *args: Any) -> Any:
        try:
            return load(*args)
        except (Exception, SystemExit) as error:  # whatever is wrong with one, the others get their stubs
            self.left_out[name] = words(error)
            return None


def _is_name(name: str) -> bool:
    """Whether it can be written after a dot."""
    return name.isidentifier() and not iskeyword(name)


def _tree(module: Any) -> list[str]:
    """The names of a module and of the public ones in its folder: those that it lists, if it says what is public."""
    below = [found.name for found in pkgutil.iter_modules(getattr(module, "__path__", ()))]
    listed = getattr(module, "__all__", None)
    public = [name for name in below if not name.startswith("_")] if listed is None else [
        name for name in below if name in listed and isinstance(getattr(module, name), ModuleType)]
    return [module.__name__, *[f"{module.__name__}.{name}" for name in public]]


def _origin(namespace: str, real: str, name: str, value: Any) -> Origin:
    """Where a checker finds a name of a namespace, which is the module `real`; a module below it has stubs, too."""
    if not isinstance(value, ModuleType):
        return _home(real, name, value), name
    package, _, last = value.__name__.rpartition(".")
    return (f"corejax.{namespace}", name) if package == real else (package, last)


def _home(module: str, name: str, value: object) -> str:
    """The module that a checker finds a name in: the same, or if that gives names as they are asked for, one below."""
    for below, loaded in sorted(sys.modules.items()):
        if below.startswith(f"{module}.") and name in getattr(loaded, "__all__", ()) and (
                vars(loaded).get(name) is value):
            return below
    return module


def _modules() -> list[str]:
    """The public modules of corejax: those that say what is public in them."""
    found = [path.stem for path in _KERNEL.glob("*.py")] + [path.parent.name for path in _KERNEL.glob("*/__init__.py")]
    return sorted(name for name in found if not name.startswith("_")
                  and hasattr(import_module(f"corejax.{name}"), "__all__"))


# Definitions

def _is_type(value: object) -> bool:
    """Whether it is a class, or a type made of others, such as `tuple[int, str]`."""
    return isinstance(value, type) or typing.get_origin(value) is not None


def _place(name: str, value: Any) -> Origin:
    """Where the type is that `lax.NAME` is: one made of others doesn't know, but its entry point does."""
    if isinstance(value, type) and typing.get_origin(value) is None:
        return value.__module__, value.__qualname__
    entry = installed().choose_function(name)
    assert entry is not None
    return entry.module, entry.attr


def _function(name: str) -> Any:
    """What `lax` has under this name."""
    of_its_own = installed().providers(FUNCTIONS, name)
    return load(FUNCTIONS, name) if of_its_own else find(name).function


def defined(name: str, value: Any, scope: Scope, method: bool = False) -> list[str]:
    """The definition of a function, as lines."""
    lines: list[str] = []
    signatures = [] if _is_type(value) else _signatures(value)
    if not signatures:
        return [f"{name}: {scope.name(('typing', 'Any'))}"]
    doc = inspect.getdoc(value)
    for shape, modules in signatures:
        if len(signatures) > 1:
            lines.append(f"@{scope.name(('typing', 'overload'))}")
        lines += _definition(name, shape, modules, scope, doc if shape is signatures[-1][0] else None, method)
    return lines


def _definition(name: str, shape: inspect.Signature, modules: Sequence[str], scope: Scope, doc: str | None,
                method: bool) -> list[str]:
    parameters = list(shape.parameters.values())[method:]
    written = [_parameter(p, modules, scope) for p in parameters]
    kinds = [p.kind for p in parameters]
    kind = inspect.Parameter
    if kind.KEYWORD_ONLY in kinds and kind.VAR_POSITIONAL not in kinds:
        written.insert(kinds.index(kind.KEYWORD_ONLY), "*")
    positional = kinds.count(kind.POSITIONAL_ONLY)
    if positional:
        written.insert(positional, "/")
    result = _type(shape.return_annotation, modules, scope)
    line = f"def {name}({', '.join(['self'] * method + written)}) -> {result}:"
    return [line, *[f"    {part}" if part else "" for part in _quoted(doc).split("\n")]] if doc else [f"{line} ..."]


def _parameter(p: inspect.Parameter, modules: Sequence[str], scope: Scope) -> str:
    star = "*" if p.kind is p.VAR_POSITIONAL else "**" if p.kind is p.VAR_KEYWORD else ""
    default = "" if p.default is p.empty else f" = {_default(p.default)}"
    return f"{star}{p.name}: {_type(p.annotation, modules, scope)}{default}"


def _type(annotation: object, modules: Sequence[str], scope: Scope) -> str:
    unknown = annotation is inspect.Signature.empty
    return scope.name(("typing", "Any")) if unknown else scope.annotation(annotation, modules)


def _default(value: object) -> str:
    kind = type(value)
    if kind is tuple and value == ():
        return "()"
    return repr(value) if kind in _PLAIN and not (isinstance(value, float) and not isfinite(value)) else "..."


def _signatures(function: Any) -> list[tuple[inspect.Signature, list[str]]]:
    """The signatures of a function, one for each overload, with the modules whose names their annotations use."""
    plain = inspect.unwrap(function)
    code = getattr(plain, "__code__", None)
    modules = [str(getattr(plain, "__globals__", {}).get("__name__")), str(getattr(function, "__module__", None))]
    plugin = getattr(getattr(function, "primitive", None), "plugin", None)
    typed = getattr(plugin, "abstract_eval", None) or getattr(plugin, "decompose", None)
    modules += [str(getattr(typed, "__module__", None)), type(Array).__module__]  # for signatures that are made here
    if code is not None:
        place: Any = SimpleNamespace(__module__=modules[0], __qualname__=code.co_qualname)
        overloads = typing.get_overloads(place)
        if overloads:
            return [(inspect.signature(overload), modules) for overload in overloads]
    try:
        return [(inspect.signature(function), modules)]
    except (TypeError, ValueError):
        return []


# Text

def _file(doc: str, lines: Sequence[str]) -> str:
    return "\n".join([MARK, "", doc, "", *lines]).rstrip("\n") + "\n"


def _quoted(doc: str) -> str:
    """A docstring as it is written in a file."""
    text = doc.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    end = "\n" if "\n" in text else " " if text.endswith('"') else ""
    return f'"""{text}{end}"""'


# Writing them

def write(directory: str | os.PathLike[str], partial: bool = False) -> Iterator[str]:
    """Write the stubs below a directory, and say what was written, and how type checkers find it.

    They are a package `corejax` for a checker's search path; with `partial`, a package `corejax-stubs` to be installed,
    as PEP 561 describes it. Files that are up to date aren't touched.
    """
    root = Path(directory).resolve()
    if {"site-packages", "dist-packages"} & set(root.parts):
        raise CorejaxValueError("stubs don't go among installed packages", got=str(root), where=here(),
                                wanted="a directory of your project", todo="leave it out: the default is typings/")
    stubs = Stubs()
    yield from (f"left out {name}: {why}" for name, why in stubs.left_out.items())
    package = root / (INSTALLED if partial else "corejax")
    files = {**stubs.files, "py.typed": "partial\n"} if partial else stubs.files
    try:
        changed = [path for path, text in files.items() if _update(package / path, text)]
        changed += [path for path in _stale(package, files) if _remove(package / path)]
    except OSError as error:
        raise CorejaxRuntimeError("the stubs can't be written", got=f"{type(error).__name__}: {error}", where=here(),
                                  wanted=f"a directory that can be written to, at {root}",
                                  todo="name another directory") from error
    yield f"{package}: {len(changed)} files written" if changed else f"{package}: up to date"
    if not partial:
        yield from _settings(os.path.relpath(root))


def _update(path: Path, text: str) -> bool:
    if path.is_file() and path.read_text("utf-8") == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return True


def _stale(package: Path, files: Mapping[str, str]) -> list[str]:
    """Stubs of an earlier run that this one doesn't have."""
    found = [(path, path.relative_to(package).as_posix()) for path in package.rglob("*.pyi")]
    return [name for path, name in found if name not in files and path.read_text("utf-8").startswith(MARK)]


def _remove(path: Path) -> bool:
    path.unlink()
    return True


def _settings(directory: str) -> Iterator[str]:
    yield from ("", "For type checkers to find them, write into pyproject.toml:", "", "    [tool.mypy]",
            f'    mypy_path = "{directory}"', "", "    [tool.pyright]", f'    stubPath = "{directory}"')
    if distribution(INSTALLED) is not None:  # pyright reads its files for those of any folder of that name
        yield from ("", f"pyright prefers the installed {INSTALLED}, which these contain: pip uninstall {INSTALLED}")
