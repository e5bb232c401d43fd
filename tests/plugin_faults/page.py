"""The page about plugin faults, from what comes of them now."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import FAULTS, GROUPS
from .fault import Fault, Pack, twice
from .run import outcomes

PAGE = Path(__file__).resolve().parents[2] / "docs/plugin-faults.md"

INTRO = """\
# Packs that are broken, and what corejax does

A pack is code of somebody else, and anything may be wrong with it. The {count} faults below are installed and used by
the tests, in a process of its own, which write this page (`python -m tests.plugin_faults --write`) and fail if it is
out of date. After each of them the tests look at the rest:

- Nothing takes the program down: a pack that exits the process raises an error instead. `KeyboardInterrupt` passes,
  and what it interrupted can be done again.
- Using the name again gives the same error with the same cause. Nothing is half registered, and no module of a pack
  that failed to import stays in `sys.modules`, where all others are as before.
- The other packs work, those that were in use and those that are used for the first time.
- What is broken is reported once: by the error where one of its names is used, by one warning where it can only be left
  out. `python -m corejax plugins` and `python -m corejax explain NAME` work, and say it too;
  `python -m corejax check` imports every pack and says what is wrong with each.

An error for a name of a broken pack is a `PackError`, which is an `ImportError`; its `__cause__` is what the pack
raised. The settings that have to do with it:

| variable | does |
| --- | --- |
| `COREJAX_DISABLE_PACKS=a,b` | leaves packs out, by the names of their distributions; they are not reported any more |
| `COREJAX_PREFER=a,b` | where two packs provide the same, the first of these wins |
| `COREJAX_SLOW_IMPORT=10` | after how many seconds the import of a pack is reported as slow; 0 for never |

What is installed is read once, from metadata, without importing a pack: with 300 packs in at most 1.2 times the time of
one bare `importlib_metadata.entry_points()`, which `python -m benchmarks.manifest` measures.

A process that a pack ends from beneath Python (`os._exit`, a crash in compiled code) can't be saved.

"""


def write() -> None:
    """Write the page."""
    PAGE.write_text(page())


def page() -> str:
    """The page as it must be now."""
    found = outcomes()
    parts = [INTRO.format(count=len(FAULTS))]
    parts += [f"- [{group.title}](#{_anchor(group.title)}): {len(group.faults)}\n" for group in GROUPS]
    for group in GROUPS:
        parts.append(f"\n## {group.title}\n\n| fault | what comes of it |\n| --- | --- |\n")
        parts += [f"| [{fault.name}](#{_anchor(fault.title)}) | {_cell(fault, found[fault.title])} |\n"
                  for fault in group.faults]
        for fault in group.faults:
            parts += _section(fault, found[fault.title])
    return "".join(parts)


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


def _section(fault: Fault, outcome: dict[str, Any]) -> Iterator[str]:
    yield f"\n### {fault.title}\n\n"
    for pack in fault.packs:
        yield from _files(pack)
    if fault.environment:
        yield "With " + ", ".join(f"`{name}={value}`" for name, value in fault.environment.items()) + ":\n\n"
    yield f"```py\n{fault.code}```\n\n```text\n"
    first = outcome["first"]
    yield first["printed"]
    if first["error"]:
        yield f"{first['error']}: {message_of(fault, outcome)}".rstrip(": ") + "\n"
    else:
        yield first["message"] + "\n"
    for text in warnings_of(fault, outcome):
        yield f"CorejaxWarning: {text}\n"
    yield "```\n"


def _files(pack: Pack) -> Iterator[str]:
    folder = "later/" if pack.later else ""
    if pack.entries:
        entries = pack.entries if isinstance(pack.entries, str) else pack.entries.decode("latin-1")
        yield f"`{folder}{pack.folder}/entry_points.txt`\n\n```ini\n{entries}```\n\n"
    for path, code in pack.files.items():
        for name in re.findall(r'name = "(\w+)"', code):
            code = code.replace(twice(name), f"{name} = ...  # a primitive that works\n")
        if code.strip():
            yield f"`{folder}{path}`\n\n```py\n{code.strip()}\n```\n\n"


def _cell(fault: Fault, outcome: dict[str, Any]) -> str:
    first, warned = outcome["first"], warnings_of(fault, outcome)
    line = next(iter(message_of(fault, outcome).splitlines()), "")
    said = f"`{first['error']}` {_code(line)}".strip() if first["error"] else "works"
    got = re.search(r"^  got:    (.*)", first["message"], re.MULTILINE)
    if got is not None and fault.cause is not None:
        said += f": {_code(got[1])}"
    if first["error"] and fault.again != "same":
        said += ", then works"
    return said + "".join(f"; warning: {_code(text.splitlines()[0])}" for text in warned)


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _code(text: str) -> str:
    """Text as it is, within a cell of a table."""
    shown = text if len(text) <= 170 else text[:167].rstrip() + "..."
    if not shown:
        return ""
    fenced = f"`` {shown} ``" if "`" in shown else f"`{shown}`"
    return fenced.replace("|", "\\|")
