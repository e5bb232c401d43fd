"""What the frozen results of the mutants come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from corejax_testing import CHECKS

from . import MUTANTS
from .mutant import HOOKS, KINDS, Mutant
from .results import frozen
from .running import REFUSED

Row = tuple[str, ...]


def counts() -> dict[str, int]:
    """How many mutants there are, how many are killed, and how many of these blame the hook that has the fault."""
    killed = [m for m in MUTANTS if frozen()[m.name].killed]
    return {"mutants": len(MUTANTS), "killed": len(killed),
            "blamed": sum([m.hook == frozen()[m.name].blamed for m in killed])}


def tables() -> str:
    """The totals by kind of fault, hook, pack and check; then the survivors."""
    return "\n".join(_sections())


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
