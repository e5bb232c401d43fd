"""`python -m corejax`: what is installed, who provides it, and why it won."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

import importlib_metadata

from corejax.errors import CorejaxError
from corejax.plugin import manifest, registry
from corejax.plugin.hookspecs import HOOKS
from corejax.plugin.primitive import find


def plugins() -> Iterator[str]:
    """Each pack with its version and how much it provides; what the environment excludes."""
    installed = manifest.read()
    for pack in installed.packs.values():
        groups: dict[str, int] = {}
        for entry in pack.entries:
            groups[entry.group] = groups.get(entry.group, 0) + 1
        counts = [f"{count} {group.rpartition('.')[2]}" for group, count in sorted(groups.items())]
        yield f"{pack}: {', '.join(counts)}"
    for pack in installed.hidden.values():
        yield f"{pack}: excluded by COREJAX_PACKS or COREJAX_DISABLE_PACKS"
    if not installed.packs and not installed.hidden:
        yield "no pack is installed: pip install 'corejax[std]' brings the standard ones"


def primitives() -> Iterator[str]:
    """The primitives of each pack. No pack is imported for it."""
    for pack in manifest.read().packs.values():
        names = sorted(entry.name for entry in pack.entries if entry.group == registry.PRIMITIVES)
        if names:
            yield f"{pack}:"
            yield from (f"  {name}" for name in names)


def explain(name: str) -> Iterator[str]:
    """Who provides each hook of a primitive."""
    primitive = find(name)
    yield f"{primitive.name} ({primitive.origin})"
    yield f"  params: {', '.join(sorted(primitive.params)) or 'none'}"
    providers = primitive.providers
    for hook in HOOKS:
        yield f"  {hook}: {providers.get(hook, 'absent')}"
    for hook in sorted(providers.keys() - HOOKS.keys()):
        yield f"  {hook}: {providers[hook]}"
    others = manifest.read().providers(registry.PRIMITIVES, name)
    yield from (f"  not used: {entry.pack}, by COREJAX_PREFER" for entry in others if entry.pack.name != primitive.pack)


def version() -> Iterator[str]:
    """The versions of corejax and of what it runs on."""
    for distribution in ("corejax", "jaxlib", "numpy", "pluggy"):
        try:
            yield f"{distribution} {importlib_metadata.version(distribution)}"
        except importlib_metadata.PackageNotFoundError:
            yield f"{distribution} is not installed as a distribution"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 1 with the message on stderr if it can't be done."""
    parser = argparse.ArgumentParser(prog="python -m corejax", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for command in (plugins, primitives, version):
        commands.add_parser(command.__name__, help=command.__doc__).set_defaults(run=command)
    explaining = commands.add_parser("explain", help=explain.__doc__)
    explaining.add_argument("name")
    options = parser.parse_args(arguments)
    try:
        for line in explain(options.name) if options.command == "explain" else options.run():
            print(line)
    except CorejaxError as error:
        print(error, file=sys.stderr)
        return 1
    return 0
