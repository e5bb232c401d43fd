"""Callbacks and the process: interrupted, ended while one hangs, and what is kept on disk."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=100,
                          check=False, env={**os.environ, **environment})


@pytest.mark.parametrize("timeout", ["None", "30"])
@pytest.mark.parametrize("argument", ["1.0", "busy(cj.device_put(np.full((300, 300), 0.01)))[0, 0]"])
def test_an_interrupt_reaches_what_a_callback_does(timeout: str, argument: str) -> None:
    start = time.monotonic()
    done = run(f"""
        import os, signal, threading, time
        import numpy as np
        import corejax as cj
        from corejax import lax
        busy = cj.jit(lambda x: lax.fori_loop(0, 100, lambda i, c: lax.sin(c @ c), x))
        f = cj.jit(lambda x: cj.pure_callback(hangs, cj.ShapeDtypeStruct((), "float64"), x, timeout={timeout}))
        def hangs(x):
            threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            for _ in range(600):
                time.sleep(0.1)
        argument = {argument}
        if type(argument) is not float:
            busy(cj.device_put(np.full((300, 300), 0.01)))
        try:
            f(argument)
        except KeyboardInterrupt:
            print("interrupted")
        print(cj.jit(lambda x: x + 1)(1.0))
    """)
    assert ["interrupted", "2.0"] == done.stdout.split(), done.stderr
    assert time.monotonic() - start < 50


@pytest.mark.parametrize("work", ["time.sleep(1000)", "while True: pass", "while True: cj.jit(lambda x: x + 1)(1.0)"])
def test_what_was_abandoned_does_not_keep_the_process_from_ending(work: str) -> None:
    start = time.monotonic()
    done = run(f"""
        import time
        import corejax as cj
        def hangs(x):
            {work}
        for mode in (lambda f: f, cj.jit):
            try:
                mode(lambda x: cj.debug.callback(hangs, x, timeout=0.2))(1.0)
            except TimeoutError as error:
                print(type(error).__name__)
    """)
    assert ["CallbackTimeout"] * 2 == done.stdout.split() and 0 == done.returncode, done.stderr
    assert time.monotonic() - start < 60


@pytest.mark.parametrize("mode", ["", "cj.jit"])
def test_a_callback_may_exit(mode: str) -> None:
    done = run(f"""
        import sys
        import corejax as cj
        {mode}(lambda x: cj.debug.callback(lambda x: sys.exit(7), x))(1.0)
    """)
    assert 7 == done.returncode and "" == done.stderr


def test_programs_with_callbacks_are_not_kept_on_disk(tmp_path: Path) -> None:
    plain = "import corejax as cj\ncj.jit(lambda x: cj.lax.sin(x) * 3)(1.0)\n"
    calls = "print(cj.jit(lambda x: cj.pure_callback(abs, cj.ShapeDtypeStruct((), 'float64'), x) * 2)(-1.0))\n"
    for name, code in (("plain", plain), ("calls", plain + calls), ("calls", plain + calls)):
        done = run(code, COREJAX_COMPILATION_CACHE_DIR=str(tmp_path / name))
        assert name == "plain" or "2.0" == done.stdout.strip(), done.stderr
    kept = [len([path for path in (tmp_path / name).rglob("*") if path.is_file()]) for name in ("plain", "calls")]
    assert kept[0] == kept[1] > 0
