"""Programs nested up to 1,000 deep: they work or say what is wrong, and none ends the process."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxRecursionError
from corejax.ir import jaxpr_as_fun

NESTS = """
import sys
import numpy as np
import corejax as cj
from corejax import lax
from corejax.errors import CorejaxNotImplementedError, CorejaxRecursionError

def custom_jvp(f):
    h = cj.custom_jvp(f)
    h.defjvp(lambda primals, tangents: (h(*primals), tangents[0]))
    return h

def custom_vjp(f):
    h = cj.custom_vjp(f)
    h.defvjp(lambda x: (h(x), None), lambda _, ct: (ct,))
    return h

NESTS = {
    "cond": lambda f: lambda x: lax.cond(x > 0.0, f, lax.cos, x),
    "switch": lambda f: lambda x: lax.switch((x > 0.0).astype("int32"), [lax.cos, f], x),
    "while": lambda f: lambda x: lax.while_loop(lambda c: c[0] < 1, lambda c: (c[0] + 1, f(c[1])), (0, x))[1],
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0],
    "fori": lambda f: lambda x: lax.fori_loop(0, 2, lambda i, c: f(c), x),
    "jit": lambda f: cj.jit(lambda x: f(x)),
    "checkpoint": lambda f: cj.checkpoint(lambda x: f(x)),
    "custom_jvp": lambda f: custom_jvp(lambda x: f(x)),
    "custom_vjp": lambda f: custom_vjp(lambda x: f(x)),
}

def nest(kind, depth):
    f = lax.sin
    for _ in range(depth):
        f = NESTS[kind](f)
    return f

X = np.float64(0.5)
"""


def survives(code: str) -> None:
    done = subprocess.run([sys.executable, "-c", NESTS + textwrap.dedent(code)], capture_output=True, text=True)
    assert (0, "done\n") == (done.returncode, done.stdout), done.stderr[-2000:]


def test_a_hundred_nested_conds_compile() -> None:
    survives("""
        assert abs(cj.jit(nest("cond", 100))(X) - np.sin(0.5)) < 1e-12
        print("done")""")


def test_hundreds_of_nested_calls_and_loops_compile() -> None:
    survives("""
        sys.setrecursionlimit(100_000)
        for kind in ("jit", "checkpoint", "custom_jvp", "custom_vjp"):
            assert abs(cj.jit(nest(kind, 400))(X) - np.sin(0.5)) < 1e-12, kind
        assert abs(cj.jit(nest("while", 100))(X) - np.sin(0.5)) < 1e-12
        assert abs(nest("jit", 400)(X) - np.sin(0.5)) < 1e-12
        assert abs(cj.grad(nest("checkpoint", 200))(X) - np.cos(0.5)) < 1e-12
        print("done")""")


def test_a_thousand_nested_branches_and_loops_are_refused() -> None:
    survives("""
        sys.setrecursionlimit(100_000)
        for kind in ("cond", "while", "scan"):
            try:
                cj.jit(nest(kind, 1000))(X)
            except CorejaxNotImplementedError as error:
                assert "nested too deeply to be compiled" in str(error), error
                assert "1000 within each other" in str(error), error
            else:
                raise AssertionError(kind)
        assert abs(nest("cond", 1000)(X) - np.sin(0.5)) < 1e-12
        print("done")""")


def test_deep_programs_are_exported_and_called_within_others() -> None:
    survives("""
        sys.setrecursionlimit(100_000)
        for kind, depth in (("cond", 90), ("jit", 400)):
            call = cj.export.deserialize(cj.export.export(cj.jit(nest(kind, depth)))(X).serialize()).call
            assert abs(cj.jit(lambda x: call(x) * 2.0)(X) - 2.0 * np.sin(0.5)) < 1e-12, kind
        try:
            cj.export.export(cj.jit(nest("cond", 300)))(X)
        except CorejaxNotImplementedError as error:
            assert "300 within each other" in str(error), error
        print("done")""")


def test_what_does_not_fit_on_the_stack_says_so() -> None:
    survives("""
        for kind in NESTS:
            for transform in (cj.jit, cj.grad, cj.make_jaxpr):
                try:
                    transform(nest(kind, 1000))(X)
                except CorejaxRecursionError as error:
                    assert "sys.setrecursionlimit" in str(error), error
                else:
                    raise AssertionError(kind)
        print("done")""")


@pytest.mark.parametrize("use", [cj.jit, cj.grad, cj.vmap, lambda f: f], ids=["jit", "grad", "vmap", "run"])
def test_a_program_that_became_deep_step_by_step_says_so(use) -> None:
    f = lax.sin
    for _ in range(400):
        f = (lambda closed: lambda x: jaxpr_as_fun(closed)(x)[0])(cj.make_jaxpr(cj.checkpoint(f))(0.5))
    with pytest.raises(CorejaxRecursionError, match="nested too deeply"):
        use(f)(np.ones(3) if use is cj.vmap else 0.5)


def test_functions_of_a_module_stand_callers_first_unless_they_are_deep() -> None:
    def doubled(f):
        return cj.jit(lambda x: f(x) * 2.0)

    def lowered(depth: int) -> str:
        f = lax.sin
        for _ in range(depth):
            f = doubled(f)
        return cj.jit(f).lower(0.5).as_text()

    first, *_, last = [line for line in lowered(3).splitlines() if "func.func" in line]
    assert "@main" in first
    first, *_, last = [line for line in lowered(30).splitlines() if "func.func" in line]
    assert "@main" in last
