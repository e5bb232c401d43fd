"""What tools that read types see: programs that use arrays pass mypy, strict or not."""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

import corejax
from corejax.arrays import datamodel

pytest.importorskip("mypy")

USES = """
    import numpy as np

    import corejax as cj
    from corejax import export, lax
    from corejax.lax import sin


    def computed(x: cj.Array, w: cj.Array) -> list[cj.Array]:
        y: cj.Array = x + w - 2 * x / 3.0 + -x**2 + 2**x - np.ones(3)
        y = x // 2 % 3 + (1 << w >> 2) - abs(x) + (+x) + round(x, 2)
        mask: cj.Array = (x > 0) & ~(x <= 1) | (w >= 3.0) ^ True
        equal: cj.Array = x == w
        unequal: cj.Array = x != 1.0
        quotient, remainder = divmod(x, w)
        x += 1
        x @= w
        return [y, mask, equal, unequal, quotient, remainder, x @ w, x @ np.ones(3), x < w, 1.0 - x]


    def parts(x: cj.Array) -> list[cj.Array]:
        rows = [row for row in x]
        first: cj.Array = x[0, ..., None, :3][np.array([1])]
        return [*rows, first, x[0], x[x > 0]]


    def loss(x: cj.Array) -> cj.Array:
        if isinstance(x, cj.Array) and x.ndim > 1:
            return x.astype(np.float32).T.reshape(-1).sum(axis=0)
        return x.at[0].set(1).max() + (x * x).sum()


    def numbers(x: cj.Array) -> tuple[float, int, bool, complex, tuple[int, ...], np.dtype, str]:
        return float(x), int(x), bool(x), complex(x), x.shape, x.dtype, f"{x:.2f} {len(x)} {1.0 in x} {x.item()}"


    step = cj.jit(cj.grad(loss))
    print(step(cj.device_put(np.ones(2))), lax.sin(1.0), cj.lax.sin(1.0), sin(1.0), cj.export.export)
    print(export.deserialize)
    print(cj.vmap(loss), cj.value_and_grad(loss, argnums=(0,)), cj.tree.map(loss, [1.0]), cj.config.backend)
"""

WRONG = """
    import corejax as cj

    def wrong(x: cj.Array) -> str:
        return x + 1
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all, so that what mypy finds out about the kernel is kept."""
    return tmp_path_factory.mktemp("types")


def mypy(folder: Path, program: str, *options: str) -> str:
    (folder / "program.py").write_text(textwrap.dedent(program))
    (folder / "mypy.ini").write_text("[mypy]\n")
    done = subprocess.run([sys.executable, "-m", "mypy", *options, "--config-file", "mypy.ini", "program.py"],
                          cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    return done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("options", [["--strict"], pytest.param([], marks=pytest.mark.exhaustive)],
                         ids=["strict", "default"])
def test_programs_with_arrays_pass_mypy(folder: Path, options: list[str]) -> None:
    assert "Success: no issues found in 1 source file\n" == mypy(folder, USES, *options)


@pytest.mark.slow
def test_what_operators_return_is_an_array_to_mypy(folder: Path) -> None:
    assert 'got "Array", expected "str"' in mypy(folder, WRONG, "--strict")  # what it knows of the kernel is kept


def test_each_operator_is_declared_for_tools_once() -> None:
    model = next(node for node in ast.parse(Path(datamodel.__file__).read_text()).body
                 if isinstance(node, ast.ClassDef) and node.name == "DataModel")
    block = next(node for node in model.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    declared = [node.name for node in block.body if isinstance(node, ast.FunctionDef)]
    assert [f"__{name}__" for name in (*datamodel.UNARY, *datamodel.BINARY)] == declared
    for node in block.body:
        assert isinstance(node, ast.FunctionDef)
        assert (2 if node.name.strip("_") in datamodel.BINARY else 1) == len(node.args.posonlyargs or node.args.args)


def test_the_package_says_that_it_is_typed() -> None:
    assert (Path(corejax.__file__).parent / "py.typed").exists()


# What the kernel's own annotations say

#: Words for objects that have a class, or a protocol: `Any` would hide what they are.
NAMED = {"primitive", "eqn", "aval", "jaxpr", "trace", "tracer", "treedef", "entry"}

KERNEL = Path(corejax.__file__).parent


def annotated(path: Path) -> Iterator[tuple[str, ast.expr, int]]:
    """Every annotated argument, attribute and local of a module."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.arg) and node.annotation is not None:
            yield node.arg, node.annotation, node.lineno
        elif isinstance(node, ast.AnnAssign):
            yield ast.unparse(node.target).rpartition(".")[2], node.annotation, node.lineno


def test_what_has_a_name_is_not_any() -> None:
    hidden = [f"{path.relative_to(KERNEL)}:{line} {name}" for path in KERNEL.rglob("*.py")
              for name, kind, line in annotated(path) if name in NAMED and ast.unparse(kind) in ("Any", "Any | None")]
    assert [] == hidden


def test_any_is_never_hidden_behind_another_name() -> None:
    aliases = [f"{path.relative_to(KERNEL)}:{node.lineno}" for path in KERNEL.rglob("*.py")
               for node in ast.parse(path.read_text()).body
               if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Name)
               and node.value.id == "Any"]
    assert [] == aliases
