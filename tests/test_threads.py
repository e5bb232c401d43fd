"""Many threads at once: packs loaded for the first time by all, tracing, differentiating, compiling, calling."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from exhaustive import exhaustive_unless

PROGRAM = """
    import threading
    import numpy as np
    import corejax as cj
    from corejax.xla.cache import compile as compiling

    compiled = []
    build = compiling.compile_lowered

    def counting(*args, **kwargs):
        compiled.append(1)
        return build(*args, **kwargs)

    compiling.compile_lowered = counting
    barrier, errors = threading.Barrier(8), []

    def work(k):
        try:
            barrier.wait()
            from corejax import lax  # every primitive is loaded and frozen by whoever comes first

            def f(x):
                return (lax.sin(x) * x).sum() + lax.exp(-x).max()

            jitted = cj.jit(f)  # eight functions, one program
            for i in range(20):
                x = np.linspace(0.1, 1.0, 5) * (k + 1 + i)
                expected = (np.sin(x) * x).sum() + np.exp(-x).max()
                np.testing.assert_allclose(jitted(x), expected, rtol=1e-12)
                slope = np.sin(x) + x * np.cos(x)
                slope[0] -= np.exp(-x[0])
                np.testing.assert_allclose(cj.grad(f)(x), slope, rtol=1e-9)
                np.testing.assert_allclose(cj.vmap(cj.grad(f))(np.stack([x, x]))[1], slope, rtol=1e-9)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in errors:
        raise error
    print("compilations:", len(compiled))
"""


def test_eight_threads_from_a_cold_start_agree_and_compile_once() -> None:
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(PROGRAM)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "compilations: 1" == done.stdout.strip()


MANY = """
    import sys, threading
    import numpy as np
    import corejax as cj
    from corejax.core import Tracer
    from corejax.xla.cache import compile as compiling

    sys.setswitchinterval(1e-5)
    compiled = []
    build = compiling.compile_lowered

    def counting(lowered, closed, *args, **kwargs):
        compiled.append(str(closed.jaxpr))
        return build(lowered, closed, *args, **kwargs)

    compiling.compile_lowered = counting
    THREADS, STEPS = 16, int(sys.argv[1])
    barrier, errors, owners = threading.Barrier(THREADS), [], {}

    def make(k):
        def f(x):
            if isinstance(x, Tracer):  # a trace belongs to the thread that runs the function
                assert threading.get_ident() == owners.setdefault(x._trace, threading.get_ident())
            return (x * float(k + 1) + x * x).sum()
        return f

    functions = [make(k) for k in range(6)]
    jitted = [cj.jit(f) for f in functions]

    def work(number):
        try:
            barrier.wait()
            for i in range(STEPS):
                k, n = (i + number) % 6, 1 + (i // 6) % 5
                x = np.arange(1.0, n + 1.0) + number
                value, slope = (x * (k + 1) + x * x).sum(), k + 1 + 2 * x
                f = functions[k]
                np.testing.assert_allclose(value, jitted[k](x))
                np.testing.assert_allclose(slope, cj.grad(f)(x))
                np.testing.assert_allclose(value, cj.jit(lambda x: f(x))(x))  # traced anew each time
                np.testing.assert_allclose(slope, cj.jit(cj.grad(lambda x: f(x)))(x))
                np.testing.assert_allclose([value] * 2, cj.vmap(f)(np.stack([x, x])))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in errors:
        raise error
    print(len(compiled), len(set(compiled)))
"""


@pytest.mark.parametrize("steps", exhaustive_unless(lambda steps: steps < 100, [60, 625]))
def test_sixteen_threads_compile_each_program_once_in_thousands_of_iterations(steps: int) -> None:
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(MANY), str(steps)], capture_output=True, text=True,
                          timeout=900)
    assert 0 == done.returncode, done.stderr
    made, different = map(int, done.stdout.split())
    assert made == different == 6 * 5 * 2  # of each function and shape the value and the gradient
