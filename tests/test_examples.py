"""The example programs run, and what they compute is right."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxNotImplementedError, CorejaxValueError
from imports import ROOT

EXAMPLES = ROOT / "examples"


def load(name: str) -> ModuleType:
    """An example as a module, without running its main program."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def invert() -> ModuleType:
    return load("invert")


@pytest.mark.parametrize("program", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_program_runs_without_a_warning(program: str) -> None:
    done = subprocess.run([sys.executable, "-W", "error", str(EXAMPLES / program)], capture_output=True, text=True,
                          timeout=120)
    assert (0, "") == (done.returncode, done.stderr)
    assert done.stdout


def test_quickstart_trains_its_network(capsys: pytest.CaptureFixture[str]) -> None:
    quickstart = load("quickstart")
    quickstart.train()
    losses = [float(text) for text in re.findall(r"loss ([0-9.]+)", capsys.readouterr().out)]
    assert 5 == len(losses)
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0] / 100


def test_quickstart_defines_a_primitive_that_transforms() -> None:
    cube_root = load("quickstart").cube_root
    x = np.array([1.0, 8.0, -27.0])
    np.testing.assert_allclose(cube_root(x), np.cbrt(x))
    np.testing.assert_allclose(cj.jit(cj.vmap(cj.grad(cube_root)))(x), 1 / (3 * np.cbrt(x) ** 2))
    np.testing.assert_allclose(cj.vmap(cj.grad(cj.jit(cj.grad(cube_root))))(x), -2 / (9 * np.cbrt(x) ** 5))


def chain(x: Any) -> Any:
    return 3.0 - lax.exp(lax.tanh(-x / 2.0) * 0.5 + 1.0)


X = np.array([-1.5, -0.25, 0.0, 0.75])


def test_inverse_undoes_a_chain(invert: ModuleType) -> None:
    np.testing.assert_allclose(invert.inverse(chain)(chain(X)), X, atol=1e-14)


def test_inverse_compiles_maps_and_differentiates(invert: ModuleType) -> None:
    inverse, y = invert.inverse(chain), chain(X)
    np.testing.assert_allclose(cj.jit(inverse)(y), X, atol=1e-14)
    np.testing.assert_allclose(cj.jit(cj.vmap(inverse))(y), X, atol=1e-14)
    np.testing.assert_allclose(cj.vmap(cj.grad(inverse))(y), 1 / np.asarray(cj.vmap(cj.grad(chain))(X)), rtol=1e-12)


def test_inverse_of_an_inverse_is_the_function(invert: ModuleType) -> None:
    def f(x: Any) -> Any:
        return lax.exp(2.0 - x * 0.5)

    np.testing.assert_allclose(invert.inverse(invert.inverse(f))(X), f(X), rtol=1e-14)


def test_inverse_evaluates_what_does_not_depend_on_the_argument(invert: ModuleType) -> None:
    weights = np.array([1.0, 2.0, 4.0, 8.0])

    def scaled(x: Any) -> Any:
        return x * cj.jit(lambda: lax.exp(lax.log(weights) + 1.0))()

    np.testing.assert_allclose(invert.inverse(scaled)(scaled(X)), X)


def test_inverse_of_another_primitive_can_be_added(invert: ModuleType) -> None:
    with pytest.raises(CorejaxNotImplementedError, match="no inverse of sinh is known"):
        invert.inverse(lax.sinh)(1.0)
    invert.invert_by(lax.sinh, lambda y, operands, i: lax.log(y + lax.sqrt(y * y + 1.0)))
    try:
        np.testing.assert_allclose(invert.inverse(lambda x: lax.sinh(x) * 2.0)(2.0 * np.sinh(X)), X, atol=1e-15)
    finally:
        del invert.INVERSES[lax.sinh.primitive]


@pytest.mark.parametrize("function", [
    lambda x: x * lax.exp(x), lambda x: x * x, lambda x: lax.exp(x) + lax.tanh(x), lambda x: 2.0])
def test_inverse_refuses_what_is_no_chain(invert: ModuleType, function: Any) -> None:
    with pytest.raises(CorejaxValueError, match="twice|chain"):
        invert.inverse(function)(1.0)
