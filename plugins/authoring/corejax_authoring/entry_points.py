"""The entry points of a pack, written into its pyproject.toml from what its modules export.
`corejax_authoring.exports` says which they are.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType
from typing import TYPE_CHECKING, Final

from corejax.core import here
from corejax.distributions import (
    FUNCTIONS,
    NAMESPACES,
    NOT_DISTRIBUTED,
    PRIMITIVES,
    ROLES,
    TABLES,
    TRANSFORMS,
    canonical,
    installed,
    standard,
    words,
)
from corejax.errors import CorejaxError, CorejaxValueError, PackError
from corejax_authoring.exports import Tables, tables

if TYPE_CHECKING:
    from corejax.distributions import Entry, Manifest

BEGIN: Final = "# entry points: written by `python -m corejax entry-points --write`"
END: Final = "# entry points end"
MARKED: Final = re.compile(r"^# entry points: written by .*\n(?:.*\n)*?# entry points end(?:\n|\Z)", re.MULTILINE)


def update(directories: Iterable[str], write: bool) -> Iterator[str]:
    """Write the tables of the packs in these folders, or raise if any of them is out of date."""
    stale = []
    for directory in directories:
        path = Path(directory) / "pyproject.toml"
        project = _project(path)
        text = path.read_text()
        found = tables(list(_modules(path.parent, project)), project)
        yield from _shared(path, project, found)
        wanted = updated(text, found, path)
        if wanted == text:
            continue
        stale.append(str(path))
        if write:
            path.write_text(wanted)
            yield f"{path}: entry points written; install the pack again, so that they are seen"
    if stale and not write:
        raise CorejaxError(f"out of date: the entry points in {', '.join(stale)}",
                           todo="python -m corejax entry-points --write, and install the pack again")
    if not stale:
        yield "the entry points are up to date"


def _shared(path: Path, distribution: str, found: Tables) -> Iterator[str]:
    """A warning about names that standard packs have: to users, `lax.NAME` of two packs is an error."""
    packs = set(standard()) - {canonical(distribution)}
    owners: dict[str, set[str]] = {}
    below_lax = any([name.startswith("lax.") for name in found.get(NAMESPACES, ())])  # where primitives are, then
    groups = (FUNCTIONS, NAMESPACES, ROLES, TRANSFORMS)
    for group in groups if below_lax else (PRIMITIVES, *groups):
        for name in found.get(group, ()):
            public, others = _public(group, name, installed())
            for entry in others:
                if entry.pack.name in packs:
                    owners.setdefault(entry.pack.name, set()).add(public)
    for owner, names in sorted(owners.items()):
        yield (f"warning: {path}: {owner} has {', '.join(sorted(names))}, too. To users these names are an error until "
               "they prefer a pack (COREJAX_PREFER): choose other names, or put the module in a namespace: NAMESPACE")


def _public(group: str, name: str, manifest: Manifest) -> tuple[str, list[Entry]]:
    """What users call something, and the entries for what is called the same."""
    if group == ROLES:
        return f"the role {name}", [] if name in TABLES else manifest.providers(ROLES, name)
    if group == TRANSFORMS:
        return f"the transformation {name}", manifest.providers(TRANSFORMS, name)
    return manifest.called(group, name)


def _project(path: Path) -> str:
    """The name of the distribution."""
    try:
        name = tomllib.loads(path.read_text())["project"]["name"]
    except FileNotFoundError:
        raise CorejaxValueError("there is no pyproject.toml", got=str(path.parent), wanted="the folder of a pack",
                                todo="name the folder that it is in; `python -m corejax new NAME` makes one") from None
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise CorejaxValueError(f"{path}: this can't be read", got=words(error), where=str(path),
                                wanted="TOML with a name in the table [project]", todo="correct it") from None
    return str(name)


# Where modules are

def _modules(directory: Path, distribution: str) -> Iterator[ModuleType]:
    """The public modules of the pack; the package itself comes last, since what it re-exports belongs elsewhere."""
    folder = _package(directory, distribution)
    with _first_on_the_path(folder.parent):
        package = _imported(folder.name, folder)
        for info in iter_modules(package.__path__):
            if not info.name.startswith("_"):
                yield _imported(f"{folder.name}.{info.name}", folder)
        yield package


def _package(directory: Path, distribution: str) -> Path:
    """The folder of the package: the one named after the distribution, or the only one."""
    found = [init.parent for pattern in ("*/__init__.py", "src/*/__init__.py") for init in directory.glob(pattern)
             if init.parent.name not in NOT_DISTRIBUTED]
    module = re.sub(r"[-_.]+", "_", distribution).lower()
    named = [folder for folder in found if folder.name == module]
    if len(named or found) != 1:
        raise CorejaxValueError(
            "it isn't clear which package is the pack's", where=str(directory),
            got=", ".join(sorted(folder.name for folder in found)) or "no folder with an __init__.py",
            wanted="one package, here or in src/", todo="name the package after the distribution, with underscores")
    return (named or found)[0].resolve()


@contextmanager
def _first_on_the_path(directory: Path) -> Iterator[None]:
    sys.path.insert(0, str(directory))
    try:
        yield
    finally:
        sys.path.remove(str(directory))


def _imported(name: str, folder: Path) -> ModuleType:
    try:
        module = import_module(name)
    except Exception as error:
        raise PackError(f"{name} can't be imported", got=words(error), wanted="a module that can be imported",
                        where=str(folder), todo="correct it; what it imports has to be installed") from error
    if not Path(module.__file__ or "").resolve().is_relative_to(folder):
        raise PackError(f"{name} was imported from elsewhere", got=module.__file__, wanted=f"a module in {folder}",
                        where=here(), todo="uninstall the other one, or start Python in another folder")
    return module


# The file

def updated(text: str, wanted: Tables, path: Path) -> str:
    """A pyproject.toml with new tables between the marks; without marks, at its end."""
    by_hand = tomllib.loads(MARKED.sub("", text)).get("project", {}).get("entry-points", {}).keys() & wanted.keys()
    if by_hand:
        raise CorejaxValueError(
            f"{path}: these tables would be there twice", got=", ".join(sorted(by_hand)), where=str(path),
            wanted="groups of corejax between the marks only",
            todo="delete them: what your modules export is written instead (rules: RULES; namespaces: NAMESPACE)")
    marked = f"{BEGIN}\n{render(wanted)}\n{END}\n"
    if MARKED.search(text):
        return MARKED.sub(lambda _: marked, text)
    return f"{text.rstrip()}\n\n{marked}" if wanted else text


def render(wanted: Tables) -> str:
    """The tables as TOML."""
    lines = []
    for group, table in wanted.items():
        lines.append(f'\n[project.entry-points."{group}"]\n')
        for name, target in table.items():
            key = name if re.fullmatch(r"[\w-]+", name, re.ASCII) else f'"{name}"'
            lines.append(f'{key} = "{target}"\n')
    return "".join(lines)
