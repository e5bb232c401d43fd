"""In a forked child the runtime is refused by name; what NumPy computes goes on; a child may start its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")

START = """
    import copy, json, os, pickle, signal, threading
    import numpy as np
    import corejax as cj
    from corejax import lax

    def in_child(function, seconds=30):
        'What a forked child makes of a function: its result as text, or the kind of error with its message.'
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            signal.alarm(seconds)  # whoever waits for ever is killed
            try:
                said = ["ok", repr(function())]
            except BaseException as error:
                said = [type(error).__name__, str(error)]
            os.write(write, json.dumps(said).encode())
            os._exit(0)
        os.close(write)
        with open(read, "rb") as pipe:
            text = pipe.read()
        status = os.waitpid(child, 0)[1]
        return json.loads(text) if status == 0 else ["died", str(status)]

    x = np.linspace(0.1, 1.0, 4)
"""

#: What needs the runtime that the parent has started.
REFUSED = {
    "call": "jitted(x)", "call with a device array": "jitted(on_device)",
    "call of a tree": "of_tree({'x': x, 'y': 2.0})", "call with another shape": "jitted(x[:2])",
    "compile": "cj.jit(lambda x: x * 7.0)(x)", "compile what was lowered": "lowered.compile()",
    "call what was compiled ahead": "ahead(x)", "call what came from the cache of programs": "from_directory(x)",
    "compile through that cache": "through_directory()",
    "grad of a compiled function": "cj.grad(lambda x: jitted(x).sum())(x)", "vmap of one": "cj.vmap(jitted)(x)",
    "put": "cj.device_put(x)", "get": "cj.device_get(result)", "read": "np.asarray(result)",
    "item": "result[0].item()", "float": "float(scalar)", "bool": "bool(scalar > 0)", "tolist": "result.tolist()",
    "iterate": "list(result)", "index": "result[1:]", "primitive": "lax.sin(on_device)", "operator": "on_device + 1.0",
    "method": "on_device.sum()", "wait": "result.block_until_ready()",
    "wait for all": "cj.block_until_ready([result])", "devices": "cj.devices()", "copy": "result.copy()",
    "pickle": "pickle.dumps(result)", "dlpack": "np.from_dlpack(result)",
    "a loop on values": "lax.fori_loop(0, 3, lambda i, x: x * 2.0, 1.0)",
}

SETTING = """
    import sys, tempfile
    jitted = cj.jit(lambda x: lax.sin(x) * 2.0)
    of_tree = cj.jit(lambda tree: {"a": tree["x"] + 1.0, "b": tree["y"]})
    lowered = cj.jit(lambda x: lax.exp(x)).lower(x)
    ahead = cj.jit(lambda x: lax.cos(x)).lower(x).compile()
    result, on_device, scalar = jitted(x), cj.device_put(x), jitted(x).sum()
    jitted(on_device), of_tree({"x": x, "y": 2.0}), ahead(x), lax.sin(on_device), on_device + 1.0

    directory = tempfile.mkdtemp()

    def through_directory():
        cj.clear_caches()
        with cj.config(compilation_cache_dir=directory):
            function = cj.jit(lambda x: lax.tanh(x))
            function(x)
        return function

    through_directory()
    from_directory = through_directory()

    said = {}
    for name, code in json.loads(sys.stdin.read()).items():
        said[name] = in_child(lambda: eval(code))
    np.testing.assert_allclose(jitted(on_device), 2.0 * np.sin(x))  # the parent goes on
    print(json.dumps(said))
"""


def run(*parts, stdin=""):
    code = "".join(map(textwrap.dedent, parts))
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], input=stdin, capture_output=True, text=True,
                          timeout=200)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.strip().splitlines()[-1])


def test_whatever_needs_the_parents_runtime_is_refused_by_name():
    said = run(START, SETTING, stdin=json.dumps(REFUSED))
    assert dict.fromkeys(REFUSED, "CorejaxRuntimeError") == {name: kind for name, (kind, _) in said.items()}
    for _, message in said.values():
        assert message.startswith("the runtime was started before this process was forked")
        assert "'spawn' or 'forkserver'" in message


#: What needs no runtime, and what describes an array of the parent.
ALLOWED = {
    "primitive": ("lax.sin(x).tolist()", "np.sin(x).tolist()"),
    "operators": ("(lax.sin(x) * 2.0 + x).tolist()", "(np.sin(x) * 2.0 + x).tolist()"),
    "grad": ("cj.grad(lambda x: (x * x).sum())(x).tolist()", "(2.0 * x).tolist()"),
    "second derivative": ("cj.grad(cj.grad(lambda x: x * x * x))(2.0).item()", "12.0"),
    "vmap": ("cj.vmap(lambda x: x * x)(x).tolist()", "(x * x).tolist()"),
    "jvp": ("cj.jvp(lambda x: x * x, (2.0,), (1.0,))[1].item()", "4.0"),
    "trace": ("str(cj.make_jaxpr(lambda x: x * 2.0)(1.0).out_avals[0])", "'~f64[]'"),
    "types of the parent's array": ("(result.shape, str(result.dtype), result.nbytes)", "((4,), 'float64', 32)"),
    "random access on the host": ("lax.sin(x)[1:3].tolist()", "np.sin(x)[1:3].tolist()"),
    "clear_caches": ("cj.clear_caches()", "None"),
}


def test_what_numpy_computes_goes_on():
    program = {name: f"[{code}, {code} == {wanted}]" for name, (code, wanted) in ALLOWED.items()}
    said = run(START, SETTING, stdin=json.dumps(program))
    assert {} == {name: what for name, what in said.items() if what[0] != "ok" or not what[1].endswith("True]")}


def test_a_child_forked_before_first_use_starts_a_runtime_of_its_own():
    both = """
        def use():
            return cj.jit(lambda x: lax.sin(x) * 2.0)(x).tolist()

        children = [in_child(use), in_child(lambda: in_child(use))]
        print(json.dumps([children, use(), in_child(use)]))
    """
    (first, nested), mine, late = run(START, both)
    assert ["ok", repr(mine)] == first
    assert ["ok", repr(first)] == nested
    assert "CorejaxRuntimeError" == late[0]


def test_a_grandchild_is_refused_too():
    grandchild = """
        jitted = cj.jit(lambda x: x * 2.0)
        jitted(x)
        print(json.dumps(in_child(lambda: in_child(lambda: jitted(x)))))
    """
    _, said = run(START, grandchild)
    assert "the runtime was started before this process was forked" in said


def test_children_forked_while_threads_trace_and_compile_compute_with_numpy():
    busy = """
        over, broken = threading.Event(), []

        def work(k):
            n = 0
            try:
                while not over.is_set():
                    n += 1
                    y = cj.grad(lambda x: (lax.sin(x) * (k + n)).sum())(x)
                    if n % 5 == 0:
                        cj.jit(lambda x: lax.cos(x) + float(k * 1000 + n))(x).block_until_ready()
            except BaseException as error:
                broken.append(repr(error))

        # A first use imports modules; Python itself holds locks then, which a child never gets.
        compute = lambda: cj.grad(lambda x: (x * x).sum())(x).tolist()
        compute(), cj.jit(lambda x: lax.cos(x) + 1.0)(cj.grad(lambda x: lax.sin(x).sum())(x))
        threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
        for thread in threads:
            thread.start()
        said = [in_child(compute) for _ in range(30)]
        over.set()
        for thread in threads:
            thread.join()
        print(json.dumps([said, broken, repr(compute())]))
    """
    said, broken, wanted = run(START, busy)
    assert [] == broken
    assert [["ok", wanted]] * 30 == said
