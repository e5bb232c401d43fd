"""Random programs with references, beside the same programs in pure style: their values and derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from reference_programs import NESTED, in_pure_style, kinds_in, library, program, run, with_references

M = library(cj, lax)
REFS = 2
GROUPS = 8
EACH = 4  # of which `make test-all` makes 24

REVERSIBLE = tuple([kind for kind in NESTED if kind != "while"])


def close(expected: Any, got: Any) -> None:
    one, two = cj.tree.leaves(expected), cj.tree.leaves(got)
    assert len(one) == len(two)
    for x, y in zip(one, two, strict=True):
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-9, atol=1e-9)


def case(seed: int, kinds: Any = NESTED) -> tuple[Any, Any, tuple[Any, ...]]:
    rng = np.random.default_rng(seed)
    nodes = program(rng, int(rng.integers(1, 4)), REFS, kinds)
    args = (cj.device_put(np.float64(rng.uniform(-1, 1))), *[cj.device_put(rng.uniform(-1, 1, 3)) for _ in range(REFS)])
    return with_references(M, nodes, REFS), in_pure_style(M, nodes, REFS), args


def total(h: Any) -> Any:
    """The sum of all that a function returns."""
    return lambda *args: sum([y.sum() for y in cj.tree.leaves(h(*args))])


def seeds(group: int, each: int = EACH) -> range:
    return range(group * 1000, group * 1000 + each)


@pytest.mark.parametrize("group", range(GROUPS))
def test_values_are_those_of_the_pure_program(group):
    for seed in seeds(group):
        f, g, args = case(seed)
        expected = g(*args)
        close(expected, f(*args))
        close(expected, cj.jit(f)(*args))


@pytest.mark.parametrize("group", range(GROUPS))
def test_references_from_outside_are_written(group):
    for seed in seeds(group):
        rng = np.random.default_rng(seed)
        nodes = program(rng, 2, REFS)
        x, arrays = cj.device_put(np.float64(0.3)), [cj.device_put(rng.uniform(-1, 1, 3)) for _ in range(REFS)]
        expected = in_pure_style(M, nodes, REFS)(x, *arrays)
        for how in (lambda f: f, cj.jit):
            closed = [cj.new_ref(a) for a in arrays]
            out = how(lambda x, closed=closed, nodes=nodes: run(M, nodes, x, closed))(x)
            close(expected, (out, [ref[...] for ref in closed]))
            given = [cj.new_ref(a) for a in arrays]
            out = how(lambda x, refs, nodes=nodes: run(M, nodes, x, refs))(x, given)
            close(expected, (out, [ref[...] for ref in given]))


@pytest.mark.parametrize("group", range(GROUPS))
def test_derivatives_are_those_of_the_pure_program(group):
    for seed in seeds(group, EACH // 2):
        f, g, args = case(seed, REVERSIBLE)
        dots = tuple([np.ones_like(x) * 0.5 for x in args])
        close(cj.jvp(g, args, dots), cj.jvp(f, args, dots))

        argnums = tuple(range(len(args)))
        expected = cj.grad(total(g), argnums)(*args)
        close(expected, cj.grad(total(f), argnums)(*args))
        close(expected, cj.jit(cj.grad(total(f), argnums))(*args))
        close(expected, cj.grad(cj.jit(total(f)), argnums)(*args))


@pytest.mark.parametrize("group", range(GROUPS))
def test_maps_are_those_of_the_pure_program(group):
    for seed in seeds(group, EACH // 2):
        f, g, args = case(seed)
        batch = tuple([cj.device_put(np.stack([x, x * 0.5, -x])) for x in args])
        expected = cj.vmap(g)(*batch)
        close(expected, cj.vmap(f)(*batch))
        close(expected, cj.jit(cj.vmap(f))(*batch))
        rows = [f(*[x[i] for x in batch]) for i in range(3)]
        close(expected, cj.tree.map(lambda *xs: np.stack([np.asarray(x) for x in xs]), *rows))
        # references with an axis for the batch, as arguments
        refs = [cj.new_ref(x) for x in batch[1:]]
        nodes = program(np.random.default_rng(seed), 1, REFS)
        out = cj.vmap(lambda x, refs, nodes=nodes: run(M, nodes, x, refs))(batch[0], refs)
        close(cj.vmap(in_pure_style(M, nodes, REFS))(*batch), (out, [ref[...] for ref in refs]))


@pytest.mark.exhaustive
@pytest.mark.parametrize("group", range(20))
def test_many_more_values(group):
    for seed in seeds(group + 100, 50):
        f, g, args = case(seed)
        expected = g(*args)
        close(expected, f(*args))
        close(expected, cj.jit(f)(*args))


def test_every_kind_of_statement_occurs():
    found = set()
    for group in range(GROUPS):
        for seed in seeds(group):
            rng = np.random.default_rng(seed)
            found |= kinds_in(program(rng, int(rng.integers(1, 4)), REFS))
    assert not {*NESTED} - found
