"""`python -m corejax`: what is installed, who provides it, and why it won."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import importlib_metadata

from corejax.base.errors import CorejaxError
from corejax.base.late import late
from corejax.inspect import checking, commands, doctor as examining
from corejax.inspect.answers import Problem
from corejax.installed import manifest

if TYPE_CHECKING:
    from corejax.inspect import explain as explaining
else:  # the doctor can't do without what is imported here, so it is little
    explaining = late("corejax.inspect.explain")


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


def version() -> Iterator[str]:
    """The versions of corejax and its dependencies."""
    for distribution in ("corejax", "jaxlib", "numpy", "pluggy"):
        try:
            yield f"{distribution} {importlib_metadata.version(distribution)}"
        except importlib_metadata.PackageNotFoundError:
            yield f"{distribution} is not installed as a distribution"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; if it fails, return 1, with the message on stderr."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    try:
        for line in _chosen(arguments):
            print(line)
        sys.stdout.flush()
    except CorejaxError as error:
        print(error, file=sys.stderr)
        return 1
    except SystemExit as exit:
        return _code(exit)
    except BrokenPipeError:  # whoever reads it has seen enough; Python would write to it once more at its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _chosen(arguments: list[str]) -> Iterable[str]:
    """What the command yields that the arguments name."""
    if arguments and not arguments[0].startswith("-") and arguments[0] not in commands.OWN:
        return commands.run(arguments[0], arguments[1:])
    options = vars(_parser(not arguments or arguments[0] in ("-h", "--help")).parse_args(arguments))
    del options["command"]
    run: Callable[..., Iterable[str]] = options.pop("run")
    return run(**options)


def _parser(wants_help: bool) -> argparse.ArgumentParser:
    """The parser of the kernel's own commands; if help is wanted, it shows those of packs, too."""
    parser = argparse.ArgumentParser(prog="python -m corejax", description=__doc__)
    choices = parser.add_subparsers(dest="command", required=True)
    parsers = {}
    for command in (plugins, check, doctor, primitives, backends, version, explain):
        name = command.__name__
        parsers[name] = choices.add_parser(name, help=command.__doc__)
        parsers[name].set_defaults(run=command)
    for name in commands.names() if wants_help else ():
        choices.add_parser(name, help=commands.summary(name).replace("%", "%%"))
    parsers["check"].add_argument("--json", dest="run", action="store_const", const=check_as_json,
                                  help=check_as_json.__doc__)
    parsers["doctor"].add_argument("--json", dest="run", action="store_const", const=doctor_as_json,
                                   help=doctor_as_json.__doc__)
    for name in ("check", "doctor"):
        parsers[name].add_argument("--seconds", type=float, default=checking.SECONDS,
                                   help="how long packs, or a backend, may take (default: %(default)s)")
    parsers["explain"].add_argument("name")
    return parser


def _code(exit: SystemExit) -> int:
    """The exit status that is asked for; a text goes to stderr, as Python has it."""
    if exit.code is None or isinstance(exit.code, int):
        return exit.code or 0
    print(exit.code, file=sys.stderr)
    return 1
