"""A process that `launch` started: joins the others, and runs the script as Python itself would.

`python -P -m corejax_processes._launched PARENT SAFE NOTES script.py args...`, or `... -m module args...`. It ends with
its parent, whose number PARENT is. SAFE is 1 if the user wants nothing added to `sys.path`. NOTES is a pipe that gets
the number of this process as soon as it fails, so that one sees who was first. It is run with -P, so that what the
current folder holds doesn't get in the way of what is imported here.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import runpy
import signal
import sys
import threading
import time
import types
import zipfile
from collections.abc import Callable, Sequence
from importlib.machinery import SourceFileLoader
from typing import Final

#: From linux/prctl.h: the signal that a process gets when its parent ends.
_PR_SET_PDEATHSIG: Final = 1

#: How often the parent is looked for where the system doesn't tell, in seconds.
_EACH: Final = 0.2


def main(arguments: Sequence[str]) -> None:
    """Run the program, joined with the others, for as long as the parent lives."""
    parent, safe, notes, *program = arguments
    _end_with(int(parent))
    failed = _noter(int(notes))
    as_module = program[0] == "-m"
    sys.argv[:] = program[1:] if as_module else program
    if safe != "1":
        sys.path.insert(0, os.getcwd() if as_module else os.path.dirname(os.path.realpath(program[0])))
    try:
        _join()
        if as_module:
            runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        else:
            _run_script(sys.argv[0])
    except SystemExit as exit:
        if exit.code not in (None, 0):
            failed(exit)
        raise
    except BaseException as error:
        # Not by raising it further, as frames of this module would be shown.
        failed(error)
        sys.excepthook(type(error), error, _of_user(error))
        sys.exit(128 + signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1)


def _noter(notes: int) -> Callable[[BaseException], None]:
    """What to call when the script has failed."""
    os.set_inheritable(notes, False)
    number, pid = int(os.environ["COREJAX_PROCESS_ID"]), os.getpid()

    def failed(error: BaseException) -> None:
        if os.getpid() == pid:  # not what a script has forked
            os.write(notes, bytes([number]))
        # Where Python keeps what nobody catches: so what runs at exit doesn't wait for others that wait for this one.
        sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
        if sys.version_info >= (3, 12):
            sys.last_exc = error

    return failed


def _end_with(parent: int) -> None:
    """Kill this process when its parent ends, however that ends."""
    try:
        told = sys.platform == "linux" and ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) == 0
    except (OSError, AttributeError):
        told = False
    if os.getppid() != parent:  # it has ended before
        os._exit(1)
    if not told:
        threading.Thread(target=_watch, args=[parent], daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_EACH)
    os.kill(os.getpid(), signal.SIGKILL)


def _join() -> None:
    """Meet the other processes; if that fails, say why and end."""
    # Here and not above, as it takes a while: from the start, this process is to end with its parent.
    joining, errors = [importlib.import_module(name) for name in ("corejax_processes.distributed", "corejax.errors")]
    try:
        joining.initialize()
    except errors.CorejaxError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:  # nothing of the user's has run
        sys.exit(128 + signal.SIGINT)


def _run_script(path: str) -> None:
    """Run a file as `__main__`, which it stays: threads and what ends later still find it there."""
    if os.path.isdir(path) or zipfile.is_zipfile(path):
        runpy.run_path(path, run_name="__main__")
        return
    path = os.path.abspath(path)
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=path, __builtins__=__builtins__, __cached__=None,
                           __loader__=SourceFileLoader("__main__", path))
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    sys.modules["__main__"] = module
    exec(code, module.__dict__)


def _of_user(error: BaseException) -> types.TracebackType | None:
    """The traceback without the frames that run the program: those of this module and of runpy."""
    found = error.__traceback__
    while found is not None and (found.tb_frame.f_globals is globals() or found.tb_frame.f_globals is vars(runpy)):
        found = found.tb_next
    error.__traceback__ = found
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
