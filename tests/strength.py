"""How many faults are planted in the tests, of each kind, and how many are found: `make strength` measures it anew.

    python -m tests.strength [--names] [--processes N]

A change that makes tests quicker must not make the named set smaller.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from . import kit_tests
from .faults import faulty_rules, plugin_faults, wrong_uses
from .faults.faulty_rules import run as running_rules
from .faults.mistakes import run as mistakes
from .faults.plugin_faults import run as running_packs
from .faults.wrong_uses import run as running_uses

#: By name, whether each is found.
Found = dict[str, bool]


def of_mutants(processes: int) -> Found:
    """Rules with a fault that the conformance kit tells from the true ones."""
    laws = [kit_tests.known_law(mutant.name) for mutant in kit_tests.MUTANTS]
    outcomes = kit_tests.run_all(kit_tests.MUTANTS, processes, laws)
    return {outcome.name: outcome.killed for outcome in outcomes}


def of_wrong_rules(processes: int) -> Found:
    """Rules that return the wrong thing, and an error names them wherever they run."""
    return {fault.title: not any([running_rules.complaints(cell, running_rules.run(cell)) for cell in fault.cells])
            for fault in faulty_rules.FAULTS}


def of_plugin_faults(processes: int) -> Found:
    """Packs that can't be used, and an error says which and why, or everything works in spite of them."""
    def found(fault: plugin_faults.fault.Fault) -> bool:
        first = running_packs.outcomes()[fault.title]["first"]
        said = first["printed"] + first["message"]
        return first["error"] == fault.error and all(word in said for word in fault.words)

    return {fault.title: found(fault) for fault in plugin_faults.FAULTS}


def of_wrong_uses(processes: int) -> Found:
    """Programs of users that are wrong, and an error says how."""
    def found(case: wrong_uses.case.WrongUse) -> bool:
        outcome = running_uses.run(case)
        return {"CorejaxError", case.error.__name__} <= {*outcome.classes} and all(
            word in outcome.message for word in case.words)

    return {case.title: found(case) for case in wrong_uses.CASES}


def of_mistakes(processes: int) -> Found:
    """Mistakes of an author of a pack that are told by name."""
    return {mistake.title: all(word in mistakes.message_of(mistake) for word in mistake.words)
            for mistake in mistakes.MISTAKES}


KINDS: dict[str, Callable[[int], Found]] = {
    "mutants": of_mutants, "wrong rules": of_wrong_rules, "plugin faults": of_plugin_faults,
    "wrong uses": of_wrong_uses, "mistakes": of_mistakes}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.strength", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", action="store_true", help="print the name of each fault that is found")
    parser.add_argument("--processes", type=int, default=1, help="for the mutants")
    given = parser.parse_args()
    for kind, find in KINDS.items():
        found = find(given.processes)
        print(f"{kind}: {sum(found.values())} of {len(found)} found", flush=True)
        for name in found:
            if given.names and found[name]:
                print(f"  {name}")
            elif not found[name]:
                print(f"  NOT FOUND: {name}")


if __name__ == "__main__":
    main()
