"""What is evaluated while a program is traced, beside jax."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.errors import ConcretizationError

jax = pytest.importorskip("jax")
cnp = pytest.importorskip("corejax.numpy")


@pytest.fixture(autouse=True)
def _x64():
    with jax.enable_x64(True):
        yield


def programs(lib: Any, L: Any, xp: Any, tracer: type) -> dict[str, Callable[[], Any]]:
    def traced(f: Callable[[Any], Any], argument: Any = 1.0) -> Any:
        """What `f` returns in Python when it is traced."""
        found: list[Any] = []
        lib.jit(lambda x: found.append(f(x)))(argument)
        return found[0]

    def within(f: Callable[..., Any]) -> Callable[..., Any]:
        def g(*args: Any) -> Any:
            with lib.ensure_compile_time_eval():
                return f(*args)
        return g

    def known(x: Any) -> bool:
        return not isinstance(x, tracer)

    def failing() -> None:
        try:
            within(lambda: 1 / 0)()
        except ZeroDivisionError:
            pass

    jit, grad, vmap, xs = lib.jit, lib.grad, lib.vmap, xp.arange(2.0)
    return {
        "a number": lambda: traced(within(lambda x: float(L.sin(3.0)))),
        "an array": lambda: traced(within(lambda x: known(xp.arange(3) * 2))),
        "an index": lambda: traced(within(lambda x: int(xp.arange(5)[xp.argmax(xp.array([1, 3, 2]))]))),
        "a traced value": lambda: traced(within(lambda x: known(x + 1.0))),
        "jit": lambda: traced(within(lambda x: float(jit(L.sin)(2.0)))),
        "jit of a traced value": lambda: traced(within(lambda x: known(jit(L.sin)(x)))),
        "grad": lambda: traced(within(lambda x: float(grad(L.sin)(2.0)))),
        "vmap": lambda: traced(within(lambda x: vmap(L.sin)(xs).tolist())),
        "cond": lambda: traced(within(lambda x: float(L.cond(True, lambda: 1.0, lambda: 2.0)))),
        "while_loop": lambda: traced(within(lambda x: float(L.while_loop(lambda c: c < 9.0, lambda c: c * 2.0, 1.0)))),
        "scan": lambda: traced(within(lambda x: float(L.scan(lambda c, x: (c + x, x), 0.0, xs)[0]))),
        "checkpoint": lambda: traced(within(lambda x: float(lib.checkpoint(L.sin)(1.0)))),
        "a block within a block": lambda: traced(within(within(lambda x: float(L.sin(3.0))))),
        "a decorator": lambda: traced(lib.ensure_compile_time_eval()(lambda x: float(L.sin(3.0)))),
        "after a block": lambda: traced(lambda x: (within(lambda: 1.0)(), known(L.sin(3.0)))[1]),
        "after an error": lambda: traced(lambda x: (failing(), known(L.sin(3.0)))[1]),
        "where nothing is traced": lambda: within(lambda: float(L.sin(3.0)))(),
        "under grad": lambda: grad(within(lambda x: x * float(L.sin(3.0))))(2.0),
        "under grad, of the argument": lambda: grad(within(lambda x: x * x))(2.0),
        "under jit and grad": lambda: jit(grad(within(lambda x: x * x * float(L.cos(0.0)))))(3.0),
        "under vmap": lambda: vmap(within(lambda x: x * float(L.sin(3.0))))(xs),
        "an axis's size": lambda: vmap(within(lambda x: x * L.psum(1, "i")), axis_name="i")(xs),
        "an axis's positions": lambda: vmap(within(lambda x: x * L.axis_index("i")), axis_name="i")(xs),
        "a sum over an axis": lambda: vmap(within(lambda x: x * L.psum(xp.asarray(2.0), "i")), axis_name="i")(xs),
        "under scan": lambda: L.scan(within(lambda c, x: (c + float(L.sin(3.0)), x)), 0.0, xs)[0],
        "a shape": lambda: jit(within(lambda x: xp.zeros(int(L.add(1, 2))) + x))(1.0),
        "values of a level around": lambda: lib.jvp(lambda y: jit(within(lambda x: x * y))(2.0), (3.0,), (1.0,)),
    }


@pytest.mark.parametrize("name", programs(cj, lax, cnp, cj.core.Tracer))
def test_parity_of_what_is_evaluated_at_once(name):
    wanted = programs(jax, jax.lax, jax.numpy, jax.core.Tracer)[name]()
    found = programs(cj, lax, cnp, cj.core.Tracer)[name]()
    np.testing.assert_allclose(wanted, found, rtol=1e-14)


def test_a_traced_value_has_no_value_there_as_in_jax():
    def f(x):
        with cj.ensure_compile_time_eval():
            return lax.sin(x) if x > 0.0 else x

    with pytest.raises(ConcretizationError, match="only its type is known"):
        cj.jit(f)(1.0)


def test_other_threads_are_not_concerned_as_in_jax():
    def f(x):
        with cj.ensure_compile_time_eval():
            thread = threading.Thread(target=lambda: found.append(str(cj.make_jaxpr(lambda: lax.sin(1.0))())))
            thread.start()
            thread.join()
        return x

    found: list[str] = []
    cj.jit(f)(1.0)
    assert "sin" in found[0]


def test_what_is_staged_within_is_a_program_as_usual():
    def f(x):
        with cj.ensure_compile_time_eval():
            found.append(str(cj.make_jaxpr(lambda y: lax.sin(y) * 2.0)(1.0)))
        return x

    found: list[str] = []
    cj.jit(f)(1.0)
    assert "sin" in found[0]


@pytest.mark.parametrize("args", [(1,), (lambda x: x,)])
def test_it_takes_no_arguments_as_in_jax(args):
    with pytest.raises(TypeError, match="argument"):
        cj.ensure_compile_time_eval(*args)
