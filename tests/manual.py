"""The parts of the pages in docs/ that are made from what tests record: examples of errors, and totals.

    python -m tests.manual --write

A part stands between `<!-- KIND: TITLE -->` and `<!-- end -->`. What stands there is written anew from the records in
`tests/faults/*/expected.json`; a test fails if a page is out of date.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests import kit_tests
from tests.faults import faulty_rules, plugin_faults, wrong_uses
from tests.faults.faulty_rules import jax_rules
from tests.faults.kinds import RECORDS
from tests.faults.mistakes import run as mistakes
from tests.faults.wrong_uses import jax_messages

DOCS = Path(__file__).resolve().parents[1] / "docs"
PART = re.compile(r"(?P<mark><!-- (?P<kind>wrong use|mistake|plugin fault|total): (?P<title>.+?) -->\n)"
                  r".*?(?P<end><!-- end -->)", re.DOTALL)


def wrong_use(title: str) -> str:
    """A program, its error, and what jax says to the same."""
    (case,) = [case for case in wrong_uses.CASES if case.title == title]
    error = RECORDS["wrong_uses"].recorded()[title]
    return f"{_fenced(case.code, 'py')}\n{_fenced(_text(error), 'text')}\n{_jax_says(case)}"


def mistake(title: str) -> str:
    """What is changed in a pack that is right, and what its author then reads."""
    (found,) = [found for found in mistakes.MISTAKES if found.title == title]
    told = RECORDS["mistakes"].recorded()[title]
    return f"{_fenced(mistakes.change(found), 'diff')}\n{_fenced(_text(told), 'text')}"


def plugin_fault(title: str) -> str:
    """What a broken pack is answered with."""
    return _fenced(_text(RECORDS["plugin_faults"].recorded()[title]), "text")


def total(name: str) -> str:
    """A sentence or a table with the totals of what tests record."""
    return TOTALS[name]()


def _wrong_uses() -> str:
    said, version = jax_messages.messages(), jax_messages.JAX_VERSION
    silent = sum(answer is None for answer in said.values())
    return _wrapped(
        f"The tests hold {len(wrong_uses.CASES)} wrong uses, each with its exact error, in `tests/faults/wrong_uses/`."
        f" {len(said)} of them can be written for JAX {version}, which silently accepts {silent}.")


def _faulty_rules() -> str:
    counts = Counter(cell.expected for cell in faulty_rules.CELLS)
    jax = Counter(answer.get("result") or ("named" if answer["named"] else "unnamed")
                  for answers in jax_rules.recorded().values() for answer in answers.values())
    rows = {"an error that names the hook": counts["error"],
            "the rule's own exception, with a note that names the hook": counts["note"],
            "no effect, because the rule was given copies": counts["harmless"],
            "nothing while the program runs; the conformance kit finds it": counts["unseen"],
            "a wrong result that nothing reports": 0}  # test_faulty_rules fails for each that there is
    table = "".join(f"| {text} | {count:,} |\n" for text, count in rows.items())
    cells, faults = len(faulty_rules.CELLS), len(faulty_rules.FAULTS)
    intro = _wrapped(f"The tests run {cells:,} programs with {faults} different faults in one rule: at once, under "
                     "`jit`, and under nested transformations. What the faults lead to:")
    compared = _wrapped(
        f"{jax.total()} of these programs can be written for JAX {jax_rules.VERSION}, with the same fault in its "
        f"registries. {jax['wrong']} give a wrong result silently, {jax['right']} give a right one, {jax['unnamed']} "
        f"raise an error that doesn't name the primitive, and {jax['named']} raise one that does.")
    return f"{intro}\n| outcome | programs |\n| --- | ---: |\n{table}\n{compared}"


def _plugin_faults() -> str:
    return _wrapped(
        f"The tests install {len(plugin_faults.FAULTS)} packs with different faults, use each one twice, and then "
        "check that everything else still works. What each one is answered with is in `tests/faults/plugin_faults/`.")


def _mutants() -> str:
    found = kit_tests.counts()
    share = f"{100 * found['killed'] / found['mutants']:.1f}%"
    return _wrapped(
        "The kit itself is tested with *mutants*: rules of the standard packs with one fault planted in each. It finds "
        f"{found['killed']} of {found['mutants']} ({share}), and in {found['blamed']} of these cases it blames the "
        "very hook that has the fault. Loaded in the same way, the rules without a fault pass.")


TOTALS: dict[str, Callable[[], str]] = {
    "wrong uses": _wrong_uses, "faulty rules": _faulty_rules, "plugin faults": _plugin_faults, "mutants": _mutants}
KINDS: dict[str, Callable[[str], str]] = {
    "wrong use": wrong_use, "mistake": mistake, "plugin fault": plugin_fault, "total": total}


def parts(page: str) -> list[tuple[str, str]]:
    """The kind and the title of each part of a page that is made here."""
    return [(found["kind"], found["title"]) for found in PART.finditer(page)]


def made(page: str) -> str:
    """The page, with these parts as they must be now."""
    return PART.sub(lambda found: found["mark"] + KINDS[found["kind"]](found["title"]) + found["end"], page)


def write() -> None:
    """Bring all pages up to date."""
    for path in sorted(DOCS.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        path.write_text(made(text), encoding="utf-8")


def _jax_says(case: wrong_uses.WrongUse) -> str:
    if case.jax is None:
        return "JAX has no counterpart.\n"
    answer = jax_messages.messages()[case.title]
    if answer is None:
        return f"JAX {jax_messages.JAX_VERSION} silently returns a result.\n"
    return f"JAX {jax_messages.JAX_VERSION}: `{answer['class']}: {answer['message']}`\n"


def _text(lines: list[str]) -> str:
    return "\n".join(lines)


def _fenced(text: str, language: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```\n"


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False) + "\n"


if __name__ == "__main__":
    if "--write" in sys.argv[1:]:
        write()
    else:
        print(__doc__)
