"""The check of primitives that are declared structural: they move elements about, and look into none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax import jit
from corejax.core import Array, aval_of, dtypes, from_array_like
from corejax.ir import subjaxprs
from corejax.plugin import ElementType
from corejax_testing.case import Case
from corejax_testing.check import check
from corejax_testing.comparing import numbers
from corejax_testing.report import NotApplicable

#: What stands for numbers: two of them that belong together.
_PAIR = ElementType("corejax_kit_pair", dtypes.float64, (2,))


@check("impl")
def elements_are_moved_whole(case: Case) -> None:
    """What is declared structural takes elements that aren't numbers; its results hold those of its operands."""
    if not case.primitive.structural:
        raise NotApplicable("it isn't declared structural")
    if next(subjaxprs(case.params), None) is not None:
        raise NotApplicable("the program in its params says what happens to elements")
    if not case.representative or not any([aval.dtype == dtypes.float64 for aval in case.avals]):
        raise NotApplicable("another sample represents this one" if not case.representative else
                            "no operand is float64, in whose place elements could be")
    operands = _with_elements(case)
    known = {tuple(pair) for x in operands if aval_of(x).dtype == _PAIR.dtype for pair in _pairs(x)}
    for hook, outs in (("impl", case.apply(*operands)), ("xla_translation", jit(case.apply)(*operands))):
        for i, out in enumerate(outs):
            strange = [pair.tolist() for pair in _pairs(out) if not np.isnan(pair).all() and tuple(pair) not in known]
            if strange:
                raise case.fail(hook, f"result {i} holds an element that no operand has", got=str(tuple(strange[0])),
                                wanted="elements of the operands, each whole, or NaNs for those that aren't there",
                                todo="declare structural only where no element is looked into or changed")


def _with_elements(case: Case) -> list[Any]:
    """The operands with elements, all different, in the place of float64 numbers."""
    operands, count = list(case.args), 0
    for i, aval in enumerate(case.avals):
        if aval.dtype == dtypes.float64:
            first = np.arange(count, count + aval.size) + 0.375
            stored = np.stack([first, 1000.0 - 2.0 * first], -1).reshape(*aval.shape, 2)
            operands[i] = from_array_like(_PAIR.of(stored))
            count += aval.size
    return operands


def _pairs(x: Array) -> Sequence[np.ndarray]:
    """What is stored of an array's elements; nothing of numbers."""
    return list(numbers(x).reshape(-1, 2)) if x.aval.dtype == _PAIR.dtype else []
