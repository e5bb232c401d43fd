"""The samples of a primitive: where they come from, and whether the kit can use them."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from typing import Any
from zlib import crc32

import numpy as np

from corejax.plugin import registry
from corejax.plugin.declarations import Sample
from corejax.testing.comparing import host
from corejax.testing.report import Failure, Outcome, clipped

#: The name of what comes before all checks: it is of the samples together, and of no case.
HAS_SAMPLES = "has samples"

_HOOK = "samples"


def samples_of(primitive: Any) -> list[Sample]:
    """What its hook `samples` yields, always the same; an empty list if it has none."""
    if primitive.samples is None:
        return []
    return list(primitive.samples(np.random.default_rng(crc32(primitive.name.encode()))))


def specified(primitive: Any, samples: Sequence[Sample] | None,
              checks: Collection[str]) -> tuple[list[Sample], Outcome]:
    """The samples that can be used, those of the hook if none are given, and what is wrong with them.

    `checks` are the names that an exemption may have.
    """
    start = time.perf_counter()
    given: list[Any] = []
    failures = []
    try:
        given = samples_of(primitive) if samples is None else list(samples)
        failures += [_failure(primitive, *fault) for fault in _faults(primitive, given, checks, samples is None)]
    except (Exception, SystemExit) as error:
        failures.append(_failure(primitive, "the hook", f"it raised {type(error).__name__}", str(error),
                                 "samples, whatever the random numbers", "mend the hook", error))
    usable = [sample for sample in given if isinstance(sample, Sample)]
    return usable, Outcome(primitive.name, HAS_SAMPLES, _HOOK, tuple(failures), len(usable), (), (),
                           time.perf_counter() - start)


def _faults(primitive: Any, samples: list[Any], checks: Collection[str],
            from_hook: bool) -> Iterator[tuple[str, str, str, str, str]]:
    """Each fault: the input, the problem, got, wanted, to do."""
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
    if from_hook and not _same(samples, samples_of(primitive)):
        yield ("all samples", "a second call with equal random numbers yields others", "different operands",
               "the same, so that a failure comes again", "take random numbers from the argument `rng` only")


def _faults_of(sample: Any, checks: Collection[str]) -> Iterator[tuple[str, str, str, str]]:
    """Each fault of one sample: the problem, got, wanted, to do."""
    if not isinstance(sample, Sample):
        yield ("it is no sample", clipped(repr(sample), 100), "a Sample",
               "yield Sample([operand, ...], {param: value, ...})")
        return
    for name, reason in sample.exempt.items():
        if name not in checks:
            yield (f"there is no check {name!r} to exempt it from", repr(name), "the name of a check",
                   registry.suggestion(name, checks) or "look in corejax.testing.CHECKS")
        if not isinstance(reason, str) or not reason.strip():
            yield (f"it is exempt from {name!r} without a reason", repr(reason), "why the law doesn't hold here",
                   "say why, or take the exemption away")
    if sample.error is not None and not (isinstance(sample.error, type) and issubclass(sample.error, BaseException)):
        yield "error is no exception class", repr(sample.error), "the class that it must raise", "error=TypeError"
    if not _is_domain(sample.domain, len(sample.args)):
        yield ("domain is no interval", repr(sample.domain), "(low, high), or one for each operand, None to keep it",
               f"give one interval, or {len(sample.args)}")


def _is_domain(domain: Any, operands: int) -> bool:
    if domain is None or _is_interval(domain):
        return True
    return (isinstance(domain, (tuple, list)) and len(domain) == operands
            and all([part is None or _is_interval(part) for part in domain]))


def _is_interval(domain: Any) -> bool:
    return (isinstance(domain, (tuple, list)) and len(domain) == 2
            and all([isinstance(end, (int, float)) for end in domain]) and domain[0] < domain[1])


def _same(ones: Sequence[Any], others: Sequence[Any]) -> bool:
    if len(ones) != len(others):
        return False
    pairs = [(a, b) for one, other in zip(ones, others) if isinstance(one, Sample) and isinstance(other, Sample)
             for a, b in zip(one.args, other.args)]
    return all([_bytes(a) == _bytes(b) for a, b in pairs])


def _bytes(x: Any) -> tuple[Any, ...]:
    array = host(x)
    return type(x), array.shape, array.dtype, array.tobytes()


def _failure(primitive: Any, sample: str, problem: str, got: str, wanted: str, todo: str,
             cause: BaseException | None = None) -> Failure:
    return Failure(primitive.name, primitive.origin, HAS_SAMPLES, _HOOK, sample, problem, got, wanted,
                   todo, cause)
