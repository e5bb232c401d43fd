"""The shipped packs keep the laws of the conformance kit: the quick mode for all primitives, the full one for a spread.

`pytest --corejax-full -m corejax --corejax-pack NAME` runs the full mode for all of a pack, and takes long.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from zlib import crc32

import pytest

import seconds
from corejax.testing import Search, check_primitive
from corejax_testing.catalogue import CHECKS
from corejax_testing.effort import NO_COUNTEREXAMPLE
from corejax_testing.packs import Subject, primitives_of
from corejax_testing.running import outcome_of, outcomes
from exhaustive import exhaustive_unless
from quick_code import usual_code

PACKS = ("corejax-lax-basic", "corejax-reductions", "corejax-control-flow", "corejax-special", "corejax-sorting",
         "corejax-collectives", "corejax-windows", "corejax-linear-algebra", "corejax-fft", "corejax-random",
         "corejax-nn", "corejax-checkify", "corejax-callbacks", "corejax-references", "corejax-softplus")

#: What takes devices that the kit doesn't have: tests/packs/collectives is about these.
BETWEEN_DEVICES = ("precv", "psend")
PRIMITIVES = [name for pack in PACKS for name in primitives_of(pack) if name not in BETWEEN_DEVICES]

#: Of each way to write a primitive one; `make test` has one of them in the full mode.
SPREAD = ("exp", "mul", "eq", "select_n", "convert_element_type", "dot_general", "gather", "dynamic_slice",
          "concatenate", "broadcast_in_dim", "reduce_max", "argmax", "cond", "checkpoint_call", "custom_call",
          "softplus")

#: Seconds of the processor for a primitive in the quick mode; 1.5 where it isn't named. Whoever gives one more does so
#: here, with open eyes: all are paid for at every change.
ALLOWED = {
    "scan": 15.0, "xla_call": 7.0, "scatter_mul": 14.0, "scatter_min": 3.0, "scatter_max": 3.0, "dot_general": 3.0,
    "erf_inv": 2.0, "bessel_i0e": 2.0, "bessel_i1e": 3.0, "lgamma": 2.0, "digamma": 4.0, "zeta": 8.0, "polygamma": 14.0,
    "igamma": 27.0, "igammac": 27.0, "igamma_grad_a": 26.0, "random_gamma_grad": 22.0,
    "regularized_incomplete_beta": 42.0,
    "scatter": 2.0, "scatter_add": 2.0, "while_loop": 4.0,
    "bounded_while_loop": 10.0, "counted_scan": 8.0, "checkpointed_scan": 20.0, "segmented_scan": 20.0,
    "convert_element_type": 2.0, "pow": 2.0,
    "reduce": 6.0, "cummax": 2.5, "cummin": 2.5, "cumlogsumexp": 3.0, "linear_recurrence": 2.5, "sort": 3.0,
    "top_k": 2.5, "ragged_dot_general": 3.0, "with_accuracy": 3.0,
    "shard_map": 25.0, "xla_pmap": 20.0, "sharding_constraint": 4.0,
    "psum": 3.0, "psum_invariant": 2.0, "pmax": 3.0, "pmin": 3.0, "all_gather": 3.0, "all_gather_invariant": 2.0,
    "reduce_scatter": 3.0, "all_to_all": 3.5, "ragged_all_to_all": 15.0, "ppermute": 3.0, "pbroadcast": 2.0,
    "rng_bit_generator": 3.0, "rng_uniform": 2.0,
    "unstack": 2.0, "split": 2.0, "tile": 2.0, "scatter_sub": 5.5, "approx_top_k": 4.0,
    "conv_general_dilated": 8.0, "reduce_window": 4.0, "reduce_window_max": 3.5, "reduce_window_min": 3.5,
    "reduce_window_sum": 2.0, "select_and_gather_add": 9.0, "select_and_scatter": 6.0, "select_and_scatter_add": 14.0,
    "cholesky": 11.0, "cholesky_update": 45.0, "triangular_solve": 20.0, "tridiagonal_solve": 15.0, "lu": 32.0,
    "lu_pivots_to_permutation": 5.0, "qr": 23.0, "geqrf": 2.5, "geqp3": 2.5, "householder_product": 2.0, "ormqr": 4.0,
    "eigh": 2.0, "eig": 19.0, "svd": 5.0, "schur": 4.5, "hessenberg": 4.5, "tridiagonal": 6.0, "fft": 3.5,
    "random_gamma": 20.0, "random_lgamma": 3.0, "random_bits": 2.5, "random_erf_inv": 2.5, "random_split": 2.5,
    "random_log1p": 2.0, "threefry2x32": 2.0, "nn_attention": 12.0, "nn_attention_back": 8.0,
    "nn_attention_forward": 7.0}

#: Those whose rules are much like others', or whose programs take long to compile: `make test-all` has them.
#: Their values are tested at every change, in tests/packs and tests/devices.
SIBLINGS = frozenset("""
    acosh asin asinh atan cos cosh exp2 min sin sinh sub tan
    bessel_i0e bessel_i1e digamma erf_inv erfc igamma igammac igamma_grad_a polygamma random_gamma_grad
    regularized_incomplete_beta zeta
    checkpointed_scan counted_scan segmented_scan
    cumlogsumexp cummin cumprod reduce_min reduce_window reduce_window_min reduce_window_sum select_and_gather_add
    select_and_scatter_add scatter_max scatter_min scatter_mul scatter_sub stack tile unstack approx_top_k rng_uniform
    cholesky_update eig geqp3 geqrf hessenberg householder_product lu ormqr qr ragged_dot_general schur tridiagonal
    tridiagonal_solve
    random_gamma random_lgamma random_erf random_erf_inv random_log1p philox4x32 random_split random_fold_in
    nn_attention_forward nn_attention_back ppermute reduce_scatter select_and_scatter lgamma svd linear_recurrence
    lu_pivots_to_permutation rng_bit_generator triangular_solve with_accuracy sharding_constraint
    all_gather_invariant all_to_all pbroadcast pmax pmin psum_invariant ragged_all_to_all shard_map xla_pmap
""".split())

#: How many times as many it takes on a busy machine, and where it is the first in a process to compile much.
MARGIN = 6.0


#: The checks about the machine code that the compiler writes: of a third of the primitives it is the usual code.
#: The others are about rules, and take any code. `make test-all` takes the usual code for all.
ABOUT_CODE = ("impl and the compiled program agree", "results are those that the sample knows",
              "empty arrays and scalars work", "nans and infinities agree", "zeros keep their signs",
              "extreme numbers agree", "subnormal numbers agree or count as zero", "extreme integers agree",
              "elements are moved whole", "evaluate and the compiled program agree",
              "every dtype that is accepted works", "values do not depend on how many there are")
ABOUT_RULES = [name for name, each in CHECKS.items() if name not in ABOUT_CODE and not each.full]

#: What quick code refuses, or computes in another way: extremes of complex numbers, extreme powers and roots.
NEED_USUAL_CODE = ("min", "max", "scatter_min", "scatter_max", "cbrt", "pow")


#: The checks of what a primitive has to itself: its values, its types, its derivative and its map. The others are about
#: what it mostly shares with those that are made in the same way, so at every change each primitive of SPREAD has all
#: of them, and each of the others a third: what breaks one for a kind of primitives breaks it for some of these.
OF_EACH = (*ABOUT_CODE, "values are given in two ways", "each param has two values", "unsupported inputs are refused",
           "no fallback is hidden", "a derivative is given or declared missing", "a zero derivative is of a constant",
           "declared linear operands are linear", "abstract eval depends on types alone", "every param is read",
           "weak types pass through", "no rule writes to its operands", "it lowers for every platform",
           "transformed programs are typed", "jvp agrees with differences", "derivatives agree at special points",
           "pullback is the adjoint of jvp", "transpose is the adjoint", "a map is a loop",
           "maps of no slice and of one work", "values in narrow types are those of doubles",
           "the decomposition agrees", "params out of range are refused or work")


def in_turn(primitive: str, check: str) -> bool:
    """Whether `make test` has this check of this primitive."""
    return primitive in SPREAD or check in OF_EACH or crc32(f"{primitive}, {check}".encode()) % 3 == 0


# One test for each primitive and not for each check: the checks of a primitive share what they compile.
@pytest.mark.parametrize("primitive, others", [
    pytest.param(name, others, id=f"{name}-others" if others else name,
                 marks=pytest.mark.exhaustive if others or name in SIBLINGS else ())
    for name in PRIMITIVES for others in ((False,) if name in SPREAD else (False, True))])
def test_rules_keep_the_laws_within_the_seconds_allowed(
        primitive: str, others: bool, record_property: Callable[[str, object], None]) -> None:
    begun = seconds.spent()
    about_code, about_rules = [[name for name in checks if in_turn(primitive, name) is not others]
                               for checks in (ABOUT_CODE, ABOUT_RULES)]
    with usual_code() if primitive in NEED_USUAL_CODE or crc32(primitive.encode()) % 3 == 0 else nullcontext():
        found = list(outcomes(primitive, checks=about_code))
    found += outcomes(primitive, checks=about_rules)
    assert "" == "\n\n".join([str(failure) for outcome in found for failure in outcome.failures])
    took, allowed = seconds.spent() - begun, ALLOWED.get(primitive, 1.5)
    record_property(seconds.OF_THE_KIT, f"{primitive}: {took:.1f} s of {allowed} s")
    assert took < MARGIN * allowed


#: Of each kind of primitive one, in which `make test` searches for counterexamples, with one seed.
SEARCHED = ("exp", "add", "dot_general", "reduce_max", "cond")


@pytest.mark.parametrize("seed", exhaustive_unless(lambda seed: seed == 0, (0, 1, 2, 3)))
@pytest.mark.parametrize("primitive", exhaustive_unless(SEARCHED.__contains__, PRIMITIVES))
def test_search_finds_no_counterexample(primitive: str, seed: int) -> None:
    found = outcome_of(Subject("", primitive), NO_COUNTEREXAMPLE, effort=Search(20, seed=seed))
    assert "" == "\n\n".join(map(str, found.failures)) and (found.held or found.exempt)


@pytest.mark.slow
@pytest.mark.parametrize("primitive", exhaustive_unless("argmax".__eq__, SPREAD))
def test_rules_keep_the_laws_of_the_full_mode(primitive: str) -> None:
    check_primitive(primitive, full=True)
