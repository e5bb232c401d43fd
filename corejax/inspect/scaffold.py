"""`python -m corejax new`: a pack as a whole repository, which passes its own tests, `check` and mypy from the start.

What is written comes from `templates/`: the files in `common`, and those of a kind, which go before. They are
`string.Template`s, also in their paths. A kind's `kind.toml` has what the common files say about it.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from importlib.machinery import PathFinder
from keyword import iskeyword
from pathlib import Path
from string import Template
from typing import Final

from corejax.base.errors import CorejaxRuntimeError, CorejaxValueError, suggestion
from corejax.installed import namespaces, registry
from corejax.installed.groups import NAMESPACES, RULES, noun

TEMPLATES: Final = Path(__file__).with_name("templates")
SUFFIX: Final = ".tmpl"
KINDS: Final = ("elementwise", "structured", "carrying", "rules", "native", "namespace", "dtype")

#: What the names of many packs begin with; the functions' names don't.
PREFIX: Final = "corejax-"


def new(name: str, kind: str, into: str = ".") -> Iterator[str]:
    """Write a repository into a new folder of `into`, and yield what was written and what comes next.

    No file is overwritten: the folder must not exist, or be empty.
    """
    names = _names(name)
    if kind not in KINDS:
        raise CorejaxValueError(f"there is no kind {kind!r} of packs", got=repr(kind), wanted=", ".join(KINDS),
                                todo=suggestion(kind, KINDS) or "choose one of these")
    folder = Path(into) / names["distribution"]
    files = dict(_files(kind, names))
    _refuse_taken_names(names, files["pyproject.toml"])
    try:
        if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
            raise CorejaxValueError(f"{folder} exists, and isn't an empty folder", got=str(folder), todo="choose "
                                    "another name, or another folder with --in", wanted="a new folder, or an empty one")
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            with open(folder / path, "x", encoding="utf-8", newline="\n") as file:
                file.write(text)
            yield str(folder / path)
    except OSError as error:
        raise CorejaxRuntimeError(f"{folder} can't be written", got=registry.words(error), wanted="a folder for it",
                                  todo="choose another folder with --in") from error
    yield f"\nnext: cd {folder} && pip install -e '.[test]' && pytest && python -m corejax check && mypy"


def _names(name: str) -> dict[str, str]:
    """What templates call things, from the distribution's name."""
    distribution = re.sub(r"[-_.]+", "-", name).lower()
    stem = distribution.removeprefix(PREFIX).replace("-", "_")
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", distribution, re.ASCII) or not stem.isidentifier() or iskeyword(
            stem):
        raise CorejaxValueError(
            f"a pack can't be called {name!r}", got=repr(name), wanted="words of letters and digits, with hyphens "
            "between them; after corejax-, not a keyword of Python", todo=f"choose a name such as {PREFIX}smooth")
    return {"distribution": distribution, "module": distribution.replace("-", "_"), "name": stem,
            "Name": stem.title().replace("_", ""), "NAME": stem.upper()}


def _refuse_taken_names(names: Mapping[str, str], pyproject: str) -> None:
    module = names["module"]
    if module in sys.stdlib_module_names or PathFinder.find_spec(module) is not None:
        raise CorejaxValueError(
            f"there is a module {module} already", got=names["distribution"], wanted="a name for a new module",
            todo="choose another name" if module.startswith("corejax") else f"call it {PREFIX}{names['distribution']}")
    for group, table in tomllib.loads(pyproject)["project"]["entry-points"].items():
        for name in table if group != RULES else ():
            taken = [str(entry.pack) for entry in registry.installed().providers(group, name)]
            if group == NAMESPACES and namespaces.is_reserved(name):
                taken.append("corejax")
            if taken:
                raise CorejaxValueError(f"{taken[0]} provides the {noun(group)} {name!r} already", got=repr(name),
                                        wanted="a name that no pack has", todo="choose another name for yours")


def _files(kind: str, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The files of a repository: their paths in it, and their contents. Of two with the same path, the last counts."""
    described = tomllib.loads((TEMPLATES / "kinds" / kind / "kind.toml").read_text(encoding="utf-8"))
    values = {**names, **{key: Template(text).substitute(names).strip() for key, text in described.items()}}
    for folder in (TEMPLATES / "common", TEMPLATES / "kinds" / kind):
        for path in sorted(folder.rglob(f"*{SUFFIX}")):
            target = path.relative_to(folder).as_posix().removesuffix(SUFFIX)
            yield Template(target).substitute(values), Template(path.read_text(encoding="utf-8")).substitute(values)
