"""What the modules of a package import, read from their source: nothing is imported for it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_SHIPPED = {path.parent.name: path.parent.parent for path in sorted(ROOT.glob("plugins/*/corejax_*/__init__.py"))}

#: By their packages: distributions with commands and checks, and those with primitives, functions or rules.
TOOLS = {name: folder for name, folder in _SHIPPED.items() if name in ("corejax_authoring", "corejax_testing")}
PACKS = {name: folder for name, folder in _SHIPPED.items() if name not in TOOLS}

#: What imports a module by its name.
BY_NAME = ("late", "import_module", "__import__", "importlib.import_module")


@dataclass(frozen=True, slots=True)
class Import:
    """One module imported by another."""

    module: str
    line: int
    in_function: bool
    for_types_only: bool
    late: bool = False
    """By a call with the module's name: when something of it is first asked for."""


def modules(package: Path) -> dict[str, Path]:
    """The modules of a package by dotted name."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


def imports(path: Path, known: Mapping[str, Path]) -> Iterator[Import]:
    """Every import statement of a file; `from a import b` is `a.b` where that is a known module."""
    for found, name in _written(path):
        if not found.late:
            full = f"{found.module}.{name}"
            yield replace(found, module=full) if name and full in known else found
        elif found.module in known:
            yield found


@cache
def _written(path: Path) -> list[tuple[Import, str]]:
    """What a file imports, with the name that is imported from it; several tests ask for it."""
    return [*_imports(tree(path), in_function=False, for_types_only=False)]


def _imports(node: ast.AST, in_function: bool, for_types_only: bool) -> Iterator[tuple[Import, str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import):
            yield from ((Import(alias.name, child.lineno, in_function, for_types_only), "") for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            assert child.level == 0, "imports are absolute"
            found = Import(str(child.module), child.lineno, in_function, for_types_only)
            yield from ((found, alias.name) for alias in child.names)
        else:
            if isinstance(child, ast.Call) and child.args and _called(child.func) in BY_NAME:
                name = child.args[0]
                if isinstance(name, ast.Constant) and isinstance(name.value, str):
                    yield Import(name.value, child.lineno, in_function, for_types_only, late=True), ""
            yield from _imports(
                child, in_function or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda),
                for_types_only or (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)))


def _called(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        return f"{function.value.id}.{function.attr}"
    return function.id if isinstance(function, ast.Name) else ""
