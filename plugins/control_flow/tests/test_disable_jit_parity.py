"""What runs while jit is disabled, beside jax: the same results, and the same values seen by Python on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import lax

jax = pytest.importorskip("jax")
cnp = pytest.importorskip("corejax.numpy")

XS = np.array([0.5, -1.5, 2.0])


@pytest.fixture(autouse=True)
def _x64():
    with jax.enable_x64(True):
        yield


class Seen:
    """A list of what Python code saw: numbers, or that something was traced."""

    def __init__(self, tracer: type) -> None:
        self.tracer, self.items = tracer, []

    def __call__(self, *xs: Any) -> None:
        for x in xs:
            inner = getattr(x, "primal", x)
            self.items.append("traced" if isinstance(inner, self.tracer) else np.asarray(inner).tolist())


def programs(lib: Any, L: Any, xp: Any, see: Any) -> dict[str, Callable[[], Any]]:
    def compiled(x: Any, y: Any = 1.0) -> Any:
        see(x, y)
        return x * y + 1.0

    def step(c: Any, x: Any) -> Any:
        see(c, x)
        return c * 0.5 + x, c - x

    def newton(x: Any) -> Any:
        def body(y: Any) -> Any:
            see(y)
            return (y + x / y) / 2.0
        return L.while_loop(lambda y: abs(y * y - x) > 1e-6, body, x)

    def power(x: Any, n: Any = 4) -> Any:
        def body(i: Any, c: Any) -> Any:
            see(i)
            return c * x
        return L.fori_loop(0, n, body, xp.asarray(1.0))

    def chosen(p: Any, x: Any) -> Any:
        def one(x: Any) -> Any:
            see(False, x)
            return L.sin(x)

        def two(x: Any) -> Any:
            see(True, x)
            return x * x
        return L.cond(p, one, two, x)

    @lib.custom_jvp
    def custom(x: Any) -> Any:
        see(x)
        return L.sin(x)

    @custom.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        see(*primals)
        return custom(*primals), 3.0 * tangents[0]

    @lib.custom_vjp
    def backward(x: Any) -> Any:
        see(x)
        return L.sin(x)

    backward.defvjp(lambda x: (see(x), (L.sin(x), x))[1], lambda x, ct: (see(x, ct), (5.0 * ct,))[1])

    jit, grad, vmap, xs = lib.jit, lib.grad, lib.vmap, xp.asarray(XS)
    x = xp.asarray(2.0)
    return {
        "jit": lambda: jit(compiled)(x),
        "jit, twice": lambda: (lambda f: (f(x), f(x)))(jit(compiled)),
        "jit of an array": lambda: jit(compiled)(xs, y=x),
        "jit with a static argument": lambda: jit(compiled, static_argnums=1)(x, 2.0),
        "jit of jit": lambda: jit(lambda x: jit(compiled)(x) * 2.0)(x),
        "grad of jit": lambda: grad(jit(lambda x: x * x * x))(x),
        "jit of grad": lambda: jit(grad(lambda x: power(x)))(x),
        "vmap of jit": lambda: vmap(jit(lambda x: x * x))(xs),
        "jit of vmap": lambda: jit(vmap(lambda x: x * 2.0))(xs),
        "hessian": lambda: jit(lib.hessian(lambda x: (x ** 3).sum()))(xs),
        "jvp": lambda: lib.jvp(jit(power), (x,), (x,)),
        "scan": lambda: L.scan(step, x, xs),
        "scan in reverse": lambda: L.scan(step, x, xs, reverse=True),
        "scan of one step": lambda: L.scan(step, x, xs[:1]),
        "scan without inputs": lambda: L.scan(lambda c, _: (c * 2.0, None), x, None, length=3),
        "a sum by scan": lambda: L.scan(lambda c, x: (c + x, c), 0.0, xs),
        "scan of trees": lambda: L.scan(lambda c, t: ({"a": c["a"] + t[0]}, (c["a"], {"b": t[1]})), {"a": x}, (xs, xs)),
        "scan unrolled": lambda: L.scan(step, x, xs, unroll=2),
        "scan in jit": lambda: jit(lambda xs: L.scan(step, x, xs))(xs),
        "grad of scan": lambda: grad(lambda w: L.scan(lambda c, x: (c * w + x, c * x), x, xs)[1].sum())(x),
        "vmap of scan": lambda: vmap(lambda w: L.scan(lambda c, x: (c * w + x, c * x), x, xs))(xs),
        "while_loop": lambda: newton(x),
        "while_loop of no step": lambda: L.while_loop(lambda c: c < 0.0, lambda c: c + 1.0, x),
        "while_loop of a tree": lambda: L.while_loop(
            lambda c: c["i"] < 3, lambda c: {"i": c["i"] + 1, "x": c["x"] * 2.0}, {"i": 0, "x": xs}),
        "while_loop in jit": lambda: jit(newton)(x),
        "jvp of while_loop": lambda: lib.jvp(newton, (x,), (x,)),
        "vmap of while_loop": lambda: vmap(lambda x: L.while_loop(
            lambda y: y < 9.0, lambda y: y * x, x))(abs(xs) + 1.1),
        "vmap of a known condition": lambda: vmap(lambda x: L.while_loop(
            lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x), (0, x))[1])(xs),
        "grad of while_loop": lambda: grad(lambda x: L.while_loop(
            lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x), (xp.asarray(0), x))[1])(x),
        "fori_loop": lambda: power(x),
        "fori_loop to an array": lambda: power(x, xp.asarray(3)),
        "fori_loop of no step": lambda: power(x, 0),
        "fori_loop in jit": lambda: jit(power)(x, 3),
        "grad of fori_loop": lambda: grad(power)(x),
        "grad of fori_loop to an argument": lambda: jit(grad(power))(x, 3),
        "vmap of fori_loop": lambda: vmap(power)(xs),
        "vmap of bounds": lambda: vmap(lambda n: L.fori_loop(0, n, lambda i, c: c * 2.0, 1.0))(xp.arange(3)),
        "cond": lambda: (chosen(True, x), chosen(False, x)),
        "cond of an array": lambda: chosen(x > 1.0, x),
        "cond in jit": lambda: jit(chosen)(False, x),
        "grad of cond": lambda: grad(lambda x: chosen(x > 1.0, x))(x),
        "vmap of cond": lambda: vmap(lambda x: L.cond(x > 0.0, L.sin, lambda x: x * x, x))(xs),
        "vmap of a known predicate": lambda: vmap(lambda x: L.cond(True, L.sin, lambda x: x * x, x))(xs),
        "switch": lambda: [L.switch(i, [L.sin, L.cos, L.exp], x) for i in (-3, 0, 1, 9)],
        "switch in jit": lambda: jit(lambda i: L.switch(i, [L.sin, L.cos, L.exp], x))(1),
        "vmap of switch": lambda: vmap(lambda i, x: L.switch(i, [L.sin, L.cos, L.exp], x))(xp.arange(3), xs),
        "map": lambda: L.map(lambda x: (see(x), x * x)[1], xs),
        "map in batches": lambda: L.map(lambda x: x * x, xs, batch_size=2),
        "grad of map": lambda: grad(lambda xs: L.map(lambda x: x * x * x, xs).sum())(xs),
        "checkpoint": lambda: lib.checkpoint(L.sin)(x),
        "grad of checkpoint": lambda: grad(lib.checkpoint(lambda x: L.sin(L.sin(x))))(x),
        "custom_jvp": lambda: jit(custom)(x),
        "jvp of custom_jvp": lambda: lib.jvp(jit(custom), (x,), (x,)),
        "vmap of custom_jvp": lambda: vmap(lambda x: L.sin(x))(xs),
        "custom_vjp": lambda: jit(backward)(x),
        "grad of custom_vjp": lambda: grad(jit(backward))(x),
        "associative_scan": lambda: L.associative_scan(L.add, xs),
        "custom_linear_solve": lambda: grad(lambda b: L.custom_linear_solve(
            lambda x: 2.0 * x, b, lambda _, b: b / 2.0, symmetric=True))(x),
        "nothing to take": lambda: jit(lambda: 1.0)(),
        "make_jaxpr": lambda: len(lib.make_jaxpr(lambda x: L.sin(x))(x).jaxpr.eqns),
        "again with it": lambda: (lambda f: [f(x), with_it(lib, f, x), f(x)])(jit(compiled)),
    }


def with_it(lib: Any, f: Any, x: Any) -> Any:
    with lib.disable_jit(False):
        return f(x)


@pytest.mark.parametrize("name", programs(cj, lax, cnp, Seen(cj.core.Tracer)))
def test_parity_while_jit_is_disabled(name):
    outcomes = []
    for lib, L, xp, tracer in ((jax, jax.lax, jax.numpy, jax.core.Tracer), (cj, lax, cnp, cj.core.Tracer)):
        see = Seen(tracer)
        run = programs(lib, L, xp, see)[name]
        with lib.disable_jit():
            found = run()
        outcomes.append((lib.tree.leaves(found), see.items))
    (wanted, wanted_seen), (found, found_seen) = outcomes
    assert wanted_seen == found_seen
    assert len(wanted) == len(found)
    for x, y in zip(wanted, found, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12)
