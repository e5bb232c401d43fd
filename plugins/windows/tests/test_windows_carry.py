"""The hook `carry` of `reduce_window`: transformations of packs go through the function that combines elements."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.testing import assert_allclose

import corejax as cj
from corejax.core import aval_of, dtypes
from corejax_testing.duals import by_duals, by_jvp
from corejax_testing.running import primitive_of


def test_dual_numbers_equal_jvp() -> None:
    primitive = primitive_of("reduce_window")
    for sample in primitive.samples(np.random.default_rng(0)):
        boxed = [i for i, x in enumerate(sample.args) if dtypes.is_inexact(aval_of(x).dtype)]
        if sample.error is not None or not boxed:
            continue

        def fun(*xs: Any, sample: Any = sample) -> list[Any]:
            return list(primitive.bind(*xs, **sample.params))

        operands = [*sample.args, *[np.cos(sample.args[i]) for i in boxed]]
        duals, jvp = [by(fun, len(sample.args), boxed) for by in (by_duals, by_jvp)]
        for run in (duals, cj.jit(duals)):
            for got, wanted in zip(run(*operands), jvp(*operands), strict=True):
                assert aval_of(got) is aval_of(wanted)
                assert_allclose(got, wanted, rtol=1e-12, atol=1e-12)
