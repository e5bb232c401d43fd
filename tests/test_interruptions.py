"""An exception anywhere leaves the library as it was: a raising hook, the user's function, Ctrl-C at any point."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.base.source import at_hand
from corejax.core import EvalTrace, ShapedArray, context
from corejax.plugin import define, hookimpl

X = np.array([0.5, -0.25, 2.0])


def program(x):
    y = lax.sin(x) * x
    return (cj.jit(lambda y: lax.exp(y) + x)(y) * y).sum()


TRANSFORMED = {
    "eager": lambda f: f,
    "jit": cj.jit,
    "jvp": lambda f: lambda x: cj.jvp(f, (x,), (x,))[1],
    "grad": cj.grad,
    "linearize": lambda f: lambda x: cj.linearize(f, x)[1](x),
    "vmap": lambda f: lambda x: cj.vmap(f)(np.stack([x, x])),
    "make_jaxpr": lambda f: lambda x: cj.make_jaxpr(f)(x).out_avals[0].size,
    "jit_grad_vmap": lambda f: cj.jit(cj.grad(lambda x: cj.vmap(f)(lax.reshape(x, (1, 3))).sum())),
    "grad_grad": lambda f: cj.grad(lambda x: cj.grad(f)(x).sum()),
}


def assert_untouched():
    assert isinstance(context.trace, EvalTrace)
    assert () == context.axes
    assert () == context.names
    assert (None, None) == (at_hand.eqn, at_hand.around)
    assert (None, None) == at_hand.inside


@pytest.mark.parametrize("name", TRANSFORMED)
def test_exception_in_the_users_function_passes_through(name):
    class Oops(Exception):
        pass

    def fun(x):
        lax.sin(x)
        raise Oops

    with pytest.raises(Oops):
        TRANSFORMED[name](fun)(X)
    assert_untouched()
    np.testing.assert_allclose(TRANSFORMED[name](program)(X), TRANSFORMED[name](program)(X))


class InterruptAt:
    """Raises KeyboardInterrupt when the n-th Python function inside the library is entered."""

    def __init__(self, n):
        self.left = n
        self.fired = False

    def __call__(self, frame, event, arg):
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        if event == "call" and package.startswith("corejax") and not self.fired:
            self.left -= 1
            if self.left <= 0:
                self.fired = True
                raise KeyboardInterrupt
        return None


@pytest.mark.parametrize("name", TRANSFORMED)
def test_interrupt_at_any_call_inside_the_library_leaves_it_as_it_was(name):
    expected = np.asarray(TRANSFORMED[name](program)(X))
    n, fired = 1, True
    while fired:
        interrupt = InterruptAt(n)
        sys.settrace(interrupt)
        try:
            TRANSFORMED[name](program)(X)
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        fired = interrupt.fired
        assert_untouched()
        n += 1 + n // 12  # every point at first, then denser than every tenth
    assert n > 20
    np.testing.assert_allclose(TRANSFORMED[name](program)(X), expected, rtol=1e-12)


HOOKS = ("impl", "abstract_eval", "jvp", "transpose", "vmap", "xla_translation")


def faulty(which, switch):
    """A primitive that doubles, with one hook that raises while `switch` is on."""
    class Oops(Exception):
        pass

    def guard(hook):
        if hook == which and switch[0]:
            raise Oops(hook)

    class Double:
        """double(x) = 2 x."""

        name = f"double_with_faulty_{which}"

        @hookimpl
        def impl(self, args):
            guard("impl")
            return 2.0 * args[0]

        @hookimpl
        def abstract_eval(self, avals):
            guard("abstract_eval")
            return ShapedArray(avals[0].shape, avals[0].dtype)

        @hookimpl
        def jvp(self, primals, tangents):
            guard("jvp")
            return double(*primals), double(*tangents)

        @hookimpl
        def transpose(self, cotangents, args):
            guard("transpose")
            return [double(cotangents)]

        @hookimpl
        def vmap(self, axis, args, dims):
            guard("vmap")
            return double(*args), dims[0]

        @hookimpl
        def xla_translation(self, ctx, args):
            guard("xla_translation")
            return ctx.op("stablehlo.add", [args[0], args[0]])

    double = define(Double())
    return double, Oops


@pytest.mark.parametrize("which", HOOKS)
def test_a_raising_hook_leaves_the_library_as_it_was(which):
    switch = [True]
    double, oops = faulty(which, switch)

    def fun(x):
        return (double(x) * x).sum()

    uses = {
        "impl": fun, "abstract_eval": fun, "jvp": cj.grad(fun), "transpose": cj.grad(fun),
        "vmap": lambda x: cj.vmap(fun)(np.stack([x, x])), "xla_translation": cj.jit(fun),
    }
    expected = {"jvp": 4 * X, "transpose": 4 * X, "vmap": [2 * (X * X).sum()] * 2}.get(which, 2 * (X * X).sum())
    with pytest.raises(oops):
        uses[which](X)
    assert_untouched()
    with pytest.raises(oops):  # nothing half-filled was cached
        uses[which](X)
    switch[0] = False
    np.testing.assert_allclose(uses[which](X), expected)
    assert_untouched()


def test_an_exception_in_one_thread_does_not_touch_another():
    started, finish = threading.Event(), threading.Event()
    results = []

    def slow(x):
        y = lax.sin(x)
        started.set()
        assert finish.wait(10)
        return (y * x).sum()

    thread = threading.Thread(target=lambda: results.append(cj.grad(slow)(X)))
    thread.start()
    assert started.wait(10)
    with pytest.raises(ZeroDivisionError):
        cj.grad(lambda x: 1 / 0)(X)
    assert_untouched()
    finish.set()
    thread.join(10)
    np.testing.assert_allclose(results[0], np.cos(X) * X + np.sin(X))
