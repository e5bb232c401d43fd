"""The page about mutants, from their tables and the frozen results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from corejax.testing import CHECKS

from . import MUTANTS
from .mutant import HOOKS, KINDS, Mutant
from .results import frozen
from .running import REFUSED

PAGE = Path(__file__).resolve().parents[2] / "docs/mutants.md"

INTRO = """\
# Mutants: the conformance kit, tested

A kit that finds nothing may be a kit that looks at nothing. So it is tested by rules with a fault in them: a *mutant*
is a rule of a shipped pack in which a piece of the source is replaced by another, as an author might have written it by
mistake. It is *killed* if `check_primitive(mutant)`, in the quick mode and with the samples that the pack gives, raises
a `ConformanceError`, or if it is refused by name when its rules are collected.

**{killed} of {total} mutants are killed ({percent:.1f}%)**, in {seconds:.0f} s on one core, {each:.2f} s each. The true
rules, loaded in the same way, pass: no false alarm. In {blamed} of {killed} the failure blames the hook that has the
fault; a fault in a helper of several hooks, or in a derived rule, shows where it is used.

| to do | command |
| --- | --- |
| run all and write this page | `python -m tests.mutants --write` |
| run all as tests | `make mutants`, or `pytest -m mutants tests/test_mutants.py`; `make test` runs a spread |
| what the kit says to some | `python -m tests.mutants WORD ...` (words of their names) |

The tables of mutants are in `tests/mutants/`. A test runs each of them and compares with what is written here.

"""

Row = tuple[str, ...]


def write() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


def page() -> str:
    """The text of the page."""
    outcomes = [frozen()[m.name] for m in MUTANTS]
    killed = [(m, o) for m, o in zip(MUTANTS, outcomes, strict=True) if o.killed]
    seconds = sum([outcome.seconds for outcome in outcomes])
    intro = INTRO.format(killed=len(killed), total=len(MUTANTS), percent=100 * len(killed) / len(MUTANTS),
                         seconds=seconds, each=seconds / len(MUTANTS),
                         blamed=sum([m.hook == o.blamed for m, o in killed]))
    return intro + "\n".join(_sections())


def _sections() -> Iterator[str]:
    yield "## By kind of fault\n"
    yield from _totals("kind", KINDS, lambda m: m.kind, [f"{kind}: {text}" for kind, text in KINDS.items()])
    yield "## By hook\n"
    yield from _totals("hook", HOOKS, lambda m: m.hook, [f"`{hook}`" for hook in HOOKS])
    yield "## By pack\n"
    packs = list(dict.fromkeys([_pack(m) for m in MUTANTS]))
    yield from _totals("source", packs, _pack, packs)
    yield "## By check\n"
    yield "The law that each broke first; those of the hook with the fault are tried before the others.\n"
    kills = Counter([frozen()[m.name].check for m in MUTANTS])
    yield from _table(("check", "killed"), [(check, str(n)) for check, n in _in_order(kills)])
    yield "## Survivors\n"
    survivors = [m for m in MUTANTS if not frozen()[m.name].killed]
    if not survivors:
        yield "None.\n"
        return
    yield from _table(("mutant", "the rule", "the fault", "why it lives"),
                      [(m.name, _code(m.old), _code(m.new), m.survives) for m in survivors])


def _totals(title: str, keys: Sequence[str] | Iterable[str], key_of: Callable[[Mutant], str],
            labels: Sequence[str]) -> Iterator[str]:
    rows = []
    for key, label in zip(keys, labels, strict=True):
        found = [m for m in MUTANTS if key_of(m) == key]
        if found:
            rows.append((label, str(len(found)), str(sum([frozen()[m.name].killed for m in found]))))
    yield from _table((title, "mutants", "killed"), rows)


def _in_order(kills: Counter[str]) -> list[tuple[str, int]]:
    return [(check, kills[check]) for check in (REFUSED, *CHECKS) if kills[check]]


def _pack(mutant: Mutant) -> str:
    root = mutant.module.partition(".")[0]
    return "the kernel's families" if root == "corejax" else root.replace("_", "-")


def _code(source: str) -> str:
    text = " ".join(source.split()).replace("|", "\\|")
    return f"`{text}`" if text else "(nothing)"


def _table(header: Row, rows: Iterable[Row]) -> Iterator[str]:
    lines = [header, tuple("---" for _ in header), *rows]
    yield "".join(f"| {' | '.join(line)} |\n" for line in lines)
