"""Loads everything that the installed packs provide, to report what is broken before somebody uses it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from corejax.installed import groups, manifest, registry
from corejax.packs.define import find
from corejax.xla.runtime import backends

if TYPE_CHECKING:
    from corejax.installed.manifest import Entry, Manifest


def checkup() -> Iterator[tuple[str, str]]:
    """(distribution, problem) for everything that is wrong with packs in use, in order; a broken pack counts once."""
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
    """What is wrong with an entry, or with its whole pack if that is broken."""
    try:
        if entry.group == groups.RULES or (entry.group == groups.ROLES and entry.name in groups.TABLES):
            registry.load_entry(entry)
        elif installed.choose(entry.group, entry.name) is entry:
            registry.load(entry.group, entry.name)
            if entry.group == backends.GROUP:
                backends.offer(entry.name)
            if entry.group == groups.PRIMITIVES:
                assert find(entry.name).params is not None  # reading it validates the plugin
    except (Exception, SystemExit) as error:  # whatever went wrong, the other entries are checked too
        return registry.broken().get(entry.pack.name) or getattr(error, "message", None) or registry.words(error)
    return None
