"""Every role that the kernel or a standard pack asks for by its name is filled by the standard packs."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

from corejax.arrays import datamodel
from corejax.kernel import numpy_calls
from corejax.plugin import operators, roles

ROOT = Path(__file__).parent.parent
SOURCES = [path for folder in ("corejax", "plugins") for path in sorted((ROOT / folder).rglob("*.py"))
           if "tests" not in path.parts and "templates" not in path.parts]
GROUPS = {"roles": "", "operators": "operators."}


def _bound(tree: ast.Module) -> dict[str, str]:
    """The names by which a module knows the groups of roles, and the prefix of each."""
    return {name.asname or name.name: GROUPS[name.name] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
            and node.module in ("corejax.plugin", "corejax.installed.roles") for name in node.names
            if name.name in GROUPS}


def _asked_for(source: str) -> Iterator[str]:
    """The roles that a module asks for: as attributes, or by `getattr` with a constant or a conditional one."""
    tree = ast.parse(source)
    bound = _bound(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in bound:
            if not node.attr.startswith("_"):
                yield bound[node.value.id] + node.attr
        elif (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr"
              and isinstance(node.args[0], ast.Name) and node.args[0].id in bound):
            for part in ast.walk(node.args[1]):
                if isinstance(part, ast.Constant) and isinstance(part.value, str) and not _is_formatted(node.args[1]):
                    yield bound[node.args[0].id] + part.value


def _is_formatted(node: ast.expr) -> bool:
    return any(isinstance(part, ast.JoinedStr) for part in ast.walk(node))


FILLED = {point.name for point in entry_points(group="corejax.roles")}


@cache
def _asked() -> dict[str, list[str]]:
    """Where each role is asked for. Not when tests are collected: it takes seconds, in every worker."""
    found = defaultdict(list)
    for path in SOURCES:
        source = path.read_text(encoding="utf-8")
        for role in {*_asked_for(source)} if any(group in source for group in GROUPS) else ():
            found[role].append(path.relative_to(ROOT).as_posix())
    return found


def test_roles_that_are_asked_for_by_name_are_filled() -> None:
    assert {} == {role: paths for role, paths in _asked().items() if role not in FILLED}


def test_roles_of_pythons_operators_are_filled() -> None:
    names = {name for names in numpy_calls._BINARY.values() for name in names} | set(datamodel.PYTHON_OPERATORS)
    assert {f"operators.{name}" for name in names} <= FILLED


def test_every_role_that_is_filled_can_be_loaded() -> None:
    for role in FILLED:
        prefix, _, name = role.rpartition(".")
        assert callable(getattr(operators if prefix else roles, name)) or role in ("numpy_ufunc", "numpy_function")


def test_what_is_asked_for_is_found() -> None:
    source = """
from corejax.plugin import operators as ops, roles
ops.and_(x, y); roles.zeros(aval); getattr(ops, "sum")(x); getattr(ops, "max" if up else "min"); ops.__dict__
getattr(ops, name); getattr(ops, f"cum{name}"); operators.add
"""
    assert ["operators.and_", "operators.max", "operators.min", "operators.sum", "zeros"] == sorted(_asked_for(source))
    assert "operators.and_" not in FILLED
    assert 60 < len(_asked())
