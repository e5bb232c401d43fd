"""The kernel knows no primitive, packs use the public API only, and imports go one way: read from the source."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from imports import BY_NAME, PACKS, ROOT, TOOLS, Import, imports, modules, tree

KERNEL = modules(ROOT / "corejax")

#: What a pack may import of the kernel, besides the names of `corejax` itself; `ir` and `plugin` with their modules.
PACK_API = ("corejax.plugin", "corejax.core", "corejax.ir", "corejax.lax", "corejax.errors", "corejax.tree",
            "corejax.dtypes", "corejax.config", "corejax.sharding")

#: What a tool may import of the kernel, which looks at packs, too. `corejax` itself has the transformations.
TOOL_API = (*PACK_API, "corejax.distributions", "corejax.rules", "corejax.plugins", "corejax.testing")

#: Public names and nothing else: they may import every room, and no room imports one of them.
FACADES = {f"corejax{name}" for name in ("", ".__main__", ".config", ".core", ".distributions", ".dtypes",
                                         ".errors", ".experimental", ".lax", ".plugin", ".plugins", ".rules",
                                         ".sharding", ".stages", ".tree", ".tree_util", ".typing")}

#: What imports another module of its room for type checkers only, in a circle, and why.
TYPES_ONLY = {
    ("corejax.arrays.datamodel", "corejax.arrays.array"): "operators are said to return arrays",
    ("corejax.arrays.exchange", "corejax.arrays.array"): "an array's memory is what it gives away",
    ("corejax.arrays.methods", "corejax.arrays.array"): "methods are said to return arrays",
    ("corejax.arrays.shards", "corejax.arrays.array"): "parts of arrays are arrays",
    ("corejax.arrays.storage", "corejax.arrays.array"): "it looks into arrays",
    ("corejax.kernel.checks.equations", "corejax.kernel.primitive"): "what a primitive's rules return is checked",
    ("corejax.kernel.checks.forms", "corejax.kernel.primitive"): "the same",
    ("corejax.kernel.checks.values", "corejax.kernel.primitive"): "the same",
    ("corejax.kernel.jaxpr", "corejax.kernel.primitive"): "an equation applies one",
    ("corejax.kernel.printing", "corejax.kernel.jaxpr"): "programs are what it prints",
    ("corejax.kernel.trace", "corejax.kernel.primitive"): "a trace says what applying one means",
    ("corejax.kernel.primitive", "corejax.kernel.transformations"): "a primitive keeps what they have for it",
    ("corejax.interpreters.lifts", "corejax.interpreters.lifting"): "it is how one goes through programs",
    ("corejax.xla.lowering.locations", "corejax.xla.lowering.programs"): "rules are called with what it makes",
    ("corejax.xla.lowering.partitioning", "corejax.xla.lowering.programs"): "it is the part of it about devices",
}

#: What imports by name: late modules, and objects that metadata names.
BY_NAME_ONLY = {"corejax.base._jaxlib", "corejax.base.facades", "corejax.base.late", "corejax.installed.namespaces",
                "corejax.installed.registry", "corejax.packs.define"}


def rooms() -> list[str]:
    """The rooms, from the ground up: the rows of the table in the page on architecture."""
    page = (ROOT / "docs/architecture.md").read_text()
    table = page.partition("## Rooms")[2].partition("\n## ")[0]
    return ["corejax." + name.replace("/", ".") for name in re.findall(r"^\| `([\w/]+)/` \|", table, re.MULTILINE)]


ROOMS = rooms()


def room_of(module: str) -> int | None:
    """The row of the table in which a module lives."""
    return next((row for row, room in enumerate(ROOMS) if f"{module}.".startswith(f"{room}.")), None)


def kernel_imports(module: str) -> Iterator[Import]:
    return (found for found in imports(KERNEL[module], KERNEL) if found.module.partition(".")[0] == "corejax")


def strings(path: Path) -> set[str]:
    """Every string constant of a module."""
    return {node.value for node in ast.walk(tree(path)) if isinstance(node, ast.Constant)
            and isinstance(node.value, str)}


def words(path: Path) -> set[str]:
    """Every name that a module reads, imports or takes from an object."""
    nodes = list(ast.walk(tree(path)))
    return {node.id for node in nodes if isinstance(node, ast.Name)} | {
        node.attr for node in nodes if isinstance(node, ast.Attribute)} | {
        node.name.rpartition(".")[2] for node in nodes if isinstance(node, ast.alias)}


def primitive_names() -> set[str]:
    names: set[str] = set()
    for directory in PACKS.values():
        project = tomllib.loads((directory / "pyproject.toml").read_text())["project"]
        names |= project["entry-points"].get("corejax.primitives", {}).keys()
    return names


def python(code: str) -> str:
    """The output of a fresh interpreter."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# Which way imports go

def inside() -> list[str]:
    """The modules of rooms; a package that holds nothing is none."""
    return [module for module, path in KERNEL.items() if module not in FACADES and path.read_text().strip()]


def edges(module: str) -> set[str]:
    """What a module imports, late or not, for more than types."""
    return {found.module for found in kernel_imports(module) if not found.for_types_only} - {module}


def cycles(graph: Mapping[str, set[str]]) -> set[frozenset[str]]:
    """Groups of modules of which each leads to each."""
    reached = {module: set(found) for module, found in graph.items()}
    while True:
        wider = {module: found.union(*[reached.get(other, set()) for other in found])
                 for module, found in reached.items()}
        if wider == reached:
            break
        reached = wider
    return {frozenset(other for other in reached[module] if module in reached.get(other, ()))
            for module in reached if module in reached[module]}


def test_every_module_has_a_room() -> None:
    assert [] == [module for module in inside() if room_of(module) is None]


def test_the_page_names_every_module_in_the_row_of_its_room() -> None:
    page = (ROOT / "docs/architecture.md").read_text()
    rows = re.findall(r"^\| `([\w/]+)/` \|(.*)$", page, re.MULTILINE)
    named = {(f"corejax.{room.replace('/', '.')}", word) for room, row in rows
             for code in re.findall(r"`([^`]+)`", row) for word in re.findall(r"\w+", code)}
    modules = [module for module in inside() if KERNEL[module].name != "__init__.py"]
    assert [] == [module for module in modules if (room := room_of(module)) is not None
                  and (ROOMS[room], module.rpartition(".")[2]) not in named]


def test_every_room_is_a_folder() -> None:
    assert [] == [room for room in ROOMS if not (ROOT / room.replace(".", "/") / "__init__.py").exists()]
    assert len(ROOMS) == len(set(ROOMS)) > 10


def test_no_import_of_any_kind_goes_up() -> None:
    rising = [f"{module}:{found.line} imports {found.module}" for module in inside() for found in kernel_imports(module)
              if found.module in FACADES or (room_of(found.module) or 0) > (room_of(module) or 0)]
    assert [] == rising


def test_imports_at_run_time_and_late_ones_have_no_cycle() -> None:
    assert set() == cycles({module: edges(module) for module in KERNEL})


def test_types_go_in_a_circle_only_where_it_is_said() -> None:
    graph = {module: {found.module for found in kernel_imports(module)} - {module} for module in inside()}
    for module, named in TYPES_ONLY:
        assert named in graph[module] - edges(module)
        graph[module].remove(named)
    assert set() == cycles(graph)


def test_kernel_imports_stand_at_the_top() -> None:
    assert [] == [f"{module}:{found.line} imports {found.module}" for module, path in KERNEL.items()
                  for found in imports(path, KERNEL) if found.in_function and not found.late]


def test_only_some_modules_import_by_name() -> None:
    by_name = {module for module, path in KERNEL.items() for node in ast.walk(tree(path)) if isinstance(node, ast.Call)
               and ast.unparse(node.func) in BY_NAME and ast.unparse(node.func) != "late"}
    assert BY_NAME_ONLY == by_name


def test_only_one_module_imports_jaxlib_and_none_jax_or_a_pack() -> None:
    for module, path in KERNEL.items():
        found = {found.module.partition(".")[0] for found in imports(path, KERNEL)
                 if not (found.for_types_only and module == "corejax.base._jaxlib")}
        assert not found & {"jax", "jaxlib", *PACKS, *TOOLS}, module
        named = {text.partition(".")[0] for text in strings(path) if re.fullmatch(r"[\w.]+", text)}
        assert not named & {*PACKS, *TOOLS}, module
        if module in BY_NAME_ONLY:
            assert "jax" not in named, module
            assert module == "corejax.base._jaxlib" or "jaxlib" not in named, module


# Packs

@pytest.mark.parametrize("package", [*PACKS, *TOOLS])
def test_modules_of_packs_and_tools_import_each_other_in_no_circle(package: str) -> None:
    own = modules({**PACKS, **TOOLS}[package] / package)
    assert set() == cycles({module: {found.module for found in imports(path, own)} & own.keys() - {module}
                            for module, path in own.items()})


def declared_packs(directory: Path) -> set[str]:
    """The packages of the packs that a pack declares as dependencies."""
    project = tomllib.loads((directory / "pyproject.toml").read_text())["project"]
    return {re.split(r"[^\w-]", text)[0].replace("-", "_") for text in project["dependencies"]} & PACKS.keys()


@pytest.mark.parametrize("pack", PACKS)
def test_packs_import_the_public_api_and_facades_only(pack: str) -> None:
    own, facades = modules(PACKS[pack] / pack), declared_packs(PACKS[pack])
    known = {**KERNEL, **own, **{m: p for facade in facades for m, p in modules(PACKS[facade] / facade).items()}}
    strangers = []
    for path in own.values():
        for found in imports(path, known):
            top = found.module.partition(".")[0]
            if top in ("jax", "jaxlib", "pluggy", "importlib_metadata"):
                strangers.append(f"{path.name}:{found.line} {found.module}")
            elif top == "corejax" and found.module != top:
                if not any(found.module == name or found.module.startswith(name + ".") for name in PACK_API):
                    strangers.append(f"{path.name}:{found.line} {found.module}")
            elif top in PACKS and top != pack and found.module not in facades:
                strangers.append(f"{path.name}:{found.line} {found.module}")
    assert [] == strangers


@pytest.mark.parametrize("tool", TOOLS)
def test_tools_import_public_names_alone(tool: str) -> None:
    strangers = []
    for path in modules(TOOLS[tool] / tool).values():
        for node in ast.walk(tree(path)):
            names = ([alias.name for alias in node.names] if isinstance(node, ast.Import) else
                     [str(node.module)] if isinstance(node, ast.ImportFrom) else [])
            strangers += [f"{path.name} imports {name}" for name in names
                          if name.partition(".")[0] in {"corejax", "jax", "jaxlib", *PACKS, *TOOLS} - {tool}
                          and name != "corejax" and name not in TOOL_API]
    assert [] == strangers


@pytest.mark.parametrize("pack", PACKS)
def test_no_pack_imports_a_tool(pack: str) -> None:
    own = modules(PACKS[pack] / pack)
    assert [] == [f"{path.name}:{found.line}" for path in own.values() for found in imports(path, own)
                  if found.module.partition(".")[0] in TOOLS]


def test_packs_depend_on_the_basic_one_never_the_reverse() -> None:
    basic, standard = {"corejax_lax_basic"}, {"corejax_lax_basic", "corejax_reductions", "corejax_control_flow"}
    assert {"corejax_lax_basic": set(), "corejax_reductions": basic, "corejax_control_flow": basic,
            "corejax_sorting": basic, "corejax_special": standard,
            "corejax_collectives": standard, "corejax_fft": basic,
            "corejax_callbacks": basic | {"corejax_control_flow"},
            "corejax_linear_algebra": standard | {"corejax_sorting"},
            "corejax_windows": {"corejax_lax_basic", "corejax_reductions"},
            "corejax_random": standard | {"corejax_special", "corejax_sorting", "corejax_linear_algebra",
                                          "corejax_numpy"},
            "corejax_checkify": standard,
            "corejax_nn": standard | {"corejax_special", "corejax_collectives", "corejax_linear_algebra",
                                      "corejax_numpy", "corejax_random"},
            "corejax_references": {"corejax_lax_basic", "corejax_control_flow"}, "corejax_processes": set(),
            "corejax_taylor": basic,
            "corejax_numpy": standard | {"corejax_special", "corejax_sorting", "corejax_windows",
                                         "corejax_linear_algebra", "corejax_fft"}} == {
                pack: declared_packs(d) for pack, d in PACKS.items()}


def names_of_lax(path: Path) -> Iterator[tuple[int, str]]:
    """Each `lax.NAME` of a module, `cj.lax.NAME` and `from corejax.lax import NAME`, with its line."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value).rpartition(".")[2] == "lax":
            yield node.lineno, node.attr
        elif isinstance(node, ast.ImportFrom) and node.module == "corejax.lax":
            yield from ((node.lineno, name.name) for name in node.names)


def owners_in_lax() -> dict[str, set[str]]:
    """The packs that provide each name of `lax`."""
    found: dict[str, set[str]] = {}
    for pack, directory in PACKS.items():
        tables = tomllib.loads((directory / "pyproject.toml").read_text())["project"]["entry-points"]
        for group in ("primitives", "functions", "namespaces"):
            for name in tables.get(f"corejax.{group}", ()):
                found.setdefault(name.removeprefix("lax."), set()).add(pack)
    return found


@pytest.mark.parametrize("pack", PACKS)
def test_packs_require_whoever_provides_the_names_of_lax_that_they_use(pack: str) -> None:
    required, owners = {pack}, owners_in_lax()
    for each in (todo := [pack]):  # grows as requirements are found
        todo += declared_packs(PACKS[each]) - required
        required |= declared_packs(PACKS[each])
    undeclared = [f"{path.name}:{line} lax.{name}, of {found}" for path in modules(PACKS[pack] / pack).values()
                  for line, name in names_of_lax(path)
                  if not (found := owners.get(name) or owners.get(name.removesuffix("_p"), set())) & required]
    assert [] == undeclared


def test_no_two_standard_packs_have_one_name_in_lax() -> None:
    assert {} == {name: packs for name, packs in owners_in_lax().items() if len(packs) > 1}


def test_packs_ask_traces_for_capabilities_never_for_their_class() -> None:
    bases = {node.name: {ast.unparse(base) for base in node.bases} for path in KERNEL.values()
             for node in ast.walk(tree(path)) if isinstance(node, ast.ClassDef)}
    kinds, found = {"Trace"}, {"Trace"}
    while found:
        found = {name for name, of in bases.items() if of & kinds} - kinds
        kinds |= found
    assert len(kinds) > 5
    named = {f"{path.name}: {name}" for pack, directory in PACKS.items()
             for path in modules(directory / pack).values() for name in words(path) & (kinds - {"Trace"})}
    assert set() == named


# No primitive by name

#: A primitive's name is also a word of Python or of the hook specifications: where that word may stand as a string.
OTHER_MEANINGS = {
    "corejax.arrays.datamodel": "Python's own operator names, each a role",
    "corejax.base.tree_functions": "`tree.reduce`, which is no primitive",
    "corejax.kernel.numpy_calls": "the same, for the ufuncs that are operators",
    "corejax.inspect.cli": "the command `python -m corejax check`",
    "corejax.inspect.commands": "the same",
    "corejax.installed.markers": "words of environment markers: `or`, `and`, `not`",
}


def test_no_string_of_the_kernel_is_a_primitives_name() -> None:
    hooks = {node.name for node in tree(KERNEL["corejax.kernel.hookspecs"]).body if isinstance(node, ast.FunctionDef)}
    names = primitive_names() - hooks
    assert len(names) > 50
    named = {module: strings(path) & names for module, path in KERNEL.items()}
    assert {} == {module: found for module, found in named.items() if found and module not in OTHER_MEANINGS}


def test_the_kernel_takes_nothing_from_lax() -> None:
    taken = [f"{module}: {ast.unparse(node)}" for module, path in KERNEL.items() for node in ast.walk(tree(path))
             if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "lax"]
    assert [] == taken


def test_the_kernel_compares_no_name_with_a_constant() -> None:
    def is_name(node: ast.AST) -> bool:
        return isinstance(node, ast.Attribute) and node.attr == "name"

    def holds_text(node: ast.AST) -> bool:
        return any(isinstance(part, ast.Constant) and isinstance(part.value, str) for part in ast.walk(node))

    compared = []
    for module, path in KERNEL.items():
        for node in ast.walk(tree(path)):
            sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
            if any(map(is_name, sides)) and any(holds_text(side) for side in sides if not is_name(side)):
                compared.append(f"{module}: {ast.unparse(node)}")
            if isinstance(node, ast.Match) and is_name(node.subject):
                compared.append(f"{module}: match {ast.unparse(node.subject)}")
    assert [] == compared


_PROGRAM = """
    import numpy as np, corejax as cj
    from corejax import lax
    def f(x):
        return (cj.jit(lambda x: lax.sin(x) * x[0] + lax.dot(x, x))(x) ** 3).sum() + lax.exp(x).max() - x.prod()
    x = np.array([0.5, -1.0, 2.0])
    outs = [f(x), cj.grad(f)(x), cj.jit(cj.grad(f))(x), cj.vmap(cj.grad(f))(np.stack([x, x + 1])), cj.hessian(f)(x),
            cj.jvp(cj.vmap(f), (np.stack([x, x + 1]),), (np.ones((2, 3)),))[1], cj.linearize(f, x)[1](x)]
    print([np.asarray(out).tolist() for out in outs])
"""

_RENAMED = """
    from corejax.kernel import primitive
    make = primitive.Primitive.__init__
    names = {}
    def renamed(self, plugin, *args, **kwargs):
        make(self, plugin, *args, **kwargs)
        self.name = names.setdefault(self.name, f"p{len(names)}")
    primitive.Primitive.__init__ = renamed
"""


def test_nothing_depends_on_what_primitives_are_called() -> None:
    # every primitive under an opaque name: a kernel that branched on one would behave differently
    shown = "\n    print(cj.make_jaxpr(f)(x).eqns[0].primitive.name)"
    plain, renamed = python(_PROGRAM), python(_RENAMED + _PROGRAM + shown)
    assert plain == renamed.rpartition("\n")[0]
    assert re.fullmatch(r"p\d+", renamed.rpartition("\n")[2])


# What an import loads

def test_importing_corejax_loads_neither_jaxlib_nor_pluggy_nor_a_pack() -> None:
    loaded = python("import corejax, sys; print(*sorted({name.partition('.')[0] for name in sys.modules}))").split()
    assert "numpy" in loaded
    assert not {"jax", "jaxlib", "pluggy", "importlib_metadata", "zipp", "corejax_softplus", *PACKS} & set(loaded)


def test_listing_what_lax_has_imports_no_pack() -> None:
    loaded = python("""
        import corejax, sys
        assert "sin" in dir(corejax.lax)
        print(*sorted({name.partition(".")[0] for name in sys.modules}))""").split()
    assert "importlib_metadata" in loaded
    assert not {"jaxlib", *PACKS} & set(loaded)


def test_eager_computation_loads_no_jaxlib() -> None:
    assert "False" == python("import corejax, sys; corejax.lax.sin(1.0); print('jaxlib' in sys.modules)")


def test_a_compiled_call_loads_no_large_module_that_it_does_not_need() -> None:
    loaded = python("""
        import sys
        import numpy as np
        import corejax as cj
        cj.jit(cj.grad(lambda x: (cj.lax.sin(x) * x + 1.0).sum()))(np.ones(3))
        print(*sys.modules)""").split()
    assert "jaxlib.mlir.ir" in loaded
    assert not {"jaxlib.mlir.dialects.stablehlo", "jaxlib.mlir.dialects.chlo", "numpy.ma", "email.parser"} & set(loaded)


def test_no_computation_imports_jax() -> None:
    assert "False" == python(_PROGRAM.rpartition("print")[0] + "import sys; print('jax' in sys.modules)")


# Tests that need jax

def test_make_parity_selects_every_test_that_needs_jax() -> None:
    needing = []
    for path in sorted([*(ROOT / "tests").rglob("test_*.py"), *(ROOT / "plugins").rglob("test_*.py")]):
        for node in tree(path).body if 'importorskip("jax' in path.read_text(encoding="utf-8") else ():
            if "importorskip('jax" in ast.unparse(node):
                needing.append(f"{path.stem}::{getattr(node, 'name', '')}")
    assert len(needing) > 5
    assert [] == [name for name in needing if "jax" not in name and "parity" not in name]
