"""While jit is disabled, functions that would become programs are called as they are, with values."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxError, CorejaxTypeError, CorejaxValueError

XS = np.array([0.5, -1.5, 2.0])


def log() -> tuple[list[Any], Any]:
    """A list, and a function that appends to it what Python can read of a value."""
    seen: list[Any] = []

    def see(x: Any) -> Any:
        seen.append(x.tolist() if type(x) is cj.Array else type(x).__name__)
        return x
    return seen, see


def test_a_compiled_function_runs_each_time_and_on_values():
    seen, see = log()
    f = cj.jit(lambda x: see(x) * 2.0)
    f(1.0), f(2.0)
    assert ["StagingTracer"] == seen
    with cj.disable_jit():
        assert [6.0, 8.0] == [f(3.0), f(4.0)]
    assert 10.0 == f(5.0)  # by the program that was compiled before
    assert ["StagingTracer", 3.0, 4.0] == seen


def test_programs_are_neither_made_nor_used():
    def f(x):
        return lax.sin(x) if counting else lax.cos(x)

    counting, g = True, cj.jit(f)
    with cj.disable_jit():
        np.testing.assert_array_equal(np.sin(1.0), g(1.0))
        counting = False
        np.testing.assert_array_equal(np.cos(1.0), g(1.0))
    counting = True
    np.testing.assert_allclose(np.sin(1.0), g(1.0))
    counting = False
    np.testing.assert_allclose(np.sin(1.0), g(1.0))


def test_arguments_and_results_are_arrays_of_the_types_that_a_program_has():
    def f(t, n, *, k):
        assert all([type(x) is cj.Array for x in (*t, k)])
        assert n == [1]
        return {"x": t[0] + k, "y": 1, "z": None}

    class Static(list):
        __hash__ = None

    args = (2.0, np.arange(2, dtype=np.int8)), Static([1])
    g = cj.jit(f, static_argnums=1, donate_argnums=0)
    with cj.disable_jit():
        out = g(*args, k=np.float32(3))
    assert {"x": 5.0, "y": 1, "z": None} == out
    assert np.float32 == out["x"].dtype
    assert out["y"].weak_type


def test_a_decorator_and_blocks_within_blocks():
    seen, see = log()
    f = cj.jit(lambda x: see(x) + 1)

    @cj.disable_jit()
    def g(x):
        f(x)
        with cj.disable_jit(False):
            f(x)
        return f(x)

    for _ in range(2):
        g(1)
    assert [1, "StagingTracer", 1, 1, 1] == seen
    assert cj.config.disable_jit is False


def test_it_ends_with_an_error():
    with pytest.raises(ZeroDivisionError), cj.disable_jit():
        cj.jit(lambda: 1 // 0)()
    assert cj.config.disable_jit is False


def test_it_holds_for_one_thread():
    seen, see = log()
    f = cj.jit(lambda x: see(x) + 1)
    inside, outside = threading.Event(), threading.Event()

    def other():
        inside.wait(10)
        f(1)
        outside.set()

    thread = threading.Thread(target=other)
    thread.start()
    with cj.disable_jit():
        inside.set()
        assert outside.wait(10)
        f(2)
    thread.join()
    assert ["StagingTracer", 2] == seen


def test_the_setting_of_the_process_holds_for_all_threads():
    seen, see = log()
    f = cj.jit(lambda x: see(x) + 1)
    cj.config.disable_jit = True
    try:
        thread = threading.Thread(target=f, args=(1,))
        thread.start()
        thread.join()
        f(2)
    finally:
        cj.config.disable_jit = False
    f(3)
    assert [1, 2, "StagingTracer"] == seen


def test_the_environment_sets_it():
    code = "import corejax as cj\ncj.jit(lambda x: print('x is', x))(7)"
    run = functools.partial(subprocess.run, [sys.executable, "-c", code], capture_output=True, text=True)
    assert "x is 7\n" == run(env={**os.environ, "COREJAX_DISABLE_JIT": "1"}).stdout
    assert "COREJAX_DISABLE_JIT" in run(env={**os.environ, "COREJAX_DISABLE_JIT": "perhaps"}).stderr


# The same types as usual

STEPS = {
    "an int that becomes a float": (lambda c, x: (c + 2.5, c), 1),
    "an int that becomes a float32": (lambda c, x: (c + np.float32(1), c), 1),
    "a weak float": (lambda c, x: (c * 2.0, (c, 1)), 1.0),
    "a weak float that becomes strong": (lambda c, x: (c * x, c), 1.0),
    "a strong float that becomes weak": (lambda c, x: (2.0, c), np.float64(1)),
    "a small float": (lambda c, x: (c + 1, {"y": c}), np.float32(1)),
    "two that change places": (lambda c, x: ((c[1], c[0] * 0.5), c), (1, 2)),
    "None": (lambda c, x: (None, x), None),
    "a bool": (lambda c, x: (~c, c), np.True_),
}


def described(tree: Any) -> Any:
    return cj.tree.map(lambda x: (x.shape, x.dtype, x.weak_type, x.tolist()), tree)


@pytest.mark.parametrize("name", STEPS)
def test_loops_have_the_types_that_they_always_have(name):
    f, init = STEPS[name]

    def step(c):
        return f(c, np.float64(1))[0]

    runs = [lambda: lax.scan(f, init, XS), lambda: lax.scan(f, init, XS[:1]), lambda: lax.scan(f, init, XS[:0]),
            lambda: lax.scan(f, init, XS, reverse=True, unroll=2), lambda: cj.jit(lambda: lax.scan(f, init, XS))(),
            lambda: lax.fori_loop(0, 3, lambda i, c: step(c), init),
            lambda: lax.fori_loop(0, np.float64(2.5), lambda i, c: step(c), init),
            lambda: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, step(s[1])), (0, init))[1],
            lambda: lax.map(lambda x: (x, 1, x > 0), XS)]
    for run in runs:
        wanted = described(run())
        with cj.disable_jit():
            assert wanted == described(run())


def test_a_loop_goes_on_as_one_where_a_transformation_hides_the_condition():
    seen, see = log()

    def f(limit):
        def body(c):
            i, x = c
            see(i)
            return i + 1, x * 2.0
        return lax.while_loop(lambda c: (c[0] < 2) | (c[1] < limit), body, (0, 1.0))[1]

    with cj.disable_jit():
        found = cj.vmap(f)(np.array([3.0, 30.0]))
    np.testing.assert_array_equal([4.0, 32.0], found)
    np.testing.assert_array_equal([4.0, 32.0], cj.vmap(f)(np.array([3.0, 30.0])))


def test_only_the_branch_that_is_taken_is_called():
    with cj.disable_jit():
        assert 2.0 == lax.cond(True, lambda x: x, lambda x: 1 / 0, 2.0)
        assert 2.0 == lax.switch(-1, [lambda: 2.0, lambda: 1 / 0])
        assert 4.0 == cj.grad(lambda x: lax.cond(x > 0, lambda x: x * x, lambda x: 1 / 0, x))(2.0)


def test_values_can_be_looked_at_under_grad():
    def f(x):
        def body(i, c):
            return c * x if c < 20.0 else c  # Python decides
        return lax.fori_loop(0, 5, body, 1.0)

    with cj.disable_jit():
        assert (27.0, 27.0) == cj.jit(cj.value_and_grad(f))(3.0)


def test_what_is_staged_anyway_is_as_usual():
    f = cj.jit(lambda x: lax.fori_loop(0, 3, lambda i, c: c * x, 1.0))
    with cj.disable_jit():
        program, lowered = cj.make_jaxpr(f)(2.0), f.lower(2.0).compile()(2.0)
    assert str(program) == str(cj.make_jaxpr(f)(2.0))
    assert 8.0 == lowered


def test_composites_and_checkpoints_are_called():
    seen, see = log()
    with cj.disable_jit():
        assert 2.0 == lax.composite(lambda x: see(x) * 2.0, "my.double")(1.0)
        assert 3.0 == cj.checkpoint(lambda x: see(x) + 1.0)(2.0)
        assert 4.0 == cj.grad(cj.checkpoint(lambda x: x * x if x > 1.0 else x))(2.0)
    assert [1.0, 2.0] == seen


# Wrong uses

@pytest.mark.parametrize("value", ["yes", 1, None, lambda x: x])
def test_what_isnt_a_bool_is_refused(value):
    with pytest.raises(CorejaxValueError, match="config.disable_jit can't be"), cj.disable_jit(value):
        pass


@pytest.mark.parametrize("run", [
    lambda: lax.scan(lambda c, x: c, 1.0, XS),
    lambda: lax.scan(lambda c, x: (c, x, x), 1.0, XS),
    lambda: lax.scan(lambda c, x: ((c, c), x), 1.0, XS),
    lambda: lax.scan(lambda c, x: (c.astype(np.int32), x), np.float64(1.0), XS),
    lambda: lax.scan(lambda c, x: (XS, x), 1.0, XS),
    lambda: lax.scan(lambda c, x: (c, "a"), 1.0, XS),
    lambda: lax.scan(2, 1.0, XS),
    lambda: lax.while_loop(lambda c: c, lambda c: c, 1.0),
    lambda: lax.while_loop(lambda c: XS > c, lambda c: c, 1.0),
    lambda: lax.while_loop(lambda c: (c > 1, c > 2), lambda c: c, 1.0),
    lambda: lax.while_loop(lambda c: c < 3.0, lambda c: (c, c), 1.0),
    lambda: lax.while_loop(lambda c: c < 3.0, None, 1.0),
    lambda: lax.fori_loop(0, 3, lambda i, c: (c, c), 1.0),
    lambda: lax.fori_loop(0, 3, lambda i, c: XS, 1.0),
    lambda: lax.fori_loop(0, 3, lambda i: i, 1.0),
    lambda: lax.fori_loop(0, "3", lambda i, c: c, 1.0),
    lambda: lax.map(lambda x, y: x, XS),
    lambda: lax.map(lambda x: "a", XS),
    lambda: lax.cond(True, lambda x: "a", lambda x: x, 1.0),
    lambda: lax.cond(True, lambda x: x, 2.0, 1.0),
    lambda: lax.cond(True, lambda x: x, lambda x: x, "a"),
    lambda: lax.switch(0, [lambda x: x, 3], 1.0),
    lambda: lax.switch(1.5, [lambda x: x, lambda x: x], 1.0),
    lambda: cj.jit(lambda x: x)("a"),
    lambda: cj.jit(lambda x: "a")(1.0),
    lambda: cj.jit(lambda x: x)(1.0, 2.0),
    lambda: cj.checkpoint(lambda x: "a")(1.0),
])
def test_what_a_program_refuses_is_refused(run):
    for disable in (False, True):
        with pytest.raises(TypeError) as caught, cj.disable_jit(disable):
            run()
        assert isinstance(caught.value, CorejaxTypeError) or "argument" in str(caught.value)
    assert not isinstance(caught.value, CorejaxError) or caught.value.message


def test_results_of_steps_that_differ_are_refused():
    def growing(c, x):
        return c + 1, (np.zeros(2) if c == 1 else x)

    def other(c, x):
        return c + 1, ({"a": x} if c == 1 else x)

    with cj.disable_jit():
        with pytest.raises(CorejaxTypeError, match="returns something else than in the first step"):
            lax.scan(growing, 0, XS)
        with pytest.raises(CorejaxTypeError, match="returns something else than in the first step"):
            lax.scan(other, 0, XS)


def test_a_bounded_loop_takes_its_steps_in_python():
    seen = []

    def step(x):
        seen.append(float(x) if cj.core.is_concrete(x) else None)
        return x * 2.0

    def f(x):
        return lax.bounded_while_loop(lambda x: x < 10.0, step, x, max_steps=3)
    for start, wanted in ((1.0, [1.0, 2.0, 4.0]), (4.0, [4.0, 8.0]), (20.0, [])):
        seen.clear()
        with cj.disable_jit():
            assert start * 2.0 ** len(wanted) == f(start)
        assert wanted == seen
    with cj.disable_jit():
        assert 8.0 == cj.grad(f)(1.0) and [8.0, 4.0, 1.0] == cj.vmap(cj.grad(f))(np.array([1.0, 4.0, 20.0])).tolist()
        with pytest.raises(CorejaxError, match="bounded_while_loop: the condition"):
            lax.bounded_while_loop(lambda x: x, step, 1.0, max_steps=3)


def test_functions_with_rules_are_evaluated_at_compile_time():
    flip = cj.custom_jvp(lambda x: x if x == 0.0 else -x)
    flip.defjvp(lambda primals, tangents: (flip(*primals), -tangents[0]))
    back = cj.custom_vjp(lambda x: x if x > 0.0 else -x)
    back.defvjp(lambda x: (back(x), x), lambda x, ct: (ct * np.sign(x),))

    def f(x):
        with cj.ensure_compile_time_eval():
            known = flip(2.0), back(-3.0)
            assert [-2.0, 3.0] == [float(each) for each in known]
            scaled = cj.custom_jvp(lambda y: y * x)  # reads what is traced
            scaled.defjvp(lambda primals, tangents: (scaled(*primals), tangents[0] * x))
            return known[0] * scaled(known[1])
    assert -30.0 == cj.jit(f)(5.0) == f(5.0)
