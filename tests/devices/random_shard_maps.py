"""Random programs of `shard_map`, for any library with the interface of jax; the same program for the same seed.

A program is Python text: a function of the parts that devices hold, written statement by statement over values whose
shapes, kinds and axes along which they vary are known, so that nearly every program is valid. Values that steer loops
and branches may differ between devices; collectives aren't written within those, since they would wait for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from random_functions import NESTED
from random_scopes import Kinds, Scope, Value, Writer
from random_statements import PLAIN, TOGETHER

MESHES = ({"x": 2}, {"x": 4}, {"x": 8}, {"x": 1}, {"x": 2, "y": 2}, {"x": 2, "y": 4}, {"y": 4, "x": 2},
          {"x": 1, "y": 2}, {"x": 2, "y": 2, "z": 2}, {"z": 2, "y": 1, "x": 4}, {"x": 4, "y": 1})


class Program(NamedTuple):
    """A program: its text, what it is applied to, and on which mesh."""

    seed: int
    text: str
    inputs: tuple[np.ndarray[Any, Any], ...]
    mesh: dict[str, int]
    places: tuple[int, ...]
    tracked: bool
    forward_only: bool
    partial: bool

    def __str__(self) -> str:
        shapes = ", ".join([f"{x.dtype}{list(x.shape)}" for x in self.inputs])
        return f"# seed {self.seed}: {shapes} on {self.mesh}, devices {self.places}\n{self.text}"


class Library(NamedTuple):
    """What programs use of a library."""

    top: Any
    lax: Any
    spec: Any
    mesh: Callable[[dict[str, int], Sequence[int]], Any]
    vary: Callable[[Any, tuple[str, ...]], Any]


def function(program: Program, library: Library) -> Callable[..., Any]:
    """The program as a function of its inputs."""
    names: dict[str, Any] = {
        "cj": library.top, "lax": library.lax, "P": library.spec, "np": np,
        "mesh": library.mesh(program.mesh, program.places),
        "vary": library.vary if program.tracked else lambda x, axes: x}
    exec(compile(program.text, f"<program {program.seed}>", "exec"), names)
    return names["function"]  # type: ignore[no-any-return]


def program(seed: int) -> Program:
    """The program of this seed."""
    rng = np.random.default_rng(seed)
    mesh = dict(MESHES[rng.integers(len(MESHES))])
    places = rng.permutation(8) if rng.random() < 0.15 else np.arange(8)
    tracked = bool(rng.random() < 0.7)
    manual = list(mesh)
    if len(mesh) > 1 and rng.random() < 0.3:
        manual = [name for name in mesh if rng.random() < 0.5] or [str(rng.choice(manual))]
    writer = Writer(rng, mesh, tracked, Kinds(PLAIN, TOGETHER, NESTED))
    inputs, specs, values = [], [], []
    for i in range(int(rng.integers(1, 4))):
        whole, spec, value = _argument(writer, f"a{i}", manual, i == 0)
        inputs.append(whole)
        specs.append(spec)
        values.append(value)
    scope = Scope(writer, [*values], tuple(manual), (), False, 0)
    with writer.function("body", [value.name for value in values]):
        scope.statements(int(rng.integers(2, 7)))
        outs = [_result(scope) for _ in range(int(rng.integers(1, 4)))]
        writer.line(f"return {', '.join([out for out, _ in outs])},")
    axis_names = "" if len(manual) == len(mesh) else f", axis_names={set(manual)!r}"
    with writer.function("function", [value.name for value in values]):
        writer.line(f"mapped = cj.shard_map(body, mesh=mesh, in_specs=({', '.join(specs)},), "
                    f"out_specs=({', '.join([spec for _, spec in outs])},), check_vma={tracked}{axis_names})")
        writer.line(f"return mapped({', '.join([value.name for value in values])})")
    return Program(seed, writer.text(), tuple(inputs), mesh, tuple(places[:prod(mesh.values())].tolist()), tracked,
                   writer.forward_only, len(manual) < len(mesh))


def _argument(writer: Writer, name: str, manual: list[str], floating: bool) -> tuple[Any, str, Value]:
    rng = writer.rng
    part = writer.shape()
    entries: list[list[str]] = [[] for _ in part]
    for axis in rng.permutation(manual):
        if part and rng.random() < 0.6:
            entries[rng.integers(len(part))].append(str(axis))
    shape = [size * prod([writer.mesh[axis] for axis in entry]) for size, entry in zip(part, entries, strict=True)]
    kind = "f" if floating or rng.random() < 0.85 else "i"
    whole = rng.standard_normal(shape) if kind == "f" else rng.integers(-3, 4, shape, np.int32)
    varying = frozenset([axis for entry in entries for axis in entry])
    return np.asarray(whole), _spec(entries), Value(name, part, kind, varying)


def _spec(entries: list[list[str]]) -> str:
    shown = [repr(tuple(entry) if len(entry) > 1 else entry[0] if entry else None) for entry in entries]
    while shown and shown[-1] == "None":
        shown.pop()
    return f"P({', '.join(shown)})"


def _result(scope: Scope) -> tuple[str, str]:
    """A value for the function to return, and the spec that says how parts of it are put together."""
    rng = scope.rng
    value = scope.mixed() if rng.random() < 0.8 else scope.any()
    if value.kind == "b":
        value = scope.as_float(value)
    if value.varying and (not value.shape or rng.random() < 0.3):
        some = frozenset(value.varying if not value.shape else [name for name in value.varying if rng.random() < 0.6])
        value = scope.reduced(value, some) if some else value
    entries: list[list[str]] = [[] for _ in value.shape]
    for axis in rng.permutation(scope.manual):
        if axis in value.varying or (value.shape and rng.random() < 0.1):
            entries[rng.integers(len(entries))].append(str(axis))
    return value.name, _spec(entries)
