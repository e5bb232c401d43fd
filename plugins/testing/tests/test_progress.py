"""Progress of long runs: one line on a terminal, nothing anywhere else."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
import textwrap
import threading
from typing import Any

import pytest

from corejax.testing import CHECKS
from corejax_testing.progress import _COSTS, Progress

#: A run that lasts long enough for the line to be seen.
BEGIN = textwrap.dedent("""
    import threading
    from corejax.testing import check_pack, check_primitive, progress, Search
    progress._FIRST = progress._EVERY = 0.02
    checks = ["params are hashable", "runs are deterministic", "printed programs parse back"]
    def run():
        check_primitive("mul", checks=checks, search=Search(20))
""")
RUN = BEGIN + "run()\nprint(threading.active_count())"

#: Several, some of them at once.
RUNS = BEGIN + textwrap.dedent("""
    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check_pack("corejax-reductions", checks=checks)
    print(threading.active_count())
""")


def on_a_terminal(code: str, **environ: str) -> tuple[str, str]:
    """What a process writes to standard error, which is a terminal, and to standard output."""
    ours, theirs = pty.openpty()
    env = {name: value for name, value in os.environ.items() if name not in ("PYTEST_CURRENT_TEST", "NO_COLOR")}
    process = subprocess.Popen([sys.executable, "-c", code], env={**env, "TERM": "xterm", **environ}, stderr=theirs,
                               stdout=subprocess.PIPE, text=True)
    os.close(theirs)
    written: list[bytes] = []

    def read() -> None:
        try:
            while data := os.read(ours, 4096):
                written.append(data)
        except OSError:  # the other side is closed
            pass
    reader = threading.Thread(target=read)
    reader.start()
    out, _ = process.communicate(timeout=120)
    reader.join()
    os.close(ours)
    assert process.returncode == 0, b"".join(written).decode()
    return b"".join(written).decode(), out


def sized(columns: int) -> str:
    """Code that gives the terminal a width."""
    return textwrap.dedent(f"""
        import fcntl, struct, termios
        fcntl.ioctl(2, termios.TIOCSWINSZ, struct.pack("HHHH", 24, {columns}, 0, 0))
    """)


def test_one_line_is_rewritten_and_cleared() -> None:
    written, out = on_a_terminal(sized(70) + RUNS)
    lines = written.split("\r")
    assert "\n" not in written and "\x1b" not in written and max(map(len, lines)) < 70
    assert any([re.match(r"mul: .*, \d+ s", line) for line in lines])
    assert any([re.match(r"reduce_\w+ \(\d+ of \d+\): .*, \d+ s", line) for line in lines])
    assert any(["left" in line for line in lines])
    assert "" == lines[-1] and "" == lines[-2].strip()
    assert "1" == out.strip()


@pytest.mark.sample(1)
@pytest.mark.parametrize("environ", [{"TERM": "dumb"}, {"PYTEST_CURRENT_TEST": "test_mine.py::test (call)"}])
def test_nothing_is_written_to_dumb_terminals_and_under_pytest(environ: dict[str, str]) -> None:
    assert ("", "1") == tuple([text.strip() for text in on_a_terminal(sized(70) + RUN, **environ)])


def test_nothing_is_written_to_a_file_or_a_pipe(capfd: pytest.CaptureFixture[str]) -> None:
    done = subprocess.run([sys.executable, "-c", RUN], capture_output=True, text=True, check=True,
                          env={name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"})
    assert ("", "1") == (done.stderr.strip(), done.stdout.strip())


# What the line says

@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that a clock shows."""
    now = [0.0]
    monkeypatch.setattr("corejax_testing.progress.time.perf_counter", lambda: now[0])
    return now


def test_seconds_left_follow_from_those_so_far_and_what_checks_cost(clock: list[float]) -> None:
    progress = Progress(2)
    progress.primitive("sin", ["a map is a loop", "effects are a frozenset"])
    progress.check("a map is a loop")
    assert "sin (1 of 2): a map is a loop, 0 s" == progress.text()
    progress.check("effects are a frozenset")
    clock[0] = 30.0
    assert 0.375 == progress.fraction()
    assert "sin (1 of 2): effects are a frozenset, 30 s, about 50 s left" == progress.text()
    progress.finished()
    progress.primitive("cos", ["a map is a loop"])
    progress.check("a map is a loop")
    progress.part(0.5)
    clock[0] = 600.0
    assert "cos (2 of 2): a map is a loop, 10 min, about 3 min left" == progress.text()
    progress.finished()
    assert 1.0 == progress.fraction()


def test_costs_are_those_of_checks() -> None:
    assert len(_COSTS.keys() - CHECKS.keys()) == 1


def test_streams_that_are_no_terminals_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    closed: Any = io.StringIO()
    closed.close()
    for stream in (closed, io.StringIO(), object()):
        with Progress(1, stream):  # type: ignore[arg-type]
            assert "corejax progress" not in [thread.name for thread in threading.enumerate()]
