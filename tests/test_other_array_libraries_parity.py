"""Libraries that take arrays by the array API standard: array-api-compat, SciPy and scikit-learn, on arrays of corejax.

They are installed beside jax, in the environment for comparisons. What assigns to elements (SciPy's logsumexp, the
StandardScaler of scikit-learn) is refused, our arrays being immutable.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import corejax as cj
from corejax import numpy as jnp

pytest.importorskip("jax")
compat = pytest.importorskip("array_api_compat")
pytest.importorskip("scipy")
pytest.importorskip("sklearn")


def run(code: str) -> None:
    """Run a program in an interpreter in which SciPy takes arrays of the standard, as it must know from its start."""
    program = textwrap.dedent("""
        import numpy as np
        import corejax as cj
        from corejax import numpy as jnp
        """) + textwrap.dedent(code)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          env={**os.environ, "SCIPY_ARRAY_API": "1"})
    assert done.returncode == 0, done.stderr[-3000:]


def test_array_api_compat_finds_the_namespace():
    for x in (jnp.zeros(3), cj.device_put(np.zeros(3)), jnp.sum(jnp.ones(2))):
        assert compat.is_array_api_obj(x)
        assert jnp is compat.array_namespace(x) is compat.array_namespace(x, 1.0, x, api_version="2024.12")
        assert x.device == compat.device(x) and x.size == compat.size(x)
        assert not compat.is_lazy_array(x)


def test_array_api_compat_finds_the_namespace_of_traced_values():
    def standardized(x):
        xp = compat.array_namespace(x)
        return (x - xp.mean(x, axis=0)) / xp.std(x, axis=0)

    x = np.random.default_rng(0).normal(size=(5, 2))
    np.testing.assert_allclose((x - x.mean(0)) / x.std(0), cj.jit(standardized)(x), rtol=1e-12)
    assert (5, 2, 5, 2) == cj.jacfwd(standardized)(x).shape


def test_scipys_functions_return_arrays_of_corejax():
    run("""
        from scipy import stats
        rows = np.random.default_rng(0).normal(size=(6, 3))
        for function in (lambda x: stats.gmean(abs(x), axis=0), lambda x: stats.hmean(abs(x), axis=0)):
            found = function(jnp.asarray(rows))
            assert isinstance(found, cj.Array), type(found)
            np.testing.assert_allclose(found, function(rows), rtol=1e-10)
        """)


def test_scikit_learn_computes_with_arrays_of_corejax():
    run("""
        import sklearn
        from sklearn.metrics import mean_absolute_error, mean_squared_error
        rows = np.random.default_rng(0).normal(size=(30, 4))
        there, other = jnp.asarray(rows), jnp.asarray(rows[::-1].copy())
        for metric in (mean_squared_error, mean_absolute_error):
            with sklearn.config_context(array_api_dispatch=True):
                each = metric(there, other, multioutput="raw_values")
            assert isinstance(each, cj.Array), type(each)
            np.testing.assert_allclose(each, metric(rows, rows[::-1], multioutput="raw_values"), rtol=1e-10)
        """)
