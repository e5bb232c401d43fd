"""The cost of reading the manifest with many packs, compared with a bare `importlib_metadata.entry_points()`.

    python -m benchmarks.manifest [--packs N] [--rounds N]

The packs are made up in a temporary folder, and read by a separate Python process. The two take turns, so that they
share any disturbance.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

PROGRAM = """
import sys
from time import perf_counter
import importlib_metadata
import corejax
from corejax.installed import manifest

def timed(action):
    start = perf_counter()
    action()
    return perf_counter() - start

pairs = []
for turn in range(int(sys.argv[1])):
    both = [(0, manifest.scan), (1, importlib_metadata.entry_points)]
    times = {which: timed(action) for which, action in (both if turn % 2 else both[::-1])}
    pairs.append((times[0], times[1]))
found = manifest.read()
assert len(found.packs) >= int(sys.argv[2]), len(found.packs)
assert not [name for name in sys.modules if name.startswith("made_up_")]
for ours, bare in pairs:
    print(ours, bare)
"""


def make(folder: Path, count: int) -> None:
    """Make distributions with two entry points each, and metadata of the usual length."""
    for i in range(count):
        info = folder / f"made_up_{i}-1.0.dist-info"
        info.mkdir()
        head = f"Metadata-Version: 2.1\nName: made-up-{i}\nVersion: 1.0\n"
        (info / "METADATA").write_text(head + "Classifier: x\n" * 40)
        (info / "RECORD").write_text("")
        (info / "entry_points.txt").write_text(
            f"[corejax.primitives]\np{i} = made_up_{i}:p\n\n[corejax.functions]\np{i} = made_up_{i}:p\n")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packs", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=21)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        make(Path(name), options.packs)
        env = {key: value for key, value in os.environ.items() if not key.startswith("COREJAX_")}
        env["PYTHONPATH"] = os.pathsep.join((name, str(ROOT)))
        done = subprocess.run([sys.executable, "-c", PROGRAM, str(options.rounds), str(options.packs)], env=env,
                              capture_output=True, text=True, check=True)
    pairs = [tuple(map(float, line.split())) for line in done.stdout.splitlines()]
    ours, bare = (1e3 * statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(a / b for a, b in pairs)
    print(f"{options.packs} packs, medians of {options.rounds} rounds: manifest {ours:.1f} ms, one bare entry_points() "
          f"{bare:.1f} ms, ratio {ratio:.2f}; no pack was imported")


if __name__ == "__main__":
    main()
