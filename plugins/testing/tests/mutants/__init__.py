"""Faults in the rules of the shipped packs, by which the conformance kit is tested. `python -m mutants` helps."""

from __future__ import annotations

from . import (
    arithmetic,
    choosing,
    control_flow,
    convolutions,
    eigenvalues,
    factorisations,
    families,
    fft,
    indexing,
    products,
    reductions,
    stacking,
    strangers_arrays,
    strangers_indexing,
    strangers_programs,
    structure,
    transcendental,
    windows,
)
from .mutant import Mutant, numbered

TABLES = (arithmetic, transcendental, choosing, structure, indexing, products, reductions, control_flow, families,
          strangers_arrays, strangers_indexing, strangers_programs, fft, stacking, windows, convolutions,
          factorisations, eigenvalues)
MUTANTS: tuple[Mutant, ...] = numbered([mutant for table in TABLES for mutant in table.MUTANTS])
