"""Models as people write them for JAX: each reaches a stated figure, and runs on jax by other imports alone.

They say float32 wherever JAX has it anyway, so they compute the same on both, whatever is the default of either.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import corejax as cj
from exhaustive import exhaustive_unless
from ported import EXAMPLES, changed_lines, program_for
from quick_code import usual_code

PROGRAMS = EXAMPLES / "models"


def character_gpt(program: ModuleType) -> Any:
    """The loss for new sums comes within 0.06 of the best there is, and 90% are right; nothing later is seen."""
    losses, unseen, best, right, text = program.experiment(700, 64, 32, 1, 0.012)
    assert best < float(unseen) < best + 0.06
    assert 2.0 < float(losses[0])
    assert 0.9 < float(right) <= 1.0
    a, b, c = [int(number[::-1]) for number in text.replace("+", ";").replace("=", ";").split(";")[:3]]
    assert "21+93=150;" == program.spelled(np.array([[12, 39]]), 2)
    assert text == program.spelled(np.array([[a, b]]), 2) and a + b == c
    assert text == program.decoded(program.encoded(text))
    params = program.begun(program.random.key(1), program.Shape(20, 16)).params
    tokens = program.encoded("21+93=150;10+20=300;")[None]
    before, after = [np.asarray(program.logits(params, each)) for each in (tokens, tokens.at[:, 12:].set(5))]
    np.testing.assert_allclose(before[:, :12], after[:, :12], atol=1e-6)
    assert np.abs(before[:, 12:] - after[:, 12:]).max() > 1e-3
    return losses[:8], before


def diffusion(program: ModuleType) -> Any:
    """At most 12% of points end off the moons, of 65% that were; the distance of distributions falls to a third."""
    losses, (noise, _), (before, after), (off_before, off_after) = program.experiment(1000, 256, 64, 1000)
    assert float(off_after) < 0.12 < 0.6 < float(off_before)
    assert float(after) < float(before) / 3
    random = program.random
    moved = np.asarray(noise) + np.array([3.0, 4.0], np.float32)
    angles = np.linspace(0.0, np.pi, 64, endpoint=False)
    found = float(program.distance(noise, moved[::-1]))
    np.testing.assert_allclose(found, np.abs(3.0 * np.cos(angles) + 4.0 * np.sin(angles)).mean(), rtol=1e-4)
    params = program.network(random.key(0), 22, 8, 8, 2)
    assert 0.0 == np.abs(program.told_noise(params, noise, np.zeros(1000, np.int32))).max()
    return losses[:8], program.moons(random.key(1), 50), program.sampled(params, random.key(2), noise[:10])


def graph_network(program: ModuleType) -> Any:
    """Distances are those of a search in breadth, and 98% of places on a larger map are told right."""
    losses, shares, share = program.experiment(300, 200, 16)
    assert 0.98 < float(share) <= 1.0
    assert np.min(shares) > 0.9
    graph = program.mapped(program.random.key(1), 60)
    roads = np.stack([graph.begins, graph.ends], axis=1)[np.asarray(graph.is_open)].tolist()
    found, reached = np.full(60, program.FAR), set(np.flatnonzero(graph.shops).tolist())
    for distance in range(program.FAR):
        found[[*reached]] = np.minimum(found[[*reached]], distance)
        reached |= {end for begin, end in roads if begin in reached}
    np.testing.assert_array_equal(program.distances(graph), found)
    weights = program.segment_softmax(np.linspace(-50.0, 50.0, 240, dtype=np.float32), graph.ends, 60)
    sums = np.bincount(graph.ends, weights, 60)
    np.testing.assert_allclose(sums, np.bincount(graph.ends, minlength=60) > 0, rtol=1e-5)
    return losses[:8], weights, program.logits(program.network(program.random.key(2), 8, 2, 3), graph)


def vision_transformer(program: ModuleType) -> Any:
    """At least 92% of new digits are read correctly; patches are squares; dropping keeps the mean."""
    pytest.importorskip("sklearn")
    losses, share = program.experiment(12, 32, 32, 4, 2, 0.006)
    assert 0.92 < float(share) <= 1.0
    assert float(np.mean(losses[-20:])) < 0.3 < 2.2 < float(losses[0])
    image = np.arange(64, dtype=np.float32).reshape(1, 8, 8)
    np.testing.assert_array_equal(image[0, 2:4, 4:6].ravel(), program.patches(image)[0, 6])
    x = np.ones((100, 100), np.float32)
    thinned = np.asarray(program.dropped(program.random.key(0), x, 0.25))
    np.testing.assert_allclose(np.unique(thinned), [0.0, 4 / 3])
    assert abs(thinned.mean() - 1.0) < 0.02
    assert program.dropped(None, x, 0.25) is x
    params = program.network(program.random.key(3), 16, 2, 2)
    params["digits"] = params["digits"] + np.linspace(-1.0, 1.0, 160, dtype=np.float32).reshape(16, 10)
    return losses[:8], thinned, program.logits(params, program.random.key(4), image / 64)


#: For each program, what looks whether it reaches its figure, and returns numbers to compare.
FIGURES: dict[str, Callable[[ModuleType], Any]] = {
    each.__name__: each for each in (character_gpt, diffusion, graph_network, vision_transformer)}


def test_every_program_has_a_figure_to_reach() -> None:
    assert sorted(path.stem for path in PROGRAMS.glob("*.py")) == sorted(FIGURES)


@pytest.mark.parametrize("name", exhaustive_unless("diffusion".__eq__, FIGURES))
def test_program_reaches_its_figure(name: str) -> None:
    with usual_code():  # most of the time goes into loops
        FIGURES[name](program_for("corejax", f"models/{name}"))


#: Arguments of the experiments that take little.
LITTLE: dict[str, tuple[Any, ...]] = {"character_gpt": (2, 3, 16, 1, 0.01), "diffusion": (2, 3, 4, 5),
                                      "graph_network": (2, 20, 8), "vision_transformer": (1, 700, 8, 2, 2, 0.01)}


@pytest.mark.parametrize("name", exhaustive_unless("diffusion".__eq__, LITTLE))
def test_program_uses_no_key_twice(name: str) -> None:
    if name == "vision_transformer":
        pytest.importorskip("sklearn")
    with cj.config(debug_key_reuse=True):
        program_for("corejax", f"models/{name}").experiment(*LITTLE[name])


def test_program_says_how_to_install_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sklearn.datasets", None)
    program = program_for("corejax", "models/vision_transformer")
    with pytest.raises(SystemExit, match="pip install scikit-learn"):
        program.main()


@pytest.mark.parametrize("name", exhaustive_unless("diffusion".__eq__, FIGURES))
def test_parity_with_jax_which_only_needs_other_imports(name: str) -> None:
    jax = pytest.importorskip("jax")
    changed = changed_lines(f"models/{name}")
    assert changed and all(line.startswith(("import corejax", "from corejax")) for line in changed)
    with jax.enable_x64(False):
        found, wanted = (FIGURES[name](program_for(library, f"models/{name}")) for library in ("corejax", "jax"))
    for x, y in zip(cj.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-4, atol=1e-5)
        assert np.float32 == np.asarray(x).dtype == np.asarray(y).dtype
