"""`python -m corejax`: what is installed, who provides it, and why it won."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import importlib_metadata

from corejax.base.errors import CorejaxError
from corejax.base.late import late
from corejax.inspect import checking
from corejax.inspect import doctor as examining
from corejax.inspect.answers import Problem
from corejax.installed import manifest

if TYPE_CHECKING:
    from corejax.inspect import entry_points as entering
    from corejax.inspect import explain as explaining
    from corejax.inspect import scaffold
    from corejax.inspect import stubs as stubbing
else:  # the doctor can't do without what is imported here, so it is little
    entering, explaining = late("corejax.inspect.entry_points"), late("corejax.inspect.explain")
    scaffold = late("corejax.inspect.scaffold")
    stubbing = late("corejax.inspect.stubs")


def plugins() -> Iterator[str]:
    """Each pack with its version and how much it provides; what the environment excludes."""
    yield str(explaining.packs())


def check(seconds: float) -> Iterator[str]:
    """Import every pack and validate what it provides; prints what is broken, and exits with 1 if anything is."""
    problems = _problems(seconds)
    if problems:
        raise CorejaxError("\n".join(map(str, problems)),
                           todo="fix or uninstall them; COREJAX_DISABLE_PACKS leaves packs out")
    yield "nothing is broken"


def check_as_json(seconds: float) -> Iterator[str]:
    """The same as a list of objects with `pack`, `problem` and `todo`."""
    problems = _problems(seconds)
    yield json.dumps([problem._asdict() for problem in problems], indent=1)
    if problems:
        raise SystemExit(1)


def _problems(seconds: float) -> list[Problem]:
    manifest.read()  # variables may name what isn't there
    return list(checking.problems(seconds))


def doctor(seconds: float) -> Iterator[str]:
    """Print versions, packs, backends with a program run on each, settings, caches, duplicates, and what is wrong."""
    found = examining.examine(seconds)
    yield from found.lines()
    if found.problems:
        raise SystemExit(1)


def doctor_as_json(seconds: float) -> Iterator[str]:
    """The same as an object, whose `problems` are as those of `check`."""
    found = examining.examine(seconds)
    yield json.dumps({**found.sections, "problems": [problem._asdict() for problem in found.problems]}, indent=1)
    if found.problems:
        raise SystemExit(1)


def primitives() -> Iterator[str]:
    """The primitives of each pack. Imports no pack."""
    yield str(explaining.primitives())


def backends() -> Iterator[str]:
    """Each backend, and whether it can be used here. Starts none."""
    yield str(explaining.backends())


def explain(name: str) -> Iterator[str]:
    """Who provides a primitive, function, role or operator; each hook of a primitive, and why it won."""
    yield str(explaining.explain(name))


def stubs(directory: str, partial: bool) -> Iterator[str]:
    """Write stubs of what is installed, so that type checkers and editors know it, and print the settings for them."""
    yield from stubbing.write(directory, partial)


def new(name: str, kind: str, into: str) -> Iterator[str]:
    """Write a new pack as a whole repository, whose tests pass: NAME is the distribution's."""
    yield from scaffold.new(name, kind, into)


def entry_points(directories: Sequence[str], write: bool) -> Iterator[str]:
    """Make a pack's entry points, in its pyproject.toml, of what its modules export; or fail if out of date."""
    yield from entering.update(directories or ["."], write)


def version() -> Iterator[str]:
    """The versions of corejax and its dependencies."""
    for distribution in ("corejax", "jaxlib", "numpy", "pluggy"):
        try:
            yield f"{distribution} {importlib_metadata.version(distribution)}"
        except importlib_metadata.PackageNotFoundError:
            yield f"{distribution} is not installed as a distribution"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; if it fails, return 1, with the message on stderr."""
    parser = argparse.ArgumentParser(prog="python -m corejax", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    parsers = {}
    for command in (plugins, check, doctor, primitives, backends, version, explain, stubs, new, entry_points):
        parsers[command] = commands.add_parser(command.__name__.replace("_", "-"), help=command.__doc__)
        parsers[command].set_defaults(run=command)
    parsers[check].add_argument("--json", dest="run", action="store_const", const=check_as_json,
                                help=check_as_json.__doc__)
    parsers[doctor].add_argument("--json", dest="run", action="store_const", const=doctor_as_json,
                                 help=doctor_as_json.__doc__)
    for command in (check, doctor):
        parsers[command].add_argument("--seconds", type=float, default=checking.SECONDS,
                                      help="how long packs, or a backend, may take (default: %(default)s)")
    parsers[explain].add_argument("name")
    parsers[stubs].add_argument("directory", nargs="?", default="typings", help="where to (default: %(default)s)")
    parsers[stubs].add_argument("--partial", action="store_true", help="as a package to be installed, corejax-stubs")
    parsers[new].add_argument("name")
    parsers[new].add_argument("--kind", default="elementwise",
                              help="elementwise (the default), structured, carrying, rules, native, namespace or dtype")
    parsers[new].add_argument("--in", dest="into", metavar="DIR", default=".", help="the folder to put its folder in")
    parsers[entry_points].add_argument("directories", metavar="DIR", nargs="*",
                                       help="where pyproject.toml is (default: .)")
    way = parsers[entry_points].add_mutually_exclusive_group(required=True)
    way.add_argument("--write", action="store_true", help="write them")
    way.add_argument("--check", action="store_false", dest="write", help="write nothing; exit with 1 if out of date")
    options = vars(parser.parse_args(arguments))
    run = options.pop("run")
    del options["command"]
    try:
        for line in run(**options):
            print(line)
        sys.stdout.flush()
    except CorejaxError as error:
        print(error, file=sys.stderr)
        return 1
    except SystemExit as exit:
        return int(exit.code or 0)
    except BrokenPipeError:  # whoever reads it has seen enough; Python would write to it once more at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0
