"""Random programs with checks at every level: which fails first, beside the program run in Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax as cj
from checked_programs import Library, Maker, first_failure
from corejax import checkify, lax, numpy as jnp

QUICK, ALL = 24, 600

library = Library(cj, lax, jnp, checkify)


def seeds() -> list[Any]:
    return [*range(QUICK), *[pytest.param(seed, marks=pytest.mark.exhaustive) for seed in range(QUICK, ALL)]]


@pytest.mark.parametrize("seed", seeds())
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_check_that_fails_first_is_that_of_python(seed: int) -> None:
    program = Maker(seed).program()
    wanted = first_failure(program)
    function = library.checked(program)
    x = jnp.asarray(program.x)
    (err, y), (compiled, z) = function(x), cj.jit(function)(x)
    for found in (err.get(), compiled.get()):
        assert (found is None) == (wanted is None), (wanted, found)
        assert wanted is None or wanted in found, (wanted, found)
    np.testing.assert_allclose(np.asarray(y), np.asarray(z), rtol=1e-9)


@pytest.mark.parametrize("seed", seeds())
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_each_element_of_a_mapped_program_has_its_own_first_failure(seed: int) -> None:
    program = Maker(seed).program()
    rows = np.stack([program.x, program.x - 0.7, program.x + 0.9])
    err, _ = cj.vmap(library.checked(program))(jnp.asarray(rows))
    failure = err.get_exception()
    found = {} if failure is None else {at[0]: error.message for at, error in failure.errors.items()}
    for i, row in enumerate(rows):
        program.x = row
        wanted = first_failure(program)
        assert (wanted is None) == (i not in found), (i, wanted, found)
        assert wanted is None or wanted in found[i], (i, wanted, found)
