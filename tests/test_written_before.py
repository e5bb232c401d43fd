"""What was written down before the kernel's modules moved still loads, and means what it meant."""

from __future__ import annotations

import importlib
import pickle
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import corejax as cj
from corejax import lax
from corejax.base.moved import MOVED
from corejax.core import ClosedJaxpr, JaxprEqn, eval_jaxpr
from corejax.errors import CorejaxError
from corejax.xla.cache.persistent_files import Directory
from tests.written_before import EXPORTED, HERE, PICKLED, X, branching


def read(name):
    return pickle.loads((HERE / "pickles" / f"{name}.pickle").read_bytes())


def same(x, y):
    if isinstance(x, cj.Array):
        assert (x.aval, type(x)) == (y.aval, type(y))
        assert_array_equal(np.asarray(x), np.asarray(y))
    elif isinstance(x, ClosedJaxpr):
        assert str(x) == str(y)
        for a, b in zip(eval_jaxpr(x.jaxpr, x.consts, X), eval_jaxpr(y.jaxpr, y.consts, X), strict=True):
            assert_array_equal(a, b)
    elif isinstance(x, JaxprEqn):
        assert (x.primitive, str(x.outvars[0].aval)) == (y.primitive, str(y.outvars[0].aval))
    elif isinstance(x, CorejaxError):
        assert (type(x), str(x), x.todo) == (type(y), str(y), y.todo)
    elif isinstance(x, cj.tree.Partial):
        assert (type(x), x.func) == (type(y), y.func)
        for a, b in zip(cj.tree.leaves(x), cj.tree.leaves(y), strict=True):
            assert_array_equal(a, b)
    elif hasattr(x, "aval"):
        assert (type(x), x.aval) == (type(y), y.aval)
    else:
        assert x == y


def test_every_pickle_of_before_is_here():
    assert PICKLED.keys() == {path.stem for path in (HERE / "pickles").iterdir()}
    assert EXPORTED.keys() == {path.stem for path in (HERE / "exports").iterdir()}


@pytest.mark.parametrize("name", sorted(PICKLED.keys() - {"pullback", "tangents"}))
def test_a_pickle_of_before_is_what_it_was(name):
    same(PICKLED[name](), read(name))


def test_linear_functions_of_before_are_called():
    ct = np.array([1.0, -2.0, 0.5])
    assert_allclose(PICKLED["pullback"]()(ct)[0], read("pullback")(ct)[0])
    for now, before in zip(PICKLED["tangents"]()(ct), read("tangents")(ct), strict=True):
        assert_allclose(now, before)


def test_exported_functions_of_before_are_called():
    branched = cj.export.deserialize((HERE / "exports/branching.bin").read_bytes())
    for now, before in zip(branching(X), branched.call(X), strict=True):
        assert_allclose(now, before)
    differentiable = cj.export.deserialize((HERE / "exports/with_a_derivative.bin").read_bytes())
    assert_allclose(np.cos(X), cj.grad(lambda x: differentiable.call(x)["y"].sum())(X))


def test_entries_of_before_are_read_from_the_compilation_cache(tmp_path: Path):
    kept = shutil.copytree(HERE / "cache", tmp_path / "cache")
    kept.chmod(0o700)
    entries = list(kept.glob("*.xla"))
    assert entries
    with Directory(str(kept)) as directory:
        assert [] == [entry for entry in entries if not directory.read(bytes.fromhex(entry.stem))]


@pytest.mark.parametrize("before", MOVED)
def test_a_module_of_before_is_the_module_of_now(before):
    now = importlib.import_module(MOVED[before])
    sys.modules.pop(before, None)
    assert importlib.import_module(before) is now
    assert (now.__name__, now.__spec__.name) == (MOVED[before], MOVED[before])


def test_what_is_written_now_is_read_again():
    for name in PICKLED.keys() - {"pullback", "tangents"}:
        same(PICKLED[name](), pickle.loads(pickle.dumps(PICKLED[name]())))


def test_primitives_of_before_are_those_of_now():
    assert read("primitives")[0] is lax.sin.primitive
