"""What completion offers is public, and a name that isn't there says what to use instead."""

from __future__ import annotations

import importlib
import inspect
import os
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

import corejax as cj
from corejax.errors import CorejaxError, CorejaxWarning
from corejax.installed import groups, manifest, registry

MODULES = ["corejax", "corejax.tree", "corejax.errors", "corejax.core", "corejax.plugins", "corejax.plugin",
           "corejax.export", "corejax.ir", "corejax.testing", "corejax.packs.families", "corejax.rules",
           "corejax.distributions",
           "corejax.sharding", "corejax.stages", "corejax.experimental"]


@pytest.mark.parametrize("name", MODULES)
def test_a_module_lists_its_public_names_only(name: str) -> None:
    module = importlib.import_module(name)
    listed = [entry for entry in dir(module) if not entry.startswith("_")]
    if module is cj:  # packs add functions to it
        listed = [entry for entry in listed if registry.installed().choose_function(f"{groups.AT_TOP}{entry}") is None
                  and not registry.installed().providers(groups.NAMESPACES, entry)]
    assert sorted(module.__all__) == listed
    assert all(hasattr(module, entry) for entry in listed)


def test_corejax_errors_lists_each_error() -> None:
    classes = {name for name, value in vars(cj.errors).items() if isinstance(value, type)
               and issubclass(value, (CorejaxError, CorejaxWarning))}
    assert classes == set(cj.errors.__all__)


def test_no_public_signature_shows_a_private_name() -> None:
    found = []
    for module in (cj, cj.lax, cj.tree, cj.plugins, cj.export):
        for name in dir(module):
            try:
                parameters = inspect.signature(getattr(module, name)).parameters.values()
            except (TypeError, ValueError):  # a constant, or a class without a signature
                continue
            found += [f"{module.__name__}.{name}({parameter})" for parameter in parameters
                      if parameter.name.startswith("_") and parameter.kind not in (parameter.VAR_POSITIONAL,
                                                                                   parameter.VAR_KEYWORD)]
    assert ["corejax.lax.scan(_split_transpose: 'bool' = False)"] == found  # which JAX shows, too


IMPORTS = [("from corejax.lax import sni", "did you mean 'sin'"), ("from corejax import gradd", "did you mean 'grad'"),
           ("from corejax import sin", "write cj.lax.sin"), ("from corejax import lag", "did you mean 'lax'"),
           ("from corejax.plugin import hookimp", "did you mean 'hookimpl'"),
           ("from corejax.numpy import sinn", "did you mean sin?"),
           ("from corejax.nn import rellu", "did you mean relu?"),
           ("from corejax import pmpa", "did you mean 'pmap'"), ("from corejax import nunpy", "did you mean 'numpy'"),
           ("from corejax.tree import mapp", "did you mean 'map'"),
           ("from corejax.errors import CorejaxEror", "did you mean 'CorejaxError'"),
           ("from corejax import scipy", "corejax-scipy brings it: pip install 'corejax[scipy]'")]


@pytest.mark.parametrize(("statement", "hint"), IMPORTS)
def test_an_import_of_a_name_that_is_not_there_keeps_the_hint(statement: str, hint: str) -> None:
    with pytest.raises(ImportError, match="no") as caught:
        exec(compile(statement, "user.py", "exec"), {})
    error: Any = caught.value
    assert isinstance(error, CorejaxError) and hint in str(error.todo)
    assert None not in (error.got, error.wanted, error.where, error.todo)


NAMES = {
    "cj.pmpa": "did you mean 'pmap'?", "cj.shard_mapp": "did you mean 'shard_map'?",
    "cj.nunpy": "did you mean 'numpy'?", "cj.Grad": "did you mean 'grad'?", "cj.lax.snih": "did you mean 'sinh'",
    "cj.lax.linlag": "did you mean 'linalg'", "cj.lax.linalg.qrr": "did you mean 'qr'",
    "cj.numpy.sinn": "did you mean sin?", "cj.numpy.linalg.slove": "did you mean solve?",
    "cj.numpy.fft.ftt": "did you mean fft?", "cj.tree.mapp": "did you mean 'map'?",
    "cj.errors.CorejaxEror": "did you mean 'CorejaxError'?",
    "cj.scipy": "corejax-scipy brings it: pip install 'corejax[scipy]'",
    "cj.scipy.special": "corejax-scipy brings it: pip install 'corejax[scipy]'",
    "cj.std": "look in cj.lax",  # an extra that isn't a pack
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_is_not_there_says_what_to_write_or_to_install(name: str) -> None:
    with pytest.raises(AttributeError) as caught:
        eval(name, {"cj": cj})
    error: Any = caught.value
    assert isinstance(error, CorejaxError) and error.todo.startswith(NAMES[name])


def test_the_names_that_there_are_include_those_of_packs() -> None:
    with pytest.raises(CorejaxError) as caught:
        getattr(cj, "nonsense")  # noqa: B009
    names = str(caught.value.wanted).removeprefix("one of: ").split(", ")
    assert {"grad", "jit", "numpy", "pmap", "shard_map"} <= {*names}


@pytest.mark.parametrize(("name", "todo"), [
    ("scipy", "corejax-scipy brings it: pip install 'corejax[scipy]'"),
    ("scipy.special", "corejax-scipy brings it: pip install 'corejax[scipy]'"),
    ("nunpy", "did you mean 'numpy'?"), ("lax.linlag", "did you mean 'lax.linalg'?")])
def test_an_import_of_a_namespace_that_is_not_there_says_what_brings_it(name: str, todo: str) -> None:
    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.import_module(f"corejax.{name}")
    error: Any = caught.value
    assert isinstance(error, CorejaxError) and todo == error.todo


def test_a_namespace_is_not_said_to_be_brought_by_a_pack_that_is_installed() -> None:
    assert "corejax-numpy" == manifest.bringing("numpy")
    assert registry.brought_by("numpy") is None
    assert registry.brought_by("std") is None and registry.brought_by("test") is None


@pytest.mark.parametrize("name", ["gradd", "scipy"])
def test_an_attribute_that_is_not_there_is_an_attribute_error(name: str) -> None:
    assert not hasattr(cj, name) and not hasattr(cj.lax, name)
    with pytest.raises(AttributeError):
        getattr(cj, name)


def test_importing_a_module_does_not_look_what_is_installed() -> None:
    code = ("from corejax import sharding; from corejax.inspect import cli; "
            "from corejax.installed import manifest; print(manifest._kept)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "{}" == done.stdout.strip()


def test_without_the_pack_of_numpys_functions_the_error_says_which_it_is() -> None:
    code = "import corejax as cj; cj.numpy"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False,
                          env={**os.environ, "COREJAX_DISABLE_PACKS": "corejax-numpy"})
    assert "CorejaxAttributeError: corejax has no 'numpy'" in done.stderr
    assert "corejax-numpy" in done.stderr


def test_std_is_to_be_installed_only_where_some_of_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def hint() -> str:
        return registry.install_hint("sort", (groups.FUNCTIONS,))

    assert "install the pack that provides it, if there is one" == hint()
    packs = {"corejax-lax-basic", "corejax-reductions", "corejax-control-flow", "corejax-special",
             "corejax-sorting", "corejax-collectives", "corejax-windows", "corejax-linear-algebra", "corejax-fft",
             "corejax-numpy", "corejax-random", "corejax-nn", "corejax-checkify", "corejax-callbacks",
             "corejax-references", "corejax-processes", "corejax-taylor"}
    assert packs == set(manifest.standard())
    monkeypatch.setattr(manifest, "standard", lambda: ["corejax-lax-basic", "corejax-linalg"])
    assert "pip install 'corejax[std]' brings corejax-linalg; or install the pack that provides it" == hint()


def test_the_kernel_without_metadata_names_no_standard_packs(monkeypatch: pytest.MonkeyPatch) -> None:
    for found in (None, SimpleNamespace(requires=None), SimpleNamespace(requires=["numpy>=2", "x; extra == 'test'"])):
        monkeypatch.setattr(manifest, "distribution", lambda name, found=found: found)
        assert [] == manifest.standard()
