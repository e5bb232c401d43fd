"""What `inspect.signature` and `help` say of each function in `lax` and `numpy`: real names, an example that runs."""

from __future__ import annotations

import doctest
import inspect
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from types import ModuleType
from typing import Any, get_origin

import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax import lax


def _public(module: ModuleType, name: str) -> Iterator[tuple[str, Any]]:
    """What a module has, and the namespaces in it have, by name."""
    for each in getattr(module, "__all__", ()):
        value = getattr(module, each)
        if isinstance(value, ModuleType):
            yield from _public(value, f"{name}{each}.")
        else:
            yield f"{name}{each}", value


#: Functions and classes; not types made of others, such as `tuple[int, str]`.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: value for name, value in _public(lax, "") if get_origin(value) is None}

#: Those of `corejax.numpy`, but for dtypes, constants, and objects that are indexed.
FUNCTIONS |= {name: value for name, value in _public(jnp, "numpy.")
              if callable(value) and not isinstance(value, (type, np.dtype)) and not hasattr(value, "dtype")}

#: What a user's function returns, and NumPy's own functions.
UNTYPED = {"numpy.fromfunction", "numpy.printoptions", "numpy.set_printoptions", "numpy.get_printoptions"}

#: What Python calls an argument that has no better name.
NAMELESS = {"args", "kwargs", "params", "arg"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_signature_has_real_names_and_types(name: str) -> None:
    function = FUNCTIONS[name]
    signature = inspect.signature(function)
    if isinstance(function, type) or "printoptions" in name:
        return  # its fields are its arguments
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    own = [p for p in signature.parameters.values() if not (name.startswith("numpy.") and p.kind in several)]
    assert not NAMELESS & {p.name for p in own}
    assert signature.parameters, "it takes nothing"
    untyped = [p.name for p in signature.parameters.values() if p.annotation in (p.empty, "object")]
    assert [] == untyped
    if name not in UNTYPED:
        assert signature.return_annotation not in (signature.empty, "Any")


@pytest.mark.sample(200)  # those of modules run in test_docs.py, too
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_docstring_has_an_example_that_runs(name: str) -> None:
    function = FUNCTIONS[name]
    if "printoptions" in name:  # NumPy's own
        return
    assert function.__doc__, "it has no docstring"
    assert ">>> " in function.__doc__, "it has no example"
    home: dict[str, Any] = {"cj": cj, "lax": lax, "np": np, "jnp": jnp, "random": cj.random,
                            **vars(import_module(function.__module__))}
    primitive = getattr(function, "primitive", None)
    if primitive is not None:
        home |= vars(sys.modules[type(primitive.plugin).__module__])
    test = doctest.DocTestParser().get_doctest(function.__doc__, home, name, None, None)
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=said.append)
    assert not runner.failures, "".join(said)
