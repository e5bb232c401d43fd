"""What users install: the wheels in fresh environments without jax, with all packs and with the kernel alone."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import venv
import zipfile
from pathlib import Path

import pytest

from imports import ROOT

pytestmark = pytest.mark.slow

PROJECTS = (ROOT, *sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml")),
            ROOT / "examples/softplus_pack", ROOT / "stubs")


def run(*command: str | Path, cwd: Path) -> str:
    """The output of a command in a directory that is not the checkout, with nothing of this environment."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COREJAX_", "VIRTUAL_"))}
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


class Environment:
    """A fresh virtual environment with some wheels in it."""

    def __init__(self, directory: Path, wheels: Path, *requirements: str) -> None:
        venv.create(directory)
        self.directory, self.python = directory, directory / ("Scripts" if os.name == "nt" else "bin") / "python"
        self.install("--find-links", wheels, *requirements)

    def install(self, *requirements: str | Path) -> None:
        # This environment's pip does it; bytecode of all of NumPy and SciPy would take longer than the tests.
        run(sys.executable, "-m", "pip", "--python", self.python, "install", "-q", "--no-compile", *requirements,
            cwd=self.directory)

    def execute(self, code: str) -> str:
        return run(self.python, "-c", textwrap.dedent(code), cwd=self.directory)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheels")
    run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", directory, *PROJECTS,
        cwd=directory)
    return directory


@pytest.fixture(scope="module")
def full(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("full"), wheels, "corejax[std]", "corejax-softplus")


@pytest.fixture(scope="module")
def alone(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("alone"), wheels, "corejax")


def test_each_distribution_gives_one_wheel(wheels: Path) -> None:
    assert ["corejax", "corejax_authoring", "corejax_callbacks", "corejax_checkify", "corejax_collectives",
            "corejax_control_flow", "corejax_fft", "corejax_lax_basic", "corejax_linear_algebra", "corejax_nn",
            "corejax_numpy", "corejax_processes", "corejax_random", "corejax_reductions", "corejax_references",
            "corejax_softplus",
            "corejax_sorting", "corejax_special", "corejax_stubs", "corejax_taylor", "corejax_testing",
            "corejax_windows"] == sorted(
                wheel.name.partition("-")[0] for wheel in wheels.glob("*.whl"))


def test_the_tools_wheels_have_the_templates_of_packs_and_the_plugin_of_pytest(wheels: Path) -> None:
    (wheel,) = wheels.glob("corejax_testing-*.whl")
    assert {"corejax_pytest.py", "corejax_testing/__init__.py"} <= set(zipfile.ZipFile(wheel).namelist())
    (wheel,) = wheels.glob("corejax_authoring-*.whl")
    folder = ROOT / "plugins/authoring"
    templates = {path.relative_to(folder).as_posix() for path in (folder / "corejax_authoring/templates").rglob("*.*")
                 if path.is_file()}
    assert len(templates) > 20 and templates <= set(zipfile.ZipFile(wheel).namelist())


def test_jax_is_not_installed_and_corejax_is_not_the_checkout(full: Environment) -> None:
    assert "False True" == full.execute("""
        import importlib.util, corejax, corejax_softplus
        print(importlib.util.find_spec("jax") is not None,
              all("site-packages" in module.__file__ for module in (corejax, corejax_softplus)))""")


def test_softplus_under_each_transformation_and_their_compositions(full: Environment) -> None:
    full.execute("""
        import itertools
        import numpy as np
        import corejax as cj

        softplus = cj.lax.softplus
        x = np.array([[-2.0, -0.5], [0.0, 2.0]])
        logistic = 1 / (1 + np.exp(-x))
        slopes = logistic, logistic * (1 - logistic), logistic * (1 - logistic) * (1 - 2 * logistic)
        orders = np.logaddexp(x, 0), *slopes

        def gradient(f):
            return cj.grad(lambda x: f(x).sum())

        def forward(f):
            return lambda x: cj.jvp(f, (x,), (cj.lax.full_like(x, 1.0),))[1]

        for transforms in itertools.product((cj.jit, cj.vmap, gradient, forward), repeat=3):
            f, order = softplus, 0
            for transform in transforms:
                f = transform(f)
                order += transform in (gradient, forward)
            if transforms.count(cj.vmap) < 3:  # x has two axes
                np.testing.assert_allclose(f(x), orders[order], rtol=1e-12, atol=1e-15)
        assert cj.grad(softplus)(0.0) == 0.5
        """)


def test_command_line_lists_what_is_installed(full: Environment) -> None:
    listed = run(full.python, "-m", "corejax", "plugins", cwd=full.directory)
    for pack in ("corejax-lax-basic", "corejax-reductions", "corejax-control-flow", "corejax-special",
                 "corejax-sorting", "corejax-collectives", "corejax-windows",
                 "corejax-linear-algebra", "corejax-fft", "corejax-numpy", "corejax-random", "corejax-nn",
                 "corejax-checkify", "corejax-callbacks", "corejax-references",
                 "corejax-processes", "corejax-taylor", "corejax-softplus"):
        assert f"{pack} 0.1.0" in listed
    assert "softplus (corejax-softplus 0.1.0)" in run(full.python, "-m", "corejax", "explain", "softplus",
                                                      cwd=full.directory)


@pytest.mark.exhaustive
def test_the_examples_own_tests_pass_on_its_wheel(full: Environment, wheels: Path) -> None:
    full.install("--find-links", wheels, "corejax-testing")
    run(full.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", ROOT / "examples/softplus_pack/tests",
        "--rootdir", full.directory, cwd=full.directory)


@pytest.mark.exhaustive
def test_the_kernel_alone_traces_and_stages(alone: Environment) -> None:
    assert "{ lambda ; a:f64[3]. let b:f64[3] = twice a in (b,) }" == alone.execute("""
        import numpy as np
        import corejax as cj
        from corejax.plugin import define, hookimpl

        class Twice:
            name = "twice"
            @hookimpl
            def impl(self, args):
                return args[0] * 2
            @hookimpl
            def abstract_eval(self, avals):
                return avals[0]

        twice = define(Twice())
        assert float(twice(2.0)) == 4.0
        print(cj.make_jaxpr(twice)(np.ones(3)))""")


@pytest.mark.exhaustive
@pytest.mark.parametrize("use", ["cj.lax.sin(1.0)", "cj.make_jaxpr(cj.jit(lambda x: x))(1.0)",
                                 "cj.device_put(1.0) + 2.0", "cj.grad(lambda x: x * x)(1.0)"])
def test_the_kernel_alone_says_what_to_install(alone: Environment, use: str) -> None:
    message = alone.execute(f"""
        import corejax as cj
        try:
            {use}
        except cj.errors.CorejaxError as error:
            print(error)""")
    assert "corejax[std]" in message, message


@pytest.mark.exhaustive
def test_the_kernel_alone_lists_no_pack(alone: Environment) -> None:
    assert "[]" == alone.execute("import corejax; print(dir(corejax.lax))")
    assert "corejax[std]" in run(alone.python, "-m", "corejax", "plugins", cwd=alone.directory)
