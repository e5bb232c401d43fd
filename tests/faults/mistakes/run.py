"""Makes each mistake in a process of its own, and says what its author reads."""

from __future__ import annotations

import difflib
import os
import re
import tempfile
from functools import cache
from pathlib import Path

from ... import forked
from ..record import Record
from .table import MISTAKES, Mistake

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
PACK = (HERE / "signals.py").read_text()
ENTRY_POINTS = "[corejax.primitives]\nsmooth = corejax_signals:smooth\nhuber = corejax_signals:huber\n"

#: Runs the author's program, and prints what an author would read at the end of the traceback.
DRIVER = """
import warnings
warnings.simplefilter("ignore")
try:
    exec(compile(open("try_it.py").read(), "try_it.py", "exec"), {"__name__": "__main__"})
except BaseException as error:
    module = type(error).__module__ + "."
    print(f"{module if module != 'builtins.' else ''}{type(error).__name__}: {error}")
else:
    print("no error")
"""


def answer(mistake: Mistake) -> list[str]:
    """The lines that the author of a mistake reads."""
    return message_of(mistake).splitlines()


@cache
def message_of(mistake: Mistake | None) -> str:
    """What the author of a mistake reads; of the pack without one, if there is none."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        source, entries = changed(mistake)
        (folder / "corejax_signals.py").write_text(source)
        info = folder / "corejax_signals-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: corejax-signals\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(entries)
        (folder / "try_it.py").write_text(mistake.run if mistake else "from corejax.testing import check_pack\n"
                                          "check_pack('corejax-signals')\n")
        env = {key: value for key, value in os.environ.items() if not key.startswith("COREJAX_")}
        env |= {"PYTHONPATH": os.pathsep.join((str(folder), str(ROOT))), "COREJAX_PACKS": ",".join((
            "corejax-lax-basic", "corejax-reductions", "corejax-control-flow", "corejax-sorting", "corejax-signals"))}
        done = forked.run(DRIVER, env, str(folder))
        return _stable(done.stdout + done.stderr, folder)


def changed(mistake: Mistake | None) -> tuple[str, str]:
    """The pack's source and entry points with the mistake in them."""
    if mistake is None:
        return PACK, ENTRY_POINTS
    if mistake.old in ENTRY_POINTS:
        return PACK, ENTRY_POINTS.replace(mistake.old, mistake.new)
    return PACK.replace(mistake.old, mistake.new), ENTRY_POINTS


def change(mistake: Mistake) -> str:
    """The lines that are changed, as a diff."""
    if mistake.old in ENTRY_POINTS:
        return f"- {mistake.old}\n+ {mistake.new}\n"
    lines = difflib.unified_diff(PACK.splitlines(), changed(mistake)[0].splitlines(), n=0, lineterm="")
    return "\n".join(line[0] + " " + line[1:].strip() for line in list(lines)[2:] if not line.startswith("@@")) + "\n"


def _stable(text: str, folder: Path) -> str:
    text = text.replace(f"{folder}{os.sep}", "").replace(str(folder), "").replace(f"{ROOT}{os.sep}", "")
    text = re.sub(r"(\d\.\d{4})\d+", r"\1", text)  # further digits differ between processors
    return text.rstrip() + "\n"


RECORD = Record(str(HERE), MISTAKES, answer)
