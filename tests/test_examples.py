"""The example programs run, and what they compute is right."""

from __future__ import annotations

import doctest
import importlib.util
import math
import re
import subprocess
import sys
from functools import partial
from types import ModuleType
from typing import Any

import mpmath
import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxError
from imports import ROOT

EXAMPLES = ROOT / "examples"


def load(name: str) -> ModuleType:
    """An example as a module, without running its main program."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def printed(program: str) -> str:
    """What a program prints, which runs without a warning."""
    done = subprocess.run([sys.executable, "-W", "error", str(EXAMPLES / program)], capture_output=True, text=True,
                          timeout=120)
    assert (0, "") == (done.returncode, done.stderr)
    return done.stdout


#: What these print is looked at below.
LOOKED_AT = ("quickstart.py", "mlp_training.py", "convnet.py")


@pytest.mark.parametrize("program", sorted({path.name for path in EXAMPLES.glob("*.py")}.difference(LOOKED_AT)))
def test_program_runs_without_a_warning(program: str) -> None:
    assert printed(program)


def test_quickstart_trains_its_network() -> None:
    losses = [float(text) for text in re.findall(r"loss ([0-9.]+)", printed("quickstart.py"))]
    assert 5 == len(losses)
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] < losses[0] / 100


def test_quickstart_defines_a_primitive_that_transforms() -> None:
    cube_root = load("quickstart").cube_root
    x = np.array([1.0, 8.0, -27.0])
    np.testing.assert_allclose(cube_root(x), np.cbrt(x))
    np.testing.assert_allclose(cj.jit(cj.vmap(cj.grad(cube_root)))(x), 1 / (3 * np.cbrt(x) ** 2))
    np.testing.assert_allclose(cj.vmap(cj.grad(cj.jit(cj.grad(cube_root))))(x), -2 / (9 * np.cbrt(x) ** 5))


@pytest.fixture(scope="module")
def sparse() -> ModuleType:
    return load("sparse_jacobian")


_W = np.random.default_rng(5).standard_normal((6, 6))

SPARSE = {
    "three bands": lambda x: x[1:-1] * x[2:] + lax.sin(x[:-2]),
    "an outer product": lambda x: (x[:3, None] * x[None, 3:]).reshape(-1),
    "a permutation": lambda x: lax.rev(x, (0,))[np.array([3, 1, 1, 0])] ** 3,
    "a product with a matrix": lambda x: lax.dot(_W, x) * x,
    "a sum": lambda x: (lax.reduce_sum(x * x, axes=(0,)) * lax.exp(x[0]))[None],
    "a called program": lambda x: cj.jit(lambda y: lax.tanh(y[::2]) * y[1::2])(x),
    "a saved program": lambda x: cj.checkpoint(lambda y: lax.tanh(y[::2]) * y[1::2])(x),
    "a choice": lambda x: lax.select(x > 0.0, x * 2.0, lax.rev(x, (0,))),
    "a place that depends on it": lambda x: lax.dynamic_slice(
        x * x, [lax.convert_element_type(lax.round(lax.abs(x[0])), np.int32)], [2]),
    "a branch": lambda x: lax.cond(x[0] > 0.0, lambda y: y * y, lambda y: y, x),
    "a loop": lambda x: lax.scan(lambda c, y: (c + y, c * y), x[0], x)[1],
    "pieces": lambda x: lax.concatenate([x[:2] * x[2:4], np.ones(2), x[:1]], 0),
    "padding": lambda x: lax.pad(x, 0.0, [(1, 1, 0)])[2:] * x[0],
    "a function with a rule of its own": lambda x: _doubled(x) * x,
    "a rule that depends on more than its function": lambda x: _rolled(x) * 2.0,
    "a constant": lambda x: np.ones(3) * lax.floor(x[:3]),
    "a solved system": lambda x: lax.custom_linear_solve(lambda y: y * 2.0, x, lambda _, b: b / 2.0),
    "what depends on nothing": lambda x: lax.floor(x) * x + np.ones(6),
    "one column": lambda x: x.reshape(3, 2).T[0],
}


@cj.custom_jvp
def _rolled(x: Any) -> Any:
    return x * 2.0


_rolled.defjvp(lambda primals, tangents: (
    _rolled(*primals), 2.0 * tangents[0] + lax.concatenate([tangents[0][1:], tangents[0][:1]], 0)))


@cj.custom_jvp
def _doubled(x: Any) -> Any:
    return x * 2.0


_doubled.defjvp(lambda primals, tangents: (_doubled(*primals), 2.0 * tangents[0]))


@pytest.mark.parametrize("name", SPARSE)
def test_sparse_jacobians_have_all_that_is_not_zero(sparse: ModuleType, name: str) -> None:
    x = np.random.default_rng(3).uniform(0.5, 2.0, 6)
    rows, values = sparse.sparse_jacobian(SPARSE[name], x)
    dense = np.asarray(cj.jacfwd(SPARSE[name])(x))
    found = np.zeros_like(dense)
    for i, row in enumerate(rows):
        for k, j in enumerate(row):
            if j >= 0:
                found[i, j] += values[i, k]
    np.testing.assert_allclose(found, dense, rtol=1e-14)


@pytest.mark.parametrize("name, widest", [("three bands", 3), ("an outer product", 2), ("a permutation", 1),
                                          ("a called program", 2), ("a saved program", 2), ("one column", 1)])
def test_sparse_patterns_have_little_that_is_zero(sparse: ModuleType, name: str, widest: int) -> None:
    assert widest == sparse.pattern(SPARSE[name], np.ones(6)).shape[1]


def test_sparsity_refuses_to_decide_by_a_value(sparse: ModuleType) -> None:
    with pytest.raises(CorejaxError, match="needs the value of an array"):
        sparse.pattern(lambda x: x if x[0] > 0.0 else -x, np.ones(3))


@pytest.fixture(scope="module")
def mlp() -> ModuleType:
    return load("mlp_training")


def test_perceptron_computes_what_numpy_does(mlp: ModuleType) -> None:
    params, x = mlp.layers(np.random.default_rng(1), 2, 5, 3), np.random.default_rng(2).normal(size=(4, 2))
    hidden = np.tanh(x @ params[0]["w"] + params[0]["b"])
    scores = hidden @ params[1]["w"] + params[1]["b"]
    np.testing.assert_allclose(mlp.logits(params, x), scores, rtol=1e-13)
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    labels = np.eye(3)[[0, 2, 1, 2]]
    np.testing.assert_allclose(mlp.loss(params, x, labels), -np.log((shares * labels).sum(axis=1)).mean(), rtol=1e-13)


def test_perceptron_steps_against_the_slopes_that_differences_find(mlp: ModuleType) -> None:
    rng = np.random.default_rng(3)
    params, (x, labels) = mlp.layers(rng, 2, 4, 2), mlp.spirals(rng, 16)
    still = cj.tree.map(np.zeros_like, params)
    _, velocity, value = cj.jit(mlp.training_step)(params, still, x, labels)
    np.testing.assert_allclose(value, mlp.loss(params, x, labels), rtol=1e-13)
    for layer, name in ((0, "w"), (0, "b"), (1, "w"), (1, "b")):
        way = rng.normal(size=params[layer][name].shape)
        ends = []
        for sign in (1, -1):
            moved = [dict(each) for each in params]
            moved[layer][name] = params[layer][name] + sign * 1e-5 * way
            ends.append(float(mlp.loss(moved, x, labels)))
        np.testing.assert_allclose((np.asarray(velocity[layer][name]) * way).sum(), -0.2 * (ends[0] - ends[1]) / 2e-5,
                                   rtol=1e-6)


def test_perceptron_tells_the_spirals_apart() -> None:
    lines = printed("mlp_training.py").splitlines()
    shares = [int(re.findall(r"(\d+)%", line)[0]) for line in lines]
    assert 6 == len(shares)
    assert shares[0] < 70
    assert shares[-1] > 98


@pytest.fixture(scope="module")
def convnet() -> ModuleType:
    return load("convnet")


def test_network_sees_images_through_windows(convnet: ModuleType) -> None:
    rng = np.random.default_rng(1)
    params = convnet.network(rng)
    images, _ = convnet.drawn(rng, 2)
    x = images
    for window in (params["first"], params["second"]):
        wide = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
        height, width = x.shape[1:3]
        seen = sum(wide[:, i:i + height, j:j + width] @ window[i, j] for i in range(3) for j in range(3))
        x = np.maximum(seen, 0)
        x = np.maximum.reduce([x[:, i::2, j::2] for i in range(2) for j in range(2)])
    np.testing.assert_allclose(convnet.logits(params, images), x.reshape(2, -1) @ params["weights"], rtol=1e-4,
                               atol=1e-4)


def test_network_tells_shapes_apart() -> None:
    shares = [float(text) for text in re.findall(r"([0-9.]+)%", printed("convnet.py"))]
    assert 6 == len(shares)
    assert shares[0] < 50
    assert shares[-1] > 95


@pytest.fixture(scope="module")
def logistic() -> ModuleType:
    return load("logistic_hessian")


@pytest.fixture(scope="module")
def fitted(logistic: ModuleType) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(4)
    x, y = logistic.observations(rng, 200, np.array([1.0, -0.5, 0.25]))
    return rng.normal(size=3), x, y


def test_logistic_curvature_is_symmetric_and_the_one_of_the_formula(logistic: ModuleType, fitted: Any) -> None:
    w, x, y = fitted
    slope, curvature = map(np.asarray, cj.jit(logistic.slope_and_curvature)(w, x, y))
    np.testing.assert_allclose(curvature, curvature.T, rtol=1e-12)
    p = 1 / (1 + np.exp(-x @ w))
    np.testing.assert_allclose(slope, -(x.T @ (y * (1 - np.where(y > 0, p, 1 - p)))) + w, rtol=1e-11)
    np.testing.assert_allclose(curvature, (x.T * (p * (1 - p))) @ x + np.eye(3), rtol=1e-11)


def test_logistic_curvature_is_the_difference_of_slopes(logistic: ModuleType, fitted: Any) -> None:
    w, x, y = fitted
    curvature = np.asarray(cj.hessian(logistic.loss)(w, x, y))
    for i, way in enumerate(np.eye(3)):
        ends = [np.asarray(cj.grad(logistic.loss)(w + sign * 1e-5 * way, x, y)) for sign in (1, -1)]
        np.testing.assert_allclose(curvature[i], (ends[0] - ends[1]) / 2e-5, rtol=1e-6)


def test_newton_ends_where_the_slope_is_zero(logistic: ModuleType, fitted: Any) -> None:
    _, x, y = fitted
    *_, last = logistic.newton(x, y, 8)
    assert np.abs(np.asarray(cj.grad(logistic.loss)(last, x, y))).max() < 1e-10


@pytest.fixture(scope="module")
def heat_fft() -> ModuleType:
    return load("heat_fft")


def test_a_wave_of_heat_decays_at_its_own_rate_and_heat_is_conserved(heat_fft: ModuleType) -> None:
    x, y = np.meshgrid(*[np.arange(heat_fft.SIZE) / heat_fft.SIZE] * 2, indexing="ij")
    wave = np.cos(2 * np.pi * (3 * x - 2 * y))
    np.testing.assert_allclose(heat_fft.heated(wave, 1e-3), wave * np.exp(-13e-3 * (2 * np.pi) ** 2), atol=1e-13)
    start = heat_fft.temperatures()
    assert math.isclose(start.mean(), np.mean(heat_fft.heated(start, 1e-3)), rel_tol=1e-12)
    twice = heat_fft.heated(heat_fft.heated(start, 1e-3), 2e-3)
    np.testing.assert_allclose(heat_fft.heated(start, 3e-3), twice, atol=1e-13)


def test_the_start_and_the_spread_are_found_from_later_temperatures(heat_fft: ModuleType) -> None:
    start = heat_fft.temperatures()
    later = heat_fft.heated(start, heat_fft.SPREAD)
    assert math.isclose(heat_fft.SPREAD, heat_fft.measured_spread(start, later)[-1], rel_tol=1e-9)
    found, sizes = heat_fft.recovered(later, np.zeros_like(start), heat_fft.SPREAD)
    assert np.abs(np.asarray(found) - start).max() < 0.01
    assert sizes[-1] < 1e-8 * sizes[0]


@pytest.fixture(scope="module")
def n_body() -> ModuleType:
    return load("n_body")


def test_bodies_are_back_after_one_period_with_the_energy_they_had(n_body: ModuleType) -> None:
    masses, steps = np.ones(3), 3000
    x, v, way = n_body.travel(n_body.PLACES, n_body.SPEEDS, masses, n_body.PERIOD / steps, steps)
    assert (steps, 3, 2) == way.shape
    np.testing.assert_array_equal(x, way[-1])
    np.testing.assert_allclose(x, n_body.PLACES, atol=2e-5)
    np.testing.assert_allclose(v, n_body.SPEEDS, atol=2e-5)
    energies = [float(n_body.energy(x, v, masses)) for x, v in ((n_body.PLACES, n_body.SPEEDS), (x, v))]
    np.testing.assert_allclose(energies[0], energies[1], rtol=1e-8)


def test_bodies_move_as_loops_over_pairs_move_them_and_keep_momentum(n_body: ModuleType) -> None:
    rng = np.random.default_rng(5)
    x, v, masses = rng.normal(size=(4, 2)), rng.normal(size=(4, 2)), rng.uniform(0.5, 2.0, 4)

    def drawn(x: np.ndarray) -> np.ndarray:
        total = np.zeros_like(x)
        for i in range(4):
            for j in range(4):
                if i != j:
                    total[i] += masses[j] * (x[j] - x[i]) / np.linalg.norm(x[j] - x[i]) ** 3
        return total

    np.testing.assert_allclose(n_body.accelerations(x, masses), drawn(x), rtol=1e-12)
    found_x, found_v, _ = n_body.travel(x, v, masses, 1e-3, 20)
    np.testing.assert_allclose(masses @ np.asarray(found_v), masses @ v, rtol=1e-11)
    for _ in range(20):
        v = v + 0.5e-3 * drawn(x)
        x = x + 1e-3 * v
        v = v + 0.5e-3 * drawn(x)
    np.testing.assert_allclose(found_x, x, rtol=1e-10)
    np.testing.assert_allclose(found_v, v, rtol=1e-10)


def test_bodies_go_back_when_time_does(n_body: ModuleType) -> None:
    x, v, _ = n_body.travel(n_body.PLACES, n_body.SPEEDS, np.ones(3), 0.01, 100)
    x, v, _ = n_body.travel(x, -v, np.ones(3), 0.01, 100)
    np.testing.assert_allclose(x, n_body.PLACES, atol=1e-12)
    np.testing.assert_allclose(-v, n_body.SPEEDS, atol=1e-12)


def test_slope_through_the_bodies_way_is_the_difference_of_ways(n_body: ModuleType) -> None:
    def end(x: Any) -> Any:
        return (n_body.travel(x, n_body.SPEEDS, np.ones(3), 0.01, 50)[0] * np.arange(6.0).reshape(3, 2)).sum()

    way = np.random.default_rng(6).normal(size=(3, 2))
    difference = (float(end(n_body.PLACES + 1e-5 * way)) - float(end(n_body.PLACES - 1e-5 * way))) / 2e-5
    np.testing.assert_allclose((np.asarray(cj.grad(end)(n_body.PLACES)) * way).sum(), difference, rtol=1e-7)


@pytest.fixture(scope="module")
def mandelbrot() -> ModuleType:
    return load("mandelbrot")


def test_mandelbrot_counts_as_a_loop_in_python_does(mandelbrot: ModuleType) -> None:
    points = mandelbrot.plane(12, 16)

    def count(c: complex) -> int:
        z, steps = c, 0
        while abs(z) <= 2.0 and steps < 40:
            z, steps = z * z + c, steps + 1
        return steps

    expected = [[count(complex(c)) for c in row] for row in points]
    np.testing.assert_array_equal(expected, cj.jit(mandelbrot.picture)(points, 40))


def test_mandelbrot_is_its_own_mirror_image_and_has_the_known_area(mandelbrot: ModuleType) -> None:
    counts = np.asarray(cj.jit(mandelbrot.picture)(mandelbrot.plane(201, 250), 200))
    np.testing.assert_array_equal(counts, counts[::-1])
    assert abs((counts == 200).mean() * 3.0 * 2.4 - 1.5066) < 0.06


@pytest.fixture(scope="module")
def attention() -> ModuleType:
    return load("attention_block")


@pytest.fixture(scope="module")
def sequences(attention: ModuleType) -> tuple[Any, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    x = rng.normal(size=(2, 5, 8))
    return attention.blocks(rng, count=3, width=8, heads=2), x, np.roll(x, 1, axis=1)


def test_attention_block_is_the_one_of_loops_over_positions(attention: ModuleType, sequences: Any) -> None:
    params, (x, _), _ = sequences
    block = {name: array[0] for name, array in params.items()}

    def normalized(x: np.ndarray) -> np.ndarray:
        return x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-6)

    inner, heads = normalized(x), np.zeros((2, 5, 4))
    for head in range(2):
        q, k, v = (inner @ block[name][head] for name in ("query", "key", "value"))
        for i in range(5):
            weights = np.exp([q[i] @ k[j] / 2.0 for j in range(i + 1)])
            heads[head, i] = weights @ v[:i + 1] / weights.sum()
    expected = x + np.concatenate(list(heads), axis=1) @ block["mix"]
    expected = expected + np.maximum(normalized(expected) @ block["up"], 0.0) @ block["down"]
    np.testing.assert_allclose(attention.apply_block(x, block), expected, rtol=1e-10)


def test_attention_does_not_look_ahead(attention: ModuleType, sequences: Any) -> None:
    params, (x, _), _ = sequences
    block = {name: array[1] for name, array in params.items()}
    changed = np.concatenate([x[:3], x[3:] + 1.0])
    before, after = (np.asarray(attention.apply_block(y, block)) for y in (x, changed))
    np.testing.assert_array_equal(before[:3], after[:3])
    assert np.abs(before[3:] - after[3:]).min() > 0.0


def test_attention_has_the_same_slopes_with_checkpoint_for_less_memory(attention: ModuleType, sequences: Any) -> None:
    params, x, target = sequences
    slopes = cj.jit(cj.value_and_grad(attention.loss), static_argnums=3)
    compiled = [slopes.lower(params, x, target, again).compile() for again in (False, True)]
    remembered, recomputed = [each.memory_analysis().temp_size_in_bytes for each in compiled]
    assert recomputed < remembered * 0.7
    (value, found), (same_value, same) = [each(params, x, target) for each in compiled]
    np.testing.assert_allclose(same_value, value, rtol=1e-12)
    for name, slope in found.items():
        np.testing.assert_allclose(same[name], slope, rtol=1e-9, atol=1e-13)
    way = {name: np.random.default_rng(8).normal(size=array.shape) for name, array in params.items()}
    ends = [float(attention.loss({name: params[name] + sign * 1e-6 * way[name] for name in params}, x, target, False))
            for sign in (1, -1)]
    along = sum([(np.asarray(found[name]) * way[name]).sum() for name in params])
    np.testing.assert_allclose(along, (ends[0] - ends[1]) / 2e-6, rtol=1e-6)


@pytest.fixture(scope="module")
def options() -> ModuleType:
    return load("black_scholes")


OPTIONS = [(100.0, 80.0, 0.2, 0.5, 0.03), (100.0, 100.0, 0.4, 2.0, 0.0), (90.0, 120.0, 0.15, 0.25, -0.01)]


def test_normal_distribution_is_that_of_erf(options: ModuleType) -> None:
    for x in np.linspace(-7.0, 7.0, 57):
        np.testing.assert_allclose(options.cumulative(x), 0.5 * math.erfc(-x / math.sqrt(2.0)), rtol=0, atol=1e-14)
    np.testing.assert_allclose(cj.grad(options.cumulative)(0.7), options.density(0.7), rtol=1e-15)


@pytest.mark.parametrize("option", OPTIONS)
def test_greeks_are_those_of_the_closed_forms(options: ModuleType, option: tuple[float, ...]) -> None:
    spot, strike, volatility, years, rate = option
    spread = volatility * math.sqrt(years)
    up = (math.log(spot / strike) + (rate + volatility ** 2 / 2) * years) / spread
    down, paid = up - spread, strike * math.exp(-rate * years)
    within = [0.5 * math.erfc(-x / math.sqrt(2.0)) for x in (up, down)]
    bell = math.exp(-up * up / 2) / math.sqrt(2 * math.pi)
    expected = [spot * within[0] - paid * within[1], within[0], bell / (spot * spread), spot * bell * math.sqrt(years),
                -spot * bell * volatility / (2 * math.sqrt(years)) - rate * paid * within[1], years * paid * within[1]]
    np.testing.assert_allclose(cj.jit(options.greeks)(*option), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("option", OPTIONS)
def test_greeks_solve_the_equation_of_black_and_scholes(options: ModuleType, option: tuple[float, ...]) -> None:
    spot, _, volatility, _, rate = option
    price, delta, gamma, _, theta, _ = map(float, options.greeks(*option))
    np.testing.assert_allclose(theta + 0.5 * (volatility * spot) ** 2 * gamma + rate * (spot * delta - price), 0,
                               atol=1e-10)


@pytest.fixture(scope="module")
def taylor_ode() -> ModuleType:
    return load("taylor_ode")


@pytest.fixture(scope="module")
def travel(taylor_ode: ModuleType) -> Any:
    """Where a planet is, from where it began and for how long it moves, and after how many steps."""
    return cj.jit(lambda y, t: taylor_ode.solve(taylor_ode.kepler, y, t))


def test_coefficients_are_those_of_known_solutions(taylor_ode: ModuleType) -> None:
    def coefficients(f: Any, y: Any) -> np.ndarray:
        return np.stack([np.asarray(c) for c in taylor_ode.coefficients(f, y, 12)])

    orders = np.arange(13)
    factorials = np.array([math.factorial(k) for k in orders], float)
    np.testing.assert_allclose(coefficients(lambda y: -0.5 * y, np.array(3.0)), 3.0 * (-0.5) ** orders / factorials,
                               rtol=1e-14)
    np.testing.assert_allclose(coefficients(lambda y: y * y, np.array(2.0)), 2.0 ** (orders + 1), rtol=1e-14)
    turning = coefficients(lambda y: lax.stack([y[1], -y[0]], 0), np.array([0.0, 1.0]))
    np.testing.assert_allclose(turning[:, 0] + 1j * turning[:, 1], 1j * (-1j) ** orders / factorials, atol=1e-16)


@pytest.mark.parametrize("eccentricity, turns", [(0.0, 1.0), (0.5, 0.3), (0.5, 10.0), (0.8, 2.4)])
def test_planets_are_where_keplers_equation_has_them_with_the_energy_they_had(
        taylor_ode: ModuleType, travel: Any, eccentricity: float, turns: float) -> None:
    start, t = taylor_ode.orbit(eccentricity, 0.0), 2 * np.pi * turns
    np.testing.assert_allclose(start[0] * start[3], math.sqrt(1 - eccentricity ** 2), rtol=1e-15)
    y, steps = travel(start, t)
    assert 30 * turns < steps < 300 * turns
    np.testing.assert_allclose(taylor_ode.energy(y), -0.5, rtol=3e-15)
    # what rounds the start off by 1e-16 is off by so much after ten turns
    np.testing.assert_allclose(y, _on_ellipse(eccentricity, t), rtol=0, atol=1e-12)
    np.testing.assert_allclose(taylor_ode.orbit(eccentricity, t), _on_ellipse(eccentricity, t), rtol=0, atol=5e-14)


def _on_ellipse(eccentricity: float, t: float) -> list[float]:
    with mpmath.workdps(30):
        x = mpmath.findroot(lambda x: x - eccentricity * mpmath.sin(x) - t, t)
        axis, near = mpmath.sqrt(1 - mpmath.mpf(eccentricity) ** 2), 1 - eccentricity * mpmath.cos(x)
        return [float(c) for c in (mpmath.cos(x) - eccentricity, axis * mpmath.sin(x), -mpmath.sin(x) / near,
                                   axis * mpmath.cos(x) / near)]


def test_solutions_have_derivatives_by_where_they_begin_and_when_they_end(taylor_ode: ModuleType) -> None:
    """The solution of y' = y^2 is y / (1 - y t); its slope goes forward through the loop, and so through its steps."""
    def end(y: Any, t: Any) -> Any:
        return taylor_ode.solve(lambda y: y * y, y, t, order=6, tol=1e-12)[0]

    y, t = np.array([0.5, 1.0, 1.5]), np.array([0.6, 0.5, 0.4])
    ends, slopes = cj.jit(cj.vmap(lambda y, t: cj.jvp(end, (y, t), (1.0, 2.0))))(y, t)
    np.testing.assert_allclose(ends, y / (1 - y * t), rtol=1e-10)
    np.testing.assert_allclose(slopes, (1 + 2 * y * y) / (1 - y * t) ** 2, rtol=1e-9)


def test_runge_and_kutta_are_of_order_4(taylor_ode: ModuleType) -> None:
    start, there = taylor_ode.orbit(0.3, 0.0), taylor_ode.orbit(0.3, 3.0)
    far, near = [np.abs(np.asarray(taylor_ode.runge_kutta(taylor_ode.kepler, start, 3.0, steps)) - there).max()
                 for steps in (200, 400)]
    assert 14.0 < far / near < 18.0


@pytest.fixture(scope="module")
def laplacians() -> ModuleType:
    return load("forward_laplacian")


#: Functions, and their Laplacians by hand.
LAPLACIANS = {
    "a square": (lambda x: (x * x).sum(), lambda x: 2.0 * x.size),
    "a product": (lambda x: x[0] ** 2 * x[1] ** 3, lambda x: 2.0 * x[1] ** 3 + 6.0 * x[0] ** 2 * x[1]),
    "a bell": (lambda x: lax.exp(-0.5 * (x * x).sum()), lambda x: ((x * x).sum() - x.size) * np.exp(-0.5 * x @ x)),
    "a sum of exponentials": (lambda x: lax.exp(x).sum(), lambda x: np.exp(x).sum()),
}

#: Functions whose Laplacian is zero.
HARMONIC = {
    "a saddle": lambda x: x[0] ** 2 + x[1] ** 2 - 2.0 * x[2] ** 2,
    "a product of all": lambda x: x[0] * x[1] * x[2],
    "a wave that decays": lambda x: lax.exp(x[0]) * lax.sin(x[1]),
    "a charge": lambda x: 1.0 / lax.sqrt((x * x).sum()),
    "something linear": lambda x: 3.0 * x[0] - x[2],
}


@pytest.mark.parametrize("name", LAPLACIANS)
def test_laplacians_are_those_by_hand(laplacians: ModuleType, name: str) -> None:
    fun, by_hand = LAPLACIANS[name]
    x = np.array([0.3, -1.2, 0.8])
    np.testing.assert_allclose(laplacians.laplacian(fun, x), by_hand(x), rtol=1e-14)


@pytest.mark.parametrize("name", HARMONIC)
def test_laplacians_of_harmonic_functions_are_zero(laplacians: ModuleType, name: str) -> None:
    x = np.array([0.3, -1.2, 0.8])
    np.testing.assert_allclose(laplacians.laplacian(HARMONIC[name], x), 0.0, atol=2e-15)


def test_laplacian_of_a_network_is_the_trace_of_its_hessian_for_less_memory(laplacians: ModuleType) -> None:
    f, x = laplacians.network(30, width=40, depth=8), np.random.default_rng(4).normal(size=30)
    ways = [laplacians.by_hessian, laplacians.laplacian, partial(laplacians.laplacian, together=7)]
    compiled = [cj.jit(partial(way, f)).lower(x).compile() for way in ways]
    trace, at_once, in_parts = [float(each(x)) for each in compiled]
    np.testing.assert_allclose([at_once, in_parts], trace, rtol=1e-12)
    much, less, least = map(laplacians.memory, compiled)
    assert least < less < much / 2


def test_random_directions_estimate_a_laplacian_and_all_of_them_give_it(laplacians: ModuleType) -> None:
    f, x = laplacians.network(5, width=8, depth=2), np.linspace(-1.0, 1.0, 5)
    every = np.stack(np.meshgrid(*[[-1.0, 1.0]] * 5), -1).reshape(-1, 5)
    exact = float(laplacians.laplacian(f, x))
    np.testing.assert_allclose(laplacians.estimate(f, x, every), exact, rtol=1e-13)
    few = np.random.default_rng(2).choice([-1.0, 1.0], (64, 5))
    curved = np.asarray(cj.hessian(f)(x))
    spread = math.sqrt(2.0 * (curved ** 2).sum() - 2.0 * (np.diag(curved) ** 2).sum()) / 8.0
    assert abs(laplacians.estimate(f, x, few) - exact) < 4.0 * spread


@pytest.mark.parametrize("name", ["sparse_jacobian", "taylor_ode", "forward_laplacian"])
def test_docstring_of_an_example_says_what_is(name: str) -> None:
    outcome = doctest.testmod(load(name))
    assert outcome.attempted > 0
    assert 0 == outcome.failed
