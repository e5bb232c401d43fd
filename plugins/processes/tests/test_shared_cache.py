"""A directory of compiled programs that several processes share: one of them compiles a program, the others load it."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from corejax.xla.cache import persistent_files
from corejax.xla.cache.persistent_files import Directory
from together import Outcome, together

SCRIPT = Path(__file__).with_name("cached.py")

#: How many programs it has.
PROGRAMS = 4

KEY = bytes(range(32))


def run(directory: Path, processes: int, devices: int) -> list[Outcome]:
    outcomes = together(SCRIPT, processes, devices, [str(directory)])
    for outcome in outcomes:
        assert 0 == outcome.code, outcome.error[-3000:]
    return outcomes


@pytest.mark.parametrize(("processes", "devices"), [(2, 2), pytest.param(4, 1, marks=pytest.mark.exhaustive)])
def test_each_program_is_compiled_once_by_one_process(tmp_path: Path, processes: int, devices: int) -> None:
    first, again = run(tmp_path, processes, devices), run(tmp_path, processes, devices)
    assert PROGRAMS == len(list(tmp_path.iterdir()))  # equal keys everywhere, and no lock is left
    assert PROGRAMS == sum([outcome.results[0] for outcome in first])
    assert [PROGRAMS] * processes == [outcome.results[0] + outcome.results[1] for outcome in first]
    assert [(0, PROGRAMS)] * processes == [outcome.results[:2] for outcome in again]
    assert [outcome.results[2] for outcome in first] == [outcome.results[2] for outcome in again]


def test_who_waits_sees_the_entry_of_another(tmp_path: Path) -> None:
    os.chmod(tmp_path, 0o700)
    seen = []

    def look() -> None:
        seen.append(len(seen))
        if len(seen) == 3:
            first.write(KEY, b"a program", 10 ** 9)

    with Directory(str(tmp_path)) as first, Directory(str(tmp_path)) as second, first.turn(KEY, look):
        with second.turn(KEY, look):
            assert b"a program" == second.read(KEY)
    assert [0, 1, 2] == seen
    assert 1 == len(list(tmp_path.iterdir()))


def test_one_that_dies_leaves_its_turn(tmp_path: Path) -> None:
    os.chmod(tmp_path, 0o700)
    code = f"""
import time
from corejax.xla.cache.persistent_files import Directory
with Directory({str(tmp_path)!r}) as directory, directory.turn(bytes(range(32)), lambda: None):
    print("mine", flush=True)
    time.sleep(1000)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as other:
        assert other.stdout is not None and b"mine\n" == other.stdout.readline()
        with Directory(str(tmp_path)) as directory:
            start, looks = time.monotonic(), []

            def look() -> None:
                looks.append(1)
                if len(looks) == 2:
                    other.kill()
            with directory.turn(KEY, look):
                assert time.monotonic() - start < 10
    assert [] == list(tmp_path.iterdir())


def test_nobody_waits_for_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.chmod(tmp_path, 0o700)
    monkeypatch.setattr(persistent_files, "_PATIENCE", 0.1)
    with Directory(str(tmp_path)) as first, Directory(str(tmp_path)) as second, first.turn(KEY, lambda: None):
        start = time.monotonic()
        with second.turn(KEY, lambda: None):
            assert 0.1 <= time.monotonic() - start < 5

        class Gone(Exception):
            pass

        def look() -> None:
            raise Gone
        with pytest.raises(Gone), second.turn(KEY, look):
            pass


def test_a_system_without_locks_is_no_hindrance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.chmod(tmp_path, 0o700)

    def refuse(*_: object) -> None:
        raise OSError("no locks")
    monkeypatch.setattr(fcntl, "flock", refuse)
    with Directory(str(tmp_path)) as first, first.turn(KEY, lambda: None):
        first.write(KEY, b"a program", 10 ** 9)
        assert b"a program" == first.read(KEY)
