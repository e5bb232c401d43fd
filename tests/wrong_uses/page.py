"""The page about wrong uses, from what they raise now and from what jax said when it was asked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import CASES, GROUPS
from .case import WrongUse
from .run import Outcome, run, run_jax

HERE = Path(__file__).resolve()
PAGE = HERE.parents[2] / "docs/errors.md"
JAX_MESSAGES = HERE.parents[1] / "jax_messages.json"
JAX_VERSION = "0.10.2"

INTRO = """\
# What users do wrong, and what corejax says

Every error of corejax is a `CorejaxError` and also the built-in class that one expects: code that catches `TypeError`
or `IndexError` goes on working. It says what was got, what was wanted, where in *your* code, and what to do; these
parts are its attributes `got`, `wanted`, `where` and `todo`. Leaves are named by their path, as in `args[0]['w']`.
Tracebacks show your frames only; `cj.config.traceback_filtering = False` brings the others back.

The {count} wrong uses below are run by the tests, which write this page (`python -m tests.wrong_uses --write`) and
fail if it is out of date. A `# <-` marks the line that the error names, if it isn't the last one. For comparison, each
table has what JAX {version} says to the same program, or to the one that means the same: the first line of its error.
Of the {compared} that have a counterpart there, JAX accepts {silent} without a word.

"""


def messages() -> Any:
    """What jax said: for each wrong use its class and first line, or None if it said nothing."""
    return json.loads(JAX_MESSAGES.read_text())["messages"]


def jax_says(case: WrongUse) -> dict[str, str] | None:
    """What the installed jax says, in the form in which it is recorded."""
    found = run_jax(case)
    assert found is not None
    if found.kind == "nothing":
        return None
    return {"class": found.kind, "message": _stable(found.first_line)}


def write_jax_messages() -> None:
    """Ask the installed jax."""
    said = {case.title: jax_says(case) for case in CASES if case.jax is not None}
    JAX_MESSAGES.write_text(json.dumps({"jax": JAX_VERSION, "messages": said}, indent=1) + "\n")


def write() -> None:
    """Write the page."""
    PAGE.write_text(page())


def message_of(case: WrongUse, outcome: Outcome) -> str:
    """The message, without what differs from one installation to another."""
    text = outcome.message.replace(", corejax-softplus", "")
    return re.sub(r"(?m)^(  wanted: ).*$", r"\1(what this machine has)", text) if case.local else text


def page() -> str:
    """The page as it must be now."""
    said = messages()
    silent = sum(answer is None for answer in said.values())
    parts = [INTRO.format(count=len(CASES), version=JAX_VERSION, compared=len(said), silent=silent)]
    for group in GROUPS:
        parts.append(f"- [{group.title}](#{_anchor(group.title)}): {len(group.cases)}\n")
    for group in GROUPS:
        parts.append(f"\n## {group.title}\n\n| wrong | corejax raises | JAX {JAX_VERSION} |\n| --- | --- | --- |\n")
        outcomes = [(case, run(case)) for case in group.cases]
        parts += [_row(case, outcome, said) for case, outcome in outcomes]
        for case, outcome in outcomes:
            parts += _section(case, outcome)
    return "".join(parts)


def _row(case: WrongUse, outcome: Outcome, said: Any) -> str:
    if case.jax is None:
        theirs = "(no counterpart)"
    elif said.get(case.title) is None:
        theirs = "nothing"
    else:
        answer = said[case.title]
        theirs = f"`{answer['class']}` {_cell(answer['message'])}"
    ours = f"`{case.error.__name__}` {_cell(outcome.first_line)}"
    return f"| [{case.name}](#{_anchor(case.title)}) | {ours} | {theirs} |\n"


def _section(case: WrongUse, outcome: Outcome) -> Iterator[str]:
    yield f"\n### {case.title}\n\n"
    if case.environment:
        yield "With " + ", ".join(f"`{name}={value}`" for name, value in case.environment.items()) + ":\n\n"
    yield f"```py\n{case.code}```\n\n```text\n{outcome.kind}: {message_of(case, outcome)}\n```\n"


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _cell(text: str) -> str:
    """Text as it is, within a cell of a table."""
    shown = text if len(text) <= 160 else text[:157].rstrip() + "..."
    fenced = f"`` {shown} ``" if "`" in shown else f"`{shown}`"
    return fenced.replace("|", "\\|")


def _stable(text: str) -> str:
    """A message without addresses."""
    return re.sub(r"0x[0-9a-f]{6,}", "0x...", text)[:300]
