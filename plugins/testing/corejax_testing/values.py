"""Checks of values: impl, the compiled program, the decomposition and abstract_eval agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax import device_put, eval_shape, jit
from corejax.core import Array, aval_of, default_platform, dtypes
from corejax_testing.case import Case
from corejax_testing.check import check
from corejax_testing.comparing import host, off, worst, wrong_type
from corejax_testing.compiled import agree
from corejax_testing.report import NotApplicable
from corejax_testing.tolerances import distances, ulps_of

_AGREE = "make them agree; XLA's values are the reference"

#: Python's number types, by corresponding dtype.
_SCALARS: dict[np.dtype, type] = {
    dtypes.bool_: bool, dtypes.int64: int, dtypes.float64: float, dtypes.complex128: complex}


@check("impl")
def impl_and_the_compiled_program_agree(case: Case) -> None:
    """Evaluating on the host and compiling give values of the announced types, equal to within a few ulps."""
    for variant in case.variants() if case.representative else [case]:
        agree(variant, [variant.args, variant.drawn()], compare)


@check("impl")
def results_are_those_that_the_sample_knows(case: Case) -> None:
    """If a sample states its results, evaluating and compiling give them; of their types if they are `Array`s."""
    if case.sample.results is None:
        raise NotApplicable("the sample doesn't say what it gives")
    known = list(case.sample.results) if case.primitive.multiple_results else [case.sample.results]
    evaluated = "impl" if case.primitive.impl else "xla_translation"
    for hook, outs in ((evaluated, case.apply(*case.args)), ("xla_translation", jit(case.apply)(*case.args))):
        if len(known) != len(outs):
            raise case.fail("samples", "the sample states a different number of results", got=len(known),
                            wanted=len(outs), todo="give one array for each result")
        for i, (wanted, out) in enumerate(zip(known, outs, strict=True)):
            found = (wrong_type(wanted.aval, out) if type(wanted) is Array else None) or off(
                wanted, out, 1e-12, case.atol)
            if found:
                raise case.fail(hook, f"result {i} is not what the sample states", got=found,
                                wanted="the results of the sample, to 12 digits", todo=f"fix {hook}, or the sample")


@check("impl")
def empty_arrays_and_scalars_work(case: Case) -> None:
    """If abstract_eval accepts operands with an axis of size 0, or with one axis less, they can be computed with."""
    if not case.largest:
        raise NotApplicable("another sample represents this one")
    cuts: list[Callable[[np.ndarray], np.ndarray]] = [lambda x: x[:0], lambda x: x[..., :0], lambda x: x[0]]
    known = [[aval_of(x) for x in sample.args] for sample in case.samples if sample.params == case.params]
    tried = 0
    for cut in cuts:
        variant = case.with_args([cut(x) if isinstance(x, np.ndarray) and x.ndim and x.size else x for x in case.args])
        if list(variant.avals) not in known and variant.is_accepted():
            tried += 1
            known.append(list(variant.avals))
            agree(variant, [variant.args], compare)
    if not tried:
        raise NotApplicable("it takes none, or the samples have them")


@check("decompose")
def the_decomposition_agrees(case: Case) -> None:
    """`decompose` gives the same as `impl` or the lowering, if the plugin has both."""
    primitive = case.primitive
    if primitive.decompose is None:
        raise NotApplicable("it has no decompose")
    outs = primitive.decompose([device_put(x) if isinstance(x, np.ndarray) else x for x in case.args], **case.params)
    compare(case, case.apply(*case.args), list(outs) if primitive.multiple_results else [outs], "decompose")


@check("xla_translation")
def operands_on_the_device_give_the_same(case: Case) -> None:
    """Results don't depend on where operands are: all of them, or just one, on the device."""
    if not case.representative:
        raise NotApplicable("another sample stands for this one")
    wanted = case.apply(*case.args)
    for places in {tuple([True] * len(case.args)), *[tuple([i == k for i in range(len(case.args))])
                                                     for k in range(min(len(case.args), 3))]}:
        args = [device_put(x) if moved else x for x, moved in zip(case.args, places, strict=True)]
        compare(case, wanted, case.apply(*args))


@check("impl")
def python_scalars_give_the_announced_weak_types(case: Case) -> None:
    """With Python numbers as scalars, all ways of computing give the same type, weak or not, and the same values."""
    args = [_scalar(x) for x in case.args]
    if all([type(x) not in dtypes.PYTHON_SCALARS for x in args]):
        raise NotApplicable("no operand can be a Python number")
    weak = case.with_args(args)
    if not weak.is_accepted():
        raise NotApplicable("it takes no Python numbers")
    agree(weak, [args], compare)
    if not case.representative:
        return
    structs = eval_shape(weak.apply, *args)
    for i, (out, struct) in enumerate(zip(weak.apply(*args), structs, strict=True)):
        if struct.weak_type is not aval_of(out).weak_type:
            raise case.fail("abstract_eval", f"result {i} of Python numbers is weak in one way only",
                            got=f"weak_type={struct.weak_type} when staged", wanted=f"{aval_of(out)}, as evaluated",
                            todo="abstract_eval must depend on nothing but types and params")


def compare(case: Case, evaluated: Sequence[object], other: Sequence[object], hook: str = "xla_translation",
            ulps: float = 0.0) -> None:
    """Check that evaluation and another way of computing give the announced types, and values that agree."""
    limit = max(ulps, ulps_of(case))
    check_types(case, "impl" if case.primitive.impl else hook, evaluated)
    check_types(case, hook, other)
    for i, (x, y) in enumerate(zip(evaluated, other, strict=True)):
        distance = distances(case, y, x)
        if distance.size and float(distance.max()) > limit:
            raise case.fail(case.blamed("impl", "xla_translation", f"xla_translation@{default_platform()}")
                            if hook == "xla_translation" else hook,
                            f"result {i} of {_RULE[hook]} is {float(distance.max()):.3g} ulps from impl's",
                            got=f"by impl {worst(y, x, distance)}", wanted=f"at most {limit:g} ulps apart",
                            todo=f"fix impl or {hook}; Sample(ulps=..., atol=...) allows more where both are right")


_RULE = {"xla_translation": "the compiled program", "decompose": "decompose"}


def check_types(case: Case, hook: str, outs: Sequence[object]) -> None:
    """Check that there are as many results as abstract_eval announced, with the same types."""
    wanted = case.out_avals
    if len(outs) != len(wanted):
        raise case.fail(hook, "it returns a different number of results than abstract_eval", got=len(outs),
                        wanted=len(wanted), todo=_AGREE)
    for i, (aval, out) in enumerate(zip(wanted, outs, strict=True)):
        found = wrong_type(aval, out)
        if found:
            raise case.fail(hook, f"result {i} has a different type than abstract_eval announced", got=found,
                            wanted=str(aval), todo=_AGREE)


def _scalar(x: object) -> Any:
    """An operand of rank 0 as a Python number, if there is one of its dtype."""
    aval = aval_of(x)
    if aval.shape or aval.dtype not in _SCALARS or type(x) in dtypes.PYTHON_SCALARS:
        return x
    return _SCALARS[aval.dtype](host(x)[()])
