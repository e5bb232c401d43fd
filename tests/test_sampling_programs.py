"""Real programs with random numbers: each reaches a stated figure, and runs on jax by other imports alone."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import corejax as cj
from exhaustive import exhaustive_unless
from ported import EXAMPLES, changed_lines, program_for

PROGRAMS = EXAMPLES / "sampling"


def hamiltonian(program: ModuleType) -> Any:
    """Means and widths of a normal density are right to 0.15 of a width, with trajectories that end by themselves."""
    widths = np.array([1.0, 3.0, 0.5])
    centre = np.array([0.0, 2.0, -1.0])

    def potential(place: Any) -> Any:
        return 0.5 * program.jnp.sum(((place - centre) / widths) ** 2)

    places, step, lengths = program.chain(program.random.key(0), potential, program.jnp.zeros(3), 300, 2000)
    np.testing.assert_allclose((np.mean(places, axis=0) - centre) / widths, 0.0, atol=0.15)
    np.testing.assert_allclose(np.std(places, axis=0) / widths, 1.0, atol=0.15)
    assert np.abs(np.corrcoef(np.asarray(places).T) - np.eye(3)).max() < 0.15
    assert 0.1 < float(step) < 1.0
    assert 3.0 < float(np.mean(lengths)) < 60.0
    return program.chain(program.random.key(1), potential, program.jnp.zeros(3), 3, 5)


def autoencoder(program: ModuleType) -> Any:
    """The bound for new pictures falls from 38 nats below 20; the decoder's slope is that of differences."""
    losses, unseen, _ = program.experiment(400, 32)
    assert float(unseen) < 20.0 < 35.0 < float(losses[0])
    random = program.random
    params, key = program.model(random.key(0), 4, 8, 2), random.key(1)
    pictures = np.array([[0.0, 1.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    slopes = program.cj.grad(program.loss)(params, key, pictures)
    for part in ("encoder", "decoder"):
        (weights, biases), *rest = params[part]
        ends = [float(program.loss({**params, part: [(weights, biases + step), *rest]}, key, pictures))
                for step in (1e-6, -1e-6)]
        np.testing.assert_allclose(np.sum(slopes[part][0][1]), (ends[0] - ends[1]) / 2e-6, rtol=1e-6)
    return losses[:10], slopes


def reinforce(program: ModuleType) -> Any:
    """The mean return comes within 1 of the best policy's, from 50 below it."""
    returns, most = program.experiment(250, 32)
    assert float(np.mean(returns[-20:])) > most - 1.0
    assert float(np.mean(returns[:3])) < most - 30.0
    assert 0.0 < most < 2.0
    return returns[:10]


def particle_filter(program: ModuleType) -> Any:
    """The mean is the Kalman filter's to 0.15 at every turn, the log-likelihood to 1; volatility is found."""
    error, apart, gain = program.experiment(200, 2000)
    assert float(error) < 0.15
    assert abs(float(apart)) < 1.0
    assert float(gain) > 0.02
    return error, apart, gain


def dropout(program: ModuleType) -> Any:
    """At least 95% of new points are told apart; computed twice, layers drop the same, so slopes are the same."""
    losses, share = program.experiment(600, 16, 3)
    assert float(share) > 0.95
    random = program.random
    params, keys = program.model(random.key(0), 16, 3), random.split(random.key(1), 3)
    given = params, keys, *program.spirals(random.key(2), 50)
    slopes, plain = (program.cj.grad(program.loss)(*given, again) for again in (True, False))
    for x, y in zip(cj.tree.leaves(slopes), cj.tree.leaves(plain), strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-12)
    other = program.cj.grad(program.loss)(params, random.split(random.key(5), 3), *given[2:], True)
    assert np.abs(np.asarray(other["middle"]) - np.asarray(slopes["middle"])).max() > 1e-3
    return losses[:10], slopes


#: For each program, what looks whether it reaches its figure, and returns numbers to compare.
FIGURES: dict[str, Callable[[ModuleType], Any]] = {
    each.__name__: each for each in (hamiltonian, autoencoder, reinforce, particle_filter, dropout)}


def test_every_program_has_a_figure_to_reach() -> None:
    assert sorted(path.stem for path in PROGRAMS.glob("*.py")) == sorted(FIGURES)


@pytest.mark.parametrize("name", exhaustive_unless(("reinforce", "particle_filter").__contains__, FIGURES))
def test_program_reaches_its_figure(name: str) -> None:
    FIGURES[name](program_for("corejax", f"sampling/{name}"))


#: Arguments of the experiments that take little.
LITTLE: dict[str, tuple[int, ...]] = {"hamiltonian": (5, 5), "autoencoder": (3, 4), "reinforce": (2, 3),
                                      "particle_filter": (5, 6), "dropout": (3, 4, 2)}


@pytest.mark.parametrize("name", exhaustive_unless("reinforce".__eq__, LITTLE))
def test_program_uses_no_key_twice(name: str) -> None:
    with cj.config(debug_key_reuse=True):
        program_for("corejax", f"sampling/{name}").experiment(*LITTLE[name])


@pytest.mark.parametrize("name", exhaustive_unless("reinforce".__eq__, FIGURES))
def test_parity_with_jax_which_only_needs_other_imports(name: str) -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    changed = changed_lines(f"sampling/{name}")
    assert changed and all(line.startswith(("import corejax", "from corejax import")) for line in changed)
    found, wanted = (FIGURES[name](program_for(library, f"sampling/{name}")) for library in ("corejax", "jax"))
    for x, y in zip(cj.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-7, atol=1e-9)
        assert np.asarray(x).dtype == np.asarray(y).dtype
