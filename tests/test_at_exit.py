"""How a process ends whose daemon threads use the runtime: with its own exit code, and without a word."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from time import monotonic

import pytest

#: What daemon threads do for ever; each kind enters the runtime by another door.
KINDS = """
    import atexit, sys, threading, time, warnings
    import numpy as np
    import corejax as cj
    from corejax import lax
    from corejax.base import ending
    from corejax.plugin import define, hookimpl

    warnings.simplefilter("ignore")
    f = cj.jit(lambda x: x * 2.0 + 1.0)
    x = cj.device_put(np.ones(1000))
    y = f(x)
    compiled = f.lower(x).compile()

    class Node:
        def __init__(self, x):
            self.x = x

    def flatten(node):
        sum(range(200))
        return (node.x,), None

    cj.tree.register_node(Node, flatten, lambda _, xs: Node(*xs))

    class Called:
        name = "called"

        def __init__(self, function):
            self._function = function

        @hookimpl
        def abstract_eval(self, avals):
            return avals[0]

        @hookimpl
        def impl(self, args):
            return self._function(args[0])

    def calls_back(function):
        called = define(Called(function))
        return cj.jit(lambda x: lax.fori_loop(0, 1000000, lambda i, x: called(x), x))

    once = define(Called(lambda x: x + 1))
    tick = cj.jit(lambda x: once(x))

    def freeing():
        arrays = [f(x) for _ in range(20000)]
        while arrays:
            arrays.pop()

    kinds = {
        "a compiled function": lambda: f(x),
        "arguments in host memory": lambda: f(np.ones(3)),
        "several results": lambda: cj.jit(lambda x: (x, x + 1))(x),
        "eager": lambda: x + x,
        "reading": lambda: np.asarray(f(x)),
        "putting": lambda: cj.device_put(np.ones(1000)),
        "awaiting": lambda: f(x).block_until_ready(),
        "compiling": lambda: cj.jit(lambda x: x * time.monotonic())(x),
        "exporting": lambda: cj.export.export(f)(x).serialize(),
        "text": compiled.as_text,
        "sizes": compiled.memory_analysis,
        "exchange": lambda: np.from_dlpack(f(x)),
        "trees": lambda: cj.tree.map(lambda x: x, Node(x)),
        "freeing": freeing,
        "a callback": lambda: tick(np.ones(3)),
    }

    def keep_doing(what, count=1):
        def run():
            while True:
                what()

        threads = [threading.Thread(target=run, daemon=True) for _ in range(count)]
        for thread in threads:
            thread.start()
        time.sleep(0.3)
"""


def ended(code: str, *, before: str = "") -> tuple[int, str, str, float]:
    """The exit code of a program, what it wrote, and how long it took from its word `now` on."""
    program = textwrap.dedent(before) + textwrap.dedent(KINDS) + textwrap.dedent(code)
    env = {name: value for name, value in os.environ.items() if name != "TF_CPP_MIN_LOG_LEVEL"}  # all is to be seen
    process = subprocess.Popen([sys.executable, "-c", program], text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env=env)
    assert process.stdout is not None
    said = process.stdout.readline()
    start = monotonic()
    out, err = process.communicate(timeout=120)
    return process.returncode, said + out, err, monotonic() - start


@pytest.mark.parametrize("kind", ["a compiled function", "arguments in host memory", "several results", "eager",
                                  "reading", "putting", "awaiting", "compiling", "exporting", "text", "sizes",
                                  "exchange", "trees", "freeing", "a callback"])
@pytest.mark.sample(3)
def test_a_process_with_threads_that_use_the_runtime_ends_with_its_own_exit_code(kind: str) -> None:
    code, _, err, _ = ended(f"keep_doing(kinds[{kind!r}], 2)\nprint('now', flush=True)\nsys.exit(3)")

    assert (3, "") == (code, err)


def test_threads_of_all_kinds_at_once_change_nothing_about_a_process_s_end() -> None:
    code, _, err, seconds = ended("""
        for what in kinds.values():
            keep_doing(what)
        print("now", flush=True)
    """)

    assert (0, "") == (code, err)
    assert seconds < 30  # calls are awaited for 5 s at most


def test_an_uncaught_exception_is_still_what_a_process_ends_with() -> None:
    code, _, err, _ = ended("""
        keep_doing(kinds["eager"])
        print("now", flush=True)
        raise LookupError("mine")
    """)

    assert code == 1
    assert err.startswith("Traceback") and err.endswith("LookupError: mine\n")


def test_handlers_of_the_end_and_their_threads_run_compiled_functions_whenever_they_were_registered() -> None:
    code, out, err, _ = ended("""
        def early():
            keep.append(threading.Thread(target=lambda: print("thread", float(f(x)[0]), float(g(x)[0]))))
            keep[0].start()
            keep[0].join()
            time.sleep(0.1)  # so others may run
            print("callback", tick(np.ones(2)))

        g = cj.jit(lambda x: x - time.monotonic() * 0 - 4)
        atexit.register(lambda: print("late", float(f(x)[0]), float(cj.jit(lambda x: x - 3)(x)[0])))
        keep_doing(kinds["compiling"])
        keep_doing(kinds["a compiled function"])
        keep_doing(kinds["a callback"])
        print("now", flush=True)
        sys.exit(3)
    """, before="""
        import atexit
        keep = []
        atexit.register(lambda: early())  # before corejax is imported, so it comes last
    """)

    assert (3, "") == (code, err)
    assert ["now", "late 3.0 -2.0", "thread 3.0 -3.0", "callback [2. 2.]"] == out.splitlines()


def test_a_call_under_way_is_awaited_and_may_call_back() -> None:
    code, _, err, seconds = ended("""
        def slowly(x):
            time.sleep(1.5)
            return np.asarray(f(x))  # it calls the runtime itself

        slow = define(Called(slowly))
        g = cj.jit(lambda x: slow(x))

        def run():
            ended = np.asarray(g(np.ones(3)))
            print("ended", ended, flush=True)

        threading.Thread(target=run, daemon=True).start()
        time.sleep(0.5)
        print("now", flush=True)
        sys.exit(3)
    """)

    assert (3, "") == (code, err)
    assert 0.5 < seconds < 30


@pytest.mark.parametrize("what", [
    "lambda: cj.jit(lambda x: lax.fori_loop(0, 10**9, lambda i, x: lax.sin(x), x))(x).block_until_ready()",
    "lambda: calls_back(lambda x: x)(np.ones(3))",
    "lambda: calls_back(lambda x: time.sleep(100))(np.ones(3))",
    "lambda: calls_back(lambda x: [None for _ in iter(int, 1)])(np.ones(3))",
], ids=["computing", "calling back", "sleeping", "in Python"])
def test_a_call_that_goes_on_for_long_is_awaited_no_longer_than_that(what: str) -> None:
    code, _, err, seconds = ended(f"""
        ending.PATIENCE = 0.5
        keep_doing({what})
        print("now", flush=True)
        sys.exit(3)
    """)

    assert (3, "") == (code, err)
    assert 0.4 < seconds < 10


def test_a_process_without_other_threads_waits_for_nothing() -> None:
    code, _, err, _ = ended("""
        before = time.monotonic()
        atexit._run_exitfuncs()
        print("now", time.monotonic() - before < 0.01, ending._state.begun)
    """)

    assert (0, "") == (code, err)
