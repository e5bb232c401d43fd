"""The records of all kinds, by the name of the kind."""

from __future__ import annotations

from typing import Any

from .faulty_rules.run import RECORD as FAULTY_RULES
from .mistakes.run import RECORD as MISTAKES
from .plugin_faults.run import RECORD as PLUGIN_FAULTS
from .record import Record
from .wrong_uses.run import RECORD as WRONG_USES

RECORDS: dict[str, Record[Any]] = {
    "wrong_uses": WRONG_USES, "faulty_rules": FAULTY_RULES, "plugin_faults": PLUGIN_FAULTS, "mistakes": MISTAKES}
