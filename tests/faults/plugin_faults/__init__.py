"""Packs that are broken, each with what must come of it. `python -m tests.faults --write` records it."""

from __future__ import annotations

from . import importing, objects, pointing, waiting
from .fault import Fault, Group

GROUPS: tuple[Group, ...] = (*importing.GROUPS, *pointing.GROUPS, *objects.GROUPS, *waiting.GROUPS)
FAULTS: tuple[Fault, ...] = tuple(fault for group in GROUPS for fault in group.faults)
