"""Many threads at once: packs loaded for the first time by all, tracing, differentiating, compiling, calling."""

from __future__ import annotations

import subprocess
import sys
import textwrap

PROGRAM = """
    import threading
    import numpy as np
    import corejax as cj
    from corejax.xla import compile as compiling

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
