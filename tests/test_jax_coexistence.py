"""corejax and jax in one process: imported in either order, with results passed by DLPack, and neither disturbed."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("jax")

ORDERS = {"corejax first": "import corejax as cj\nimport jax", "jax first": "import jax\nimport corejax as cj"}


def python(imports: str, code: str, **settings: str) -> str:
    """The output of a fresh interpreter that imports the two in this order."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    shared = "import numpy as np\nimport jax.numpy as jnp\nfrom corejax import lax"
    program = f"{imports}\n{shared}\n{textwrap.dedent(code)}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={**env, **settings})
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


both_orders = pytest.mark.parametrize("imports", ORDERS.values(), ids=ORDERS.keys())
both_widths = pytest.mark.parametrize("x64", ["0", "1"], ids=["32 bits", "64 bits"])


@both_orders
@both_widths
def test_gradients_of_both_are_right(imports: str, x64: str) -> None:
    python(imports, """
        x = np.array([0.5, -1.0, 2.0], np.float32)
        slope = 2 * x * np.sin(x) + x * x * np.cos(x)
        for turn in range(2):  # the second time, everything is cached
            ours = cj.jit(cj.grad(lambda x: (lax.sin(x) * x * x).sum()))(x)
            theirs = jax.jit(jax.grad(lambda x: (jax.lax.sin(x) * x * x).sum()))(x)
            np.testing.assert_allclose(ours, slope, rtol=1e-5)
            np.testing.assert_allclose(theirs, slope, rtol=1e-5)
            assert type(ours) is cj.Array and isinstance(theirs, jax.Array)
        """, JAX_ENABLE_X64=x64)


@both_orders
def test_corejax_keeps_64_bits_whatever_jax_is_set_to(imports: str) -> None:
    assert "float64 float32" == python(imports, """
        theirs = jnp.sin(np.ones(3))
        ours = cj.jit(lax.sin)(np.ones(3))
        print(ours.dtype, jnp.sin(np.ones(3)).dtype)
        assert theirs.dtype == np.float32""")


@both_orders
def test_results_pass_by_dlpack_both_ways(imports: str) -> None:
    python(imports, """
        from corejax.arrays.array import from_dlpack
        host = np.array([0.5, -1.0, 2.0])
        for ours in (lax.sin(host), cj.jit(lax.sin)(host)):  # in host memory, and on the device
            theirs = jnp.from_dlpack(ours)
            assert isinstance(theirs, jax.Array) and theirs.dtype == np.float64
            np.testing.assert_array_equal(theirs, np.sin(host))
            back = jax.grad(lambda x: (x * x).sum())(theirs)
            np.testing.assert_allclose(np.from_dlpack(back), 2 * np.sin(host))
            returned = from_dlpack(theirs)
            assert type(returned) is cj.Array and returned.dtype == np.float64
            for transform in (cj.grad, lambda f: cj.jit(cj.grad(f))):
                np.testing.assert_allclose(transform(lambda x: (x * x).sum())(returned), 2 * np.sin(host))
        """, JAX_ENABLE_X64="1")


@both_orders
def test_arrays_of_one_convert_by_numpy_for_the_other(imports: str) -> None:
    python(imports, """
        theirs, ours = jnp.arange(3.0), cj.jit(lax.exp)(np.arange(3.0))
        np.testing.assert_allclose(lax.exp(np.asarray(theirs)), ours)
        np.testing.assert_allclose(jnp.log(np.asarray(ours)), theirs)
        """, JAX_ENABLE_X64="1")


@both_orders
def test_pytrees_registered_with_one_are_leaves_of_the_other(imports: str) -> None:
    assert "2 1" == python(imports, """
        class Point:
            x, y = 1.0, 2.0

        jax.tree_util.register_pytree_node(Point, lambda p: ((p.x, p.y), None), lambda _, xy: Point())
        print(len(jax.tree.leaves(Point())), len(cj.tree.leaves(Point())))""")


def test_computing_beside_jax_changes_neither_its_array_class_nor_its_settings() -> None:
    state = """
        print(sorted(vars(type(jnp.ones(1)))), jax.config.values, jnp.ones(1).dtype, len(jax.devices()))"""
    use = """
        cj.jit(cj.grad(lambda x: lax.sin(x).sum()))(cj.device_put(np.ones(3)))
        print(cj.lax.sin(1.0), cj.devices()[0].id)"""
    alone = python(ORDERS["jax first"], state)
    beside = python(ORDERS["corejax first"], use + state).splitlines()[-1]
    assert alone == beside


def test_corejax_computes_without_importing_jax() -> None:
    done = subprocess.run([sys.executable, "-c", textwrap.dedent("""
        import sys
        import numpy as np
        import corejax as cj
        f = cj.jit(cj.vmap(cj.grad(lambda x: cj.lax.sin(x) * x)))
        out = f(np.arange(3.0))
        print(np.asarray(out).sum(), out.devices(), np.from_dlpack(out), cj.tree.map(lambda x: x, (out, out)))
        assert "jax" not in sys.modules, "jax was imported"
        """)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_arrays_from_before_jax_is_imported_are_where_they_were() -> None:
    # Importing jax changes the hash of the runtime's shardings.
    code = """
        import corejax as cj, numpy as np
        x = cj.device_put(np.ones(2))
        import jax
        jax.jit(lambda x: x)(np.ones(3, np.float32))
        print(x.device, cj.jit(lambda x: x + x).lower(x).compile()(x))"""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True)
    assert "cpu:0 [2. 2.]" == done.stdout.strip(), done.stderr
