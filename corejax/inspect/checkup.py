"""Loads everything that the installed packs provide, to say what is broken before somebody uses it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from corejax.installed import groups, manifest, registry
from corejax.packs.define import find
from corejax.xla.runtime import backends

if TYPE_CHECKING:
    from corejax.installed.manifest import Entry, Manifest


def checkup() -> Iterator[tuple[str, str]]:
    """(distribution, problem) for all that is wrong with packs in use, in their order; a broken pack counts once."""
    installed = manifest.read()
    yield from ((name, f"left out: its metadata is broken: {why}") for name, why in installed.broken.items())
    yield from installed.several_versions()
    for pack in installed.packs.values():
        told = set()
        for entry in pack.entries:
            problem = _problem(installed, entry)
            if problem is not None and problem not in told:
                told.add(problem)
                yield pack.name, problem


def _problem(installed: Manifest, entry: Entry) -> str | None:
    """What is wrong with an entry; of a broken pack, what is wrong with the pack."""
    try:
        if entry.group == groups.RULES or (entry.group == groups.ROLES and entry.name in groups.TABLES):
            registry.load_entry(entry)
        elif installed.choose(entry.group, entry.name) is entry:
            registry.load(entry.group, entry.name)
            if entry.group == backends.GROUP:
                backends.offer(entry.name)
            if entry.group == groups.PRIMITIVES:
                assert find(entry.name).params is not None  # reading it validates the plugin
    except (Exception, SystemExit) as error:  # whatever it is, the other entries are looked at
        return registry.broken().get(entry.pack.name) or getattr(error, "message", None) or registry.words(error)
    return None
