"""Programs with checks beside jax: the same verdicts, and the same kinds of errors and messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import checkify, lax, numpy as jnp

jax = pytest.importorskip("jax")
jax_checkify = pytest.importorskip("jax.experimental.checkify")


class Lib:
    """The modules of a library."""

    def __init__(self, top: Any, lax: Any, jnp: Any, checkify: Any) -> None:
        self.top, self.lax, self.jnp, self.checkify = top, lax, jnp, checkify
        self.check = checkify.check


MINE, JAX = Lib(cj, lax, jnp, checkify), Lib(jax, jax.lax, jax.numpy, jax_checkify)


def pos(L: Lib, x: Any) -> Any:
    L.check(L.jnp.all(x > 0), "must be positive: {x}", x=x)
    return L.lax.log(x)


def with_rule(L: Lib, kind: str) -> Any:
    f = getattr(L.top, kind)(lambda x: pos(L, x))
    if kind == "custom_jvp":
        f.defjvp(lambda xs, dots: (f(*xs), dots[0]))
    else:
        f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct,))
    return f


def loop(L: Lib, x: Any) -> Any:
    def cond(s: Any) -> Any:
        L.check(s < 50, "cond {}", s)
        return abs(s) < 30

    def body(s: Any) -> Any:
        L.check(s > 1, "body {}", s)
        return s * 3
    return L.lax.while_loop(cond, body, x)


def compiled_within(L: Lib, x: Any) -> Any:
    err, y = L.top.jit(L.checkify.checkify(lambda x: pos(L, x)))(x)
    L.checkify.check_error(err)
    return y


def debugging(L: Lib, x: Any) -> Any:
    L.checkify.debug_check(x > 0, "debug {}", x)
    return x


#: Functions of one number, whose checks are the user's.
USERS: dict[str, Callable[[Lib, Any], Any]] = {
    "plain": pos,
    "jit": lambda L, x: L.top.jit(lambda x: pos(L, x))(x),
    "cond": lambda L, x: L.lax.cond(x < 5, lambda x: pos(L, x), lambda x: x, x),
    "switch": lambda L, x: L.lax.switch(1, [lambda x: x, lambda x: pos(L, x)], x),
    "scan": lambda L, x: L.lax.scan(lambda c, a: (pos(L, c) + a, c), x, np.arange(3.0))[0],
    "fori": lambda L, x: L.lax.fori_loop(0, 3, lambda i, c: pos(L, c) + 3, x),
    "while": loop,
    "checkpoint": lambda L, x: L.top.checkpoint(lambda x: pos(L, x))(x),
    "vmap": lambda L, x: L.top.vmap(lambda x: pos(L, x))(L.jnp.stack([x, x + 9])),
    "grad": lambda L, x: L.top.grad(lambda x: pos(L, x))(x),
    "jvp": lambda L, x: L.top.jvp(lambda x: pos(L, x), (x,), (x,)),
    "custom_jvp": lambda L, x: with_rule(L, "custom_jvp")(x),
    "custom_vjp": lambda L, x: with_rule(L, "custom_vjp")(x),
    "check_error": compiled_within,
    "debug_check": debugging,
    "debug_check in jit": lambda L, x: L.top.jit(lambda x: debugging(L, x))(x),
}

#: Functions of a vector and of an index, whose checks are added.
AUTOMATIC: dict[str, Callable[[Lib, Any, Any], Any]] = {
    "log": lambda L, x, i: L.lax.log(x),
    "sqrt in jit": lambda L, x, i: L.top.jit(L.lax.sqrt)(x),
    "sin": lambda L, x, i: L.jnp.sin(x),
    "sum": lambda L, x, i: L.jnp.sum(x),
    "product": lambda L, x, i: L.jnp.prod(x),
    "difference": lambda L, x, i: x - x,
    "dot": lambda L, x, i: x @ x,
    "cumsum": lambda L, x, i: L.jnp.cumsum(x),
    "power": lambda L, x, i: x ** 0.5,
    "integer power": lambda L, x, i: x ** -2,
    "moved": lambda L, x, i: L.jnp.concatenate([x, x[::-1]]),
    "largest": lambda L, x, i: L.jnp.max(x),
    "sorted": lambda L, x, i: L.jnp.sort(x),
    "selected": lambda L, x, i: L.jnp.where(x > 0, x, 0.0),
    "division": lambda L, x, i: 1.0 / x,
    "remainder": lambda L, x, i: L.lax.rem(x, x),
    "integers": lambda L, x, i: L.lax.div(i, i - i + L.jnp.asarray(0)),
    "index": lambda L, x, i: x[i],
    "indices": lambda L, x, i: x[L.jnp.stack([i, i])],
    "dynamic_slice": lambda L, x, i: L.lax.dynamic_slice(x, (i,), (2,)),
    "dynamic_update_slice": lambda L, x, i: L.lax.dynamic_update_slice(x, x[:2], (i,)),
    "set": lambda L, x, i: x.at[i].set(1.0),
    "add": lambda L, x, i: x.at[L.jnp.stack([i, i])].add(1.0),
    "a row of a matrix": lambda L, x, i: L.jnp.stack([x, x], 1)[i, 1],
    "log in scan": lambda L, x, i: L.lax.scan(lambda c, a: (c, L.lax.log(a)), 0.0, x)[1],
    "log in cond": lambda L, x, i: L.lax.cond(i > 1, L.lax.log, lambda x: x, x),
    "log in fori": lambda L, x, i: L.lax.fori_loop(0, 2, lambda _, x: L.lax.log(x), x),
    "mapped": lambda L, x, i: L.top.vmap(L.lax.log)(x),
    "gradient": lambda L, x, i: L.top.grad(lambda x: L.jnp.sum(L.lax.sqrt(x)))(x),
}

def verdicts(L: Lib, f: Any, errors: str) -> Callable[..., tuple[str | None, str | None]]:
    """A function of arguments: the class of the error and its message, of the compiled function."""
    checked = L.top.jit(L.checkify.checkify(lambda *xs: f(L, *xs), errors=getattr(L.checkify, f"{errors}_checks")))

    def verdict(*args: Any) -> tuple[str | None, str | None]:
        with jax.enable_x64(True):
            err, _ = checked(*args)
        message = err.get()
        if message is None:
            return None, None
        return type(err.get_exception()).__name__, message.removeprefix("at mapped index 0: ").rstrip(". ")

    return verdict


@pytest.mark.parametrize("name", USERS)
def test_users_checks_have_the_verdicts_of_jax(name: str) -> None:
    mine, others = [verdicts(L, USERS[name], "user") for L in (MINE, JAX)]
    for x in (2.0, -1.0, 20.0, 60.0):
        assert others(x) == mine(x)


@pytest.mark.parametrize("name", AUTOMATIC)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_checks_that_are_added_have_the_verdicts_of_jax(name: str) -> None:
    numbers = [np.array(row) for row in ([1.0, 2.0, 3.0], [1.0, 0.0, 2.0], [-1.0, 2.0, np.inf], [np.nan, 1.0, 2.0],
                                         [np.inf, -np.inf, 1.0])]
    for errors in ("nan", "index", "all", "div"):
        if errors == "nan" and name in ("set", "add"):
            continue  # jax looks for NaN in what scatter makes only where indices are checked too
        mine, others = [verdicts(L, AUTOMATIC[name], errors) for L in (MINE, JAX)]
        for x in numbers:
            for i in (1, 2, 5, -1)[:3 if name.startswith("dynamic") else 4]:
                wanted, found = others(x, i), mine(x, i)
                assert wanted[0] == found[0], (errors, x, i, wanted, found)
                if wanted[0] in ("OOBError", "DivisionByZeroError"):  # of which part of an array may differ
                    assert str(wanted[1]).rpartition(": ")[2] == str(found[1]).rpartition(": ")[2]


def test_errors_of_each_element_are_those_of_jax() -> None:
    xs = np.array([[1.0, -2.0], [-3.0, 4.0]])
    with jax.enable_x64(True):
        wanted = jax.vmap(jax.vmap(jax_checkify.checkify(lambda x: pos(JAX, x))))(xs)[0].get()
    assert wanted == cj.vmap(cj.vmap(checkify.checkify(lambda x: pos(MINE, x))))(xs)[0].get()


@pytest.mark.parametrize("L", [MINE, JAX], ids=["corejax", "jax"])
def test_what_jax_refuses_is_refused(L: Lib) -> None:
    for f in (lambda x: pos(L, x), lambda x: L.lax.scan(lambda c, _: (pos(L, c), None), x, length=2)[0]):
        with pytest.raises(ValueError, match="functionalize"):
            L.top.jit(f)(1.0)
    with pytest.raises(ValueError, match="must be positive"):
        pos(L, L.jnp.asarray(-1.0))
    for use in (lambda: L.check(L.jnp.ones(2) > 0, "two"), lambda: L.check(True, "{}", "text"),
                lambda: L.checkify.check_error("text")):
        with pytest.raises(TypeError):
            use()
