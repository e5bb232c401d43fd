"""What is added takes effect by being installed, what changes an answer by being preferred."""

import numpy as np
import pytest
from scipy import special

import corejax as cj
from corejax import lax

X = np.float32(0.5)


@pytest.fixture(autouse=True)
def no_fallbacks():
    with cj.config(fallbacks="error"):
        yield


def test_what_is_missing_is_there():
    rising, x = np.sort(np.random.default_rng(0).normal(size=(4, 9))), np.linspace(-1.0, 1.0, 12).reshape(2, 3, 2)
    found = cj.jit(cj.vmap(lax.searchsorted, in_axes=(None, 2)))(rising[0], x)
    np.testing.assert_array_equal(found, np.searchsorted(rising[0], np.moveaxis(x, 2, 0)))
    found = cj.vmap(lax.searchsorted)(rising, x.reshape(4, 3))
    np.testing.assert_array_equal(found, [np.searchsorted(*row) for row in zip(rising, x.reshape(4, 3), strict=True)])


def test_what_was_refused_is_allowed():
    assert cj.grad(lambda x: x * lax.searchsorted(np.arange(3.0), x).astype(float))(1.5) == 2.0


@pytest.mark.filterwarnings("ignore:outside-rules 1.0.0 has a rule:UserWarning")
def test_what_changes_answers_waits_for_the_user():
    precise, quick = np.float32(special.erf(0.5)), np.float32(0.5205001)
    assert lax.erf(X) == cj.jit(lax.erf)(X) == precise
    with cj.plugins.prefer("outside-rules"):
        assert cj.jit(lax.erf)(X) == quick
        assert cj.jit(lax.erf)(0.5) == lax.erf(0.5)  # of doubles: the owner's, and SciPy's
        assert cj.grad(lax.sqrt)(0.0) == cj.jit(cj.vmap(cj.grad(lax.sqrt)))(np.zeros(1))[0] == 0.0
        with pytest.warns(RuntimeWarning, match="a logarithm is not finite"):
            lax.log(0.0)
    with cj.plugins.prefer("outside-rules/erf:xla_translation@cpu"):
        assert cj.jit(lax.erf)(X) == quick
        assert cj.grad(lax.sqrt)(0.0) == np.inf
    assert cj.jit(lax.erf)(X) == precise
    assert cj.grad(lax.sqrt)(4.0) == 0.25


@pytest.mark.filterwarnings("ignore:outside-rules 1.0.0 has a rule:UserWarning")
def test_explain_says_who_provides_what_and_what_waits(capsys):
    lax.erf(0.5)
    cj.plugins.explain("erf")
    assert "not taken, as nobody chose it: outside-rules 1.0.0" in capsys.readouterr().out
    explained = cj.plugins.explain("searchsorted")
    assert "outside-rules 1.0.0" in explained.hooks["vmap"].provider
