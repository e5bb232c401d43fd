"""The page about faulty rules, from what is raised now and from what jax did when it was asked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import CELLS, FAULTS
from .case import Fault
from .jax_rules import VERSION, recorded
from .run import run

PAGE = Path(__file__).resolve().parents[2] / "docs/faulty-rules.md"

INTRO = """\
# Rules that are wrong

Every way in which a rule can be wrong, each hook by itself, and what corejax does about it. The primitive `twice` has
one right rule for each hook, and one that is wrong; it is used at once, under `jit`, and in nested transformations,
with one result and with several. An error names the primitive, the hook, the pack, what was got and wanted, the line of
the program, and what to do.

| what comes of {cells} programs with {faults} faults | |
| --- | --- |
| an error that names the hook | {error} |
| the rule's own exception, with a note that names the hook | {note} |
| no effect: the rule was given copies | {harmless} |
| seen by the conformance kit only, as no trace shows it | {unseen} |

None is silent and wrong: the tests run every program, and the kit on the primitives of the last row.

Those of the last row are of two kinds. On concrete values, forward mode alone can't tell a tangent that has a constant
part, or is a product of tangents, from one that is right; reverse mode and `jit` see the equations, and can. And a
batch axis that is said to be where another axis of the same size is has the right type. The kit's checks find both:
{checks}.

JAX {version}, with the same faults in its registries, where they have a counterpart ({compared} programs): {wrong} give
a wrong result without a word, {right} pass with a right one, {unnamed} raise an error that doesn't name the primitive,
{named} one that does.

The tests run all of this and write this page: `python -m tests.faulty_rules --write`. JAX is asked by
`python -m tests.faulty_rules --jax`.
"""

TITLES = {"jvp": "`jvp`, as a function, `partials(...)` and `factors(...)`"}


def page() -> str:
    """The page as it must be now."""
    counts = Counter(cell.expected for cell in CELLS)
    jax = Counter(_in_a_word(answer) for answers in recorded().values() for answer in answers.values())
    checks = sorted({fault.check for fault in FAULTS if fault.unseen})
    parts = [
        INTRO.format(
            cells=len(CELLS),
            faults=len(FAULTS),
            **{key: counts[key] for key in ("error", "note", "harmless", "unseen")},
            version=VERSION,
            compared=jax.total(),
            wrong=jax["wrong"],
            right=jax["right"],
            unnamed=jax["unnamed"],
            named=jax["named"],
            checks=" and ".join(f"`{c}`" for c in checks),
        )
    ]
    for hook in dict.fromkeys(fault.hook for fault in FAULTS):
        parts += _table(hook, [fault for fault in FAULTS if fault.hook == hook])
    return "".join(parts)


def _table(hook: str, faults: list[Fault]) -> Iterator[str]:
    contexts = dict.fromkeys(context for fault in faults for context in fault.contexts)
    yield f"\n## {TITLES.get(hook, f'`{hook}`')}\n\nIn these contexts: {', '.join(contexts)}.\n\n"
    yield f"| the rule | in | corejax | JAX {VERSION} |\n| --- | --- | --- | --- |\n"
    answers = recorded()
    for fault in faults:
        forms = f"{len(fault.cells)} programs" if len(fault.cells) > 1 else "1 program"
        yield f"| {_plain(fault.way)} | {forms} | {_ours(fault)} | {_theirs(answers.get(fault.title, {}))} |\n"


def _ours(fault: Fault) -> str:
    found = run(next((cell for cell in fault.cells if cell.expected != "unseen"), fault.cells[0]))
    if fault.caught == "harmless":
        return "no effect"
    if fault.caught == "note":
        text = f"`{fault.raises}`, with the note {_code(found.notes[0])}"
    else:
        text = _code(found.first_line)
    if not fault.unseen:
        return text
    unseen = f"in {', '.join(fault.unseen)}: the kit's check `{fault.check}`"
    return unseen if set(fault.unseen) == set(fault.contexts) else f"{text}; {unseen}"


def _theirs(answers: dict[str, dict[str, Any]]) -> str:
    """What jax does, with the contexts that are alike together."""
    alike: dict[str, list[str]] = {}
    for context, answer in answers.items():
        alike.setdefault(_told(answer), []).append(context)
    if len(alike) == 1:
        return next(iter(alike))
    return "; ".join(f"{', '.join(contexts)}: {told}" for told, contexts in alike.items())


def _told(answer: dict[str, Any]) -> str:
    word = _in_a_word(answer)
    if word in ("right", "wrong"):
        return f"nothing, {word} result"
    return f"`{answer['class']}`, {word}"


def _in_a_word(answer: dict[str, Any]) -> str:
    return str(answer.get("result") or ("named" if answer["named"] else "unnamed"))


def _plain(text: str) -> str:
    return re.sub(r"([|<>*_])", r"\\\1", text)


def _code(text: str) -> str:
    shown = text if len(text) <= 170 else text[:167].rstrip() + "..."
    return (f"`` {shown} ``" if "`" in shown else f"`{shown}`").replace("|", "\\|")


def write() -> None:
    """Write the page."""
    PAGE.write_text(page())
