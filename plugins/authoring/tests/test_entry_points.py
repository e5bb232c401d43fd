"""The tables of entry points are what modules export, for the shipped packs and for anybody's."""

from __future__ import annotations

import itertools
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from corejax.errors import CorejaxError
from corejax.inspect import cli
from corejax_authoring import entry_points
from imports import ROOT, TOOLS
from pythons import run

SHIPPED = [str(path.parent) for folder in ("plugins", "examples")
           for path in sorted(ROOT.glob(f"{folder}/*/pyproject.toml")) if path.parent not in TOOLS.values()]

#: A name of its own for each package, since Python imports a name once.
NUMBERS = itertools.count()

PROJECT = """[project]
name = "{name}"
version = "1"

[tool.other]
kept = true  # as it is
"""

PRIMITIVE = """
from corejax.plugin import define, hookimpl

class Twice:
    name = "twice"

    @hookimpl
    def decompose(self, args):
        return args[0] + args[0]

twice = define(Twice())
"""

Pack = Callable[..., Path]


@pytest.fixture
def pack(tmp_path: Path) -> Iterator[Pack]:
    """Writes a pack of these modules, by name; `init` is the package itself. Its distribution is called `toy-...`."""
    made = []

    def write(source: str = "", **modules: str) -> Path:
        name = f"toy_{next(NUMBERS)}"
        made.append(name)
        folder = tmp_path / name
        package = folder / source / name
        package.mkdir(parents=True)
        (folder / "pyproject.toml").write_text(PROJECT.format(name=name.replace("_", "-")))
        for module, text in {"init": "", **modules}.items():
            (package / ("__init__" if module == "init" else module)).with_suffix(".py").write_text(text)
        return folder

    yield write
    for module in [module for module in sys.modules if module.partition(".")[0] in made]:
        del sys.modules[module]


def written(folder: Path) -> dict[str, dict[str, str]]:
    """The tables that are written, without the package's name."""
    assert 0 == cli.main(["entry-points", "--write", str(folder)])
    assert 0 == cli.main(["entry-points", "--check", str(folder)])
    tables = tomllib.loads((folder / "pyproject.toml").read_text())["project"].get("entry-points", {})
    return {group: {name.replace(folder.name.replace("_", "-"), "DIST"): target.replace(folder.name, "PACK")
                    for name, target in table.items()} for group, table in tables.items()}


def refusal(folder: Path) -> str:
    before = (folder / "pyproject.toml").read_text()
    with pytest.raises(CorejaxError) as caught:
        list(entry_points.update([str(folder)], write=True))
    assert before == (folder / "pyproject.toml").read_text()
    return str(caught.value)


def test_tables_of_the_shipped_packs_are_up_to_date() -> None:
    assert 22 == len(SHIPPED)
    assert "the entry points are up to date" == run(ROOT, None, "-m", "corejax", "entry-points", "--check", *SHIPPED)


def test_a_new_public_name_is_drift_until_it_is_written(pack: Pack, capsys: pytest.CaptureFixture[str]) -> None:
    folder = pack(init=PRIMITIVE + "__all__ = ['twice', 'four']\ndef four(x): return twice(twice(x))")
    assert 1 == cli.main(["entry-points", "--check", str(folder)])
    assert "out of date" in (said := capsys.readouterr().err) and "entry-points --write" in said
    assert "entry-points" not in (folder / "pyproject.toml").read_text()
    assert {"corejax.primitives": {"twice": "PACK:twice"},
            "corejax.functions": {"four": "PACK:four", "twice": "PACK:twice"}} == written(folder)


def test_names_that_standard_packs_have_are_warned_of(pack: Pack, capsys: pytest.CaptureFixture[str]) -> None:
    folder = pack(init=PRIMITIVE.replace("twice", "sin") + """
__all__ = ['four', 'full', 'pmap', 'sin']
AT_TOP = ('pmap',)
def four(x): return sin(x)
def full(x): return sin(x)
def pmap(x): return sin(x)
""")
    assert 0 == cli.main(["entry-points", "--write", str(folder)])
    capsys.readouterr()
    assert 0 == cli.main(["entry-points", "--check", str(folder)])
    first, second, last = capsys.readouterr().out.splitlines()
    assert first.startswith(f"warning: {folder / 'pyproject.toml'}: corejax-collectives has cj.pmap, too. ")
    assert "corejax-lax-basic has lax.full, lax.sin, too. To users these names are an error" in second
    assert "the entry points are up to date" == last


def test_roles_and_namespaces_of_standard_packs_are_warned_of(pack: Pack, capsys: pytest.CaptureFixture[str]) -> None:
    folder = pack(roles="__all__ = ['mine', 'scan']\ndef scan(): ...\ndef mine(): ...", arrays="NAMESPACE = 'numpy'",
                  operators="__all__ = ['add']\ndef add(x, y): ...", solver="NAMESPACE = 'lax.linalg'",
                  numpy_tables="__all__ = ['numpy_ufunc']\nnumpy_ufunc = {}")
    assert 0 == cli.main(["entry-points", "--write", str(folder)])
    found = dict(re.findall(r"pyproject.toml: (\S+) has (.*?), too. To users", capsys.readouterr().out))
    assert {"corejax-control-flow": "the role scan", "corejax-lax-basic": "the role operators.add",
            "corejax-linear-algebra": "lax.linalg", "corejax-numpy": "cj.numpy"} == found


def test_what_the_package_re_exports_belongs_to_its_module_and_private_modules_are_left_out(pack: Pack) -> None:
    folder = pack(init="", ops=PRIMITIVE + "__all__ = ['twice']", _more="__all__ = ['f']\ndef f(): ...")
    (folder / folder.name / "__init__.py").write_text(
        f"from {folder.name}.ops import twice\nfrom {folder.name}._more import f\n__all__ = ['f', 'twice']")
    assert {"corejax.primitives": {"twice": "PACK.ops:twice"},
            "corejax.functions": {"f": "PACK:f", "twice": "PACK.ops:twice"}} == written(folder)


def test_a_function_may_be_in_a_namespace_and_at_the_top(pack: Pack) -> None:
    folder = pack(init="", ops="__all__ = ['f', 'g']\nAT_TOP = ('f',)\ndef f(): ...\ndef g(): ...", space="")
    (folder / folder.name / "space.py").write_text(
        f"from {folder.name}.ops import f, g\n__all__ = ['f', 'g']\nNAMESPACE = 'space'")
    assert {"corejax.functions": {"cj/f": "PACK.ops:f"},
            "corejax.namespaces": {"space": "PACK.space"}} == written(folder)


def test_a_function_may_be_experimental(pack: Pack) -> None:
    folder = pack(init="", ops="__all__ = ['f', 'g']\nEXPERIMENTAL = ('f',)\ndef f(): ...\ndef g(): ...", space="")
    (folder / folder.name / "space.py").write_text("__all__ = []\nNAMESPACE = 'experimental.space'")
    assert {"corejax.functions": {"experimental/f": "PACK.ops:f", "g": "PACK.ops:g"},
            "corejax.namespaces": {"experimental.space": "PACK.space"}} == written(folder)


def test_a_module_may_have_several_names(pack: Pack) -> None:
    folder = pack(init="", ops="__all__ = ['f']\nNAMESPACE = ('ops', 'experimental.ops')\ndef f(): ...")
    assert {"corejax.namespaces": {"experimental.ops": "PACK.ops", "ops": "PACK.ops"}} == written(folder)


def test_modules_of_roles_operators_kernels_and_numpy_tables(pack: Pack) -> None:
    assert {"corejax.roles": {"numpy_ufunc": "PACK.numpy_tables:numpy_ufunc", "operators.and": "PACK.operators:and_",
                              "operators.sum": "PACK.operators:sum", "zeros": "PACK.roles:zeros"},
            "corejax.kernels": {"DIST.fast": "PACK.kernels:fast"}} == written(pack(
                roles="__all__ = ['zeros']\ndef zeros(aval): ...", kernels="__all__ = ['fast']\nfast = object()",
                operators="__all__ = ['and_', 'sum']\ndef and_(x, y): ...\nsum = and_",
                numpy_tables="__all__ = ['numpy_ufunc']\nnumpy_ufunc = {}"))


def test_element_types(pack: Pack) -> None:
    assert {"corejax.dtypes": {"toy": "PACK:TOY", "toy<of_two>": "PACK:PAIR"}} == written(pack(
        init="from corejax.plugin import ElementType\n__all__ = ['PAIR', 'TOY']\n"
             "TOY, PAIR = ElementType('toy', 'uint8'), ElementType('toy<of_two>', 'uint8', (2,))"))


def test_settings(pack: Pack) -> None:
    assert {"corejax.settings": {"pace": "PACK:PACE"}} == written(pack(
        init="from corejax.plugin import Setting, settings\n__all__ = ['PACE']\n"
             "PACE = Setting('pace', 3, settings.Whole(1), 'how fast')"))


def test_rules_are_no_functions(pack: Pack) -> None:
    assert {"corejax.rules": {"special/*:vmap": "PACK:maps", "special/erf:xla_translation@gpu": "PACK:on_gpu"}} == (
        written(pack(init="""__all__ = ['maps', 'on_gpu']
maps = {}
def on_gpu(ctx, args): ...
RULES = {'special/erf:xla_translation@gpu': on_gpu, 'special/*:vmap': maps}""")))


TRANSFORMATION = """
from corejax.plugin import hookimpl, transforming

__all__ = ['TOY_COSTS', 'Costs']

class Costs(transforming.Declared):
    hook = 'toy_costs'
    def rule(self, transformation, primitive):
        return lambda args, **params: 1

def toy_costs(args):
    '''`toy_costs(args, *, ...)`: how many operations it takes.'''

TOY_COSTS = transforming.Transformation(toy_costs, declarations=[Costs])
"""


def test_transformations_are_named_as_their_hooks(pack: Pack) -> None:
    found = written(pack(costs=TRANSFORMATION, init="__all__ = []\nNAMESPACE = 'toys'", rules="""
TABLE = {}
def one(args): ...
RULES = {'special/*:toy_costs': TABLE, 'special/erf:toy_costs': one}"""))
    assert {"corejax.transforms": {"toy_costs": "PACK.costs:TOY_COSTS"}, "corejax.namespaces": {"toys": "PACK"},
            "corejax.rules": {"special/*:toy_costs": "PACK.rules:TABLE",
                              "special/erf:toy_costs": "PACK.rules:one"}} == found


def test_rules_for_transformations_may_be_optional(pack: Pack) -> None:
    assert {"corejax.rules": {"special/*:toy_costs?": "PACK:table", "special/erf:toy_costs?": "PACK:one"}} == written(
        pack(init="""table = {}
def one(args): ...
RULES = {'special/erf:toy_costs?': one, 'special/*:toy_costs?': table}"""))


def test_a_new_transformation_is_drift_until_it_is_written(pack: Pack, capsys: pytest.CaptureFixture[str]) -> None:
    folder = pack(costs="__all__ = []")
    assert {} == written(folder)
    (folder / folder.name / "costs.py").write_text(TRANSFORMATION)
    for module in [module for module in sys.modules if module.partition(".")[0] == folder.name]:
        del sys.modules[module]
    capsys.readouterr()
    assert 1 == cli.main(["entry-points", "--check", str(folder)])
    assert "out of date" in capsys.readouterr().err
    assert {"corejax.transforms", "corejax.functions"} == written(folder).keys()


@pytest.mark.parametrize("key", ["erf.toy_costs", "erf:toy_costs", "erf:toy_costs?", "erf:vmap?"])
def test_a_key_without_an_owner_is_found_by_its_hook(pack: Pack, key: str) -> None:
    said = refusal(pack(costs=TRANSFORMATION, rules=f"RULES = {{{key!r}: print}}"))
    assert f"RULES has a key that isn't the name of a rule\n  got:    {key!r}" in said


def test_functions_of_a_namespace_are_there_alone_and_primitives_are_everybodys(pack: Pack) -> None:
    assert {"corejax.primitives": {"twice": "PACK.ops:twice"}, "corejax.functions": {"g": "PACK:g"},
            "corejax.namespaces": {"toys": "PACK.ops"}} == written(pack(
                ops=PRIMITIVE + "__all__ = ['f', 'twice']\nNAMESPACE = 'toys'\ndef f(): ...",
                init="__all__ = ['g']\ndef g(): ..."))


def test_the_rest_of_the_file_stays_and_old_tables_go(pack: Pack) -> None:
    folder = pack(init="__all__ = ['f']\ndef f(): ...")
    path = folder / "pyproject.toml"
    for marks in ("", "# entry points: written by an older tool\n[project.entry-points.x]\n# entry points end\n"):
        path.write_text(f"{PROJECT.format(name=folder.name)}\n{marks}")
        assert {"corejax.functions": {"f": "PACK:f"}} == written(folder)
        assert path.read_text().startswith(PROJECT.format(name=folder.name))
    tables = '[project.entry-points."corejax.transforms"]\nmine = "a:b"\n[project.entry-points.pytest11]\nx = "y"\n'
    path.write_text(path.read_text() + tables)
    assert {"corejax.functions", "corejax.transforms", "pytest11"} == written(folder).keys()


def test_a_pack_without_public_names_needs_no_tables(pack: Pack) -> None:
    folder = pack()
    before = (folder / "pyproject.toml").read_text()
    assert {} == written(folder)
    assert before == (folder / "pyproject.toml").read_text()


def test_packages_in_src_and_beside_others_are_found(pack: Pack) -> None:
    folder = pack(source="src", init="__all__ = ['f']\ndef f(): ...")
    for other in ("tests", "scripts"):
        (folder / other).mkdir()
        (folder / other / "__init__.py").write_text("raise ValueError('not this one')")
    assert {"corejax.functions": {"f": "PACK:f"}} == written(folder)


@pytest.mark.parametrize(("init", "said"), [
    ("__all__ = ['f']", "__all__ names what isn't there\n  got:    'f'"),
    ("1 / 0", "can't be imported\n  got:    ZeroDivisionError: division by zero"),
    ("RULES = {'erf.vmap': print}", "RULES has a key that isn't the name of a rule\n  got:    'erf.vmap'"),
    ("RULES = {'special/erf:vmap': lambda: 1}", "RULES has a rule without a name\n  got:    'special/erf:vmap'"),
])
def test_what_no_entry_point_can_be_made_of(pack: Pack, init: str, said: str) -> None:
    assert said in refusal(pack(init=init))


def test_tables_by_hand_are_not_doubled(pack: Pack) -> None:
    folder = pack(init="__all__ = ['f']\ndef f(): ...")
    path = folder / "pyproject.toml"
    path.write_text(path.read_text() + '[project.entry-points."corejax.functions"]\nf = "x:f"\n')
    said = refusal(folder)
    assert "these tables would be there twice\n  got:    corejax.functions" in said and "delete them" in said


def test_a_package_that_is_not_clear_or_is_imported_from_elsewhere(pack: Pack, tmp_path: Path) -> None:
    folder = pack()
    package = folder / folder.name
    for other in ("one", "two"):
        package.rename(folder / other) if other == "one" else (folder / other).mkdir()
    (folder / "two/__init__.py").touch()
    assert "got:    one, two" in refusal(folder)
    (folder / "one").rename(folder / "json")
    (folder / "two/__init__.py").unlink()
    assert "json was imported from elsewhere" in refusal(folder)


@pytest.mark.parametrize(("text", "said"), [
    (None, "there is no pyproject.toml"), ("[project", "this can't be read\n  got:    TOMLDecodeError"),
    ("[tool]", "this can't be read\n  got:    KeyError: 'project'")])
def test_folders_that_are_no_packs(tmp_path: Path, text: str | None, said: str,
                                   capsys: pytest.CaptureFixture[str]) -> None:
    if text is not None:
        (tmp_path / "pyproject.toml").write_text(text)
    assert 1 == cli.main(["entry-points", "--check", str(tmp_path)])
    assert said in capsys.readouterr().err
