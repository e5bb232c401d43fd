"""The commands: `python -m corejax new`, `... entry-points` and `... stubs`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

from corejax_authoring import entry_points as entering, scaffold, stubs as stubbing


def new(arguments: Sequence[str]) -> Iterator[str]:
    """Write a new pack as a whole repository, whose tests pass."""
    parser = argparse.ArgumentParser("python -m corejax new", description=new.__doc__)
    parser.add_argument("name", help="of its distribution")
    parser.add_argument("--kind", default=scaffold.KINDS[0],
                        help=f"{scaffold.KINDS[0]} (the default), {', '.join(scaffold.KINDS[1:])}")
    parser.add_argument("--in", dest="into", metavar="DIR", default=".", help="the folder to put its folder in")
    options = parser.parse_args(arguments)
    yield from scaffold.new(options.name, options.kind, options.into)


def entry_points(arguments: Sequence[str]) -> Iterator[str]:
    """Make a pack's entry points, in its pyproject.toml, of what its modules export; or fail if out of date."""
    parser = argparse.ArgumentParser("python -m corejax entry-points", description=entry_points.__doc__)
    parser.add_argument("directories", metavar="DIR", nargs="*", help="where pyproject.toml is (default: .)")
    way = parser.add_mutually_exclusive_group(required=True)
    way.add_argument("--write", action="store_true", help="write them")
    way.add_argument("--check", action="store_false", dest="write", help="write nothing; exit with 1 if out of date")
    options = parser.parse_args(arguments)
    yield from entering.update(options.directories or ["."], options.write)


def stubs(arguments: Sequence[str]) -> Iterator[str]:
    """Write stubs of what is installed, so that type checkers and editors know it, and print the settings for them."""
    parser = argparse.ArgumentParser("python -m corejax stubs", description=stubs.__doc__)
    parser.add_argument("directory", nargs="?", default="typings", help="where to (default: %(default)s)")
    parser.add_argument("--partial", action="store_true", help="as a package to be installed, corejax-stubs")
    options = parser.parse_args(arguments)
    yield from stubbing.write(options.directory, options.partial)
