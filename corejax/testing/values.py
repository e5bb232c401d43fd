"""Checks of values: impl, the compiled program and abstract_eval agree."""

from __future__ import annotations

from corejax.api import jit
from corejax.testing.case import Case
from corejax.testing.check import check
from corejax.testing.comparing import ulps_apart, worst, wrong_type

#: Units in the last place that `impl` and the compiled program may be apart, unless a sample says more.
ULPS = 8.0


@check("impl")
def impl_and_the_compiled_program_agree(case: Case) -> None:
    """Evaluating on the host and compiling give values of the announced type, equal to a few ulps."""
    for variant in case.variants():
        for args in (variant.args, variant.drawn()):
            outs = variant.apply(*args)
            compiled = jit(variant.apply)(*args)
            compare(variant, outs, compiled)


def compare(case: Case, evaluated: list[object], compiled: list[object]) -> None:
    """Both have the announced types, and values that agree."""
    for i, (aval, mine, other) in enumerate(zip(case.out_avals, evaluated, compiled, strict=True)):
        for hook, out in (("impl", mine), ("xla_translation", other)):
            found = wrong_type(aval, out)
            if found:
                raise case.fail(hook, f"result {i} has another type than abstract_eval announced", got=found,
                                wanted=str(aval), todo="make them agree")
        distance = ulps_apart(other, mine)
        limit = case.sample.ulps or ULPS
        if distance.size and distance.max() > limit:
            raise case.fail("impl", f"result {i} differs from the compiled program's by {distance.max():.3g} ulps",
                            got=worst(other, mine, distance), wanted=f"at most {limit:g} ulps",
                            todo="mend impl or xla_translation; Sample(ulps=...) allows more where both are right")
