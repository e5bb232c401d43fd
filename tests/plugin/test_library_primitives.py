"""Primitives that a library defines for its own use, without entry points: what the page on kits promises."""

from __future__ import annotations

import importlib
import os
import pickle
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import corejax as cj
from corejax.base import source
from corejax.errors import CorejaxTypeError
from corejax.plugin import add_library_package

PAGE = Path(__file__).parents[2] / "docs/kits.md"

#: The module of the page, another one whose primitive a helper makes, and one that changes somebody else's.
OPS = re.search(r"# mylib/ops.py\n(.*?)```", PAGE.read_text(), re.DOTALL)
HELPED = """
from corejax.plugin import define, hookimpl

class Scaled:
    def __init__(self, name, by):
        self.name, self._by = name, by

    @hookimpl
    def decompose(self, args):
        return args[0] * self._by

def scaled(name, by):
    return define(Scaled(name, by), name=name, module=__name__)

twice, thrice = scaled("twice", 2.0), scaled("thrice", 3.0)
apart = define(Scaled("other_name", 4.0), name="apart")

def through(x):
    return twice(x)
"""
CHANGED = """
from corejax.plugin import extend, hookimpl
from {name}.helped import thrice

class Quick:
    @hookimpl
    def impl(self, args):
        return args[0] * 3.0

extend(thrice, Quick(), replace=True)
"""


@pytest.fixture
def library(tmp_path, monkeypatch, request):
    """A library on the path, under a name of its own in each test."""
    name = "mylib_" + re.sub(r"\W", "_", request.node.name)
    package = tmp_path / name
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "ops.py").write_text(OPS[1].replace('"mylib"', f'"{name}"'))
    (package / "helped.py").write_text(HELPED)
    (package / "changed.py").write_text(CHANGED.format(name=name))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield name
    for module in [module for module in sys.modules if module.partition(".")[0] == name]:
        del sys.modules[module]
    source.library_packages.pop(name, None)
    source._is_library.clear()
    source._is_users.clear()


def test_the_module_of_the_page_works_under_every_transformation(library):
    ops = importlib.import_module(f"{library}.ops")
    assert np.allclose(cj.jit(cj.vmap(cj.grad(ops.smooth_relu)))(np.zeros(2)), 0.5)
    assert f"defined in {library}.ops" == ops.smooth_relu.primitive.origin
    assert ops.smooth_relu.__doc__.startswith("log(1 + exp(x))") and "smooth_relu" == ops.smooth_relu.__name__


def test_frames_of_a_library_package_are_not_the_users(library):
    helped = importlib.import_module(f"{library}.helped")
    line = cj.make_jaxpr(helped.through)(1.0).jaxpr.eqns[0].source
    assert "helped.py" in source.describe(line)
    add_library_package(library)
    line = cj.make_jaxpr(helped.through)(1.0).jaxpr.eqns[0].source
    assert "test_library_primitives.py" in source.describe(line)
    with pytest.raises(CorejaxTypeError) as caught:
        helped.through("no number")
    assert "test_library_primitives.py" in caught.value.where


def test_primitives_are_pickled_by_where_they_are(library):
    helped = importlib.import_module(f"{library}.helped")
    for primitive in (helped.twice.primitive, helped.thrice.primitive, helped.apart.primitive):
        assert pickle.loads(pickle.dumps(primitive)) is primitive
    program = cj.make_jaxpr(helped.through)(1.0)
    assert program.jaxpr.eqns[0].primitive is pickle.loads(pickle.dumps(program)).jaxpr.eqns[0].primitive


def test_another_process_finds_them(library, tmp_path):
    helped = importlib.import_module(f"{library}.helped")
    (tmp_path / "program").write_bytes(pickle.dumps(cj.make_jaxpr(helped.through)(1.0)))
    code = """
        import pickle, sys, corejax as cj
        print(cj.core.jaxpr_as_fun(pickle.load(open(sys.argv[1], "rb")))(4.0))"""
    arguments = [sys.executable, "-c", textwrap.dedent(code), str(tmp_path / "program")]
    done = subprocess.run(arguments, text=True, check=True,
                          capture_output=True, env=os.environ | {"PYTHONPATH": str(tmp_path)})
    assert "[Array(8., dtype=float64, weak_type=True)]" == done.stdout.strip()


def test_primitives_of_one_name_are_told_apart(library):
    ops, helped = (importlib.import_module(f"{library}.{name}") for name in ("ops", "helped"))
    other = helped.scaled("smooth_relu", 2.0)
    assert 2.0 == float(other(1.0)) and 1.3 < float(ops.smooth_relu(1.0)) < 1.4
    assert ops.smooth_relu.primitive is not other.primitive


def test_reloading_makes_new_primitives_and_programs_keep_the_old(library):
    helped = importlib.import_module(f"{library}.helped")
    program, old = cj.make_jaxpr(helped.through)(1.0), helped.twice.primitive
    assert old is program.jaxpr.eqns[0].primitive
    importlib.reload(helped)
    assert old is not helped.twice.primitive
    assert old is program.jaxpr.eqns[0].primitive
    assert 4.0 == float(helped.twice(2.0)) == float(cj.core.jaxpr_as_fun(program)(2.0)[0])


def test_a_library_without_entry_points_may_replace_rules(library):
    helped = importlib.import_module(f"{library}.helped")
    importlib.import_module(f"{library}.changed")
    assert f"extended in {library}.changed" == helped.thrice.primitive.providers["impl"]
    assert 6.0 == float(helped.thrice(2.0))
