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
from io import StringIO
from keyword import iskeyword
from pathlib import Path
from shlex import quote
from string import Template
from token import NAME
from tokenize import generate_tokens
from typing import Final

from corejax.distributions import (
    DTYPES,
    FUNCTIONS,
    NAMESPACES,
    PRIMITIVES,
    RULES,
    TRANSFORMS,
    installed,
    is_reserved,
    noun,
    words,
)
from corejax.errors import CorejaxRuntimeError, CorejaxValueError, suggestion
from corejax.plugin import elements, transforming

TEMPLATES: Final = Path(__file__).with_name("templates")
SUFFIX: Final = ".tmpl"
KINDS: Final = ("elementwise", "structured", "carrying", "rules", "native", "namespace", "dtype", "transform")

#: What the names of many packs begin with; the functions' names don't.
PREFIX: Final = "corejax-"


def new(name: str, kind: str, into: str = ".") -> Iterator[str]:
    """Write a repository into a new folder of `into`, and yield what was written and what comes next.

    No file is overwritten: the folder must not exist, or be empty.
    """
    if kind not in KINDS:
        raise CorejaxValueError(f"there is no kind {kind!r} of packs", got=repr(kind), wanted=", ".join(KINDS),
                                todo=suggestion(kind, KINDS) or "choose one of these")
    names = _names(name)
    folder = Path(into) / names["distribution"]
    files = dict(_files(kind, names))
    _refuse_taken_names(names, kind, files["pyproject.toml"])
    try:
        if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
            raise CorejaxValueError(f"{folder} exists, and isn't an empty folder", got=str(folder), todo="choose "
                                    "another name, or another folder with --in", wanted="a new folder, or an empty one")
        for path, text in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            with open(folder / path, "x", encoding="utf-8", newline="\n") as file:
                file.write(text)
    except OSError as error:
        raise CorejaxRuntimeError(f"{folder} can't be written", got=words(error), wanted="a folder for it",
                                  todo="choose another folder with --in") from error
    yield from (str(folder / path) for path in files)
    yield f"\nnext: cd {quote(str(folder))} && pip install -e '.[test]' && pytest && python -m corejax check && mypy"


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


def _refuse_taken_names(names: Mapping[str, str], kind: str, pyproject: str) -> None:
    module = names["module"]
    found = PathFinder.find_spec(module)  # of a mere folder, it has no location
    if module in sys.stdlib_module_names or (found is not None and found.has_location):
        raise CorejaxValueError(
            f"there is a module {module} already", got=names["distribution"], wanted="a name for a new module",
            todo="choose another name" if module.startswith("corejax") else f"call it {PREFIX}{names['distribution']}")
    used = _used_otherwise(names, kind)
    if used:
        raise CorejaxValueError(f"the files of this kind use the name {min(used)} for something else",
                                got=names["distribution"], wanted="a name that isn't in them",
                                todo="choose another name, such as one of two words")
    for group, table in tomllib.loads(pyproject)["project"]["entry-points"].items():
        for name in table if group != RULES else ():
            taken = _taken(group, name)
            if taken is not None:
                raise CorejaxValueError(f"{taken} {name!r} already", got=repr(name),
                                        wanted="a name that no pack has", todo="choose another name for yours")


def _taken(group: str, name: str) -> str | None:
    """Who provides this name already, and as what."""
    if group == NAMESPACES and is_reserved(name):
        return f"corejax provides the {noun(group)}"
    if group == DTYPES and elements.is_reserved(name):
        return f"corejax or NumPy provides the {noun(group)}"
    if group == TRANSFORMS and transforming.is_reserved(name):
        return "corejax has a hook or a declaration"
    found = installed()
    alike = found.called(group, name)[1] if group in (PRIMITIVES, FUNCTIONS, NAMESPACES) else ()
    return next((f"{entry.pack} provides the {noun(entry.group)}" for entry in (
        *found.providers(group, name), *alike)), None)


def _used_otherwise(names: Mapping[str, str], kind: str) -> set[str]:
    """The names for the pack's objects that a kind's Python code has for others."""
    code = Template("\n".join(path.read_text(encoding="utf-8")
                              for path in (TEMPLATES / "kinds" / kind).rglob(f"*.py{SUFFIX}")))
    keys = set(code.get_identifiers())
    lines = StringIO(code.substitute(dict.fromkeys(keys, "_")))
    return {names[key] for key in keys & {"name", "Name", "NAME"}} & {
        token.string for token in generate_tokens(lines.readline) if token.type == NAME}


def _files(kind: str, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The files of a repository: their paths in it, and their contents. Of two with the same path, the last counts."""
    described = tomllib.loads((TEMPLATES / "kinds" / kind / "kind.toml").read_text(encoding="utf-8"))
    values = {**names, **{key: Template(text).substitute(names).strip() for key, text in described.items()}}
    for folder in (TEMPLATES / "common", TEMPLATES / "kinds" / kind):
        for path in sorted(folder.rglob(f"*{SUFFIX}")):
            target = path.relative_to(folder).as_posix().removesuffix(SUFFIX)
            yield Template(target).substitute(values), Template(path.read_text(encoding="utf-8")).substitute(values)
