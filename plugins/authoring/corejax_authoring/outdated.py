"""Stubs that were written for other packs, or other versions of them, than those that are installed now.

What they declare is compared, without documentation: the installed `corejax-stubs` with the packs that it is for, what
`python -m corejax stubs` wrote into the current directory with everything.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from corejax.distributions import bringing, broken, distribution, installed, parse_requirements
from corejax_authoring.stubs import INSTALLED, MARK, Stubs

#: Where `python -m corejax stubs` writes them.
DIRECTORY = "typings"

_MOST = 5  # names that are shown


class Outdated(NamedTuple):
    """Stubs that are out of date: whose they are, what is wrong with them, and what to do about it."""

    name: str
    problem: str
    todo: str


def outdated() -> Iterator[Outdated]:
    """The stubs that don't describe what is installed."""
    written = Path(DIRECTORY, "corejax")
    if written.is_dir():
        problem = _differences(written, None)
        if problem:
            yield Outdated(DIRECTORY, f"the stubs in {written} are out of date: {problem}",
                           "python -m corejax stubs writes them anew")
    found = distribution(INSTALLED)
    if found is None:
        return
    packs = {each.name for each in parse_requirements(found.requires or ()) if not each.optional} - {"corejax"}
    folders = [Path(folder, INSTALLED) for folder in (str(found.locate_file("")), *sys.path)]
    folder = next((folder for folder in folders if folder.is_dir()), None)
    if folder is None or not packs <= installed().packs.keys() - broken().keys():
        return  # they describe what nobody uses here
    problem = _differences(folder, packs)
    if problem:
        yield Outdated(INSTALLED, f"the stubs of {INSTALLED} {found.version} are out of date: {problem}",
                       f"pip install --upgrade {INSTALLED}; or python -m corejax stubs writes your own")


def _differences(folder: Path, packs: Collection[str] | None) -> str:
    """How the stubs in a folder differ from what is installed, in words; nothing if they don't."""
    made = Stubs(packs)
    now = _declared(made.files)
    then = _declared({path.relative_to(folder).as_posix(): text for path in folder.rglob("*.pyi")
                      if (text := _text(path)).startswith(MARK)})
    changed = {
        "without": sorted(now.keys() - then.keys()),
        "with other types for": sorted([name for name in now.keys() & then.keys() if now[name] != then[name]]),
        "still with": sorted([name for name in then.keys() - now.keys() - made.left_out.keys()
                              if not (_is_excluded(name) or (packs is not None and _may_be_elsewhere(name)))])}
    return ", ".join([f"{how} {_few(names)}" for how, names in changed.items() if names])


def _is_excluded(name: str) -> bool:
    """Whether a pack provides it that the environment excludes, which may be for this process only."""
    plain = name.partition(".")[2].removesuffix("*")
    return any([entry.name.rpartition("/")[2].removeprefix("operators.") == plain or f"{name}.".startswith(
        f"{entry.name}.") for pack in installed().hidden.values() for entry in pack.entries])


def _may_be_elsewhere(name: str) -> bool:
    """Whether it is a namespace, or in one, of a distribution that users of the stubs may have or not."""
    return bringing(name.removeprefix("cj.").partition(".")[0]) is not None


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def _few(names: list[str]) -> str:
    more = len(names) - _MOST
    return f"{', '.join(names[:_MOST])} and {more} more" if more > 0 else ", ".join(names)


def _declared(files: Mapping[str, str]) -> dict[str, str]:
    """What stubs declare, by names as users write them: `cj.NAME`, `lax.NAME`, `x.NAME` for an array's."""
    found: dict[str, list[str]] = {}
    for path, text in files.items():
        module = path.removesuffix(".pyi").removesuffix("__init__").rstrip("/").replace("/", ".")
        body = _body(text)
        if module == "arrays.methods":
            module, body = "x", [node for kind in body if isinstance(kind, ast.ClassDef) for node in kind.body]
        for node in body:
            for name in _names(node):
                found.setdefault(f"{module or 'cj'}.{name}", []).append(_without_documentation(node, name))
    return {name: "\n".join(lines) for name, lines in found.items()}


def _body(text: str) -> list[ast.stmt]:
    try:
        return ast.parse(text).body
    except SyntaxError:  # somebody has edited it
        return []


def _names(node: ast.stmt) -> list[str]:
    """The names that a statement of a stub declares for users."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    if isinstance(node, ast.ImportFrom):  # `as` makes a name public, and `*` those that are
        return [alias.name for alias in node.names if alias.asname == alias.name or not alias.name.isidentifier()]
    return []


def _without_documentation(node: ast.stmt, name: str) -> str:
    if isinstance(node, ast.ImportFrom):
        return f"from {node.module} import {name}"
    if isinstance(node, ast.FunctionDef):
        node.body = [ast.Expr(ast.Constant(...))]
    return ast.unparse(node)
