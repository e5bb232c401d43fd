"""New Python processes that need not import NumPy and jaxlib first: forked from one that has done nothing else.

Half of what a short program takes is importing these two. The process that is forked from has one thread, no corejax,
and no runtime; a program finds there what a new Python with the modules of `LIBRARIES` would have.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import IO, NamedTuple

#: What is read when a library is loaded, so that it can't be changed afterwards.
FIXED = {"TF_CPP_MIN_LOG_LEVEL": "3", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

LIBRARIES = ("numpy", "ml_dtypes", "jaxlib.xla_client", "jaxlib.mlir.ir", "jaxlib.mlir.dialects.stablehlo")


_ONE_AT_A_TIME = Lock()


class Done(NamedTuple):
    """What is left of a process, like `subprocess.CompletedProcess`."""

    returncode: int
    stdout: str
    stderr: str


def run(code: str, environment: Mapping[str, str], cwd: str | None = None) -> Done:
    """Run a program as `python -c` does, with this environment, in this folder.

    One that looks at `sys.modules`, or changes what is `FIXED`, gets a Python that has imported nothing.
    """
    changed = any([environment.get(name, value) != value for name, value in FIXED.items()])
    if "sys.modules" in code or changed or os.name != "posix":
        done = subprocess.run([sys.executable, "-c", code], env=dict(environment), cwd=cwd, capture_output=True,
                              text=True, timeout=300, check=False)
        return Done(done.returncode, done.stdout, done.stderr)
    server = _server(os.getpid())
    assert server.stdin is not None and server.stdout is not None
    with TemporaryDirectory() as folder:
        task = {"code": code, "environment": dict(environment), "folder": folder, "cwd": cwd or os.getcwd()}
        with _ONE_AT_A_TIME:
            print(json.dumps(task), file=server.stdin, flush=True)
            code_of_exit = int(server.stdout.readline())
        texts = [Path(folder, name).read_text() for name in ("stdout", "stderr")]
    return Done(code_of_exit, *texts)


@cache
def _server(pid: int) -> subprocess.Popen[str]:
    """The process to fork from, which ends with this one: then its input does."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("COREJAX_")} | FIXED
    return subprocess.Popen([sys.executable, str(Path(__file__))], env=environment, text=True, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE)


def _serve(tasks: IO[str]) -> None:
    for library in LIBRARIES:
        __import__(library)
    sys.path.pop(0)  # the folder of this file
    gc.collect()
    gc.freeze()  # or else each process would copy what its first collection walks through
    for line in iter(tasks.readline, ""):
        child = os.fork()
        if not child:
            _become(json.loads(line))
            return
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


PROGRAM: list[str] = []


def _become(task: Mapping[str, str | dict[str, str]]) -> None:
    """Take the place of a new Python, up to what it runs."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        file = os.open(os.path.join(str(task["folder"]), name), os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        os.dup2(file, number)
        os.close(file)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.environ.clear()
    os.environ.update(task["environment"])  # type: ignore[arg-type]
    os.chdir(str(task["cwd"]))
    sys.path[:0] = ["", *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    sys.argv = ["-c"]
    PROGRAM.append(str(task["code"]))


if __name__ == "__main__":
    _serve(sys.stdin)
    if PROGRAM:
        __file__ = "<string>"
        exec(compile(PROGRAM.pop(), "<string>", "exec", dont_inherit=True), {"__name__": "__main__"})
