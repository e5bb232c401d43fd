"""The check of weak types. A lost one only shows later, when a Python number beside an array decides its dtype."""

from __future__ import annotations

import numpy as np

from corejax.core import ShapedArray, dtypes
from corejax.ir import subjaxprs
from corejax.plugin import elements
from corejax_testing.case import Case
from corejax_testing.check import check
from corejax_testing.report import NotApplicable


@check("abstract_eval")
def weak_types_pass_through(case: Case) -> None:
    """A result is weakly typed exactly if all operands of its dtype are; without operands, nothing is.

    Operands of other dtypes, such as indices, don't count.
    """
    primitive, params, avals = case.primitive, case.params, case.avals
    if not avals and any([aval.weak_type for aval in case.out_avals]) and "weak_type" not in params:
        raise case.fail("abstract_eval", "a weak type is made up", got=case.out_avals, wanted="strong types",
                        todo="return ShapedArray(shape, dtype): without operands, nothing is weak")
    if primitive.multiple_results or any(True for _ in subjaxprs(params)):
        raise NotApplicable("which operands decide about which result is for the primitive to say")
    if any([isinstance(value, np.dtype) for value in params.values()]):
        raise NotApplicable("a param says what the result is")
    dtype = case.out_avals[0].dtype
    if elements.find(dtype) is not None:
        raise NotApplicable("elements of a pack's own type are never weak")
    alike = tuple([i for i, aval in enumerate(avals) if aval.dtype == dtype])
    if not alike:
        raise NotApplicable("no operand has the dtype of the result")
    # if a real and a complex operand give a complex result, both count
    mixed = dtypes.is_inexact(dtype) and any([dtypes.is_inexact(a.dtype) for a in avals if a.dtype != dtype])
    for weak in dict.fromkeys([(), alike, *[(i,) for i in alike]]):
        if mixed and weak == alike:
            continue
        given = tuple([ShapedArray(aval.shape, aval.dtype, i in weak) for i, aval in enumerate(avals)])
        out = primitive.infer(given, params)
        if out.weak_type is not (weak == alike):
            raise case.fail("abstract_eval", "a weak type is " + ("lost" if weak == alike else "made up"),
                            got=f"{out} for {', '.join(map(str, given))}",
                            wanted="weak if all operands of the result's dtype are",
                            todo="return ShapedArray(shape, dtype, all([aval.weak_type for aval in avals])); or exempt "
                                 "the sample, if the result has this dtype whatever the operands have")
