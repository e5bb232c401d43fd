"""What checks do: evaluated at once, functionalized through whatever carries programs, and refused."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import checkify, lax, numpy as jnp, random
from corejax.core import vmap_jaxpr
from corejax.errors import CorejaxError, CorejaxNotImplementedError, CorejaxTypeError, CorejaxValueError
from corejax.plugin import carrying, define, hookimpl

ck = checkify.checkify
ALL = checkify.all_checks


def pos(x: Any, name: str = "pos") -> Any:
    """The logarithm of what should be positive."""
    checkify.check(jnp.all(x > 0), name + " {}", x)
    return lax.log(x)


def said(err: Any) -> str | None:
    """The first word of what failed."""
    message = err.get()
    return None if message is None else re.sub(r"^at mapped index [\d, ]+: ", "", message).split()[0]


# Errors

def test_names_are_those_of_jax() -> None:
    names = {"Error", "ErrorCategory", "JaxRuntimeError", "all_checks", "automatic_checks", "check", "check_error",
             "checkify", "debug_check", "div_checks", "float_checks", "index_checks", "init_error", "nan_checks",
             "user_checks"}
    assert names <= set(dir(checkify)) and cj.experimental.checkify is checkify
    assert checkify.init_error.get() is None


def test_exceptions_are_of_the_kind_of_their_check_and_of_a_class_of_pythons() -> None:
    x, zero = jnp.asarray(-1.0), jnp.asarray(0.0)
    for f, args, kinds in (
            (pos, (x,), (checkify.FailedCheckError, ValueError)),
            (lax.log, (x,), (checkify.NaNError, FloatingPointError)),
            (lax.div, (x, zero), (checkify.DivisionByZeroError, ZeroDivisionError)),
            (lambda x, i: x[i], (jnp.arange(3), jnp.asarray(3)), (checkify.OOBError, IndexError))):
        err, _ = ck(f, errors=ALL)(*args)
        for kind in (*kinds, checkify.CheckError, checkify.JaxRuntimeError, CorejaxError, ValueError):
            with pytest.raises(kind):
                err.throw()


def test_errors_point_at_the_check_or_the_operation() -> None:
    def f(x: Any) -> Any:
        return cj.jit(lambda x: lax.sin(x))(x)  # this line

    err, _ = cj.jit(ck(f, errors=ALL))(np.inf)
    with pytest.raises(checkify.NaNError) as caught:
        err.throw()
    assert f"test_checkify.py:{f.__code__.co_firstlineno + 1} (" in str(caught.value.where)
    with pytest.raises(checkify.FailedCheckError) as failed:
        ck(pos)(jnp.asarray(-1.0))[0].throw()
    assert f"test_checkify.py:{pos.__code__.co_firstlineno + 2} (pos)" in str(failed.value.where)


def test_messages_have_values_of_any_structure() -> None:
    def f(x: Any) -> Any:
        checkify.check(x > 9, "{0[a]} {b:.2f} {c}", {"a": x + 1}, b=x, c=jnp.arange(2))
        return x

    assert ck(f)(jnp.asarray(1.5))[0].get() == "2.5 1.50 [0 1] (`check` failed)"
    assert cj.jit(ck(f))(1.5)[0].get() == "2.5 1.50 [0 1] (`check` failed)"


def test_an_error_is_a_pytree_of_a_fixed_structure() -> None:
    first, second = [cj.jit(ck(pos))(x)[0] for x in (1.0, -1.0)]
    assert cj.tree.structure(first) == cj.tree.structure(second)
    assert cj.tree.map(lambda x: x, second).get() == second.get()
    stacked = lax.scan(lambda c, x: (c, ck(pos)(x)[0]), 0.0, np.array([1.0, -1.0, -3.0]))[1]
    assert stacked.get().splitlines()[0] == "at mapped index 1: pos -1.0 (`check` failed)"
    failure = stacked.get_exception()
    assert [*failure.errors] == [(1,), (2,)]
    assert pickle.loads(pickle.dumps(np.asarray(second._code))) == 1


def test_errors_of_nested_maps_have_all_their_indices() -> None:
    xs = np.arange(4.0).reshape(2, 2) - 1
    err, _ = cj.vmap(cj.vmap(ck(pos)))(xs)
    assert [line.split(":")[0] for line in err.get().splitlines()] == ["at mapped index 0, 0", "at mapped index 0, 1"]
    assert ck(cj.vmap(cj.vmap(pos)))(xs)[0].get() == "at mapped index 0, 0: pos -1.0 (`check` failed)"


# Evaluated at once

def test_a_check_that_is_evaluated_at_once_raises() -> None:
    pos(jnp.asarray(1.0))
    checkify.check(np.bool_(True), "fine")
    with pytest.raises(checkify.FailedCheckError, match=r"pos -1\.0 \(`check` failed\)") as caught:
        pos(jnp.asarray(-1.0))
    assert not getattr(caught.value, "__notes__", [])
    with pytest.raises(checkify.FailedCheckError, match="at mapped index 1: pos -1.0"):
        cj.vmap(pos)(np.array([1.0, -1.0]))
    with pytest.raises(checkify.FailedCheckError):
        cj.grad(pos)(-1.0)
    checkify.check(False, "nothing", debug=True)
    checkify.debug_check(False, "nothing")


def test_a_check_that_is_compiled_is_refused_and_a_debug_check_does_nothing() -> None:
    for use in (lambda: cj.jit(pos)(1.0), lambda: lax.fori_loop(0, 3, lambda i, x: pos(x) + 2, 1.0),
                lambda: cj.jit(cj.vmap(pos)).lower(np.ones(2))):
        with pytest.raises(CorejaxValueError, match="isn't functionalized") as caught:
            use()
        assert "test_checkify.py" in str(caught.value.where)

    def f(x: Any) -> Any:
        checkify.debug_check(x > 0, "debug {}", x)
        return x

    assert cj.jit(f)(-1.0) == -1.0
    assert said(ck(cj.jit(f))(-1.0)[0]) == "debug"
    assert said(cj.jit(ck(lambda x: lax.scan(lambda c, _: (f(c), None), x, length=2)[0]))(-1.0)[0]) == "debug"


def test_arguments_that_are_not_traced_keep_their_values() -> None:
    def f(x: Any, flag: bool, *, n: int = 2) -> Any:
        return pos(x) if flag and x < 9 else x * n

    assert ck(f)(10.0, True, n=3)[1] == 30.0
    assert said(ck(f)(-1.0, True)[0]) == "pos"


# Through what carries programs

def bounded(x: Any, n: Any) -> Any:
    def cond(state: Any) -> Any:
        checkify.check(state[1] < 50, "cond {}", state[1])
        return state[0] < n

    def body(state: Any) -> Any:
        checkify.check(state[1] < 9, "body {}", state[1])
        return state[0] + 1, state[1] * x
    return lax.bounded_while_loop(cond, body, (0, x), max_steps=10)[1]


def unbounded(x: Any, n: Any) -> Any:
    def cond(state: Any) -> Any:
        checkify.check(state[1] < 50, "cond {}", state[1])
        return state[0] < n

    def body(state: Any) -> Any:
        checkify.check(state[1] < 9, "body {}", state[1])
        return state[0] + 1, state[1] * x
    return lax.while_loop(cond, body, (0, x))[1]


@pytest.mark.parametrize("loop", [bounded, unbounded])
def test_conditions_of_loops_are_checked_where_they_are_asked(loop: Any) -> None:
    cases = {(2.0, 2): None, (2.0, 6): "body", (60.0, 1): "cond", (7.5, 1): "cond", (60.0, 0): "cond"}
    for args, wanted in cases.items():
        assert said(ck(loop)(*args)[0]) == wanted
        assert said(cj.jit(ck(loop))(*args)[0]) == wanted
    xs, ns = np.array([[*args] for args in cases]).T
    err, out = cj.vmap(ck(loop))(xs, ns.astype(int))
    failure = err.get_exception()
    assert [None, *cases.values()][1:] == [
        failure.errors[i,].message.split()[0] if (i,) in failure.errors else None for i in range(len(xs))]
    np.testing.assert_allclose(out, [8.0, 128.0, 3600.0, 56.25, 60.0])
    assert said(ck(cj.vmap(loop))(xs, ns.astype(int))[0]) == "body"  # one after the other


CARRIERS: dict[str, Callable[[Any], Any]] = {
    "jit": cj.jit(pos),
    "jit with donation": cj.jit(lambda x: pos(x) + 0.0, donate_argnums=0),
    "cond": lambda x: lax.cond(x < 5, pos, lambda x: x, x),
    "cond, the other": lambda x: lax.cond(x > 5, lambda x: x, pos, x),
    "switch": lambda x: lax.switch(jnp.asarray(1), [lambda x: x, pos, lambda x: -x], x),
    "scan": lambda x: lax.scan(lambda c, a: (pos(c) + a, c), x, np.array([1.0, 2.0]))[0],
    "scan backward": lambda x: lax.scan(lambda c, a: (pos(c) + a, c), x, np.array([1.0, 2.0]), reverse=True)[0],
    "scan of rows": lambda x: lax.scan(lambda c, a: (c, pos(a)), 0.0, jnp.stack([x + 5.0, x]))[1][1],
    "scan that keeps some": lambda x: lax.scan(lambda c, a: (pos(c) + a, c), x, np.ones(4), checkpoint_every=2)[0],
    "map": lambda x: lax.map(pos, jnp.stack([x + 5.0, x]))[1],
    "fori_loop": lambda x: lax.fori_loop(0, 3, lambda i, c: pos(c) + 3.0, x),
    "checkpoint": cj.checkpoint(lambda x: lax.sin(pos(x))),
    "composite": lax.composite(pos, "my.pos"),
    "platform_dependent": lambda x: lax.platform_dependent(x, cpu=pos, default=pos),
    "named_call": cj.named_call(pos, name="part"),
    "vmap": lambda x: cj.vmap(pos)(jnp.stack([x + 5.0, x]))[1],
    "vmap of cond": lambda x: cj.vmap(lambda x: lax.cond(x < 3, pos, lambda x: x, x))(jnp.stack([x + 5.0, x]))[1],
    "jvp": lambda x: cj.jvp(pos, (x,), (1.0,))[0],
    "vjp": lambda x: cj.vjp(pos, x)[0],
    "linearize": lambda x: cj.linearize(pos, x)[0],
    "error checked again": lambda x: (lambda err, y: (checkify.check_error(err), y)[1])(*cj.jit(ck(pos))(x)),
}


@pytest.mark.parametrize("name", CARRIERS)
def test_checks_are_found_in_what_carries_programs(name: str) -> None:
    f = CARRIERS[name]
    both = checkify.user_checks | (checkify.nan_checks if name != "error checked again" else checkify.div_checks)
    for run in (ck(f), cj.jit(ck(f)), ck(cj.jit(f)), ck(f, errors=both)):
        assert said(run(jnp.asarray(2.0))[0]) is None
        assert said(run(jnp.asarray(-1.0))[0]) == "pos"
    assert said(ck(f, errors=checkify.nan_checks)(jnp.asarray(-1.0))[0]) == "nan"
    assert said(ck(f, errors=checkify.index_checks)(jnp.asarray(-1.0))[0]) is None
    err, _ = cj.vmap(ck(f))(np.array([2.0, -1.0, 3.0]))
    assert err.get().startswith("at mapped index 1: ") and "\n" not in err.get()


@pytest.mark.parametrize("name", [name for name in CARRIERS if name != "error checked again"])
def test_derivatives_go_through_checks(name: str) -> None:
    f = CARRIERS[name]
    wanted = ck(cj.grad(f), errors=checkify.index_checks)(2.0)[1]
    (_, err), slope = cj.value_and_grad(lambda x: ck(f)(x)[::-1], has_aux=True)(2.0)
    assert said(err) is None
    np.testing.assert_allclose(slope, wanted, rtol=1e-12)
    assert said(cj.value_and_grad(lambda x: ck(f)(x)[::-1], has_aux=True)(-1.0)[0][1]) == "pos"
    err, slope = cj.jit(ck(cj.grad(f)))(2.0)
    assert said(err) is None
    np.testing.assert_allclose(slope, wanted, rtol=1e-12)
    assert said(cj.jit(ck(cj.grad(f)))(-1.0)[0]) == "pos"


def with_jvp() -> Any:
    f = cj.custom_jvp(lambda x, n: (pos(x), n + 1))
    f.defjvp(lambda xs, dots: (f(*xs), (dots[0] * 10.0, np.zeros((), cj.float0))))
    return lambda x: f(x, 1)[0]


def with_vjp() -> Any:
    f = cj.custom_vjp(lambda x: pos(x))
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * 10.0,))
    return f


def with_vmap() -> Any:
    f = cj.custom_batching.custom_vmap(lambda x: pos(x))
    f.def_vmap(lambda size, mapped, x: (lax.log(x) * 2.0, True))
    return f


@pytest.mark.parametrize("make", [with_jvp, with_vjp])
def test_functions_with_derivatives_of_their_own_keep_them(make: Any) -> None:
    f = make()
    assert [said(ck(f)(x)[0]) for x in (2.0, -1.0)] == [None, "pos"]
    assert cj.grad(lambda x: ck(f)(x)[1])(2.0) == 10.0
    for transformed in (lambda g: g, cj.jit):
        (value, err), slope = transformed(cj.value_and_grad(lambda x: ck(f)(x)[::-1], has_aux=True))(-1.0)
        assert (said(err), slope) == ("pos", 10.0) and np.isnan(value)
    assert said(ck(cj.grad(f))(-1.0)[0]) == "pos" and ck(cj.grad(f))(2.0)[1] == 10.0
    assert cj.vmap(cj.grad(lambda x: ck(f)(x)[1]))(np.ones(2)).tolist() == [10.0, 10.0]


def test_functions_with_maps_of_their_own_keep_them() -> None:
    f = with_vmap()
    assert said(ck(f)(-1.0)[0]) == "pos"
    err, out = cj.vmap(ck(f))(np.array([1.0, 2.0, -1.0]))
    assert err.get().startswith("at mapped index 2")
    np.testing.assert_allclose(out[:2], [0.0, 2 * np.log(2.0)])


def solve(f: Any, x: Any) -> Any:
    return lax.while_loop(lambda x: abs(f(x)) > 1e-9, lambda x: x - f(x) / (2 * x), x)


def test_solutions_are_checked_as_they_are_found_and_keep_their_derivatives() -> None:
    def root(a: Any) -> Any:
        def f(x: Any) -> Any:
            checkify.check(x > 0.5, "small {}", x)
            return x * x - a
        return lax.custom_root(f, lax.full_like(a, 1.0), solve, lambda g, y: y / g(1.0))

    def divided(b: Any, w: Any) -> Any:
        def matvec(x: Any) -> Any:
            checkify.check(w != 0, "w")
            return x * w
        return lax.custom_linear_solve(matvec, b, lambda f, b: b / w + 0 * f(b), lambda f, b: b / w)

    assert [said(ck(root)(a)[0]) for a in (4.0, 0.1)] == [None, "small"]
    np.testing.assert_allclose(cj.grad(lambda a: ck(root)(a)[1])(4.0), 0.25)
    assert said(ck(divided)(2.0, jnp.asarray(0.0))[0]) == "w"
    assert said(ck(divided, errors=checkify.float_checks)(2.0, jnp.asarray(0.0))[0]) == "division"
    np.testing.assert_allclose(cj.grad(lambda b: ck(divided)(b, 2.0)[1])(3.0), 0.5)
    linear = cj.custom_derivatives.linear_call
    assert said(ck(lambda r: linear(lambda r, x: x * pos(r), lambda r, ct: ct * pos(r), r, 2.0))(-1.0)[0]) == "pos"


@pytest.mark.parametrize("check_vma", [True, False])
def test_each_device_of_a_mesh_is_checked(check_vma: bool) -> None:
    count = len(cj.devices())
    mesh = cj.make_mesh((count,), ("i",))
    on_devices = partial(cj.shard_map, mesh=mesh, in_specs=cj.P("i"), out_specs=cj.P("i"), check_vma=check_vma)

    def looping(x: Any) -> Any:
        def cond(c: Any) -> Any:
            checkify.check(jnp.all(c < 9), "cond {}", c)
            return lax.pmax(jnp.max(c), "i") < 5
        return lax.while_loop(cond, lambda c: lax.cond(jnp.max(c) > 2, lambda c: c * 3, lambda c: c + 1, c), x)

    x = np.arange(8 * count) / 8.0 + 0.1
    def scanning(x: Any) -> Any:
        return lax.scan(lambda c, _: (pos(c) + lax.psum(c, "i"), None), x, length=3)[0]

    for f, right, wrong in ((pos, x, -x), (looping, x * 0 + 1e-9, x * 20), (scanning, x * 0 + 5, -x)):
        function = on_devices(f)
        for run in (ck(function), cj.jit(ck(function)), ck(cj.jit(function), errors=ALL)):
            assert run(wrong)[0].get() is not None and run(right)[0].get() is None
    mapped = on_devices(pos)
    np.testing.assert_allclose(cj.grad(lambda x: jnp.sum(ck(mapped)(x)[1]))(x), 1 / x)
    err, slope = ck(cj.grad(lambda x: jnp.sum(mapped(x))), errors=ALL)(x)
    assert err.get() is None
    np.testing.assert_allclose(slope, 1 / x)


def test_each_device_of_a_pmap_is_checked() -> None:
    count = len(cj.devices())
    f = cj.pmap(lambda x: pos(x) / lax.psum(x, "j"), axis_name="j")
    assert [said(ck(f)(x)[0]) for x in (np.ones(count), -np.ones(count))] == [None, "pos"]

    def two(x: Any) -> Any:
        pos(x, "a")
        pos(5 - x, "b")
        return x
    again = cj.pmap(lambda x: (lambda err, y: (checkify.check_error(err), y)[1])(*ck(two)(x)))
    assert said(ck(again)(np.full(count, 7.0))[0]) == "b"


# Which checks

def test_the_first_that_fails_is_reported_whatever_its_kind() -> None:
    def steps(x: Any) -> Any:
        def step(c: Any, i: Any) -> Any:
            checkify.check(i < 4, "late {}", i)
            checkify.check(i < 2, "early {}", i)
            return c, None
        return lax.scan(step, x, jnp.arange(6))[0]

    assert ck(steps)(0.0)[0].get() == "early 2 (`check` failed)"
    x, i = jnp.asarray([0.0, 1.0]), jnp.asarray(7)
    assert said(ck(lambda x, i: (1 / x)[i], errors=ALL)(x, i)[0]) == "division"
    assert said(ck(lambda x, i: 1 / x[i] * 0, errors=ALL)(x, i)[0]) == "out-of-bounds"
    assert said(ck(lambda x: lax.div(x, x), errors=ALL)(x)[0]) == "division"
    assert said(ck(lambda x: lax.div(x, x), errors=checkify.nan_checks)(x)[0]) == "nan"
    assert said(ck(lambda x: lax.div(x, x), errors=checkify.index_checks)(x)[0]) is None
    assert said(ck(lambda x: pos(lax.sqrt(x)), errors=ALL)(jnp.asarray(-1.0))[0]) == "nan"
    assert said(ck(lambda x: pos(lax.sqrt(x)), errors=[checkify.FailedCheckError])(jnp.asarray(-1.0))[0]) == "pos"


INDEXING: dict[str, Callable[..., Any]] = {
    "one": lambda x, i: x[i],
    "several": lambda x, i: x[jnp.stack([i, i * 0])],
    "a row": lambda x, i: jnp.stack([x, x])[:, i],
    "a slice": lambda x, i: lax.dynamic_slice(x, (i,), (1,)),
    "an update": lambda x, i: lax.dynamic_update_slice(x, x[:1], (i,)),
    "set": lambda x, i: x.at[i].set(1),
    "add": lambda x, i: x.at[jnp.stack([i * 0, i])].add(1),
    "max": lambda x, i: x.at[i].max(1),
    "multiply": lambda x, i: x.at[i].multiply(2),
    "take": lambda x, i: jnp.take(x, i),
}


@pytest.mark.parametrize("name", INDEXING)
@pytest.mark.parametrize("dtype", ["int32", "uint8", "int64"])
def test_indices_out_of_bounds(name: str, dtype: str) -> None:
    f = INDEXING[name]
    x = jnp.arange(3.0)
    for i, wrong in ((0, False), (2, False), (3, True), (200, True), *([(-1, False)] if dtype[0] == "i" else [])):
        if name in ("a slice", "an update") and i < 0:
            continue
        err, _ = cj.jit(ck(f, errors=checkify.index_checks))(x, np.asarray(i, dtype))
        assert (err.get() is not None) == wrong, i
        if wrong:
            assert f"index {i} is out of bounds for axis {int(name == 'a row')} with size 3" in err.get()


def test_nan_is_checked_in_numbers_of_every_kind_and_in_nothing_else() -> None:
    nan = checkify.nan_checks
    for dtype in (np.float32, np.float16, jnp.bfloat16, np.complex64):
        assert said(ck(lax.sin, errors=nan)(jnp.asarray([1.0, np.inf]).astype(dtype))[0]) == "nan"
    for f in (lax.neg, lax.abs, lambda x: lax.max(x, x), lambda x: x[1:], lambda x: lax.select(x > 0, x, x)):
        assert said(ck(f, errors=nan)(jnp.asarray([1.0, np.nan]))[0]) is None  # nothing that makes NaN
    assert said(ck(lambda k: random.normal(k, (3,)), errors=ALL)(random.key(0))[0]) is None
    assert said(ck(lambda x: x.at[0].add(np.inf), errors=nan)(jnp.asarray([-np.inf]))[0]) == "nan"
    assert said(ck(lambda x: lax.reduce(x, 0.0, lambda a, b: a + b, (0,)), errors=nan)(
        jnp.asarray([np.inf, -np.inf]))[0]) == "nan"
    assert said(ck(lambda x: x / 0, errors=checkify.div_checks)(jnp.asarray(1))[0]) == "division"


def test_empty_arrays_and_empty_maps_fail_no_check() -> None:
    empty = jnp.zeros((0, 2))
    assert ck(lambda x: lax.log(x) / x, errors=ALL)(empty)[0].get() is None
    assert ck(lambda x, i: x[i], errors=ALL)(jnp.arange(3), jnp.zeros(0, int))[0].get() is None
    assert cj.vmap(ck(pos, errors=ALL))(empty)[0].get() is None
    assert ck(cj.vmap(pos), errors=ALL)(empty)[0].get() is None
    assert ck(lambda x: checkify.check_error(cj.vmap(ck(pos))(x)[0]))(empty)[0].get() is None
    assert ck(lambda: None)()[1] is None


def test_without_failures_results_are_the_same_bits() -> None:
    def f(x: Any, w: Any) -> Any:
        x = cj.jit(lambda x: lax.tanh(x @ w))(x)
        checkify.check(jnp.all(abs(x) <= 1), "x {}", x)
        x = lax.scan(lambda c, a: (pos(jnp.exp(lax.sin(c) * a)) + c, None), x, x)[0]
        return lax.cond(jnp.sum(x) > 0, lambda x: pos(x * x + 1), lambda x: x, x)

    def without(x: Any, w: Any) -> Any:
        x = cj.jit(lambda x: lax.tanh(x @ w))(x)
        x = lax.scan(lambda c, a: (lax.log(jnp.exp(lax.sin(c) * a)) + c, None), x, x)[0]
        return lax.cond(jnp.sum(x) > 0, lambda x: lax.log(x * x + 1), lambda x: x, x)

    rng = np.random.default_rng(0)
    for _ in range(3):
        x, w = rng.standard_normal(8), rng.standard_normal((8, 8))
        for run in (lambda f: f, cj.jit):
            err, y = run(ck(f))(x, w)
            assert err.get() is None and np.asarray(y).tobytes() == np.asarray(run(without)(x, w)).tobytes()
        assert ck(without)(x, w)[0].get() is None


# Primitives of others

class Outlined:
    """A call of a program, of which nobody has told checkify."""

    name = "test_outlined"
    multiple_results = True

    def function(self, bind: Any) -> Any:
        def outlined(f: Any, *args: Any) -> Any:
            call = carrying.stage_call(f, args, "outlined")
            return call.unflatten(bind(*call.operands, jaxpr=call.jaxpr))
        return outlined

    @hookimpl
    def abstract_eval(self, avals: Any, *, jaxpr: Any) -> Any:
        return jaxpr.out_avals

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, jaxpr: Any) -> Any:
        mapped, out_dims = vmap_jaxpr(jaxpr, axis.size, axis.name, dims)
        return outlined.primitive.bind(*args, jaxpr=mapped), out_dims

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, jaxpr: Any) -> Any:
        return ctx.call(jaxpr, args)

    @hookimpl
    def effects(self, avals: Any, *, jaxpr: Any) -> Any:
        return jaxpr.effects


outlined: Any = define(Outlined())


def test_programs_with_checks_in_primitives_that_nobody_knows_are_refused() -> None:
    f = partial(outlined, pos)
    with pytest.raises(CorejaxNotImplementedError, match="test_outlined carries a program with checks") as caught:
        ck(f)(1.0)
    assert "take the check out" in str(caught.value.todo) and "test_checkify.py" in str(caught.value)
    with pytest.raises(CorejaxNotImplementedError, match="test_outlined") as caught:
        ck(partial(outlined, lax.log), errors=ALL)(1.0)
    assert "user_checks" in str(caught.value.todo)
    err, y = ck(partial(outlined, lax.log))(2.0)
    assert err.get() is None and y == np.log(2.0)
    with pytest.raises(CorejaxNotImplementedError, match="test_outlined"):  # its check can't be left out, either
        ck(f, errors=checkify.div_checks)(1.0)


def test_other_effects_do_not_happen_twice() -> None:
    def kept(x: Any) -> Any:
        lax.dce_sink(x)
        return pos(x)

    call = cj.custom_batching.custom_vmap(kept)
    call.def_vmap(lambda size, mapped, x: (lax.log(x), True))
    with pytest.raises(CorejaxNotImplementedError, match="another effect would happen twice"):
        ck(call)(1.0)
    assert said(ck(cj.jit(kept))(-1.0)[0]) == "pos"


def test_loops_that_elements_leave_at_different_steps_are_refused_if_what_they_compute_is_checked() -> None:
    f = cj.vmap(lambda x: lax.while_loop(lambda x: x > 1.0, lax.sqrt, x))
    with pytest.raises(CorejaxNotImplementedError, match="while_loop") as caught:
        ck(f, errors=ALL)(np.array([2.0, 9.0]))
    assert "cj.vmap(checkify.checkify(f))" in str(caught.value.todo)
    assert ck(f)(np.array([0.5, 1.0]))[0].get() is None


def test_an_error_that_is_traced_cannot_be_asked() -> None:
    with pytest.raises(CorejaxTypeError, match="while its values are traced"):
        cj.jit(lambda x: ck(pos)(x)[0].throw())(1.0)
    seen = []
    cj.jit(lambda x: seen.append(repr(ck(pos)(x)[0])))(1.0)
    assert seen == ["Error(...)"]
