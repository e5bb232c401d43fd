"""Several devices of the processor: computations follow their arguments, and results stay where they were made."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import forked

ROOT = Path(__file__).resolve().parents[1]

PRELUDE = """
import threading, gc
import numpy as np
import corejax as cj
from corejax import lax
from corejax.errors import *

ds = cj.devices()
x = np.array([1.0, 2.0, 3.0])

def on(i, value=x):
    return cj.device_put(value, ds[i])

def where(y):
    return ds.index(y.device)

def error(action):
    try:
        action()
    except BaseException as caught:
        return f"{type(caught).__name__}: {caught}"
    raise AssertionError("no error")
"""


def run(code: str, number: str = "4", **environment: str) -> list[str]:
    """What a program prints in a process of its own with so many devices."""
    env = {**os.environ, "COREJAX_NUM_CPU_DEVICES": number, "PYTHONPATH": str(ROOT), **environment}
    done = forked.run(PRELUDE + textwrap.dedent(code), env)
    assert done.returncode == 0, done.stderr
    assert "" == done.stderr
    return done.stdout.splitlines()


def test_there_are_as_many_as_the_environment_or_config_says():
    assert ["4 [0, 1, 2, 3] {'cpu'}"] == run("print(len(ds), [d.id for d in ds], {d.platform for d in ds})")
    code = "import corejax as cj; cj.config.num_cpu_devices = 3; print(len(cj.devices()), len(cj.devices('cpu')))"
    env = {key: value for key, value in os.environ.items() if key != "COREJAX_NUM_CPU_DEVICES"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert "3 3" == done.stdout.strip()
    assert ["1"] == run("print(len(ds))", number="none")


@pytest.mark.parametrize("number", ["0", "-1", "many", "1.5"])
def test_a_number_of_devices_that_there_can_not_be_is_refused(number):
    done = subprocess.run([sys.executable, "-c", "import corejax"], capture_output=True, text=True, check=False,
                          env={**os.environ, "COREJAX_NUM_CPU_DEVICES": number})
    assert done.returncode == 1
    assert f"the environment variable COREJAX_NUM_CPU_DEVICES can't be {number!r}" in done.stderr


def test_arrays_go_to_each_and_from_each_to_each():
    assert ["[0, 1, 2, 3] [0, 1, 2, 3] [[1. 2. 3.]]"] == run("""
        there = [on(i) for i in range(4)]
        moved = [cj.device_put(y, ds[i]) for y in there for i in range(4)]
        print([where(y) for y in there], sorted({where(y) for y in moved}), np.unique(np.stack(moved), axis=0))
        assert cj.device_put(there[2]) is there[2] is cj.device_put(there[2], ds[2])
        tree = cj.device_put({"a": x, "b": [1, 2.0]}, ds[3])
        assert [3, 3, 3] == [where(leaf) for leaf in cj.tree.leaves(tree)]""")


def test_what_is_put_on_any_is_copied_if_it_may_change():
    assert ["[1. 2. 3.] [1. 2. 3.]"] == run("""
        mine = x.copy()
        a, b = on(1, mine), on(2, mine)
        mine[:] = 0.0
        print(a, b)""")


def test_every_way_to_compute_follows_its_arguments():
    assert ["ok"] == run("""
        def f(x):
            return (lax.sin(x) * x).sum()
        ways = {
            "jit": cj.jit(f), "eager": f, "grad": cj.grad(f), "jit grad": cj.jit(cj.grad(f)),
            "hessian": cj.hessian(f), "vmap": cj.vmap(cj.grad(lambda x: x * x)), "operators": lambda x: -x + 1.0,
            "index": lambda x: x[1:], "update": lambda x: x.at[0].set(5.0), "no result": lambda x: x,
            "host beside": lambda y: cj.jit(lax.add)(y, x), "host first": lambda y: cj.jit(lax.add)(x, y),
            "weak": lambda x: 2 * x, "scan": lambda x: lax.scan(lambda c, e: (c + e, c * e), x[0], x)[1],
            "while": lambda x: lax.while_loop(lambda c: c.sum() < 50.0, lambda c: c * 2.0, x),
            "cond": lambda x: lax.cond(True, lambda x: x + 1.0, lambda x: x, x),
            "tree": lambda x: cj.jit(lambda t: t["a"] + t["b"])({"a": x, "b": x}),
            "static": lambda x: cj.jit(lambda x, n: x * n, static_argnums=1)(x, 3),
            "aot": lambda x: cj.jit(cj.checkpoint(f))(x),
        }
        for name, way in ways.items():
            expected = np.asarray(way(on(0)))
            for i in (3, 0, 1, 2):
                y = way(on(i))
                assert i == where(y), (name, i, where(y))
                np.testing.assert_array_equal(expected, y, err_msg=name)
        print("ok")""")


def test_what_has_no_place_runs_on_the_first_one_whatever_ran_before():
    assert ["0 0"] == run("""
        f = cj.jit(lambda x: x + 1.0)
        f(on(2))
        print(where(f(x)), where(cj.jit(lambda: x + 1.0)()))""")


def test_a_value_that_is_closed_over_says_where_too():
    assert ["2 2 2", "[[1001. 1001.]]"] == run("""
        small, large = on(2), on(2, np.ones(1000))
        print(where(cj.jit(lambda x: x + small)(x)), where(cj.jit(lambda x: x + large)(2.0)),
              where(cj.jit(lambda: small * 2.0)()))
        g = cj.jit(lambda x: (x + large).sum())
        print(np.array([[g(on(2, 0.001)), g(0.001)]]))""")


def test_arguments_on_different_devices_are_an_error_that_names_both():
    said = run("""
        f = cj.jit(lambda x, y: x + y)
        a, b = on(1), on(2, x[:2])
        for wrong in (lambda: f(a, on(3)), lambda: a + on(3), lambda: cj.jit(lambda x, y: (x, y))(a, b),
                      lambda: cj.jit(lambda t: t)([x, a, {"b": b}]), lambda: lax.while_loop(
                          lambda c: c[0].sum() < 9.0, lambda c: (c[0] + c[1], c[1]), (a, on(3)))):
            print(error(wrong).partition("  where")[0].replace("\\n", ""))
        constant = on(3, np.ones(1000))
        print(error(lambda: cj.jit(lambda x: x.sum() + constant.sum())(a)).partition("  where")[0].replace("\\n", ""))
        print(where(f(a, a)), where(f(a, x)))""")
    first = "CorejaxValueError: arguments live on different devices  got:    f64[3] on cpu:1, "
    wanted = "  wanted: the same devices, or values in host memory"
    assert [first + f"{other}{wanted}" for other in (
        "f64[3] on cpu:3", "f64[3] on cpu:3", "f64[2] on cpu:2", "f64[2] on cpu:2")] == said[:4]
    assert "different devices" in said[4] and "cpu:1" in said[4] and "cpu:3" in said[4]
    assert ("CorejaxValueError: an argument, and a value that the function closes over, live on different devices"
            "  got:    f64[3] on cpu:1, f64[1000] on cpu:3" + wanted) == said[5]
    assert "1 1" == said[6]


def test_a_program_compiles_once_for_each_device():
    assert ["4", "4", "4"] == run("""
        from corejax.base import _jaxlib
        from corejax.xla.cache import persistent
        compiled, compile_module = [], _jaxlib.compile_module
        def counted(*args, **kwargs):
            compiled.append(args)
            return compile_module(*args, **kwargs)
        _jaxlib.compile_module = counted
        def everywhere(f):
            return [f(on(i)) for _ in range(3) for i in range(4)]
        everywhere(cj.jit(lambda x: x * 2.0 + x)); print(len(compiled))
        everywhere(cj.jit(lambda x: x * 2.0 + x)); print(len(compiled))  # another function, the same program
        compiled.clear()
        everywhere(lax.cosh); print(len(compiled))""")


def test_donated_memory_goes_wherever_it_is():
    assert ["[True, True, True, True] [0, 1, 2, 3]", "CorejaxRuntimeError: the array was deleted"] == run("""
        f = cj.jit(lambda x: x + 1.0, donate_argnums=0)
        args = [on(i) for i in range(4)]
        outs = [f(y) for y in args]
        print([y.is_deleted() for y in args], [where(y) for y in outs])
        print(error(lambda: f(args[3]))[:42])""")


def test_results_anywhere_become_other_things():
    out = run("""
        f = cj.jit(lambda x: x.astype(np.float32) * 2)
        y = f(on(3))
        print(where(y), y.dtype, np.asarray(y), np.from_dlpack(y), float(y[0]), y.tolist())
        import copy, pickle
        print(where(copy.copy(y)), pickle.loads(pickle.dumps(y)))""")
    assert ["3 float32 [2. 4. 6.] [2. 4. 6.] 2.0 [2.0, 4.0, 6.0]", "3 [2. 4. 6.]"] == out


def test_programs_call_back_from_any_device():
    assert ["[0, 1, 2, 3] [2. 4. 6.] 4"] == run("""
        from corejax.plugin import define, hookimpl
        seen = []
        class Twice:
            name = "twice_in_python"
            @hookimpl
            def abstract_eval(self, avals):
                return avals[0]
            @hookimpl
            def xla_translation(self, ctx, args):
                return ctx.callback(lambda x: (seen.append(x) or np.asarray(x) * 2.0,), args, ctx.avals_out)[0]
        f = cj.jit(define(Twice()))
        outs = [f(on(i)) for i in range(4)]
        print([where(y) for y in outs], outs[3], len(seen))""")


def test_deleted_arrays_are_named_before_places_are_compared():
    assert ["CorejaxRuntimeError: the array was deleted"] == run("""
        y = on(2)
        y.delete()
        print(error(lambda: cj.jit(lax.add)(y, on(1)))[:42])""")


def test_threads_compute_on_all_of_them_at_once():
    assert ["[] 400"] == run("""
        f, wrong, done = cj.jit(lambda x: lax.sin(x) + x.sum()), [], []
        def work(i):
            for k in range(50):
                y = f(on(i % 4, x + k)) + 1.0
                if where(y) != i % 4 or not np.allclose(y, np.sin(x + k) + (x + k).sum() + 1.0):
                    wrong.append((i, k))
                done.append(k)
        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(wrong, len(done))""")


def test_clear_caches_leaves_every_device_usable():
    assert ["[0, 1, 2, 3] [0, 1, 2, 3]"] == run("""
        f = cj.jit(lambda x: x + 1.0)
        before = [where(f(on(i))) for i in range(4)]
        cj.clear_caches()
        print(before, [where(f(on(i))) for i in range(4)])""")


def test_compiling_ahead_of_time_is_for_the_device_of_the_arguments():
    assert ["0 1 0 2 3 [1, 1]"] == run("""
        f = cj.jit(lambda x: x + 1.0)
        big = on(2, np.ones(1000))
        print(where(f.lower(x).compile()(x)), where(f.lower(on(1)).compile()(on(1))),
              where(f.lower(cj.ShapeDtypeStruct((3,), float)).compile()(x)),
              where(cj.jit(lambda x: x + big).lower(1.0).compile()(1.0)),
              where(f.lower(on(1)).compile(device=ds[3])(x)),
              [where(y) for y in cj.jit(lambda t: (t["a"], 2.0 * t["b"])).lower({"a": x, "b": on(1)}).compile()(
                  {"a": x, "b": on(1)})])""")


def test_compiling_ahead_of_time_donates_on_the_device_of_the_argument():
    assert ["1 True"] == run("""
        y = on(1)
        print(where(cj.jit(lambda x: x + 1.0, donate_argnums=0).lower(y).compile()(y)), y.is_deleted())""")


def test_lowering_for_arguments_on_different_devices_is_refused():
    said = run('print(error(lambda: cj.jit(lambda x, y: x + y).lower(on(1), on(2))))')
    assert said[0].startswith("CorejaxValueError: arguments live on different devices")


def test_a_compiled_program_says_that_an_argument_is_on_another_device():
    said = run("""
        done = cj.jit(lambda x: x + 1.0).lower(x).compile()
        print(where(done(x)), error(lambda: done(on(1))).partition("  where")[0].replace("\\n", ""))""",
               TF_CPP_MIN_LOG_LEVEL="3")
    assert said[0].startswith("0 CorejaxValueError: an argument lives on a different device than")
    assert "cpu:0" in said[0] and "cpu:1" in said[0]


def test_arguments_that_a_program_ignores_do_not_decide_where_it_runs():
    assert ["1", "1 1", "2"] == run("""
        a, b = on(1), on(2)
        f = cj.jit(lambda x, y: x * 2.0)
        print(where(f(a, b)))
        print(where(f(a, b)), where(f(a, x)))
        print(where(f(b, a)))""")
