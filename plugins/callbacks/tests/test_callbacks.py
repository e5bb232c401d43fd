"""Callbacks: what they get and return, when they are called, what goes wrong, and what becomes of them."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.core import param_key
from corejax.errors import CorejaxError, CorejaxNotImplementedError, CorejaxTypeError, CorejaxValueError
from corejax.experimental import io_callback
from corejax_callbacks import CallbackTimeout

F64 = cj.ShapeDtypeStruct((), "float64")
MODES = pytest.mark.parametrize("mode", [lambda f: f, cj.jit], ids=["eager", "jit"])


def like(x: Any) -> cj.ShapeDtypeStruct:
    return cj.ShapeDtypeStruct(np.shape(x), x.dtype)


# Values

VALUES = {
    "float64": np.arange(3.0), "0-d": np.array(2.5), "empty": np.zeros((0, 3)), "bool": np.array([True, False]),
    "int8": np.arange(3, dtype=np.int8), "complex": np.array([1 + 2j]), "float16": np.ones(2, np.float16),
    "bfloat16": np.arange(3).astype(ml_dtypes.bfloat16), "float8": np.ones(2, ml_dtypes.float8_e4m3fn),
    "int4": np.arange(-3, 3).astype(ml_dtypes.int4), "uint2": np.arange(4).astype(ml_dtypes.uint2),
    "not contiguous": np.arange(12.0).reshape(3, 4)[:, ::2].T, "float0": np.zeros(3, cj.float0),
}


@MODES
@pytest.mark.parametrize("kind", VALUES)
def test_operands_and_results_are_arrays_of_every_type(mode: Any, kind: str) -> None:
    x, seen = VALUES[kind], []

    def same(y: Any) -> Any:
        seen.append(y)
        return y

    out = mode(lambda x: io_callback(same, like(x), x))(x)  # the compiler leaves pure ones out if they have no elements
    assert type(out) is type(seen[0]) is cj.Array
    assert out.dtype == seen[0].dtype == x.dtype and out.shape == x.shape
    assert np.array_equal(np.asarray(seen[0]), x) and np.array_equal(np.asarray(out), x)
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(seen[0])[...] = 0


@MODES
def test_elements_of_a_packs_own_type_stay_what_they_are(mode: Any) -> None:
    kind = pytest.importorskip("corejax.random", exc_type=ImportError)
    keys, seen = kind.split(kind.key(3), 2), []

    def swapped(k: Any) -> Any:
        seen.append(k.dtype)
        return k[::-1]

    out = mode(lambda k: cj.pure_callback(swapped, cj.ShapeDtypeStruct((2,), k.dtype), k))(keys)
    assert [keys.dtype] == seen
    assert np.array_equal(kind.key_data(keys)[::-1], kind.key_data(out))
    rows: list[Any] = []
    mode(cj.vmap(lambda k: cj.debug.callback(rows.append, k)))(keys)
    assert [(), ()] == [row.shape for row in rows] and keys.dtype == rows[0].dtype


@MODES
def test_arguments_and_results_are_trees(mode: Any) -> None:
    def f(a: Any, *, b: Any) -> Any:
        return {"sum": a[0] + a[1]["x"], "rest": (b, [3])}

    types = {"sum": F64, "rest": [F64, (cj.ShapeDtypeStruct((), "int32"),)]}  # lists and tuples are alike here
    out = mode(lambda x: cj.pure_callback(f, types, (x, {"x": 2 * x}), b=x))(1.5)
    assert {"sum": 4.5, "rest": [1.5, (3,)]} == cj.tree.map(lambda x: x.item(), out)
    assert np.int32 == out["rest"][1][0].dtype
    assert mode(lambda x: io_callback(lambda x: None, None, x))(1.0) is None
    assert () == mode(lambda x: io_callback(lambda x: [], (), x))(1.0)


@MODES
def test_python_numbers_have_the_type_that_is_wanted(mode: Any) -> None:
    for number, dtype in ((3, "float32"), (True, "int8"), (2.5, "bfloat16"), (1j, "complex64"), (7, "uint4")):
        out = mode(lambda: cj.pure_callback(lambda: number, cj.ShapeDtypeStruct((), dtype)))()  # noqa: B023
        assert dtype == str(out.dtype) and number == np.asarray(out)


def test_what_is_returned_may_be_changed_afterwards() -> None:
    kept = np.ones(3)
    out = cj.pure_callback(lambda: kept, like(kept))
    kept[:] = 2
    assert [1, 1, 1] == out.tolist()


def test_donated_operands_and_those_of_loops_have_their_values() -> None:
    seen: list[Any] = []

    def step(x: Any) -> Any:
        cj.debug.callback(seen.append, x, ordered=True)
        return x + 1

    f = cj.jit(lambda x: lax.fori_loop(0, 3, lambda i, x: step(x), x), donate_argnums=0)
    x = cj.device_put(np.zeros(1000))
    f(x)
    assert [0, 1, 2] == [int(y[0]) for y in seen] and x.is_deleted()


# When they are called

def happened(run: Any, *args: Any) -> list[Any]:
    log: list[Any] = []
    run(lambda tag, *xs: log.append((tag, *[np.asarray(x).tolist() for x in xs])), *args)
    return log


def program(log: Any, x: Any, ordered: bool = True) -> Any:
    def at(tag: str, *xs: Any) -> None:
        cj.debug.callback(log, tag, *xs, ordered=ordered)

    def step(c: Any, i: Any) -> Any:
        at("step", i, c)
        c = lax.cond(i % 2 == 0, lambda c: (at("even", c), c + 1)[1], lambda c: (at("odd", c), c * 2)[1], c)
        return c, cj.experimental.io_callback(lambda c: (log("io", c), c)[1], F64, lax.stop_gradient(c),
                                              ordered=ordered)
    at("begin", x)
    x, ys = lax.scan(step, x, np.arange(4))
    x = lax.while_loop(lambda c: c < 50.0, lambda c: (at("while", c), c * 3)[1], x) if ordered else x
    at("end", x)
    return x + ys.sum()


TRANSFORMS = {
    "jit": cj.jit, "nested jit": lambda f: cj.jit(lambda x: cj.jit(f)(x)),
    "jvp": lambda f: lambda x: cj.jvp(f, (x,), (1.0,)),
    "jit of jvp": lambda f: cj.jit(lambda x: cj.jvp(f, (x,), (1.0,))),
    "checkpoint": cj.checkpoint,
}
REVERSE = {
    "grad": cj.grad, "jit of grad": lambda f: cj.jit(cj.grad(f)), "grad of jit": lambda f: cj.grad(cj.jit(f)),
    "grad of checkpoint": lambda f: cj.grad(cj.checkpoint(f)), "hessian": lambda f: cj.jit(cj.grad(cj.grad(f))),
    "linearize": lambda f: lambda x: cj.linearize(f, x)[1](1.0),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_ordered_calls_happen_once_in_the_order_of_the_program(name: str) -> None:
    expected = happened(program, 1.0)
    assert 16 == len(expected)
    for _ in range(3):
        assert expected == happened(lambda log: TRANSFORMS[name](lambda x: program(log, x))(1.0))


@pytest.mark.parametrize("name", REVERSE)
def test_under_derivatives_calls_happen_once_with_values(name: str) -> None:
    def f(log: Any, x: Any) -> Any:
        return program(log, x, ordered=False)

    expected = sorted(happened(f, 1.0))
    assert expected == sorted(happened(lambda log: REVERSE[name](lambda x: f(log, x))(1.0)))


@pytest.mark.parametrize("name", ["grad", "jit of grad", "grad of jit", "grad of checkpoint"])
def test_ordered_calls_keep_their_order_under_derivatives(name: str) -> None:
    def f(log: Any, x: Any) -> Any:
        cj.debug.callback(log, "a", x, ordered=True)
        y = lax.sin(x)
        cj.debug.callback(log, "b", y, ordered=True)
        return lax.cond(x > 0.0, lambda y: (cj.debug.callback(log, "c", y, ordered=True), y * y)[1], lax.cos, y)

    expected = happened(f, 0.5)
    assert ["a", "b", "c"] == [tag for tag, _ in expected]
    assert expected == happened(lambda log: REVERSE[name](lambda x: f(log, x))(0.5))


def test_in_custom_rules_what_runs_is_called() -> None:
    def made(log: Any) -> Any:
        @cj.custom_vjp
        def f(x: Any) -> Any:
            cj.debug.callback(log, "f", x)
            return lax.sin(x)

        def fwd(x: Any) -> Any:
            cj.debug.callback(log, "fwd", x)
            return lax.sin(x), x

        def bwd(x: Any, ct: Any) -> Any:
            cj.debug.callback(log, "bwd", x)
            return (cj.pure_callback(lambda x: np.cos(x), F64, x) * ct,)
        f.defvjp(fwd, bwd)
        return f

    for mode in (lambda f: f, cj.jit):
        assert [("f", 0.5)] == happened(lambda log: mode(made(log))(0.5))  # noqa: B023
        assert [("bwd", 0.5), ("fwd", 0.5)] == sorted(happened(lambda log: mode(cj.grad(made(log)))(0.5)))  # noqa: B023
    assert np.cos(0.5) == pytest.approx(float(cj.grad(made(lambda *xs: None))(0.5)))


@MODES
def test_a_rule_around_a_pure_callback_gives_it_a_derivative(mode: Any) -> None:
    @cj.custom_jvp
    def f(x: Any) -> Any:
        return cj.pure_callback(lambda x: np.sin(x), like(x), x, vmap_method="broadcast_all")

    @f.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        (x,), (x_dot,) = primals, tangents
        return f(x), cj.pure_callback(lambda x: np.cos(x), like(x), x, vmap_method="broadcast_all") * x_dot

    x = np.linspace(0, 1, 3)
    np.testing.assert_allclose(np.cos(x), mode(cj.vmap(cj.grad(f)))(x))
    np.testing.assert_allclose(np.cos(x), np.diag(mode(cj.jacobian(f))(x)))


def test_results_without_a_derivative_are_used_by_grad() -> None:
    f = cj.jit(lambda x: x * cj.pure_callback(lambda n: n * 2.0, F64, lax.stop_gradient(x)))
    assert 6.0 == cj.grad(f)(3.0)
    assert 8.0 == cj.grad(lambda x: x * cj.pure_callback(lambda n: n * 2.0, F64, np.int64(4)))(3.0)


def test_what_nobody_uses_is_left_out_if_it_is_pure_and_only_then() -> None:
    seen: list[Any] = []

    @cj.jit
    def f(x: Any) -> Any:
        cj.pure_callback(lambda x: (seen.append("pure"), x)[1], F64, x)
        io_callback(lambda x: (seen.append("io"), x)[1], F64, x)
        return x

    f(1.0)
    f(2.0)
    assert ["io", "io"] == seen


def test_branches_that_are_not_taken_call_nothing() -> None:
    for mode in (lambda f: f, cj.jit):
        f = mode(lambda log, p: None) and (lambda log, p: mode(lambda p: lax.cond(  # noqa: B023
            p, lambda: cj.debug.callback(log, "yes"), lambda: cj.debug.callback(log, "no")))(p))
        assert [("yes",)] == happened(f, True) and [("no",)] == happened(f, False)


def test_programs_and_eager_operations_are_in_order() -> None:
    seen: list[Any] = []
    f = cj.jit(lambda x: (io_callback(seen.append, None, x, ordered=True), x + 1)[1])
    for i in range(0, 20, 2):
        f(float(i))
        io_callback(seen.append, None, float(i + 1), ordered=True)
    assert list(range(20)) == [int(x) for x in seen]
    assert cj.effects_barrier() is None


# Batches

@MODES
@pytest.mark.parametrize(("method", "shapes"), [
    ("sequential", [((), ())] * 3), ("sequential_unrolled", [((), ())] * 3), ("expand_dims", [((3,), (1,))]),
    ("broadcast_all", [((3,), (3,))]), ("legacy_vectorized", [((3,), ())])])
def test_each_vmap_method(mode: Any, method: str, shapes: list[Any]) -> None:
    seen: list[Any] = []

    def add(x: Any, y: Any) -> Any:
        seen.append((np.shape(x), np.shape(y)))
        return x + y

    f = cj.vmap(lambda x, y: cj.pure_callback(add, F64, x, y, vmap_method=method), in_axes=(0, None))
    assert [1.0, 2.0, 3.0] == mode(f)(np.arange(3.0), 1.0).tolist()
    assert shapes == seen
    twice = cj.vmap(lambda x, y: cj.pure_callback(lambda x, y: x * y, F64, x, y, vmap_method=method))
    x = np.arange(6.0).reshape(2, 3)
    assert (x * x.T.copy().T).tolist() == mode(cj.vmap(twice))(x, x).tolist()


def test_without_a_method_a_batch_is_refused() -> None:
    f = cj.vmap(lambda x: cj.pure_callback(lambda x: x, F64, x))
    for mode in (lambda f: f, cj.jit):
        with pytest.raises(CorejaxNotImplementedError, match=r"how <lambda> takes a batch isn't said"):
            mode(f)(np.arange(3.0))


@MODES
def test_what_is_not_ordered_is_called_for_each_element(mode: Any) -> None:
    x = np.arange(6.0).reshape(2, 3)
    rows = happened(lambda log: mode(cj.vmap(lambda x: cj.debug.callback(log, "v", x), in_axes=1))(x))
    assert [("v", [0, 3]), ("v", [1, 4]), ("v", [2, 5])] == rows
    both = happened(lambda log: mode(cj.vmap(cj.vmap(lambda x: cj.debug.callback(log, "v", x)), in_axes=1))(x))
    assert [("v", v) for v in range(6)] == sorted(both)
    assert [("c", 7)] == happened(lambda log: mode(cj.vmap(lambda x: cj.debug.callback(log, "c", 7)))(x))
    assert [] == happened(lambda log: mode(cj.vmap(lambda x: cj.debug.callback(log, "v", x)))(np.zeros(0)))
    out = mode(cj.vmap(lambda x: io_callback(lambda x: x.sum() * 2, F64, x)))(x)
    assert [6.0, 24.0] == out.tolist()


@MODES
def test_ordered_calls_for_a_batch_are_refused_with_what_to_do(mode: Any) -> None:
    with pytest.raises(CorejaxNotImplementedError, match="which element of a batch") as caught:
        mode(cj.vmap(lambda x: io_callback(print, None, x, ordered=True)))(np.arange(3.0))
    assert "ordered=False" in str(caught.value.todo) and "lax.map" in str(caught.value.todo)


@MODES
def test_ordered_calls_without_results_come_one_after_the_other_for_a_batch(mode: Any) -> None:
    def calls(log: Any) -> Any:
        def each(x: Any) -> None:
            cj.debug.callback(log, "a", x, ordered=True)
            cj.debug.callback(log, "b", 2 * x, ordered=True)
        return mode(cj.vmap(each))(np.arange(2))

    assert [("a", 0), ("a", 1), ("b", 0), ("b", 2)] == happened(calls)

    def branches(log: Any) -> Any:
        return mode(cj.vmap(lambda x: lax.cond(
            x > 0, lambda x: (cj.debug.callback(log, "t", x, ordered=True), x)[1], lambda x: x, x)))(np.arange(3))

    assert [("t", 1), ("t", 2)] == happened(branches)


# What goes wrong

class Mine(Exception):
    pass


@pytest.mark.parametrize("raised", [Mine("x"), SystemExit(3), KeyboardInterrupt(), GeneratorExit(), StopIteration(1)])
@MODES
def test_exceptions_arrive_as_themselves(mode: Any, raised: BaseException) -> None:
    def fails(x: Any) -> Any:
        raise raised

    for call in (lambda x: cj.pure_callback(fails, F64, x), lambda x: io_callback(fails, F64, x, ordered=True),
                 lambda x: cj.debug.callback(fails, x), lambda x: cj.debug.callback(fails, x, timeout=20)):
        with pytest.raises(type(raised)) as caught:
            mode(call)(1.0)
        assert caught.value is raised
        names = [entry.name for entry in caught.traceback]
        assert "fails" == names[-1] and "test_exceptions_arrive_as_themselves" == names[0]
    assert 2.0 == mode(lambda x: cj.pure_callback(lambda x: x, F64, x) + 1)(1.0)  # nothing is left over


@MODES
def test_after_an_exception_the_next_calls_do_not_happen(mode: Any) -> None:
    def program(log: Any) -> Any:
        def f(x: Any) -> Any:
            cj.debug.callback(log, "first", ordered=True)
            cj.debug.callback(lambda: 1 / 0, ordered=True)
            cj.debug.callback(log, "second", ordered=True)
            return x
        with pytest.raises(ZeroDivisionError):
            mode(f)(1.0)

    assert [("first",)] == happened(program)


WRONG = {
    "shape": (lambda x: np.zeros(2), "another shape", "f64[2]"),
    "dtype": (lambda x: np.zeros(3, np.float32), "another dtype", "f32[3]"),
    "None": (lambda x: None, "another structure", "None"),
    "two": (lambda x: (x, x), "another structure", "a tuple of 2"),
    "number": (lambda x: 3.0, "a number", "3.0"),
    "text": (lambda x: "abc", "what isn't an array", "a str"),
    "objects": (lambda x: np.array([{}] * 3), "what isn't an array", "ndarray"),
}


@MODES
@pytest.mark.parametrize("kind", WRONG)
def test_wrong_results_are_errors_that_name_the_callback(mode: Any, kind: str) -> None:
    function, problem, got = WRONG[kind]
    for call in (lambda x: cj.pure_callback(function, like(x), x), lambda x: io_callback(function, like(x), x)):
        with pytest.raises(CorejaxTypeError) as caught:
            mode(call)(np.ones(3))
        error = caught.value
        assert problem in error.message and "<lambda>" in error.message and got in str(error.got)
        assert "f64[3]" in str(error.wanted) or "*" in str(error.wanted)
        assert __file__ in str(error.where) and "result_shape_dtypes" in str(error.todo)


def test_a_callback_can_not_close_over_traced_values() -> None:
    for call in (lambda x: cj.debug.callback(lambda: print(x)), lambda x: cj.pure_callback(lambda: x, F64),
                 lambda x: io_callback(lambda: x, F64)):
        with pytest.raises(CorejaxTypeError, match="closes over a traced value") as caught:
            cj.jit(call)(1.0)
        assert "x: " in str(caught.value.got)
    hidden: list[Any] = []
    with pytest.raises(CorejaxTypeError, match="returned a traced value"):
        cj.jit(lambda x: (hidden.append(x), cj.pure_callback(lambda: hidden[0], F64))[1])(1.0)


def test_derivatives_are_refused_with_what_to_do() -> None:
    for call in (lambda x: cj.pure_callback(lambda x: x, F64, x), lambda x: io_callback(lambda x: x, F64, x)):
        for mode in (lambda f: f, cj.jit):
            with pytest.raises(CorejaxNotImplementedError, match=r"(?s)not differentiable.*cj\.custom_jvp"):
                mode(cj.grad(call))(1.0)


def test_what_takes_too_long_is_abandoned() -> None:
    stop = threading.Event()

    def hangs(x: Any) -> Any:
        stop.wait(20)
        return x

    for mode in (lambda f: f, cj.jit):
        for call in (lambda x: cj.pure_callback(hangs, F64, x, timeout=0.05),
                     lambda x: io_callback(hangs, F64, x, ordered=True, timeout=0.05),
                     lambda x: cj.debug.callback(hangs, x, timeout=0.05)):
            start = time.perf_counter()
            with pytest.raises(CallbackTimeout, match="callback hangs took longer than its timeout") as caught:
                mode(call)(1.0)
            assert isinstance(caught.value, CorejaxError) and isinstance(caught.value, TimeoutError)
            assert time.perf_counter() - start < 5 and __file__ in str(caught.value.where)
    stop.set()
    assert 3.0 == cj.jit(lambda x: cj.pure_callback(lambda x: x + 1, F64, x, timeout=20))(2.0)


@pytest.mark.parametrize("arguments", [
    {"callback": 3}, {"vmap_method": "parallel"}, {"result_shape_dtypes": (3,)}, {"sharding": "cpu"}, {"timeout": -1},
    {"timeout": True}, {"timeout": float("nan")}])
def test_wrong_arguments_are_refused_at_once(arguments: dict[str, Any]) -> None:
    with pytest.raises(CorejaxError):
        cj.pure_callback(**{"callback": abs, "result_shape_dtypes": F64, **arguments})  # type: ignore[arg-type]
    with pytest.raises(CorejaxTypeError, match="args"):
        cj.pure_callback(abs, F64, "text")


# Calls of corejax from within

def test_callbacks_may_call_corejax() -> None:
    inner = cj.jit(lambda x: lax.fori_loop(0, 5, lambda i, c: lax.sin(c @ c), x))
    x = np.full((200, 200), 0.01)

    def heavy(y: Any) -> Any:
        assert 1.0 <= float((cj.device_put(y) + 2.0).sum())
        return inner(y)

    def f(x: Any) -> Any:
        for _ in range(2):
            x = lax.sin(cj.pure_callback(heavy, like(x), x) @ x)
        return x

    g, busy = cj.jit(f), cj.jit(lambda x: lax.fori_loop(0, 50, lambda i, c: lax.sin(c @ c), x))
    expected = np.asarray(g(x))
    outs: list[Any] = []

    def work() -> None:
        for _ in range(3):
            busy(x)
            outs.append(np.asarray(g(cj.device_put(x))))

    threads = [threading.Thread(target=work, daemon=True) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert 18 == len(outs) and all(np.array_equal(expected, out) for out in outs)
    nested = cj.jit(lambda x: cj.pure_callback(lambda y: g(y), like(x), x))
    assert np.array_equal(expected, cj.jit(lambda x: cj.pure_callback(lambda y: nested(y), like(x), x))(x))


def test_callbacks_run_in_the_thread_that_calls_the_program() -> None:
    names: list[str] = []
    x = cj.device_put(np.full((300, 300), 0.01))
    busy = cj.jit(lambda x: lax.fori_loop(0, 30, lambda i, c: lax.sin(c @ c), x))
    f = cj.jit(lambda x: (cj.debug.callback(lambda y: names.append(threading.current_thread().name), x @ x), x)[1])
    for arg in (x, np.asarray(x), busy(x)):
        busy(x)
        f(arg)
    assert [threading.current_thread().name] * 3 == names


# Programs are shared, and not kept

def test_the_same_function_compiles_once() -> None:
    seen: list[Any] = []

    def key(f: Any) -> Any:
        (eqn,) = cj.make_jaxpr(f)(1.0).eqns
        return param_key(eqn.params)

    for f in (lambda x: cj.debug.callback(seen.append, x), lambda x: cj.debug.print("x {}", x),
              lambda x: cj.debug.callback(happened, x, "a", y="b")):
        assert key(f) == key(f)
    assert key(lambda x: cj.debug.callback(lambda x: x, x)) != key(lambda x: cj.debug.callback(lambda x: x, x))
    assert key(lambda x: cj.debug.callback(happened, "a")) != key(lambda x: cj.debug.callback(happened, "b"))
    assert key(lambda x: cj.debug.print("x {}", x)) != key(lambda x: cj.debug.print("y {}", x))
    assert key(lambda x: cj.debug.callback([].append, x)) != key(lambda x: cj.debug.callback(seen.append, x))


def test_functions_made_anew_are_not_kept_without_bound() -> None:
    class Big:
        pass

    def one() -> weakref.ref[Big]:
        big = Big()
        cj.jit(lambda x: cj.pure_callback(lambda x: (big, x)[1], F64, x))(1.0)
        return weakref.ref(big)

    alive = [one() for _ in range(40)]
    cj.clear_caches()
    gc.collect()
    assert 3 > sum(ref() is not None for ref in alive)


def test_programs_with_callbacks_are_not_exported() -> None:
    f = cj.jit(lambda x: cj.pure_callback(lambda x: x, F64, x))
    with pytest.raises(CorejaxError, match="callback"):
        cj.export.export(f)(F64)


def test_options_are_checked_before_anything_is_called() -> None:
    for options in ({"ordered": "yes"}, {"partitioned": 1.0}, {"timeout": "soon"}):
        with pytest.raises(CorejaxError):
            cj.debug.callback(print, 1.0, **options)  # type: ignore[arg-type]
    with pytest.raises(CorejaxValueError, match="seconds"):
        io_callback(print, None, timeout=0)


def test_calls_of_nested_scans_keep_their_order() -> None:
    seen: list[tuple[str, float]] = []

    def see(what: str, x: Any) -> None:
        cj.debug.callback(lambda x: seen.append((what, float(x))), x, ordered=True)

    def inner(c: Any, x: Any) -> Any:
        see("step", x)
        return c + x, c

    def outer(c: Any, x: Any) -> Any:
        see("before", c)
        c, y = lax.scan(inner, c, x)
        see("after", c)
        return c, y

    cj.jit(lambda c, xs: lax.scan(outer, c, xs))(0.0, np.arange(4.0).reshape(2, 2))
    assert seen == [("before", 0.0), ("step", 0.0), ("step", 1.0), ("after", 1.0),
                    ("before", 1.0), ("step", 2.0), ("step", 3.0), ("after", 6.0)]
