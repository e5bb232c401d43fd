"""Shared by checks that try what isn't among the samples: from which samples they start, and lowering in safety."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.core import ShapedArray, aval_of, default_platform, lower_module, stage_closed
from corejax.plugin import Sample
from corejax_testing.case import Case


def is_one_of(case: Case, count: int) -> bool:
    """Whether it is one of so many samples, evenly spread, each the largest of its neighbors; in the full mode all are.

    For what is likely to go wrong with any params, if with some.
    """
    usable = [sample for sample in case.samples if sample.error is None]
    if case.full or len(usable) <= 1:
        return True
    step = -(-len(usable) // count)
    groups = [usable[start:start + step] for start in range(0, len(usable), step)]
    return any([max(group, key=_elements) is case.sample for group in groups])


def _elements(sample: Sample) -> int:
    return sum([aval_of(x).size for x in sample.args])


def lowered(function: Callable[..., Any], avals: Sequence[ShapedArray], name: str) -> Any:
    """The module of a function, verified: an invalid one could end the process when it is compiled."""
    module = lower_module(stage_closed(function, list(avals)), (), name, default_platform())
    with module.context:
        module.module.operation.verify()
    return module


def is_native(module: Any) -> bool:
    """Whether a module calls native functions, which may trust params that abstract_eval lets pass."""
    return "stablehlo.custom_call" in str(module.module)
