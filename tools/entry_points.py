"""Write the entry-point tables of packs into their pyproject.toml, from what their modules export.

    python tools/entry_points.py [--check] [PACK_DIRECTORY ...]

A name in a module's `__all__` is public. A function with a `.primitive` is that primitive's entry point, and every
public function is in `corejax.functions`. In `roles.py` the public names are roles, in `operators.py` they are
operators and array methods (`and_` fills the role `operators.and`), in `numpy_tables.py` they are tables of NumPy
functions, which are roles too, in `kernels.py` native kernels, which are named after the distribution. An `ElementType`
is an element type wherever it is. Modules whose
names start with an underscore are private; a name that the package re-exports belongs to the module that it comes from.
`--check` writes nothing and fails if a table is out of date.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
import tomllib
from pathlib import Path

from corejax.plugin import ElementType

ROOT = Path(__file__).resolve().parent.parent
PACKS = ("plugins/lax_basic", "plugins/reductions", "plugins/control_flow", "examples/softplus_pack",
         "examples/native_pack", "examples/rational_pack")
BEGIN = "# entry points: written by tools/entry_points.py\n"
END = "# entry points end\n"

Tables = dict[str, dict[str, str]]


def package_of(directory: Path) -> str:
    """The package of a pack: the only folder with an __init__.py."""
    (init,) = [p for p in directory.glob("*/__init__.py") if p.parent.name != "tests"]
    return init.parent.name


def collect(directory: Path) -> Tables:
    """The tables of a pack, from its modules."""
    sys.path.insert(0, str(directory))
    package = importlib.import_module(package_of(directory))
    tables: Tables = {"primitives": {}, "functions": {}, "roles": {}, "kernels": {}, "dtypes": {}}
    distribution = tomllib.loads((directory / "pyproject.toml").read_text())["project"]["name"]
    modules = [f"{package.__name__}.{info.name}" for info in pkgutil.iter_modules(package.__path__)
               if not info.name.startswith("_")]
    for name in [*modules, package.__name__]:  # the facade comes last, since what it re-exports belongs elsewhere
        module = importlib.import_module(name)
        for public in getattr(module, "__all__", ()):
            enter(tables, name, public, getattr(module, public), distribution)
    return {group: dict(sorted(table.items())) for group, table in tables.items() if table}


def enter(tables: Tables, module: str, public: str, value: object, distribution: str) -> None:
    """Add a public name to the tables that it belongs to."""
    target = f"{module}:{public}"
    kind = module.rpartition(".")[2]
    if kind in ("roles", "numpy_tables"):
        tables["roles"].setdefault(public, target)
    elif kind == "operators":
        tables["roles"].setdefault(f"operators.{public.rstrip('_')}", target)
    elif kind == "kernels":
        tables["kernels"].setdefault(f"{distribution}.{public}", target)
    elif isinstance(value, ElementType):
        tables["dtypes"].setdefault(value.name, target)
    elif callable(value):
        primitive = getattr(value, "primitive", None)
        if primitive is not None:
            tables["primitives"].setdefault(primitive.name, target)
        tables["functions"].setdefault(public, target)


def render(tables: Tables) -> str:
    """The tables as TOML."""
    lines = []
    for group, table in tables.items():
        lines.append(f'\n[project.entry-points."corejax.{group}"]\n')
        for name, target in table.items():
            key = f'"{name}"' if "." in name else name
            lines.append(f'{key} = "{target}"\n')
    return "".join(lines)


def updated(text: str, tables: Tables) -> str:
    """A pyproject.toml with new tables."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}{render(tables)}\n{END}{tail}"


def main() -> int:
    """Update or check the given packs, by default all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="fail if a table is out of date, write nothing")
    parser.add_argument("packs", nargs="*", default=PACKS)
    options = parser.parse_args()
    stale = []
    for pack in options.packs:
        directory = ROOT / pack
        path = directory / "pyproject.toml"
        old = path.read_text()
        new = updated(old, collect(directory))
        if new != old:
            stale.append(pack)
            if not options.check:
                path.write_text(new)
    for pack in stale:
        print(f"{pack}: entry points {'are out of date: run `make entry-points`' if options.check else 'written'}")
    return 1 if stale and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
