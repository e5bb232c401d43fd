"""Libraries that take arrays by the array API standard, SciPy and scikit-learn, on arrays of corejax.

They run in the environment for comparisons. What assigns to elements (SciPy's logsumexp, the StandardScaler of
scikit-learn) is refused, our arrays being immutable.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

pytest.importorskip("jax")
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


def test_scipys_functions_return_arrays_of_corejax():
    run("""
        from scipy import cluster, fft, signal, special, stats
        rows = np.random.default_rng(0).normal(size=(6, 3))
        functions = [
            lambda x: stats.gmean(abs(x), axis=0), lambda x: stats.hmean(abs(x), axis=0), stats.kurtosis, stats.skew,
            stats.sem, special.softmax, special.expit, special.gammaln, special.log_ndtr, fft.fft2, fft.dct,
            lambda x: signal.fftconvolve(x, x), signal.detrend, lambda x: cluster.vq.kmeans2(x, 2, seed=0)[0]]
        for i, function in enumerate(functions):
            found = function(jnp.asarray(rows))
            assert isinstance(found, cj.Array), (i, type(found))
            np.testing.assert_allclose(found, function(rows), rtol=1e-10, err_msg=str(i))
        """)


def test_scikit_learn_computes_with_arrays_of_corejax():
    run("""
        import sklearn
        from sklearn.decomposition import PCA
        from sklearn.metrics import mean_absolute_error, mean_squared_error, pairwise
        from sklearn.preprocessing import KernelCenterer
        rows = np.random.default_rng(0).normal(size=(30, 4))
        square, other = rows @ rows.T, rows[::-1] + 1.0
        examples = [
            lambda xp: mean_squared_error(xp.asarray(rows), xp.asarray(other), multioutput="raw_values"),
            lambda xp: mean_absolute_error(xp.asarray(rows), xp.asarray(other), multioutput="raw_values"),
            lambda xp: pairwise.rbf_kernel(xp.asarray(rows), xp.asarray(other)),
            lambda xp: pairwise.euclidean_distances(xp.asarray(rows), xp.asarray(other)),
            lambda xp: KernelCenterer().fit_transform(xp.asarray(square)),
            lambda xp: PCA(2, svd_solver="full").fit_transform(xp.asarray(rows))]
        for i, example in enumerate(examples):
            with sklearn.config_context(array_api_dispatch=True):
                found = example(jnp)
            assert isinstance(found, cj.Array), (i, type(found))
            np.testing.assert_allclose(found, example(np), rtol=1e-8, atol=1e-8, err_msg=str(i))
        """)
