"""Making each mistake in a process of its own, and the page that tells of them."""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .table import MISTAKES, Mistake

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs/ten-mistakes.md"
PACK = (HERE / "signals.py").read_text()
ENTRY_POINTS = "[corejax.primitives]\nsmooth = corejax_signals:smooth\nhuber = corejax_signals:huber\n"

INTRO = """\
# Ten mistakes of a pack author

A small pack with two primitives, made wrong in ten ways; for each the program that its author ran, what it said, and
the mend. A test makes each mistake and fails if this page is out of date (`python -m tests.mistakes --write` writes
it). All messages name the primitive, the hook, the pack and the line, and say what to do.

Half of these come to light at once, when the primitive is first used or transformed, since whatever a rule returns is
checked where it enters the kernel. The others have the right types and the wrong numbers: for them there is
[the conformance kit](testing-a-pack.md), which knows the law of each rule. This is the pack, `corejax_signals.py`:

"""

#: Runs the author's program, and prints what an author would read at the end of the traceback.
DRIVER = """
import sys
try:
    exec(compile(open("try_it.py").read(), "try_it.py", "exec"), {"__name__": "__main__"})
except BaseException as error:
    module = type(error).__module__ + "."
    print(f"{module if module != 'builtins.' else ''}{type(error).__name__}: {error}")
else:
    print("no error")
"""


def page() -> str:
    """The whole page."""
    with ThreadPoolExecutor(2) as pool:
        messages = list(pool.map(message_of, MISTAKES))
    parts = [INTRO, _fenced(PACK, "py"), "\n"]
    for number, (mistake, message) in enumerate(zip(MISTAKES, messages, strict=True), 1):
        parts += [f"## {number}. {mistake.title}\n\n{_wrapped(mistake.story)}\n\n", _fenced(_change(mistake), "diff"),
                  "\nThe author runs\n\n", _fenced(mistake.run + "\n", "py"), "\nand reads\n\n",
                  _fenced(message, "text"), f"\n**Mend:** {mistake.mend}\n\n"]
    return "".join(parts).rstrip() + "\n"


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
            "corejax-lax-basic", "corejax-reductions", "corejax-control-flow", "corejax-signals"))}
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", DRIVER], env=env, cwd=folder, text=True,
                              capture_output=True, timeout=300, check=False)
        return _stable(done.stdout + done.stderr, folder)


def changed(mistake: Mistake | None) -> tuple[str, str]:
    """The pack's source and entry points with the mistake in them."""
    if mistake is None:
        return PACK, ENTRY_POINTS
    if mistake.old in ENTRY_POINTS:
        return PACK, ENTRY_POINTS.replace(mistake.old, mistake.new)
    return PACK.replace(mistake.old, mistake.new), ENTRY_POINTS


def _change(mistake: Mistake) -> str:
    if mistake.old in ENTRY_POINTS:
        return f"- {mistake.old}\n+ {mistake.new}\n"
    lines = difflib.unified_diff(PACK.splitlines(), changed(mistake)[0].splitlines(), n=0, lineterm="")
    return "\n".join(line[0] + " " + line[1:].strip() for line in list(lines)[2:] if not line.startswith("@@")) + "\n"


def _stable(text: str, folder: Path) -> str:
    text = text.replace(f"{folder}{os.sep}", "").replace(str(folder), "").replace(f"{ROOT}{os.sep}", "")
    text = re.sub(r"(\d\.\d{4})\d+", r"\1", text)  # further digits differ between processors
    return text.rstrip() + "\n"


def _fenced(text: str, language: str) -> str:
    return f"```{language}\n{text}```\n"


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 118, break_long_words=False, break_on_hyphens=False)
