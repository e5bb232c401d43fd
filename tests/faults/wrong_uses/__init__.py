"""Wrong uses of corejax, each with what its error must say. `python -m tests.faults --write` records it."""

from __future__ import annotations

from . import (
    callbacks,
    checkify,
    collectives,
    control_flow,
    convolutions,
    custom_rules,
    effects,
    eigenvalues,
    factorisations,
    fft,
    indexing,
    memory,
    meshes,
    names,
    numbers,
    numpy_calls,
    numpy_mathematics,
    plugins,
    products,
    python_values,
    references,
    shapes,
    solves,
    sorting,
    special,
    transformations,
    windows,
)
from .case import Group, WrongUse

GROUPS: tuple[Group, ...] = (*shapes.GROUPS, *indexing.GROUPS, *python_values.GROUPS, *transformations.GROUPS,
                             *control_flow.GROUPS, *custom_rules.GROUPS, *memory.GROUPS, *numbers.GROUPS,
                             *products.GROUPS, *solves.GROUPS, *sorting.GROUPS, *collectives.GROUPS, *special.GROUPS,
                             *windows.GROUPS, *convolutions.GROUPS,
                             *factorisations.GROUPS, *eigenvalues.GROUPS, *fft.GROUPS, *numpy_calls.GROUPS,
                             *numpy_mathematics.GROUPS, *meshes.GROUPS, *names.GROUPS,
                             *callbacks.GROUPS, *checkify.GROUPS, *references.GROUPS,
                             *plugins.GROUPS, *effects.GROUPS)
CASES: tuple[WrongUse, ...] = tuple(case for group in GROUPS for case in group.cases)
