"""The faults planted in the conformance kit's own tests, for programs that pytest doesn't run."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "plugins/testing/tests"))

from mutants import MUTANTS as MUTANTS
from mutants.results import known_law as known_law
from mutants.running import run_all as run_all
from mutants.totals import counts as counts
