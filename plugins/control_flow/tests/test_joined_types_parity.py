"""The types of what branches and steps return, beside jax: which are joined and how, and which are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import corejax as cj
from corejax import lax

jax = pytest.importorskip("jax")
cnp = pytest.importorskip("corejax.numpy")


@pytest.fixture(autouse=True)
def _x64():
    with jax.enable_x64(True):
        yield


#: Values, each made by its library: Python's and NumPy's numbers, arrays, and arrays of a weak type.
KINDS: dict[str, Callable[[Any, Any], Any]] = {
    "int": lambda L, xp: 3,
    "float": lambda L, xp: 2.5,
    "complex": lambda L, xp: 1j,
    "bool": lambda L, xp: True,
    "np.float32": lambda L, xp: np.float32(1.5),
    "np.int8": lambda L, xp: np.int8(1),
    **{dtype: (lambda L, xp, dtype=dtype: xp.ones((), dtype)) for dtype in (
        "float32", "float64", "int32", "int64", "int8", "uint8", "complex64", "bool_")},
    "bfloat16": lambda L, xp: xp.ones((), ml_dtypes.bfloat16),
    "weak float": lambda L, xp: L.cos(1.0),
    "weak int": lambda L, xp: L.neg(3),
    "weak complex": lambda L, xp: L.neg(1j),
    "a row": lambda L, xp: xp.ones(2, "float32"),
    "a weak row": lambda L, xp: L.broadcast(L.cos(1.0), (2,)),
    "a weak row of ints": lambda L, xp: L.broadcast(L.neg(3), (2,)),
    "None": lambda L, xp: None,
}

#: Programs of two values: what branches return, or what a loop starts with and what a step returns or adds.
PROGRAMS: dict[str, Callable[..., Any]] = {
    "cond": lambda L, jit, a, b: jit(lambda x: L.cond(x > 0, lambda: a, lambda: b))(1.0),
    "cond of a value": lambda L, jit, a, b: L.cond(False, lambda: a, lambda: b),
    "switch": lambda L, jit, a, b: jit(lambda i: L.switch(i, [lambda: a, lambda: b]))(1),
    "switch of a value": lambda L, jit, a, b: L.switch(0, [lambda: a, lambda: b]),
    "scan": lambda L, jit, a, b: L.scan(lambda c, _: (b, None), a, None, length=3)[0],
    "scan of one step": lambda L, jit, a, b: L.scan(lambda c, _: (b, None), a, None, length=1)[0],
    "scan of none": lambda L, jit, a, b: L.scan(lambda c, _: (b, None), a, None, length=0)[0],
    "while_loop": lambda L, jit, a, b: L.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, b), (0, a))[1],
    "fori_loop": lambda L, jit, a, b: L.fori_loop(0, 3, lambda i, c: b, a),
    "fori_loop to a traced bound": lambda L, jit, a, b: jit(lambda n: L.fori_loop(0, n, lambda i, c: b, a))(3),
    "a sum by scan": lambda L, jit, a, b: L.scan(lambda c, _: (c + b, c), a, None, length=3),
    "a sum by while_loop": lambda L, jit, a, b: L.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] + b), (0, a))[1],
    "a sum by fori_loop": lambda L, jit, a, b: L.fori_loop(0, 3, lambda i, c: c + b, a),
    "two that change places": lambda L, jit, a, b: L.fori_loop(0, 3, lambda i, c: (c[1], c[0]), (a, b)),
}


def outcome(program: Callable[..., Any], lib: Any, L: Any, xp: Any, first: str, second: str) -> Any:
    """The types of the results, or that it is refused; whether a bool is weak makes no difference to any type."""
    def type_of(x: Any) -> Any:
        aval = (x if hasattr(x, "aval") else xp.asarray(x)).aval
        return aval.shape, str(aval.dtype), aval.weak_type and aval.dtype != np.bool_

    a, b = KINDS[first](L, xp), KINDS[second](L, xp)
    try:
        return lib.tree.map(type_of, program(L, lib.jit, a, b))
    except TypeError:
        return "refused"


@pytest.mark.sample(14)
@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_parity_of_types_that_are_joined(program, first):
    differing = {}
    for second in KINDS:
        wanted, found = [outcome(PROGRAMS[program], *lib, first, second) for lib in (
            (jax, jax.lax, jax.numpy), (cj, lax, cnp))]
        if wanted != found:
            differing[second] = wanted, found
    assert {} == differing


@pytest.mark.parametrize("second", ["float", "weak float", "float64"])
@pytest.mark.parametrize("first", ["float", "weak float", "float64"])
def test_parity_of_joined_types_under_transformations(first, second):
    """One type, however the conditional is evaluated, except where jax's vmap selects by element."""
    def types(lib: Any, L: Any, xp: Any) -> Any:
        a, b = KINDS[first](L, xp), KINDS[second](L, xp)

        def f(p: Any, x: Any) -> Any:
            return L.cond(p, lambda x: x * 0 + a, lambda x: x * 0 + b, x)
        one, few = xp.asarray(True), xp.asarray([True, False])
        weak = L.cos(1.0)
        found = [f(one, weak), lib.jit(f)(one, weak), lib.jvp(lambda x: f(one, x), (weak,), (weak,))[1],
                 lib.grad(lambda x: f(one, x))(weak), lib.vmap(f, (None, 0))(one, L.broadcast(weak, (2,))),
                 lib.jit(lib.vmap(f, (None, 0)))(one, L.broadcast(weak, (2,)))]
        by_element = lib.vmap(f, (0, None))(few, weak)
        return [x.aval.weak_type for x in found], by_element.dtype
    assert types(jax, jax.lax, jax.numpy) == types(cj, lax, cnp)
