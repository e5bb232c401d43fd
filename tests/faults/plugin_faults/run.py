"""Makes the distributions of faults and runs the programs that use them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ..record import Record
from . import FAULTS
from .fault import Fault, Pack, primitives, twice

ROOT = Path(__file__).resolve().parents[3]

BEST = """
class Best:
    name = "best"

    @hookimpl
    def decompose(self, args):
        return args[0]

best = define(Best())
"""


def install(pack: Pack, site: Path) -> None:
    """Write a distribution as an installer would."""
    folder = site / "later" if pack.later else site
    info = folder / pack.folder
    info.mkdir(parents=True, exist_ok=True)
    if pack.version is not None:
        metadata = f"Metadata-Version: 2.1\nName: {pack.name}\nVersion: {pack.version}\n"
        (info / "METADATA").write_text(pack.metadata or metadata)
    if pack.entries is not None:
        entries = pack.entries if isinstance(pack.entries, bytes) else pack.entries.encode()
        (info / "entry_points.txt").write_bytes(entries)
    for path, code in pack.files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(code)


def good_pack(names: Sequence[str]) -> Pack:
    """A pack that works, with a module for each primitive."""
    files = {f"good_{name}.py": twice(name) for name in names} | {"good_best.py": twice("good") + BEST}
    values = {name: f"good_{name}:{name}" for name in names}
    return Pack("good-pack", primitives(**values, good="good_best:good", best="good_best:best"), files)


def run_together(faults: Sequence[Fault]) -> dict[str, Any]:
    """What came of faults that are installed together, in one process."""
    with tempfile.TemporaryDirectory() as name:
        site = Path(name).resolve() / "site-packages"
        for pack in (good_pack([f"beside_{i}" for i in range(len(faults))]), *[p for f in faults for p in f.packs]):
            install(pack, site)
        task = {"site": str(site), "faults": [
            {"title": fault.title, "code": fault.code, "packages": fault.packages, "explain": fault.explain,
             "entries": [line for pack in fault.packs for line in entries_of(pack)], "number": i}
            for i, fault in enumerate(faults)]}
        env = {key: value for key, value in os.environ.items() if not key.startswith("COREJAX_")}
        env |= {"PYTHONPATH": os.pathsep.join(map(str, (site, ROOT, site / "later"))), "PYTHONDONTWRITEBYTECODE": "1"}
        for fault in faults:
            env |= fault.environment
        done = subprocess.run([sys.executable, str(Path(__file__).with_name("probe.py"))], env=env, cwd=name,
                              input=json.dumps(task), capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found


def entries_of(pack: Pack) -> list[str]:
    """The entry points of a pack."""
    return pack.entries.splitlines() if isinstance(pack.entries, str) else []


@cache
def outcomes() -> dict[str, Any]:
    """What came of every fault, by its title."""
    together = [fault for fault in FAULTS if not fault.environment]
    runs = [run_together(together), *[run_together([fault]) for fault in FAULTS if fault.environment]]
    return {title: outcome | {"early": run["early"]} for run in runs for title, outcome in run["faults"].items()}


def answer(fault: Fault) -> list[str]:
    """What is printed, then the error or the value, then the warnings."""
    outcome = outcomes()[fault.title]
    first = outcome["first"]
    error = f"{first['error']}: {message_of(fault, outcome)}".rstrip(": ") if first["error"] else first["message"]
    warned = [f"CorejaxWarning: {text}" for text in warnings_of(fault, outcome)]
    return "\n".join([*first["printed"].splitlines(), error, *warned]).splitlines()


def message_of(fault: Fault, outcome: dict[str, Any]) -> str:
    """What a fault says, without what differs from one installation to another."""
    text = outcome["first"]["message"]
    text = re.sub(r"(?<=packs in use: ).*?(?=; broken|$)", "...", text, flags=re.MULTILINE)
    own = "|".join(re.escape(pack.name) for pack in fault.packs)
    return re.sub(rf"; broken: (?!(?:{own}) \()[^;]*?\)(?=;|$)", "", text, flags=re.MULTILINE)


def warnings_of(fault: Fault, outcome: dict[str, Any]) -> list[str]:
    """The warnings about its packs."""
    texts = [*outcome["early"]["warned"], *outcome["first"]["warned"], *outcome["second"]["warned"]]
    return [text for text in texts if any(re.search(rf"(^|\s){re.escape(pack.name)}\s", text) for pack in fault.packs)]


RECORD = Record(str(Path(__file__).parent), FAULTS, answer)
