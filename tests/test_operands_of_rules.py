"""Rules get arrays or tracers, whatever was passed: never an ndarray, whose operators promote otherwise."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.core import Array, Tracer, dtypes
from corejax.errors import CorejaxTypeError
from corejax.plugin import Linear, Zero, define, factors, hookimpl

BFLOAT16 = dtypes.bfloat16
THREE = np.arange(1.0, 4.0).astype(BFLOAT16)

#: The hooks whose rules were called.
called: set[str] = set()


def look(hook: str, *operands: Any) -> None:
    called.add(hook)
    for x in operands:
        assert type(x) is Array or isinstance(x, (Tracer, Linear, Zero)), f"{hook} got a {type(x).__name__}"


def product_with(x: Any, y: Any) -> Any:
    return x * (y * 2.0)  # of an ndarray of bfloat16, twice y would be of float32


class Watched:
    """2 x y, by rules that look at what they get, and use its operators."""

    operands = ("x", "y")

    @hookimpl
    def impl(self, args):
        assert all([isinstance(x, (np.ndarray, np.generic)) for x in args])
        out = np.multiply(*args) * 2
        return out.astype(BFLOAT16 if BFLOAT16 in (x.dtype for x in args) else out.dtype)

    @hookimpl
    def decompose(self, args):
        look("decompose", *args)
        return product_with(*args)

    @hookimpl
    def vmap(self, axis, args, dims):
        look("vmap", *args)
        x, y = [x if d in (0, None) else lax.transpose(x, (d, *[i for i in range(x.ndim) if i != d]))
                for x, d in zip(args, dims, strict=True)]
        return product_with(x, y), 0


class ByJvp(Watched):
    """With a jvp rule."""

    name = "watched_by_jvp"
    symbolic_zeros = True

    @hookimpl
    def jvp(self, primals, tangents):
        look("jvp", *primals, *tangents)
        (x, y), (x_dot, y_dot) = primals, tangents
        terms = [product_with(t, w) for t, w in ((x_dot, y), (y_dot, x)) if type(t) is not Zero]
        return by_jvp(x, y), terms[0] if len(terms) == 1 else terms[0] + terms[1]


class ByLinearize(ByJvp):
    """With a linearize rule, too."""

    name = "watched_by_linearize"

    @hookimpl
    def linearize(self, primals, nonzero):
        look("linearize", *primals)

        def lin(residuals, tangents):
            look("lin", *residuals, *tangents)
            terms = [t * w for t, w in zip(tangents, residuals, strict=True) if type(t) is not Zero]
            return terms[0] if len(terms) == 1 else terms[0] + terms[1]
        x, y = primals
        return by_linearize(x, y), (y * 2.0, x * 2.0), lin


def factor(x: Any, y: Any) -> Any:
    look("factors", x, y)
    return product_with(lax.full_like(x, 1), y)


class ByFactors(Watched):
    """With factors."""

    name = "watched_by_factors"
    jvp = factors(lambda out, x, y: factor(x, y), lambda out, x, y: factor(y, x))


class ByDecomposition:
    """By others alone."""

    name = "watched_by_decomposition"
    operands = ("x", "y")

    @hookimpl
    def decompose(self, args):
        look("decompose", *args)
        return product_with(*args)


by_jvp, by_linearize = define(ByJvp()), define(ByLinearize())
WATCHED = {"jvp": by_jvp, "linearize": by_linearize, "factors": define(ByFactors()),
           "decompose": define(ByDecomposition())}

CONSTANTS: dict[str, Callable[[], Any]] = {
    "ndarray": lambda: THREE.copy(), "NumPy scalar": lambda: THREE[1], "ndarray of rank 0": lambda: np.array(THREE[1]),
    "ndarray in another order": lambda: np.repeat(THREE[::-1], 2)[::-2], "Python number": lambda: 2.0,
    "Array": lambda: lax.copy(THREE)}


def summed(f: Any) -> Any:
    return lambda x: f(x).astype(np.float32).sum()


TRANSFORMATIONS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda f: cj.grad(summed(f)), "jvp": lambda f: lambda x: cj.jvp(f, (x,), (np.ones_like(THREE),))[1],
    "jit": cj.jit, "linearize": lambda f: lambda x: cj.linearize(f, x)[1](np.ones_like(THREE)),
    "vmap": lambda f: lambda x: cj.vmap(f)(np.stack([THREE, THREE]))[0] + cj.vmap(
        f, in_axes=1, out_axes=1)(lax.stack([x, x], 1))[:, 1],
    "checkpoint": cj.checkpoint, "vjp": lambda f: lambda x: cj.vjp(f, x)[1](np.ones_like(THREE))[0]}


@pytest.mark.sample(8)
@pytest.mark.parametrize("constant", CONSTANTS)
@pytest.mark.parametrize("rule", WATCHED)
def test_rules_get_arrays_or_tracers_under_each_transformation(rule: str, constant: str) -> None:
    watched, y = WATCHED[rule], CONSTANTS[constant]()
    full = np.broadcast_to(np.asarray(y, BFLOAT16), (3,)) if np.ndim(y) == 0 else y
    called.clear()
    for side, names in product((0, 1), [(), *product(TRANSFORMATIONS), *product(TRANSFORMATIONS, TRANSFORMATIONS)]):
        def f(x: Any, side: int = side) -> Any:
            if np.ndim(y) == 0:
                x = x.astype(BFLOAT16)
                return lax.stack([watched(*((part, y) if side == 0 else (y, part))) for part in x])
            return watched(*((x, y) if side == 0 else (y, x)))
        for name in reversed(names):
            f = TRANSFORMATIONS[name](f)
        found = f(lax.copy(THREE))
        assert BFLOAT16 == found.dtype, (names, side)
        assert (3,) == found.shape
        if names in ((), ("jit",)):
            np.testing.assert_array_equal(2 * THREE.astype(float) * np.asarray(full, float), np.asarray(found, float))
    assert {"vmap", "decompose", rule} & called >= {rule}


@pytest.mark.parametrize("transform", ["jvp", "vmap", "grad"])
def test_an_operand_that_is_no_array_is_named(transform: str) -> None:
    with pytest.raises(CorejaxTypeError, match=r"watched_by_jvp: operand 1: "):
        TRANSFORMATIONS[transform](lambda x: by_jvp.primitive.bind(x, "three"))(lax.copy(THREE))


def test_a_constant_is_one_in_a_program_however_often_rules_get_it() -> None:
    y = np.arange(100.0)

    def f(x: Any) -> Any:
        return (by_jvp(x, y) + by_jvp(lax.sin(x), y)) * y
    for program in (cj.make_jaxpr(f)(y), cj.make_jaxpr(cj.grad(lambda x: f(x).sum()))(y),
                    cj.make_jaxpr(cj.vmap(f))(np.stack([y, y]))):
        assert 1 == len([c for c in program.consts if c.shape == (100,)])


def test_what_a_derivative_keeps_does_not_change_with_the_users_array() -> None:
    y = np.arange(3.0)
    for rule in WATCHED.values():
        out, back = cj.vjp(lambda x, rule=rule, y=y: rule(x, y), np.ones(3))
        y += 1.0
        assert [0.0, 2.0, 4.0] == back(np.ones(3))[0].tolist()
        y -= 1.0
