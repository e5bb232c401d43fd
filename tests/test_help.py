"""What `inspect.signature` and `help` say of every function in `lax`: real names, and an example that runs."""

from __future__ import annotations

import doctest
import inspect
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, get_origin

import numpy as np
import pytest

import corejax as cj
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

#: What Python calls an argument that has no better name.
NAMELESS = {"args", "kwargs", "params", "arg"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_signature_has_real_names_and_types(name: str) -> None:
    function = FUNCTIONS[name]
    signature = inspect.signature(function)
    if isinstance(function, type):
        return  # its fields are its arguments
    assert not NAMELESS & signature.parameters.keys()
    assert signature.parameters, "it takes nothing"
    untyped = [p.name for p in signature.parameters.values() if p.annotation in (p.empty, "object")]
    assert [] == untyped
    assert signature.return_annotation not in (signature.empty, "Any")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_docstring_has_an_example_that_runs(name: str) -> None:
    function = FUNCTIONS[name]
    assert function.__doc__, "it has no docstring"
    assert ">>> " in function.__doc__, "it has no example"
    home: dict[str, Any] = {"cj": cj, "lax": lax, "np": np, **vars(sys.modules[function.__module__])}
    primitive = getattr(function, "primitive", None)
    if primitive is not None:
        home |= vars(sys.modules[type(primitive.plugin).__module__])
    test = doctest.DocTestParser().get_doctest(function.__doc__, home, name, None, None)
    said: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    runner.run(test, out=said.append)
    assert not runner.failures, "".join(said)
