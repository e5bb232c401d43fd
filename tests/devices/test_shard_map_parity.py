"""Random programs of `shard_map` under transformations, beside jax: values, types, derivatives, and who holds what.

Where jax refuses a program, it is enough that eager evaluation gives what the compiled program does, and that
gradients are those that differences give.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from random_shard_maps import Library, Program, function, program

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxError
from exhaustive import exhaustive_unless

jax: Any = pytest.importorskip("jax")

#: How many programs there are, and of each so many `make parity` runs one.
ALL, EVERY = 400, 10

Transformation = Callable[[Any, Program, Callable[..., Any]], Callable[..., Any]]


@pytest.fixture(autouse=True)
def _doubles():
    with jax.enable_x64(True):
        yield


# The libraries

def _mesh(devices: Any, mesh: Any) -> Callable[..., Any]:
    return lambda sizes, places: mesh(np.array([devices[i] for i in places]).reshape(tuple(sizes.values())),
                                      tuple(sizes))


def _jax_varying(x: Any, axes: tuple[str, ...]) -> Any:
    known = jax.typeof(x).mat.varying
    missing = tuple([name for name in axes if name not in known])
    return jax.lax.pcast(x, missing, to="varying") if missing else x


def _varying(x: Any, axes: tuple[str, ...]) -> Any:
    return lax.pcast(x, axes, to="varying") if axes else x


def theirs() -> Library:
    return Library(jax, jax.lax, jax.P, _mesh(jax.devices(), jax.sharding.Mesh), _jax_varying)


def ours(casts: bool) -> Library:
    """Types of corejax say by themselves what varies, so that no casts are needed."""
    return Library(cj, lax, cj.P, _mesh(cj.devices(), cj.sharding.Mesh), _varying if casts else lambda x, axes: x)


# Transformations

def floats(made: Program) -> tuple[int, ...]:
    return tuple([i for i, x in enumerate(made.inputs) if x.dtype.kind == "f"])


def loss(f: Callable[..., Any]) -> Callable[..., Any]:
    def total(*xs: Any) -> Any:
        return sum([(out * np.cos(np.arange(out.size)).reshape(out.shape)).sum()
                    for out in f(*xs) if out.dtype.kind == "f"], 0.0)
    return total


def pushed(top: Any, made: Program, f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *xs: top.jvp(lambda x: [out for out in f(x, *xs[1:]) if out.dtype.kind == "f"], (xs[0],),
                               (top.lax.cos(xs[0]),))


def gradient(top: Any, made: Program, f: Callable[..., Any]) -> Callable[..., Any]:
    return top.value_and_grad(loss(f), argnums=floats(made))  # type: ignore[no-any-return]


def checkpointed(top: Any, made: Program, f: Callable[..., Any]) -> Callable[..., Any]:
    return top.grad(top.checkpoint(loss(f)), argnums=floats(made))  # type: ignore[no-any-return]


def saving(top: Any, made: Program, f: Callable[..., Any]) -> Callable[..., Any]:
    """Checkpointed, with a policy that saves about half of the values."""
    half = top.checkpoint(loss(f), policy=lambda primitive, *_, **__: len(primitive.name) % 2 == made.seed % 2)
    return top.grad(half, argnums=floats(made))  # type: ignore[no-any-return]


def second(top: Any, made: Program, f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *xs: top.jvp(lambda x: top.grad(loss(f))(x, *xs[1:]), (xs[0],), (top.lax.cos(xs[0]),))[1]


def mapped(top: Any, made: Program, f: Callable[..., Any]) -> Callable[..., Any]:
    """Of inputs with another axis, at places that depend on the program; some inputs have none."""
    rng = np.random.default_rng(made.seed)
    dims = [int(rng.integers(x.ndim + 1)) if i == 0 or rng.random() < 0.6 else None for i, x in enumerate(made.inputs)]

    def call(*xs: Any) -> Any:
        stacked = [x if dim is None else top.lax.concatenate([y.reshape(*y.shape[:dim], 1, *y.shape[dim:])
                                                              for y in (x, x * 2)], dim)
                   for x, dim in zip(xs, dims, strict=True)]
        return top.vmap(f, in_axes=tuple(dims))(*stacked)
    return call


def gradient_of_mapped(top: Any, made: Program, f: Callable[..., Any]) -> Callable[..., Any]:
    return top.grad(loss(mapped(top, made, f)), argnums=floats(made))  # type: ignore[no-any-return]


def mapped_gradient(top: Any, made: Program, f: Callable[..., Any]) -> Callable[..., Any]:
    return mapped(top, made, top.grad(loss(f), argnums=floats(made)))


def scanned(top: Any, made: Program, f: Callable[..., Any]) -> Callable[..., Any]:
    def call(*xs: Any) -> Any:
        return top.lax.scan(lambda c, _: (top.lax.sin(c + loss(f)(c, *xs[1:]) * 0.1), loss(f)(c, *xs[1:])), xs[0], None,
                            length=2)
    return call


def gradient_of_scanned(top: Any, made: Program, f: Callable[..., Any]) -> Callable[..., Any]:
    return top.grad(loss(scanned(top, made, f)), argnums=floats(made))  # type: ignore[no-any-return]


REVERSE = (checkpointed, saving, second, gradient_of_mapped, mapped_gradient, gradient_of_scanned)


def transformations(made: Program) -> list[Transformation]:
    """The gradient if there is one, and another transformation."""
    others: list[Transformation] = [mapped, scanned]
    if "custom_vjp" not in made.text:
        others.append(pushed)
    if not made.forward_only:
        others += REVERSE
    others = [other for other in others if other is not second or "custom_vjp" not in made.text]
    return [*([] if made.forward_only else [gradient]), others[made.seed % len(others)]]


# Comparing

def arrays(out: Any) -> list[Any]:
    return [np.asarray(x) for x in cj.tree.leaves(jax.tree.leaves(out) if _is_of_jax(out) else out)]


def _is_of_jax(out: Any) -> bool:
    return any([isinstance(x, jax.Array) for x in jax.tree.leaves(out)])


def assert_same(what: str, wanted: Any, got: Any) -> None:
    for x, y in zip(arrays(wanted), arrays(got), strict=True):
        assert (x.shape, x.dtype) == (y.shape, y.dtype), what
        if x.size:
            scale = max(1, np.nan_to_num(abs(x)).max())
            np.testing.assert_allclose(y, x, rtol=1e-6, atol=1e-6 * scale, err_msg=what)


def held(sharding: Any, shape: tuple[int, ...]) -> dict[int, Any]:
    """Which part of an array each device holds."""
    return {device.id: [part.indices(size) for part, size in zip(parts, shape, strict=True)]
            for device, parts in sharding.devices_indices_map(shape).items()}


def of_jax(make: Callable[[], Any]) -> Any:
    """What jax computes; None where it refuses."""
    try:
        return jax.block_until_ready(make())
    except Exception:  # of whatever kind
        return None


def assert_is_slope(made: Program, f: Callable[..., Any], found: Any) -> None:
    """The gradient agrees with differences along one direction."""
    step = 1e-6
    moved = [[x + sign * step * np.cos(np.arange(x.size) * 1.7).reshape(x.shape) if x.dtype.kind == "f" else x
              for x in made.inputs] for sign in (1, -1)]
    slope = sum([(ct * np.cos(np.arange(ct.size) * 1.7).reshape(ct.shape)).sum() for ct in arrays(found[1])])
    wanted = (np.asarray(f(*moved[0])[0]) - np.asarray(f(*moved[1])[0])) / (2 * step)
    np.testing.assert_allclose(slope, wanted, rtol=1e-4, atol=1e-4, err_msg=f"gradient of {made}")


@pytest.mark.parametrize("seed", exhaustive_unless(lambda seed: seed % EVERY == 0, range(ALL)))
def test_a_random_program_agrees_with_jax(seed: int) -> None:
    made = program(seed)
    f, g = function(made, theirs()), function(made, ours(casts=seed % 4 == 1))
    wanted = of_jax(lambda: jax.jit(f)(*made.inputs))
    try:
        got = cj.jit(g)(*made.inputs)
    except CorejaxError:  # XLA can't compile some conditionals where only some axes are manual
        if wanted is not None or not made.partial:
            raise
        return
    if wanted is None:
        assert_same(f"eagerly: {made}", got, g(*made.inputs) if not made.partial else got)
    else:
        assert_same(str(made), wanted, got)
        assert [held(x.sharding, x.shape) for x in wanted] == [held(x.sharding, x.shape) for x in got], str(made)
    for transform in transformations(made):
        their, our = jax.jit(transform(jax, made, f)), cj.jit(transform(cj, made, g))
        wanted, got = of_jax(lambda their=their: their(*made.inputs)), our(*made.inputs)
        if wanted is not None:
            assert_same(f"{transform.__name__} of {made}", wanted, got)
        elif transform is gradient and not any([name in made.text for name in ("custom", "stop_gradient", "sort")]):
            assert_is_slope(made, our, got)


# The generator itself

def test_a_seed_stands_for_one_program() -> None:
    assert [str(program(seed)) for seed in range(10)] == [str(program(seed)) for seed in range(10)]
    assert 20 == len({str(program(seed)) for seed in range(20)})


@pytest.mark.parametrize("name", [
    "psum", "pmean", "pmax", "all_gather", "psum_scatter", "all_to_all", "ppermute", "pshuffle", "axis_index", "jit",
    "scan", "fori_loop", "while_loop", "cond", "switch", "checkpoint", "custom_jvp", "custom_vjp", "vmap", "grad",
    "jvp",
])
def test_programs_use_each_of_the_functions(name: str) -> None:
    assert 2 < sum([f".{name}(" in program(seed).text for seed in range(ALL)])
