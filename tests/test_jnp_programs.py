"""Real programs in the style of jax.numpy: each reaches a stated figure, and runs on jax by other imports alone."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import corejax as cj
from ported import EXAMPLES, changed_lines, program_for

PROGRAMS = EXAMPLES / "jnp"


def digits(program: ModuleType) -> Any:
    """At least 95% of digits that it hasn't seen are read right."""
    data = pytest.importorskip("sklearn.datasets").load_digits()
    losses, share = program.experiment(data.data, data.target, epochs=10)
    assert 0.95 < float(share) <= 1.0
    assert float(losses[-1]) < 0.2 < 2.0 < float(losses[0])
    return losses[:5]


def neural_ode(program: ModuleType) -> Any:
    """The solver is right to 1e-8, its adjoint to 1e-7, and a network learns a spiral to a mean square of 0.03."""
    cj, odeint = program.cj, program.odeint
    times = np.linspace(0.0, 3.0, 7)
    turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
    turned = odeint(lambda y, t, speed: speed * turn @ y, np.array([1.0, 0.0]), times, 2.0, 1e-10)
    np.testing.assert_allclose(turned, np.stack([np.cos(2 * times), -np.sin(2 * times)], 1), atol=1e-8)

    def end(y: Any, rate: Any, until: Any) -> Any:
        return program.flow(lambda y, t, rate: -rate * t * y, 1e-10, y, 0.5, until, rate)

    y, rate, until = 1.5, 0.7, 2.0
    value, slopes = cj.value_and_grad(end, (0, 1, 2))(y, rate, until)
    decayed = np.exp(-rate * (until ** 2 - 0.25) / 2)
    np.testing.assert_allclose(value, y * decayed, rtol=1e-8)
    wanted = decayed, -y * decayed * (until ** 2 - 0.25) / 2, -y * decayed * rate * until
    np.testing.assert_allclose(slopes, wanted, rtol=1e-7)
    _, losses = program.experiment(steps=80, starts=4, width=16)
    assert float(losses[-1]) < 0.03 < 1.0 < float(losses[0])
    return turned, slopes, losses[:5]


def kalman_filter(program: ModuleType) -> Any:
    """In logarithmic time as step by step, to 1e-10; and as the joint distribution of everything says."""
    model = program.moving(0.1, 0.5, 0.2)
    _, ys = program.drawn(np.random.default_rng(0), model, 8)
    means, covariances, value = program.tracked(model, ys)
    by_steps = program.by_steps(model, ys)
    smoothed = program.smoothed_by_steps(model, *by_steps[:2])
    for found, wanted in zip((means, covariances, value), (*smoothed, by_steps[2]), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-10)
    np.testing.assert_allclose(program.cj.jit(program.filtered)(model, ys)[0], by_steps[0], atol=1e-10)
    F, Q, H, R, m, P = map(np.asarray, model)
    joint, count = np.zeros((32, 32)), 8
    spread = P
    for i in range(count):
        block = spread
        for j in range(i, count):
            joint[4 * i:4 * i + 4, 4 * j:4 * j + 4], joint[4 * j:4 * j + 4, 4 * i:4 * i + 4] = block, block.T
            block = block @ F.T
        spread = F @ spread @ F.T + Q
    seen = np.kron(np.eye(count), H)
    total = seen @ joint @ seen.T + np.kron(np.eye(count), R)
    y = ys.ravel()
    np.testing.assert_allclose(np.ravel(means), joint @ seen.T @ np.linalg.solve(total, y), atol=1e-10)
    exact = -0.5 * (y @ np.linalg.solve(total, y) + np.linalg.slogdet(2 * np.pi * total)[1])
    np.testing.assert_allclose(value, exact, rtol=1e-10)
    slope = program.cj.grad(lambda noise: program.by_steps(program.moving(0.1, 0.5, noise), ys)[2])(0.2)
    return means, covariances, value, slope


def korteweg_de_vries(program: ModuleType) -> Any:
    """Two solitons pass through each other: the largest error is 1e-5 of a height of 8, and nothing is lost."""
    error, lost = program.experiment(512, 3000)
    assert float(error) < 1e-5
    assert float(lost) < 1e-6
    return program.travelled(program.solitons(program.places(128), -0.2), 0.05, 50)


def k_means(program: ModuleType) -> Any:
    """Centres and labels are those of Lloyd's iteration in NumPy; nearer to the points than where they came from."""
    points, _, truth = program.blobs(np.random.default_rng(1), 1000, 10, 2)
    centres, labels, rounds = program.clustered(points, 10)
    mine = np.array(program.far_apart(program.jnp.asarray(points), 10))
    for _ in range(int(rounds)):
        nearest = ((points[:, None] - mine) ** 2).sum(-1).argmin(1)
        mine = np.stack([points[nearest == i].mean(0) for i in range(10)])
    np.testing.assert_allclose(centres, mine, rtol=1e-10)
    np.testing.assert_array_equal(labels, ((points[:, None] - mine) ** 2).sum(-1).argmin(1))
    assert 2 < int(rounds) < 100
    assert float(program.spread(points, centres)) < float(program.spread(points, truth))
    return centres, labels, rounds


def linear_models(program: ModuleType) -> Any:
    """Components hold 99.9% of the variance, as NumPy's do; ridge regression is NumPy's."""
    x, y, _ = program.observed(np.random.default_rng(0), 200, 20, 5)
    found, shares, along = program.principal_components(x, 5)
    values, vectors = np.linalg.eigh(np.cov(x, rowvar=False))
    np.testing.assert_allclose(shares, values[:-6:-1] / values.sum(), rtol=1e-10)
    np.testing.assert_allclose(np.abs(np.asarray(found) @ vectors[:, :-6:-1]), np.eye(5), atol=1e-8)
    assert float(shares.sum()) > 0.999
    np.testing.assert_allclose(along, (x - x.mean(0)) @ np.asarray(found).T, atol=1e-10)
    np.testing.assert_allclose(program.by_covariance(x, 5)[0], found, atol=1e-8)
    penalties = np.logspace(-3.0, 3.0, 7)
    penalty, weights, errors = program.best(x, y, penalties)
    assert penalties[np.argmin(errors)] == float(penalty) and float(errors.min()) < 1.3
    wide = np.vstack([np.hstack([x, np.ones((200, 1))]), np.sqrt(float(penalty)) * np.eye(20, 21)])
    np.testing.assert_allclose(weights, np.linalg.lstsq(wide, np.append(y, np.zeros(20)))[0], atol=1e-9)
    return found, shares, along, weights, errors


def gaussian_process(program: ModuleType) -> Any:
    """The likelihood is NumPy's to 1e-10, its slope that of differences; a fit gains 90 and errs by 0.06 at most."""
    x, values = program.observed(np.random.default_rng(2), 30, 0.1)
    scales = {"length": np.array([0.1, 0.6]), "value": np.array(0.2), "noise": np.array(-1.5)}
    apart = (x[:, None] - x) / np.exp(scales["length"])
    total = np.exp(0.4 - 0.5 * (apart ** 2).sum(-1)) + np.exp(-3.0) * np.eye(30)
    exact = -0.5 * (values @ np.linalg.solve(total, values) + np.linalg.slogdet(2 * np.pi * total)[1])
    value, slopes = program.cj.value_and_grad(program.log_likelihood)(scales, x, values)
    np.testing.assert_allclose(value, exact, rtol=1e-10)
    for name, slope in slopes.items():
        ends = [float(program.log_likelihood({**scales, name: scales[name] + step}, x, values))
                for step in (1e-5, -1e-5)]
        np.testing.assert_allclose(np.sum(slope), (ends[0] - ends[1]) / 2e-5, rtol=1e-6)
    _, likelihoods, error = program.experiment(steps=100)
    assert float(likelihoods[-1] - likelihoods[0]) > 90.0 and float(error) < 0.06
    return value, slopes, likelihoods[:20]


def transformer(program: ModuleType) -> Any:
    """It learns to look back: the loss falls from 7 below 1; nothing that comes later is seen."""
    rng = np.random.default_rng(0)
    params = program.model(rng, 8, 12, 16, 2, 2)
    params, losses = program.trained(params, program.drawn(rng, 100, 16, 13, 8, 3), 0.01)
    assert float(losses[-1]) < 1.0 < 5.0 < float(losses[0])
    x = rng.normal(size=(1, 6, 16))
    changed = np.concatenate([x[:, :4], x[:, 4:] + 1.0], axis=1)
    before, after = (np.asarray(program.applied(params["blocks"][0], each)) for each in (x, changed))
    np.testing.assert_array_equal(before[:, :4], after[:, :4])
    assert np.abs(before[:, 4:] - after[:, 4:]).min() > 0.0
    return losses[:5]


def sinkhorn(program: ModuleType) -> Any:
    """The cost along a line is the exact one to 1%, and the plan takes what there is and brings what is wanted."""
    found, least = program.experiment(50)
    assert least < float(found) < 1.01 * least
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(10, 2)), rng.normal(size=(7, 2))
    cost, plan = program.transported(x, y, 0.1)
    np.testing.assert_allclose(plan.sum(0), np.full(7, 1 / 7), atol=1e-8)
    np.testing.assert_allclose(plan.sum(1), np.full(10, 1 / 10), atol=1e-8)
    return found, cost, plan


#: For each program, what looks whether it reaches its figure, and returns numbers to compare.
FIGURES: dict[str, Callable[[ModuleType], Any]] = {
    each.__name__: each for each in (digits, neural_ode, kalman_filter, korteweg_de_vries, k_means, linear_models,
                                     gaussian_process, transformer, sinkhorn)}


def test_every_program_has_a_figure_to_reach() -> None:
    assert sorted(path.stem for path in PROGRAMS.glob("*.py")) == sorted(FIGURES)


@pytest.mark.parametrize("name", FIGURES)
def test_program_reaches_its_figure(name: str) -> None:
    FIGURES[name](program_for("corejax", f"jnp/{name}"))


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", FIGURES)
def test_parity_with_jax_which_only_needs_other_imports(name: str) -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    changed = changed_lines(f"jnp/{name}")
    assert changed and all(line.startswith(("import corejax", "from corejax import")) for line in changed)
    found, wanted = (FIGURES[name](program_for(library, f"jnp/{name}")) for library in ("corejax", "jax"))
    # The adaptive solver of the neural ODE has a tolerance of 1e-7, and training on its results makes more of that.
    rtol = 1e-5 if name == "neural_ode" else 1e-7
    for x, y in zip(cj.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=rtol, atol=1e-9)
        assert np.asarray(x).dtype == np.asarray(y).dtype
