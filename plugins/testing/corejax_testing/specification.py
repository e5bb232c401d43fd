"""The samples of a primitive: where they come from, and whether the kit can use them."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any
from zlib import crc32

import numpy as np

from corejax.core import Primitive, aval_of, dtypes
from corejax.errors import CorejaxError, CorejaxTypeError, suggestion
from corejax.plugin import NotDifferentiable, Sample
from corejax.rules import place_of_rule, whose
from corejax_testing.case import Case
from corejax_testing.comparing import host
from corejax_testing.report import Failure, Outcome, clipped
from corejax_testing.tangents import finite

#: The name of the check that comes before all others. It is about all samples together, rather than a case.
HAS_SAMPLES = "has samples"

_HOOK = "samples"

#: How many samples a primitive may have: without a limit, a hook that never ends would hang the process.
MOST = 1000

#: What replaces narrower floats for comparing a derivative with differences.
_DOUBLE = {"f": np.float64, "c": np.complex128}


#: What is wrong with samples if none of them can show whether a derivative is right: the arguments of a failure.
_INCOMPARABLE = (
    "all samples", "none can be used to compare derivatives with differences, which takes double precision",
    "floats that are narrower, not finite, or of empty arrays", "finite operands of float64 or complex128",
    "add a sample of these, as abstract_eval takes them: Sample([rng.normal(size=(2, 3))])")


def samples_of(primitive: Primitive) -> list[Sample]:
    """The samples from the primitive's hook, the same each time; an empty list if it has no such hook."""
    if primitive.samples is None:
        return []
    return _counted(primitive.samples(np.random.default_rng(crc32(primitive.name.encode()))))


def _counted(samples: Iterable[object]) -> list[Any]:
    found = list(islice(samples, MOST + 1))
    if len(found) > MOST:
        raise CorejaxTypeError(f"there are more than {MOST} samples", got="an iterable that doesn't end, or ends late",
                               wanted="some samples of each kind", todo="yield fewer: the kit draws more operands "
                               "of the same shapes by itself, from domain=")
    return found


def specified(primitive: Primitive, samples: Iterable[Sample] | None,
              checks: Collection[str], whole: bool = True) -> tuple[list[Sample], Outcome]:
    """The usable samples (those of the hook if none are given), and what is wrong with them.

    `checks` are the names that an exemption may have. `whole` says that these are all the samples.
    """
    start = time.perf_counter()
    given: list[Any] = []
    failures = []
    try:
        given = samples_of(primitive) if samples is None else _counted(samples)
        failures += [_failure(primitive, *fault) for fault in _faults(primitive, given, checks, samples is None)]
        if whole and not _comparable(primitive, given):
            failures.append(_failure(primitive, *_INCOMPARABLE))
    except (Exception, SystemExit) as error:
        failures.append(_failure(primitive, "the hook", f"it raised {type(error).__name__}", str(error),
                                 "samples, whatever the random numbers", "fix the hook", error))
    usable = [sample for sample in given if isinstance(sample, Sample) and _misfit(primitive, sample) is None]
    return usable, Outcome(primitive.name, HAS_SAMPLES, _HOOK, tuple(failures), len(usable), (), (),
                           time.perf_counter() - start)


def _faults(primitive: Primitive, samples: list[Any], checks: Collection[str],
            from_hook: bool) -> Iterator[tuple[str, str, str, str, str]]:
    """The faults of samples: the input, the problem, got, wanted, to do."""
    if not samples:
        yield ("none", "there is nothing to check it on",
               "no samples" if not from_hook or primitive.samples else "no hook `samples`",
               "samples of each shape, dtype and param that it takes",
               "write `samples(self, rng)` in the plugin, or pass samples to check_primitive")
    elif all([isinstance(sample, Sample) and sample.error is not None for sample in samples]):
        yield ("all samples", "each must raise an error, so no rule is checked", f"{len(samples)} with an error",
               "inputs that it takes, too", "add samples without `error`")
    for number, sample in enumerate(samples):
        for problem, got, wanted, todo in _faults_of(sample, checks):
            yield f"sample {number}: {clipped(repr(sample), 100)}", problem, got, wanted, todo
        misfit = _misfit(primitive, sample)
        if misfit:
            yield f"sample {number}: {clipped(repr(sample), 100)}", *misfit
    if from_hook and not _same(samples, samples_of(primitive)):
        yield ("all samples", "a second call with equal random numbers yields different ones", "different operands",
               "the same, so that a failure comes again", "take random numbers from the argument `rng` only")


def _faults_of(sample: object, checks: Collection[str]) -> Iterator[tuple[str, str, str, str]]:
    """The faults of a single sample: the problem, got, wanted, to do."""
    if not isinstance(sample, Sample):
        yield ("it isn't a sample", clipped(repr(sample), 100), "a Sample",
               "yield Sample([operand, ...], {param: value, ...})")
        return
    for name, reason in sample.exempt.items():
        if name not in checks and ": " not in name:  # the transformation of such a law may not be installed
            yield (f"there is no check {name!r} to exempt it from", repr(name), "the name of a check",
                   suggestion(name, checks) or "look in corejax.testing.CHECKS")
        if not isinstance(reason, str) or not reason.strip():
            yield (f"it is exempt from {name!r} without a reason", repr(reason), "why the law doesn't hold here",
                   "say why, or remove the exemption")
    if sample.error is not None and not (isinstance(sample.error, type) and issubclass(sample.error, BaseException)):
        yield "error must be an exception class", repr(sample.error), "the class that it must raise", "error=TypeError"
    if not _is_domain(sample.domain, len(sample.args)):
        yield ("domain must be an interval", repr(sample.domain),
               "(low, high), or one for each operand, None to keep it", f"give one interval, or {len(sample.args)}")
    if not all([_is_finite(point) for point in sample.singular]):
        yield "a singular point must be a number", repr(sample.singular), "finite numbers", "singular=(0.0,)"
    if sample.atol is not None and not (_is_finite(sample.atol) and sample.atol >= 0):
        yield ("atol must be a bound", repr(sample.atol), "a finite number from 0 on",
               "give the distance that is right whatever the size of the results")
    if sample.ulps is not None and not (_is_finite(sample.ulps) and sample.ulps >= 0):
        yield ("ulps must be a bound", repr(sample.ulps), "a finite number from 0 on",
               "give the distance that is right; a law that doesn't hold at all goes to `exempt`, with the reason")


def _misfit(primitive: Primitive, sample: object) -> tuple[str, str, str, str] | None:
    """Why a sample can't be an input of the primitive, whatever the rules say: the problem, got, wanted, to do."""
    if not isinstance(sample, Sample) or sample.error is not None:
        return None
    for i, x in enumerate(sample.args):
        try:
            aval_of(x)
        except CorejaxError as error:
            return (f"operand {i} is not an array: {error.message}", clipped(repr(x)),
                    "arrays, NumPy scalars, or Python's numbers", "yield Sample([operand, ...], {param: value, ...}); "
                    "what must be refused has an error=")
    unknown, missing = sample.params.keys() - primitive.params, primitive.params - sample.params.keys()
    if missing or (unknown and not primitive.open_params):
        return ("its params don't match those of the primitive", ", ".join(sorted(sample.params)) or "no params",
                ", ".join(sorted(primitive.params)) or "no params", "give each param a value, defaults too")
    return None


def _comparable(primitive: Primitive, samples: Sequence[object]) -> bool:
    """Whether derivatives can be compared with differences for some input, or no input could allow that."""
    possible = False
    for number, sample in enumerate(samples):
        if not isinstance(sample, Sample) or sample.error is not None or _misfit(primitive, sample):
            continue
        case = Case(primitive, sample, number)
        if not case.inexact or isinstance(case.declared("jvp"), NotDifferentiable):
            continue
        if case.doubles and finite(case.args):
            return True
        wide = case.with_args([_doubled(x) for x in sample.args])
        possible |= wide.is_accepted() and any([dtypes.is_inexact(aval.dtype) for aval in wide.out_avals])
    return not possible


def _doubled(x: object) -> Any:
    """Floats in double precision; anything else unchanged."""
    double = _DOUBLE.get(dtypes.kind(aval_of(x).dtype))
    return x if double is None or type(x) in dtypes.PYTHON_SCALARS else host(x).astype(double)


def _is_finite(x: object) -> bool:
    return isinstance(x, (int, float)) and math.isfinite(x)


def _is_domain(domain: object, operands: int) -> bool:
    if domain is None or _is_interval(domain):
        return True
    return (isinstance(domain, (tuple, list)) and len(domain) == operands
            and all([part is None or _is_interval(part) for part in domain]))


def _is_interval(domain: object) -> bool:
    return (isinstance(domain, (tuple, list)) and len(domain) == 2
            and all([_is_finite(end) for end in domain]) and domain[0] < domain[1]
            and math.isfinite(domain[1] - domain[0]))


def _same(ones: Sequence[object], others: Sequence[object]) -> bool:
    if len(ones) != len(others):
        return False
    pairs = [(a, b) for one, other in zip(ones, others) if isinstance(one, Sample) and isinstance(other, Sample)
             for a, b in zip(one.args, other.args)]
    return all([_bytes(a) == _bytes(b) for a, b in pairs])


def _bytes(x: object) -> tuple[object, ...]:
    array = host(x)
    return type(x), array.shape, array.dtype, array.tobytes()


def _failure(primitive: Primitive, sample: str, problem: str, got: str, wanted: str, todo: str,
             cause: BaseException | None = None) -> Failure:
    return Failure(primitive.name, whose(primitive, _HOOK), HAS_SAMPLES, _HOOK, sample, problem, got, wanted,
                   todo, cause, place_of_rule(primitive, _HOOK))
