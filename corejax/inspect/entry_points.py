"""The entry points of a pack, written into its pyproject.toml from what its modules export.

- A name in a module's `__all__` is public. A function with a `.primitive` is that primitive's entry point, and every
  public function is in `corejax.functions`. An `ElementType` is an element type, wherever it is.
- The public names of `roles.py` are roles, those of `operators.py` operators and array methods (`and_` fills the role
  `operators.and`), those of `numpy_tables.py` tables of NumPy functions, which are roles too, and those of `kernels.py`
  native kernels, named after the distribution.
- `RULES = {"corejax-special/erf:vmap": map_erf}` in a module says which of its rules are for primitives of other packs.
- `AT_TOP = ("pmap",)` in a module says which of its functions are `cj.NAME` rather than `cj.lax.NAME`. A primitive that
  is exported as `NAME_p` is no function: another one applies it. If NAME isn't its own, that is another name of the
  primitive: `while_p = while_loop` makes `lax.while_p` the primitive that `lax.while_loop_p` is.
- `NAMESPACE = "special"` makes a module `cj.special`; its functions are there, and not in `cj.lax`. If that module is
  the package, this goes for the functions of all of its modules.

Modules whose names start with an underscore are private; a name that the package re-exports belongs to the module that
it comes from.
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
from typing import Any, Final

from corejax.base.elements import ElementType
from corejax.base.errors import CorejaxError, CorejaxValueError, PackError, PluginError
from corejax.base.source import here
from corejax.installed import registry
from corejax.installed.groups import AT_TOP, DTYPES, FUNCTIONS, ITSELF, KERNELS, NAMESPACES, PRIMITIVES, ROLES, RULES
from corejax.installed.targets import Target

BEGIN: Final = "# entry points: written by `python -m corejax entry-points --write`"
END: Final = "# entry points end"
MARKED: Final = re.compile(r"^# entry points: written by .*\n(?:.*\n)*?# entry points end(?:\n|\Z)", re.MULTILINE)

#: Folders of a repository that may be packages, and aren't what is distributed.
BESIDE: Final = ("tests", "test", "docs", "examples", "benchmarks")

#: The modules whose public names are members of one group, with what each is called there.
MODULES: Final = {
    "roles": (ROLES, "{name}"),
    "numpy_tables": (ROLES, "{name}"),
    "operators": (ROLES, "operators.{bare}"),
    "kernels": (KERNELS, "{distribution}.{name}"),
}

#: For each group, the names with what they lead to, `module:attribute`.
Tables = dict[str, dict[str, str]]


def update(directories: Iterable[str], write: bool) -> Iterator[str]:
    """Write the tables of the packs in these folders, or raise if any of them is out of date."""
    stale = []
    for directory in directories:
        path = Path(directory) / "pyproject.toml"
        project = _project(path)
        text = path.read_text()
        wanted = updated(text, collect(path.parent, project), path)
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


def _project(path: Path) -> str:
    """The name of the distribution."""
    try:
        name = tomllib.loads(path.read_text())["project"]["name"]
    except FileNotFoundError:
        raise CorejaxValueError("there is no pyproject.toml", got=str(path.parent), wanted="the folder of a pack",
                                todo="name the folder that it is in; `python -m corejax new NAME` makes one") from None
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise CorejaxValueError(f"{path}: this can't be read", got=registry.words(error), where=str(path),
                                wanted="TOML with a name in the table [project]", todo="correct it") from None
    return str(name)


# What modules export

def collect(directory: Path, distribution: str) -> Tables:
    """The tables of a pack, from its modules."""
    modules = list(_modules(directory, distribution))
    tables: Tables = {group: {} for group in (PRIMITIVES, FUNCTIONS, NAMESPACES, ROLES, RULES, KERNELS, DTYPES)}
    elsewhere: set[int] = set()  # what is no function of cj.lax, though it is public
    at_top: set[int] = set()
    all_elsewhere = "NAMESPACE" in vars(modules[-1])
    for module in modules:
        for target, rule in vars(module).get("RULES", {}).items():
            tables[RULES][target] = f"{module.__name__}:{_name_of_rule(module, target, rule)}"
            elsewhere.add(id(rule))
        namespace = vars(module).get("NAMESPACE")
        if namespace is not None:
            tables[NAMESPACES][namespace] = module.__name__
            elsewhere |= {id(value) for _, value in _exports(module)}
        at_top |= {id(getattr(module, name)) for name in vars(module).get("AT_TOP", ())}
    for module in sorted(modules, key=lambda module: "NAMESPACE" in vars(module)):  # what is elsewhere belongs there
        for name, value in _exports(module):
            for group, member in _members(module, name, value, distribution):
                if group == FUNCTIONS and id(value) in at_top:
                    member = f"{AT_TOP}{member}"
                if group != FUNCTIONS or not (all_elsewhere or id(value) in elsewhere):
                    tables[group].setdefault(member, f"{module.__name__}:{name}")
    return {group: dict(sorted(table.items())) for group, table in tables.items() if table}


def _members(module: ModuleType, name: str, value: Any, distribution: str) -> Iterator[tuple[str, str]]:
    """The groups that a public name belongs to, with its name there."""
    kind = module.__name__.rpartition(".")[2]
    if kind in MODULES:
        group, form = MODULES[kind]
        yield group, form.format(name=name, bare=name.rstrip("_"), distribution=distribution)
    elif isinstance(value, ElementType):
        yield DTYPES, value.name
    elif callable(value):
        primitive = getattr(value, "primitive", None)
        means_itself = primitive is not None and name.endswith(ITSELF)
        if primitive is not None and (not means_itself or name == f"{primitive.name}{ITSELF}"):
            yield PRIMITIVES, primitive.name
        if primitive is None or name != f"{primitive.name}{ITSELF}":
            yield FUNCTIONS, name


def _exports(module: ModuleType) -> Iterator[tuple[str, Any]]:
    for name in getattr(module, "__all__", ()):
        try:
            yield name, getattr(module, name)
        except AttributeError:
            raise PackError(f"{module.__name__}: __all__ names what isn't there", got=repr(name), where=module.__file__,
                            wanted="names of the module", todo="correct __all__") from None


def _name_of_rule(module: ModuleType, target: str, rule: object) -> str:
    """What the module calls a rule, so that an entry point can lead to it."""
    if Target.parse(target) is None:
        raise PluginError(f"{module.__name__}: RULES has a key that isn't the name of a rule", got=repr(target),
                          where=module.__file__, wanted="distribution/primitive:hook, or distribution/*:hook",
                          todo="say whose primitive the rule is for, and which hook it is")
    for name, value in vars(module).items():
        if value is rule:
            return name
    raise PluginError(f"{module.__name__}: RULES has a rule without a name", got=repr(target), where=module.__file__,
                      wanted="a function or an object that the module has a name for",
                      todo="assign it to a name first: an entry point leads to a name")


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
             if init.parent.name not in BESIDE]
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
        raise PackError(f"{name} can't be imported", got=registry.words(error), wanted="a module that can be imported",
                        where=str(folder), todo="correct it; what it imports has to be installed") from error
    if not Path(module.__file__ or "").resolve().is_relative_to(folder):
        raise PackError(f"{name} was imported from elsewhere", got=module.__file__, wanted=f"a module in {folder}",
                        where=here(), todo="uninstall the other one, or start Python in another folder")
    return module


# The file

def updated(text: str, tables: Tables, path: Path) -> str:
    """A pyproject.toml with new tables between the marks; without marks, at its end."""
    by_hand = tomllib.loads(MARKED.sub("", text)).get("project", {}).get("entry-points", {}).keys() & tables.keys()
    if by_hand:
        raise CorejaxValueError(
            f"{path}: these tables would be there twice", got=", ".join(sorted(by_hand)), where=str(path),
            wanted="groups of corejax between the marks only",
            todo="delete them: what your modules export is written instead (rules: RULES; namespaces: NAMESPACE)")
    marked = f"{BEGIN}\n{render(tables)}\n{END}\n"
    if MARKED.search(text):
        return MARKED.sub(lambda _: marked, text)
    return f"{text.rstrip()}\n\n{marked}" if tables else text


def render(tables: Tables) -> str:
    """The tables as TOML."""
    lines = []
    for group, table in tables.items():
        lines.append(f'\n[project.entry-points."{group}"]\n')
        for name, target in table.items():
            key = name if re.fullmatch(r"[\w-]+", name, re.ASCII) else f'"{name}"'
            lines.append(f'{key} = "{target}"\n')
    return "".join(lines)
