"""Rules that are wrong, wherever they run. `python -m tests.faults --write` records it."""

from __future__ import annotations

from . import computing, differentiating, mapping, programs
from .case import Cell, Fault

FAULTS: tuple[Fault, ...] = (*computing.FAULTS, *differentiating.FAULTS, *mapping.FAULTS, *programs.FAULTS)
CELLS: tuple[Cell, ...] = tuple(cell for fault in FAULTS for cell in fault.cells)
