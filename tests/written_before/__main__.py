"""Write the files into a directory: `python -m tests.written_before DIRECTORY`."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import corejax as cj
import tests.written_before

# Programs remember the files that they come from: let these say nothing of this machine.
source = Path(str(tests.written_before.__file__))
exec(compile(source.read_text(), "programs.py", "exec"), vars(tests.written_before))
from tests.written_before import EXPORTED, PICKLED, X, branching  # noqa: E402

root = Path(sys.argv[1])
for folder in ("pickles", "exports"):
    (root / folder).mkdir(parents=True, exist_ok=True)
for name, make in PICKLED.items():
    (root / "pickles" / f"{name}.pickle").write_bytes(pickle.dumps(make(), 4))
for name, make in EXPORTED.items():
    (root / "exports" / f"{name}.bin").write_bytes(make().serialize())
with cj.config(compilation_cache_dir=root / "cache"):
    cj.jit(branching)(X)
revision = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True).stdout
(root / "revision.txt").write_text(revision)
