"""Programs that call Python, print, check and update in place: each does what it says, and runs on jax as it is."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import corejax as cj
from ported import EXAMPLES, changed_lines, program_for

PROGRAMS = EXAMPLES / "effects"


def table_lookup(program: ModuleType) -> Any:
    """Densities are the table's, slopes those of its lines; the fall's slope is that of two falls."""
    densities, slopes, speed, slope = program.experiment()
    np.testing.assert_allclose(densities, np.interp([1.0, 7.0, 12.5], program.HEIGHTS, program.DENSITIES))
    np.testing.assert_allclose(slopes, [(1.007 - 1.225) / 2, (0.414 - 0.736) / 5, (0.195 - 0.414) / 5])
    ends = [float(program.fall(20.0 + step)[1]) for step in (1e-6, -1e-6)]
    np.testing.assert_allclose(float(slope), (ends[0] - ends[1]) / 2e-6, rtol=1e-5)
    return densities, slopes, speed, slope


def data_loader(program: ModuleType) -> Any:
    """The line behind the batches is found, from each batch once."""
    weights, bias, losses, count = program.experiment()
    np.testing.assert_allclose([*weights, bias], [1.0, -2.0, 0.5, 0.25], atol=1e-8)
    assert 120 == count and float(losses[-1]) < 1e-18
    return weights, bias, losses


def metrics(program: ModuleType) -> Any:
    """Each step tells its height and slope, in order; under a derivative, too, and once."""
    minimum, slope, lines, differentiated = program.experiment()
    assert [(name, step) for step in range(5) for name in ("height", "slope")] == [line[:2] for line in lines]
    assert lines == differentiated
    assert abs(lines[-1][2]) < 0.2 and abs(float(slope)) < 1e-3
    return minimum, slope, [line[2] for line in lines]


def printing(program: ModuleType) -> Any:
    """Eight steps from 6; the slope of exp(2 sin x)."""
    count, slope = program.experiment()
    assert 8 == int(count)
    np.testing.assert_allclose(slope, 2.0 * np.cos(0.5) * np.exp(2.0 * np.sin(0.5)), rtol=1e-12)
    return count, slope


def nan_hunt(program: ModuleType) -> Any:
    """The stable descent reports nothing, the other the step after which a value wasn't finite."""
    stable, (step, values) = program.experiment()
    assert stable is None and 20 == step
    assert [True, False] == np.isfinite(values).tolist()
    return step, values


def checked_queue(program: ModuleType) -> Any:
    """The first list is fine, the second pops from an empty queue, the third pushes onto a full one."""
    (total, nothing), (_, empty), (_, full) = program.experiment()
    assert (7.0, []) == (total, nothing)
    assert "nothing is left" in empty[0] and "no room for 4.0 behind 3 values" in full[0]
    return total


def checked_newton(program: ModuleType) -> Any:
    """2 is the root of 8; from 0 there is a division by zero; of NaN there is none."""
    found = program.experiment()
    assert [(None, 2.0), ("division by zero", None), ("nan", None)] == found
    return found[0][1]


def running_statistics(program: ModuleType) -> Any:
    """Mean and deviation are NumPy's, and so is the histogram."""
    scores, mean, deviation, counts = program.experiment()
    values = np.random.default_rng(0).uniform(size=64)
    np.testing.assert_allclose([mean, deviation], [values.mean(), values.std()])
    assert np.histogram(values, 5, (0.0, 1.0))[0].tolist() == np.asarray(counts).tolist()
    return scores, mean, deviation, counts


def probes(program: ModuleType) -> Any:
    """The reference has the norms of the last call."""
    first, before, second, after = program.experiment()
    assert 3 == np.size(before) and np.all(np.asarray(after) > np.asarray(before))
    return first, before, second, after


def in_place(program: ModuleType) -> Any:
    """The cheapest ways of 4 x 5 grids, which have 8 cells or more."""
    costs, change = program.experiment()
    grids = np.random.default_rng(1).uniform(size=(3, 4, 5))
    best = np.full((3, 5, 6), 1e3)
    best[:, 0, 1] = 0.0
    for i in range(4):
        for j in range(5):
            best[:, i + 1, j + 1] = grids[:, i, j] + np.minimum(best[:, i, j + 1], best[:, i + 1, j])
    np.testing.assert_allclose(costs, best[:, 4, 5], atol=0.2)
    np.testing.assert_allclose(change, 8.0)
    return costs, change


#: For each program, what looks whether it does what it says, and returns numbers to compare.
FIGURES: dict[str, Callable[[ModuleType], Any]] = {each.__name__: each for each in (
    table_lookup, data_loader, metrics, printing, nan_hunt, checked_queue, checked_newton, running_statistics, probes,
    in_place)}

PRINTED = """\
step 0: 6
step 1: 3
step 2: 10
step 3: 5
step 4: 16
step 5: 8
step 6: 4
step 7: 2
sine 0.479
slope 2.609
slope 5.217
one of a batch: 0
one of a batch: 1
one of a batch: 2
"""


def test_every_program_has_something_to_show() -> None:
    assert sorted(path.stem for path in PROGRAMS.glob("*.py")) == sorted(FIGURES)


@pytest.mark.parametrize("name", FIGURES)
def test_program_does_what_it_says(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    FIGURES[name](program_for("corejax", f"effects/{name}"))
    assert (PRINTED if name == "printing" else "") == capfd.readouterr().out


@pytest.mark.parametrize("name", FIGURES)
def test_parity_with_jax_which_only_needs_other_imports(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    changed = changed_lines(f"effects/{name}")
    assert changed and all(line.startswith(("import corejax", "from corejax")) for line in changed)
    found = FIGURES[name](program_for("corejax", f"effects/{name}"))
    printed = capfd.readouterr().out
    wanted = FIGURES[name](program_for("jax", f"effects/{name}"))
    assert printed == capfd.readouterr().out
    for x, y in zip(cj.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-7, atol=1e-9)
