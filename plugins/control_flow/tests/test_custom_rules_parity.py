"""Programs with rules of their own, run by corejax and by jax: the same text, the same results of the same types."""

from __future__ import annotations

from fnmatch import fnmatch
from typing import Any

import numpy as np
import pytest

import argument_programs
import closing_rule_programs
import corejax as cj
import custom_batching_programs
import custom_rule_programs
import symbolic_zero_programs
from corejax.errors import CorejaxError

jax = pytest.importorskip("jax")

MODULES = (argument_programs, custom_rule_programs, symbolic_zero_programs, custom_batching_programs,
           closing_rule_programs)
PROGRAMS = {name: run for module in MODULES for name, run in module.PROGRAMS.items()}

#: What jax 0.10.2 refuses and corejax takes.
HERE_ALONE = (
    "jvp_method", "vjp_method",                    # jax's aren't bound to an instance
    "nondiff_int",                                 # one number for nondiff_argnums
    "nondiff_*tracer*vjp", "nondiff_jit_tracer_outer_grad_jvp",
    "closure_*_jit_*_grad_*", "closure_vjp_grad_of_vmap_*", "closure_*_outer_grad_both_in_rule",
    "closure_*_outer_grad_both_in_bwd", "closure_*_grad_of_scan_*", "closure_*_cond_*",
    "closure_*_grad_of_checkpoint_*",
    "cond_*_grad_vmap",                            # jax has no transpose for what becomes of them
    "vmap_vmap_jacfwd", "vmap_second",             # jax says that a batched tangent isn't
)
#: What both refuse.
NOWHERE = ("*_staticmethod", "nondiff_jvp_tracer_vjp", "keyword_only_given", "keyword_only_nondiff", "defjvps_nondiff",
           "closure_*_outer_grad_primal_*", "closure_*_outer_grad_both_*", "closure_vjp_linearize_*")


@pytest.fixture(autouse=True)
def _x64():
    with jax.enable_x64(True):
        yield


def attempt(library: Any, run: Any) -> tuple[str, Any]:
    try:
        return "taken", library.tree_util.tree_flatten(run(library, library.lax))
    except Exception as error:  # of any kind: jax's are of many
        return "refused", error


def is_any(name: str, patterns: tuple[str, ...]) -> bool:
    return any([fnmatch(name, pattern) for pattern in patterns])


@pytest.mark.sample(100)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_program_does_the_same_as_with_jax(name):
    (ours, result), (theirs, wanted) = attempt(cj, PROGRAMS[name]), attempt(jax, PROGRAMS[name])
    if theirs == "refused":
        assert is_any(name, NOWHERE if ours == "refused" else HERE_ALONE), result
        assert ours == "taken" or isinstance(result, CorejaxError) or name.endswith("_staticmethod")
        return
    assert "taken" == ours, result
    assert str(wanted[1]) == str(result[1])
    for x, y in zip(result[0], wanted[0], strict=True):
        if isinstance(y, (str, bool)):
            assert y == x
        else:
            x, y = np.asarray(x), np.asarray(y)
            assert (y.shape, y.dtype) == (x.shape, x.dtype)
            np.testing.assert_allclose(x, y, rtol=1e-12)
