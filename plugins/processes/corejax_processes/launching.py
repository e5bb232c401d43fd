"""The command `python -m corejax launch`: a script in several processes of this machine, which compute together."""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from corejax.errors import CorejaxNotImplementedError, CorejaxValueError
from corejax_processes import _service
from corejax_processes._environment import ADDRESS, BIND, COUNT, PROCESS
from corejax_processes._output import Output

#: More are a mistake: each takes a hundred megabytes, or a thread. A note of `_children` has one byte.
_MOST_PROCESSES: Final = 256
_MOST_DEVICES: Final = 1024

#: What each process is; tests run another.
_CHILD: Final = "corejax_processes._launched"

_VALUED: Final = ("-n", "--processes", "--devices", "--heartbeat")


def launch(arguments: Sequence[str]) -> Iterator[str]:
    """Run a script in several processes of this machine, which compute together."""
    options, program = _parse(arguments)
    _check(options, program)
    if os.name != "posix":
        raise CorejaxNotImplementedError("launch passes on signals as POSIX has them", got=f"a system of {os.name!r}",
                                         wanted="Linux or macOS",
                                         todo=f"start the processes yourself, with {ADDRESS}, {COUNT} and {PROCESS}")
    try:
        code = _run(options, program)
    except KeyboardInterrupt:  # before the processes have started, or after
        code = 128 + signal.SIGINT
    if code:
        raise SystemExit(code)
    return iter(())


def _parse(arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """The options, and what is to be run with its own arguments, which may look like options."""
    parser = argparse.ArgumentParser(
        "python -m corejax launch", description=launch.__doc__, allow_abbrev=False,
        usage="%(prog)s -n N [--devices D] [--heartbeat SECONDS] (script.py | -m module) [arguments ...]",
        epilog="Each line that they print comes with the number of the process. Process 0 reads stdin. If one fails, "
               "all are ended, and the exit code is its.")
    parser.add_argument("-n", "--processes", type=int, required=True, metavar="N", help="how many processes")
    parser.add_argument("--devices", type=int, metavar="D", help="how many devices of the CPU each has")
    parser.add_argument("--heartbeat", type=float, metavar="SECONDS",
                        help="after how long without a sign of life a process counts as dead")
    parser.add_argument("-m", dest="module", metavar="module", help="run a module, as python -m does")
    end = 0
    while end < len(arguments) and arguments[end].startswith("-") and arguments[end] not in ("-", "-m", "--"):
        end += 2 if arguments[end] in _VALUED else 1
    options = parser.parse_args(arguments[:end])
    program = list(arguments[end:])
    return options, program[1:] if program[:1] == ["--"] else program


def _check(options: argparse.Namespace, program: Sequence[str]) -> None:
    """Refuse what can't be started."""
    for option, value, most in (("-n", options.processes, _MOST_PROCESSES),
                                ("--devices", options.devices, _MOST_DEVICES)):
        if value is not None and not 1 <= value <= most:
            raise CorejaxValueError(f"launch: {option} is {'too large' if value > most else 'too small'}", got=value,
                                    wanted=f"a number from 1 to {most}")
    seconds = options.heartbeat
    if seconds is not None and not (math.isfinite(seconds) and seconds > 0):
        raise CorejaxValueError("launch: --heartbeat makes no sense", got=seconds, wanted="seconds, above 0")
    if not program or (program[0] == "-m" and len(program) < 2):
        raise CorejaxValueError("launch: there is nothing to run", got="no script",
                                wanted="a script, or -m and a module",
                                todo=f"python -m corejax launch -n {options.processes} script.py")
    if program[0] != "-m" and not os.path.exists(program[0]):
        raise CorejaxValueError(f"launch: there is no script {program[0]!r}", where=os.getcwd(), got=program[0],
                                wanted="a file, or a folder or an archive with __main__.py",
                                todo=None if program[0].endswith(".py") else "-m runs a module by its name")


def _run(options: argparse.Namespace, program: Sequence[str]) -> int:
    """Run a service and the processes; the exit code."""
    from corejax_processes._children import Children  # only POSIX has all that it imports

    service = _service.start_service("127.0.0.1:0", options.processes)
    try:
        children = Children(service, Output())
        command = [sys.executable, *_flags(), "-P", "-m", _CHILD, str(os.getpid()), str(int(sys.flags.safe_path)),
                   str(children.notes), *program]
        return children.run(
            [(command, _environment(number, options, service.address)) for number in range(options.processes)])
    finally:
        service.stop()


def _flags() -> list[str]:
    """The flags of Python itself with which this command runs."""
    given = sys.orig_argv
    end = next((i for i in range(1, len(given) - 1) if given[i:i + 2] == ["-m", "corejax"]), 1)
    return [each for each in given[1:end] if each not in ("-i", "-P")]


def _environment(number: int, options: argparse.Namespace, address: str) -> Mapping[str, str]:
    """The variables of a process."""
    own = {ADDRESS: address, COUNT: str(options.processes), PROCESS: str(number), "PYTHONUNBUFFERED": "1",
           "COREJAX_COORDINATOR_SERVICE": "running"}
    if options.devices is not None:
        own["COREJAX_NUM_CPU_DEVICES"] = str(options.devices)
    if options.heartbeat is not None:
        own["COREJAX_HEARTBEAT_TIMEOUT_SECONDS"] = f"{options.heartbeat:g}"
    # Where to listen concerns whoever starts a service.
    return {**{name: value for name, value in os.environ.items() if name != BIND}, **own}
