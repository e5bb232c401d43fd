"""Programs with rules, policies and searches of their own: each is right, and runs on jax by other imports alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import corejax as cj
from ported import EXAMPLES, changed_lines, program_for

PROGRAMS = EXAMPLES / "rules"


def stable_slopes(program: ModuleType) -> Any:
    """Slopes are right where the formulas' aren't numbers; descent comes down, and weights in eighths are found."""
    top = program.cj
    xs = np.array([-1000.0, -2.0, 0.0, 3.0, 1000.0])
    slopes = top.vmap(top.grad(program.softplus))(xs)
    with np.errstate(over="ignore"):
        np.testing.assert_allclose(slopes, 1.0 / (1.0 + np.exp(-xs)), atol=1e-15)
    second = top.vmap(top.grad(top.grad(program.softplus)))(np.array([-2.0, 0.0, 3.0]))
    share = 1.0 / (1.0 + np.exp([2.0, 0.0, -3.0]))
    np.testing.assert_allclose(second, share * (1.0 - share), rtol=1e-12)
    root = top.grad(partial(program.rooted, 3))
    np.testing.assert_allclose([root(8.0), root(0.0)], [1.0 / 12.0, 0.0])
    end, values = program.descended(np.array([60.0, -40.0]), 120)
    assert float(values[-1]) < 1e-3 * float(values[0])
    inputs = np.random.default_rng(0).standard_normal((20, 3))
    wanted = np.array([0.5, -1.125, 0.25])
    weights, losses = program.quantised(inputs, inputs @ wanted, 100)
    np.testing.assert_array_equal(wanted, weights)
    return slopes, end, losses


def implicit_layer(program: ModuleType) -> Any:
    """Derivatives of two orders of a root, and of a layer by differences; the network learns."""
    top = program.cj
    found = [f(2.0) for f in (program.square_root, top.grad(program.square_root),
                              top.grad(top.grad(program.square_root)))]
    np.testing.assert_allclose(found, [2 ** 0.5, 0.5 * 2 ** -0.5, -0.25 * 2 ** -1.5], rtol=1e-10)
    weights, xs, targets = program.problem(5, 7)
    slopes = top.grad(program.loss)(weights, xs, targets)
    for i in range(3):
        at = (0,) * np.ndim(weights[i])
        ends = []
        for step in (1e-6, -1e-6):
            moved = np.array(weights[i])
            moved[at] += step
            ends.append(float(program.loss((*weights[:i], moved, *weights[i + 1:]), xs, targets)))
        np.testing.assert_allclose(slopes[i][at], (ends[0] - ends[1]) / 2e-6, rtol=1e-5, atol=1e-8)
    _, losses = program.trained(*program.problem(6, 20), 150)
    assert float(losses[-1]) < 0.1 * float(losses[0])
    return slopes, losses[:5]


def memory_policies(program: ModuleType) -> Any:
    """Every policy gives the same slopes; products and names take more memory than nothing, less than everything."""
    weights, x = program.model(6, 16)
    slopes = {policy: program.cj.grad(program.loss)(weights, x, policy) for policy in program.POLICIES}
    for policy, found in slopes.items():
        for one, other in zip(found, slopes["everything"], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12, err_msg=policy)
    sizes = {policy: program.memory(policy, 12, 32) for policy in ("nothing", "named", "products", "everything")}
    assert sizes["nothing"] < sizes["named"] < sizes["everything"]
    assert sizes["nothing"] < sizes["products"] < sizes["everything"]
    return slopes["nothing"], program.cj.grad(program.chain)(1.0, 13)


def beam_search(program: ModuleType) -> Any:
    """The sequence is found after training, with the probability that is told; slopes are those of differences."""
    right = np.array([3, 1, 4, 1, 5], np.int32)
    params, losses = program.trained(program.begun(6, 5), right, 100)
    found, total = program.searched(params, 5)
    np.testing.assert_array_equal(right, found[0])
    np.testing.assert_allclose(total[0], program.told(params, np.asarray(found[0])), rtol=1e-9)
    assert float(losses[-1]) < 0.3 < 2.0 < float(losses[0])
    begun = program.begun(6, 5)
    slopes = program.cj.grad(program.loss)(begun, right)
    ends = [float(program.loss((begun[0], begun[1], np.array(begun[2]) + step), right)) for step in (1e-6, -1e-6)]
    np.testing.assert_allclose(np.sum(slopes[2]), (ends[0] - ends[1]) / 2e-6, rtol=1e-5, atol=1e-8)
    return losses[:8], slopes


#: For each program, what looks whether it is right, and returns numbers to compare.
FIGURES: dict[str, Callable[[ModuleType], Any]] = {
    each.__name__: each for each in (beam_search, implicit_layer, memory_policies, stable_slopes)}


def test_every_program_has_a_figure_to_reach() -> None:
    assert sorted(path.stem for path in PROGRAMS.glob("*.py")) == sorted(FIGURES)


@pytest.mark.parametrize("name", FIGURES)
def test_program_is_right(name: str) -> None:
    FIGURES[name](program_for("corejax", f"rules/{name}"))


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", FIGURES)
def test_parity_with_jax_which_only_needs_other_imports(name: str) -> None:
    jax = pytest.importorskip("jax")
    changed = changed_lines(f"rules/{name}")
    assert changed and all(line.startswith(("import corejax", "from corejax")) for line in changed)
    found, wanted = (FIGURES[name](program_for(library, f"rules/{name}")) for library in ("corejax", "jax"))
    for x, y in zip(cj.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-8, atol=1e-10)
