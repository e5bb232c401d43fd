"""Every way to call `cond` and `switch`, beside jax: what they take, what they refuse, and with which kind of error."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxError

jax = pytest.importorskip("jax")
cnp = pytest.importorskip("corejax.numpy")


@pytest.fixture(autouse=True)
def _x64():
    with jax.enable_x64(True):
        yield


class Scale:
    """Callable in every way that a class allows."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def __call__(self, x: Any) -> Any:
        return x * self.factor

    def added(self, x: Any) -> Any:
        return x + self.factor

    @classmethod
    def made(cls, x: Any) -> Any:
        return x * 5.0

    @staticmethod
    def fixed(x: Any) -> Any:
        return x * 7.0


triple = Scale(3.0)
PREDICATES = [True, False, 3, 0, 0.5, float("nan"), -0.0, np.True_, np.int8(-1), np.uint64(2**63), np.int64(2**32), 1j,
              [True], None, "x", abs]
INDICES = [0, 1, -5, 50, 2**40 + 2, 2**70, np.uint8(255), np.int8(-128), True, np.True_, 1.0, [1], None, "1"]


def inc(x: Any) -> Any:
    return x + 1.0


def dec(x: Any) -> Any:
    return x - 1.0


def calls(L: Any, xp: Any, vmap: Any, jit: Any, grad: Any) -> dict[str, Callable[[], Any]]:
    cond, switch, xs = L.cond, L.switch, xp.arange(3.0)
    three = [inc, dec, triple]
    found: dict[str, Callable[[], Any]] = {
        # operands
        "operand=": lambda: cond(True, inc, dec, operand=2.0),
        "operand=None": lambda: cond(True, lambda _: 1.0, lambda _: 2.0, operand=None),
        "operand= and another": lambda: cond(True, lambda a, b: 1.0, lambda a, b: 2.0, 3.0, operand=2.0),
        "no operands": lambda: cond(True, lambda: 1.0, lambda: 2.0),
        "two operands by position": lambda: cond(True, 1.0, inc, 2.0, dec),
        "two trees by position": lambda: cond(False, (1.0, 2.0), lambda t: t[0], {"a": 2.0}, lambda d: d["a"]),
        "two operands, traced": lambda: jit(lambda p: cond(p, 1.0, inc, 2.0, dec))(False),
        "two operands by keyword": lambda: cond(pred=True, true_operand=1.0, true_fun=inc, false_operand=2.0,
                                                false_fun=dec),
        "all by keyword": lambda: cond(pred=True, true_fun=inc, false_fun=dec, operand=1.0),
        "linear=": lambda: cond(True, inc, dec, 1.0, linear=False),
        "None among them": lambda: cond(True, lambda n, x: inc(x), lambda n, x: dec(x), None, 1.0),
        "a str": lambda: cond(True, lambda x: 1.0, lambda x: 1.0, "a"),
        "a function": lambda: cond(True, lambda f: 1.0, lambda f: 1.0, abs),
        "too many": lambda: cond(True, inc, dec, 1.0, 2.0),
        "too many for one branch": lambda: cond(True, inc, lambda: 1.0, 1.0),
        # callables
        "objects and methods": lambda: cond(True, triple, triple.added, 2.0),
        "class and static methods": lambda: cond(False, Scale.made, triple.fixed, 2.0),
        "partials": lambda: cond(True, functools.partial(operator.mul, 3.0), functools.partial(max, 2.0, key=abs), 2.0),
        "partials of arrays": lambda: cond(False, functools.partial(operator.mul, xs), functools.partial(dec), xs),
        "builtins": lambda: cond(True, operator.neg, abs, -2.0),
        "builtins of a tree": lambda: cond(True, sum, max, (1.0, 2.0)),
        "functions of the library": lambda: cond(False, L.sin, xp.cos, 1.0),
        "compiled functions": lambda: cond(False, jit(L.sin), jit(L.cos), 1.0),
        "classes": lambda: cond(False, float, complex, 1.0),
        "containers": lambda: cond(False, tuple, lambda t: (t[0], t[1]), (1.0, 2.0)),
        "other containers": lambda: cond(False, list, tuple, (1.0, 2.0)),
        "no function, if true": lambda: cond(True, 1.0, lambda x: x, 1.0),
        "no function, if false": lambda: cond(True, lambda x: x, 1.0, 1.0),
        "one is missing": lambda: cond(True, lambda x: x),
        # results
        "None": lambda: cond(False, lambda x: None, lambda x: None, 1.0),
        "None and a number": lambda: cond(False, lambda x: None, lambda x: x, 1.0),
        "strs": lambda: cond(False, lambda: "a", lambda: "b"),
        "functions": lambda: cond(False, lambda: abs, lambda: abs),
        # predicates and indices that are mapped or differentiated
        "mapped": lambda: vmap(lambda p, x: cond(p, inc, dec, x))(xp.asarray([True, False, True]), xs),
        "mapped ints": lambda: vmap(lambda p, x: cond(p, inc, dec, x))(xp.asarray([2, 0, -1]), xs),
        "mapped floats": lambda: vmap(lambda p, x: cond(p, inc, dec, x))(xp.asarray([0.5, 0.0, np.nan]), xs),
        "mapped indices": lambda: vmap(lambda i, x: switch(i, three, x))(xp.asarray([-3, 1, 9]), xs),
        "mapped uint8": lambda: vmap(lambda i, x: switch(i, three, x))(np.array([0, 1, 255], np.uint8), xs),
        "mapped rows": lambda: vmap(lambda p: cond(p, inc, dec, 1.0))(xp.ones((2, 2), bool)),
        "of an index": lambda: grad(lambda x: switch(x.astype(int), three, x))(2.0),
        "of a predicate": lambda: grad(lambda x: cond(x, inc, lambda x: x * x, x))(0.0),
        "of an integer operand": lambda: grad(lambda x: cond(x > 0, lambda n, x: x * n, lambda n, x: x, 3, x))(1.0),
        # branches
        "one": lambda: switch(7, [inc], 2.0),
        "one that returns a number": lambda: switch(0, [lambda: 1]),
        "one that returns a str": lambda: switch(0, [lambda: "a"]),
        "one, of a float": lambda: switch(7.0, [inc], 2.0),
        "one, of a row": lambda: switch(xp.asarray([7]), [inc], 2.0),
        "one, traced": lambda: jit(lambda i, x: switch(i, [inc], x))(3, 1.0),
        "one that isn't callable": lambda: switch(0, [3]),
        "none": lambda: switch(0, []),
        "a tuple": lambda: switch(1, (inc, dec), 1.0),
        "the keys of a dict": lambda: switch(1, {inc: 1, dec: 2}, 2.0),
        "a function alone": lambda: switch(0, inc, 2.0),
        "one of them isn't callable": lambda: switch(0, [inc, 3], 2.0),
        "without operands": lambda: switch(1, [lambda: 1.0, lambda: 2.0]),
        "with operand=": lambda: switch(1, [inc, dec], operand=2.0),
        "with operand= and another": lambda: switch(1, [lambda a, b: a, lambda a, b: b], 1.0, operand=2.0),
        "by keyword": lambda: switch(index=1, branches=[inc, dec], operand=1.0),
        "of other structures": lambda: switch(1, [lambda x: (x,), lambda x: [x]], 1.0),
    }
    for i, p in enumerate(PREDICATES):
        found[f"predicate {i}"] = lambda p=p: cond(p, inc, dec, 1.0)
        found[f"predicate {i}, traced"] = lambda p=p: jit(lambda p: cond(p, inc, dec, 1.0))(p)
    for i, index in enumerate(INDICES):
        found[f"index {i}"] = lambda index=index: switch(index, three, 2.0)
        found[f"index {i}, traced"] = lambda index=index: jit(lambda index: switch(index, three, 2.0))(index)
    return found


OF_JAX = calls(jax.lax, jax.numpy, jax.vmap, jax.jit, jax.grad)
OURS = calls(lax, cnp, cj.vmap, cj.jit, cj.grad)


def shown(result: Any, tree: Any) -> Any:
    def leaf(x: Any) -> Any:
        aval = getattr(x, "aval", None)
        of = type(x).__name__ if aval is None else (str(aval.dtype), aval.weak_type, aval.shape)
        return of, np.asarray(x).tolist()
    return tree.map(leaf, result)


@pytest.mark.parametrize("name", OURS)
@pytest.mark.filterwarnings("ignore")
def test_parity_of_calls(name):
    try:
        wanted = OF_JAX[name]()
    except Exception as error:
        kind = next(kind for kind in type(error).__mro__ if kind.__module__ == "builtins")
        with pytest.raises(kind) as caught:
            OURS[name]()
        assert isinstance(caught.value, CorejaxError) or "argument" in str(caught.value)
        return
    assert shown(wanted, jax.tree) == shown(OURS[name](), cj.tree)


@pytest.mark.parametrize("index", [np.int64(2**32), np.int64(-2**32 + 1), np.uint64(2**64 - 1), np.uint32(2**32 - 1)])
def test_an_index_is_clamped_where_jax_wraps_it_to_32_bits(index):
    def f(L: Any, i: Any) -> Any:
        return L.switch(i, [inc, dec, triple], 2.0)

    wanted = inc(2.0) if index < 0 else triple(2.0)
    assert wanted == f(lax, index) == cj.jit(functools.partial(f, lax))(index)
    assert wanted != jax.jit(functools.partial(f, jax.lax))(index)
