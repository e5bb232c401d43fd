"""Random programs of divided arrays beside jax: values, derivatives, and which device holds which part of a result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from exhaustive import exhaustive_unless

jax: Any = pytest.importorskip("jax")

#: How many programs there are, and of each so many `make parity` runs one.
ALL, EVERY = 240, 10

MESHES = ({"x": 8}, {"x": 2, "y": 4}, {"x": 2, "y": 2, "z": 2}, {"y": 4, "x": 2}, {"x": 4}, {"x": 2, "y": 2})

Shape = tuple[int, ...]
Entries = list[Any]


class Program(NamedTuple):
    """The text of a function, the shapes of its arguments, and how arguments and the result are divided."""

    text: str
    shapes: list[Shape]
    put: list[Entries | None]  # as they are passed; None: in host memory
    wanted: list[Entries | None]  # in_shardings; None: as they are
    result: Entries | None
    mesh: dict[str, int]
    places: list[int]


class Library(NamedTuple):
    """What programs use of a library."""

    top: Any
    lax: Any
    sharding: Callable[[Program, Entries], Any]


def sharding_in(devices: Sequence[Any], top: Any, spec: Any) -> Callable[[Program, Entries], Any]:
    def made(program: Program, entries: Entries) -> Any:
        sizes = program.mesh
        grid = np.array([devices[i] for i in program.places]).reshape(tuple(sizes.values()))
        return top.NamedSharding(top.Mesh(grid, tuple(sizes)), spec(*[spec.UNCONSTRAINED if entry == "open" else entry
                                                                     for entry in entries]))
    return made


def program(seed: int) -> Program:
    """The program of this seed. Each argument is used, and no operation needs what other devices hold of a row."""
    rng = np.random.default_rng(seed)
    mesh = MESHES[rng.integers(len(MESHES))]
    places = (rng.permutation(8) if rng.random() < 0.3 else np.arange(8))[:prod(mesh.values())].tolist()
    uneven = rng.random() < 0.3
    shapes = [((10, 6, 3) if uneven else (16, 16, 8) if rng.random() < 0.7 else (8, 8, 8))[:rng.integers(1, 4)]
              for _ in range(rng.integers(1, 4))]
    values = [(f"a{i}", shape) for i, shape in enumerate(shapes)]
    lines: list[str] = []
    for _ in range(rng.integers(1, 7)):
        name, shape = values[-1 - min(int(rng.geometric(0.4)) - 1, len(values) - 1)]
        found = _operation(rng, mesh, name, shape, values)
        if found is not None and prod(found[1]) <= 20000 and len(found[1]) <= 4:
            lines.append(f"    v{len(values)} = {found[0]}")
            values.append((f"v{len(values)}", found[1]))
    out, shape = values[-1]
    lines.append(f"    return {out}" + "".join([f" + lax.sin(a{i}.sum()) * 0.1" for i in range(len(shapes))]))
    divided = [_entries(rng, mesh, shape) for shape in shapes]
    inside = rng.random() < 0.3
    put = [None if inside or rng.random() < 0.2 else entries for entries in divided]
    wanted = divided if inside else [None] * len(shapes)
    return Program(f"def function({', '.join([f'a{i}' for i in range(len(shapes))])}):\n" + "\n".join(lines), shapes,
                   put, wanted, _entries(rng, mesh, shape) if rng.random() < 0.3 else None, dict(mesh), places)


def _entries(rng: Any, mesh: dict[str, int], shape: Shape, within: bool = False) -> Entries:
    """How to divide an array of this shape: random axes where they fit; within a program, now and then anywhere."""
    found: list[list[str]] = [[] for _ in shape]
    for axis in rng.permutation(list(mesh)):
        i = int(rng.integers(len(shape) + 1))
        parts = prod([mesh[name] for name in (*(found[i] if i < len(shape) else ()), axis)])
        if i < len(shape) and (within and rng.random() < 0.2 or shape[i] % parts == 0):
            found[i].append(str(axis))
    return [tuple(names) if names else "open" if within and rng.random() < 0.3 else None for names in found]


def _operation(rng: Any, mesh: dict[str, int], x: str, shape: Shape, values: list[tuple[str, Shape]]
               ) -> tuple[str, Shape] | None:
    y, other = values[rng.integers(len(values))]
    kind = rng.integers(10)
    if kind == 0 or not shape:
        return f"lax.sin({x})", shape
    if kind == 1:
        return f"{x}.T", shape[::-1]
    if kind == 2:
        axis = int(rng.integers(len(shape)))
        return f"{x}.sum(axis={axis}) * 0.1", (*shape[:axis], *shape[axis + 1:])
    if kind == 3 and len(shape) > 1:
        return f"{x}.reshape({(shape[0] * shape[1], *shape[2:])})", (shape[0] * shape[1], *shape[2:])
    if kind == 4 and shape[0] % 4 == 0:
        return f"{x}.reshape({(4, shape[0] // 4, *shape[1:])})", (4, shape[0] // 4, *shape[1:])
    if kind == 5 and other and shape[-1] == other[0]:
        return (f"lax.dot_general({x}, {y}, ((({len(shape) - 1},), (0,)), ((), ()))) * 0.1", (*shape[:-1], *other[1:]))
    if kind == 6 and shape[:len(other)] == other[:len(shape)]:
        wide = max(shape, other, key=len)
        texts = [f"lax.broadcast_in_dim({name}, {wide}, {tuple(range(len(own)))})" for name, own in ((x, shape),
                                                                                                    (y, other))]
        return f"{texts[0]} * lax.cos({texts[1]})", wide
    if kind == 7:
        return f"{x}[::-1]", shape
    if kind == 8:
        return f"lax.concatenate([{x}, {x}], 0)", (2 * shape[0], *shape[1:])
    if kind == 9:
        return f"lax.with_sharding_constraint({x}, on({_entries(rng, mesh, shape, True)!r}))", shape
    return None


def computed(made: Program, library: Library, gradient: bool) -> list[tuple[np.ndarray[Any, Any], dict[int, Any]]]:
    """Results, and which part of them is where."""
    names: dict[str, Any] = {"lax": library.lax, "on": lambda entries: library.sharding(made, entries)}
    exec(made.text, names)
    function, options = names["function"], {}
    xs = [np.cos(np.arange(prod(shape)) * 0.7 + i).reshape(shape) for i, shape in enumerate(made.shapes)]
    args = [x if entries is None else library.top.device_put(x, library.sharding(made, entries))
            for x, entries in zip(xs, made.put, strict=True)]
    if any([entries is not None for entries in made.wanted]):
        options["in_shardings"] = tuple([library.sharding(made, entries) for entries in made.wanted])
    if gradient:
        inner = function
        function = library.top.grad(lambda *xs: (inner(*xs) ** 2).sum(), argnums=tuple(range(len(xs))))
    elif made.result is not None:
        options["out_shardings"] = library.sharding(made, made.result)
    outs = library.top.jit(function, **options)(*args)
    return [(np.asarray(out), held(out)) for out in (outs if gradient else [outs])]


def held(x: Any) -> dict[int, Any]:
    return {device.id: [part.indices(size) for part, size in zip(parts, x.shape, strict=True)]
            for device, parts in x.sharding.devices_indices_map(x.shape).items()}


@pytest.mark.parametrize("seed", exhaustive_unless(lambda seed: seed % EVERY == 0, range(ALL)))
def test_a_random_program_of_divided_arrays_agrees_with_jax(seed: int) -> None:
    made = program(seed)
    theirs = Library(jax, jax.lax, sharding_in(jax.devices(), jax.sharding, jax.P))
    ours = Library(cj, lax, sharding_in(cj.devices(), cj.sharding, cj.P))
    with jax.enable_x64(True):
        for gradient in (False, True):
            for (x, where), (y, here) in zip(computed(made, theirs, gradient), computed(made, ours, gradient),
                                             strict=True):
                assert (x.shape, x.dtype) == (y.shape, y.dtype), made
                np.testing.assert_allclose(y, x, rtol=1e-9, atol=1e-9, err_msg=made.text)
                assert gradient or where == here, made  # sums of cotangents are divided like one of the terms
