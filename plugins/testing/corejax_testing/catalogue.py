"""All checks, in the order in which they run: the cheap ones that others build on come first."""

from __future__ import annotations

from corejax_testing import (
            batching,
            costs,
            declared,
            derivatives,
            happening,
            memory,
            moving,
            orderings,
            other_params,
            other_sizes,
            other_types,
            pieces,
            platforms,
            precisions,
            programs,
            refusals,
            repetition,
            sampling,
            special,
            tangent_rules,
            transformations,
            transposes,
            values,
            weak_types,
)
from corejax_testing.check import Check

_MODULES = (sampling, refusals, declared, weak_types, values, special, memory, moving, platforms, programs, happening,
            pieces, repetition, derivatives, tangent_rules, transposes, batching, costs, precisions, other_types,
            other_params, other_sizes, orderings)

#: Every check of the kit itself, by name.
CHECKS: dict[str, Check] = {
    found.name: found for module in _MODULES for found in vars(module).values() if isinstance(found, Check)}


def all_checks(derived: bool = True) -> dict[str, Check]:
    """These, and the laws of the transformations that packs bring; `derived`: also of rules that nobody wrote."""
    return {**CHECKS, **transformations.laws(derived)}
