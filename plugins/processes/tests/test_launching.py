"""`python -m corejax launch`: what users see of several processes, and what is left of them: nothing."""

from __future__ import annotations

import io
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import termios
import textwrap
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from corejax.errors import CorejaxRuntimeError, CorejaxValueError
from corejax_processes import _output, launching
from corejax_processes._service import start_service

HERE = Path(__file__).parent
ALONE = [sys.executable, str(HERE / "launching_alone.py")]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")

#: What scripts begin with.
START = """\
import os, signal, subprocess, sys, time
me = int(os.environ["COREJAX_PROCESS_ID"])
def say(name):
    open(f"{name}{me}.part", "w").write(str(os.getpid()))
    os.rename(f"{name}{me}.part", f"{name}{me}")
def wait_for(name):
    while not os.path.exists(name):
        time.sleep(0.01)
def sleep():
    say("here")
    time.sleep(1000)
"""


def eventually(what: Callable[[], object], seconds: float = 15) -> bool:
    until = time.monotonic() + seconds
    while not (found := what()) and time.monotonic() < until:
        time.sleep(0.02)
    return bool(found)


def as_in_a_terminal() -> None:
    """Before a program starts: signals mean something to it, though these tests may be a shell's background job."""
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


class Launch:
    """Runs of the command in a test, and all the processes that these start."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.mark = folder, f"LAUNCH_TEST={uuid.uuid4()}"
        self.started: list[subprocess.Popen[bytes]] = []

    def script(self, text: str) -> str:
        path = self.folder / "script.py"
        path.write_text(START + textwrap.dedent(text))
        return str(path)

    def start(self, text: str, *arguments: str, n: int = 2, options: tuple[str, ...] = (),
              **environment: str) -> subprocess.Popen[bytes]:
        command = [*ALONE, "-n", str(n), *options, self.script(text), *arguments]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   cwd=self.folder, env={**self.environment(), **environment},
                                   preexec_fn=as_in_a_terminal)
        self.started.append(process)
        return process

    def environment(self) -> dict[str, str]:
        name, _, value = self.mark.partition("=")
        return {**os.environ, "PYTHONPATH": str(HERE), name: value}

    def __call__(self, text: str, *arguments: str, n: int = 2, options: tuple[str, ...] = (),
                 **environment: str) -> tuple[int, list[str], list[str]]:
        """The exit code, and the lines of stdout and stderr."""
        process = self.start(text, *arguments, n=n, options=options, **environment)
        out, err = process.communicate(timeout=100)
        return process.returncode, out.decode(errors="replace").splitlines(), err.decode(errors="replace").splitlines()

    def pids(self) -> list[int]:
        """All processes that are there, but zombies, which have no environment."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if self.mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
            except OSError:
                continue
        return found

    def wait_for(self, name: str) -> str:
        """The text that a script has put into a file of this name, once it has."""
        path = self.folder / name
        assert eventually(path.exists), f"no {name}"
        return path.read_text()


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Launch]:
    launch = Launch(tmp_path)
    yield launch
    for process in launch.started:
        process.wait(timeout=20)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()
    # A service looks for its clients for a second.
    gone = eventually(lambda: not launch.pids(), 5)
    left = launch.pids()
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert gone, f"processes are left: {left}"


# What a script sees

def test_processes_are_told_who_they_are_and_run_as_by_python(run: Launch) -> None:
    code, out, err = run("""
        import __main__
        names = ("COREJAX_NUM_PROCESSES", "COREJAX_COORDINATOR_SERVICE", "COREJAX_NUM_CPU_DEVICES",
                 "COREJAX_HEARTBEAT_TIMEOUT_SECONDS", "PYTHONUNBUFFERED")
        def annotated(x: __import__("math").pi): pass
        assert annotated.__annotations__["x"] > 3  # nothing here says that they aren't evaluated
        here, name = os.path.split(os.path.realpath(__file__))
        print(sys.argv[1:], os.path.basename(sys.argv[0]), name, __name__, __main__.me == me, sys.path[0] == here,
              *map(os.environ.get, names), __doc__, __spec__)
        print("to stderr", file=sys.stderr)
        if me == 0:
            print(sys.stdin.read(), end="")
    """, "--x", "-n", "3", "--", options=("--devices", "4", "--heartbeat", "2.5"))
    line = "['--x', '-n', '3', '--'] script.py script.py __main__ True True 2 running 4 2.5 1 None None"
    assert (0, [f"[0] {line}", f"[1] {line}"]) == (code, sorted(out))
    assert ["[0] to stderr", "[1] to stderr"] == sorted(err)


def test_a_module_runs_as_by_python_and_process_0_reads_stdin(run: Launch) -> None:
    (run.folder / "module.py").write_text("""if True:
        import sys
        print(sys.argv[1:], sys.argv[0].endswith("module.py"), __name__, __spec__.name, sys.path[0] == __file__[:-10],
              repr(sys.stdin.read()))
    """)
    process = subprocess.run([*ALONE, "-n", "2", "--", "-m", "module", "-m", "x"], cwd=run.folder, input="typed",
                             capture_output=True, text=True, timeout=100, env=run.environment())
    start = "['-m', 'x'] True __main__ module True"
    assert [f"[0] {start} 'typed'", f"[1] {start} ''"] == sorted(process.stdout.splitlines()), process.stderr


@pytest.mark.exhaustive
def test_a_folder_runs_by_its_main_module(run: Launch) -> None:
    (run.folder / "script.py").write_text("")
    (run.folder / "package").mkdir()
    (run.folder / "package/__main__.py").write_text("import beside; print(__name__, beside.X)")
    (run.folder / "package/beside.py").write_text("X = 5")
    done = subprocess.run([*ALONE, "-n", "1", "package"], cwd=run.folder, capture_output=True, text=True, timeout=100,
                          env=run.environment())
    assert "[0] __main__ 5\n" == done.stdout, done.stderr


# What they print

def test_lines_stay_whole_and_nothing_is_lost(run: Launch) -> None:
    code, out, err = run("""
        for i in range(5000):
            os.write(1 + i % 2, b"%d:" % i)
            os.write(1 + i % 2, b"x" * 20 + b"\\n")
        print("without an end", end="")
    """, n=3)
    for i in range(3):
        lines = [[line[4:] for line in each if line.startswith(f"[{i}] ")] for each in (out, err)]
        assert [*[f"{j}:{'x' * 20}" for j in range(0, 5000, 2)], "without an end"] == lines[0]
        assert [f"{j}:{'x' * 20}" for j in range(1, 5000, 2)] == lines[1]
    assert (0, 3 * 2501, 3 * 2500) == (code, len(out), len(err))


@pytest.mark.parametrize("size", [100_000, pytest.param(3_000_000, marks=pytest.mark.exhaustive)])
def test_junk_and_long_lines_come_through(run: Launch, size: int) -> None:
    process = run.start(f"""
        os.write(1, b"\\xff\\x00\\x1b[31m\\r\\n")
        for _ in range({size} // 1000):
            os.write(1, b"y" * 1000)
        os.close(1)
        time.sleep(0.2)
        os.write(2, b"still here")
    """, n=1)
    out, err = process.communicate(timeout=100)
    assert out.startswith(b"[0] \xff\x00\x1b[31m\r\n[0] y")
    assert (0, size, b"[0] still here\n") == (process.returncode, out.count(b"y"), err)


def test_what_gloo_prints_is_left_out() -> None:
    gloo = b"[Gloo] Rank 2 is connected to 3 peer ranks. Expected number of connected peer ranks is : 3"
    both = (b"[Gloo] Rank [Gloo] Rank 0 is connected to 1 is connected to 3 peer ranks. "
            b"Expected number of connected peer ranks is : 3")
    kept = b"all the [Gloo] lines, and peer ranks. 3"
    read, write = os.pipe()
    os.close(write)
    with open(read, "rb") as pipe:
        for parts, wanted in (
                ([gloo + b"\n"], b""), ([gloo], b""), ([gloo[:30], gloo[30:] + b"\nhello\n"], b"[1] hello\n"),
                ([b"he" + gloo + b"\nllo\n"], b"[1] hello\n"), ([gloo + b"hello\n"], b"[1] hello\n"),
                ([b"hello " + gloo], b"[1] hello \n"), ([both + b"\n3\n"], b"[1] 3\n"),
                ([kept + b"\n"], b"[1] " + kept + b"\n"), ([b"\n\n"], b"[1] \n[1] \n")):
            to = io.BytesIO()
            stream = _output.Stream(1, pipe, to, keep=True)
            for part in parts:
                stream.feed(part)
            stream.end()
            assert wanted == to.getvalue()


def test_a_reader_that_has_seen_enough_ends_all(run: Launch) -> None:
    process = run.start("while True:\n    print('more')")
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert 0 == process.wait(20)


@pytest.mark.exhaustive
def test_ten_megabytes_from_each_come_through(run: Launch) -> None:
    code, out, _ = run("for i in range(100_000):\n    print('z' * 99)", n=3)
    assert (0, 300_000) == (code, len(out))


# How they end

def test_the_first_failure_ends_all_and_is_told_last(run: Launch) -> None:
    code, _, err = run("""
        def inner():
            raise ValueError("bad")
        if me == 1:
            wait_for("here0"), wait_for("here2")
            try:
                inner()
            except ValueError as error:
                raise KeyError("worse") from error
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
        try:
            sleep()
        finally:
            print("one more line", file=sys.stderr)
    """, n=3)
    assert (1, "process 1 failed with exit code 1") == (code, err[-1])
    start = max(i for i, line in enumerate(err) if "one more line" in line)
    repeated = err[start + 1:-1]
    assert "[1] Traceback (most recent call last):" == repeated[0] and "[1] KeyError: 'worse'" == repeated[-1]
    assert "[1] ValueError: bad" in repeated
    files = {match[1] for line in repeated if (match := re.search(r'File "(.*?)"', line))}
    assert {str(run.folder / "script.py")} == files


@pytest.mark.parametrize(("how", "code", "told"), [
    pytest.param("sys.exit(3)", 3, "failed with exit code 3", marks=pytest.mark.exhaustive),
    ("os.kill(os.getpid(), 9)", 137, "was ended by SIGKILL"),
    pytest.param("os.abort()", 134, "was ended by SIGABRT", marks=pytest.mark.exhaustive),
    pytest.param("raise KeyboardInterrupt", 130, "failed with exit code 130", marks=pytest.mark.exhaustive),
    pytest.param("sys.exit('words')", 1, "failed with exit code 1", marks=pytest.mark.exhaustive),
    pytest.param("compile('f(', 'f.py', 'exec')", 1, "failed with exit code 1", marks=pytest.mark.exhaustive),
])
def test_any_end_but_0_is_a_failure(run: Launch, how: str, code: int, told: str) -> None:
    found, _, err = run(f"if me == 1:\n    wait_for('here0')\n    {how}\nsleep()")
    assert (code, f"process 1 {told}") == (found, err[-1])


@pytest.mark.parametrize(("seconds", "wanted", "told"), [
    (0.1, 1, "failed with exit code 1"),
    pytest.param(1000, 143, "failed, did not end, and was ended by SIGTERM", marks=pytest.mark.exhaustive)])
def test_who_failed_first_is_told_also_if_another_has_ended_first(run: Launch, seconds: float, wanted: int,
                                                                  told: str) -> None:
    code, _, err = run(f"""
        import atexit
        if me == 1:
            atexit.register(lambda: (say("failed"), time.sleep({seconds})))
            sys.exit("it was me")
        wait_for("failed1")
        os._exit(9)
    """, PATIENCE="1")
    assert (wanted, ["[1] it was me", f"process 1 {told}"]) == (code, err[-2:])


@pytest.mark.exhaustive
@pytest.mark.parametrize(("how", "kept"), [("sys.exit(3)", "SystemExit(3)"), ("1 / 0", "ZeroDivisionError"),
                                           ("sys.exit(0)", "None"), ("", "None")])
def test_what_runs_at_exit_sees_how_the_script_ended(run: Launch, how: str, kept: str) -> None:
    _, out, _ = run(f"""
        import atexit
        atexit.register(lambda: print(repr(getattr(sys, "last_value", None))))
        {how}
    """, n=1)
    assert kept in out[0]


def test_a_script_that_is_not_python_is_told_as_by_python(run: Launch) -> None:
    code, _, err = run("def f(:\n    pass")
    assert 1 == code
    number = err[-1].split()[1]
    line = START.count("\n") + 1
    assert [f'[{number}]   File "{run.folder}/script.py", line {line}', f"[{number}]     def f(:"] == err[-5:-3]
    assert "SyntaxError" in err[-2]
    assert not [line for line in err if "_launched" in line or "Traceback" in line]


@pytest.mark.parametrize("patience", ["0.1", pytest.param("1", marks=pytest.mark.exhaustive)])
def test_those_that_ignore_everything_are_killed_also_when_stopped(run: Launch, patience: str) -> None:
    start = time.monotonic()
    process = run.start("""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        say("here")
        if me == 2:
            wait_for("go")
            sys.exit(4)
        time.sleep(1000)
    """, n=3, PATIENCE=patience)
    os.kill(int(run.wait_for("here1")), signal.SIGSTOP)
    (run.folder / "go").write_text("")
    assert 4 == process.wait(30)
    assert 8 * float(patience) <= time.monotonic() - start < 20


def test_what_a_script_leaves_behind_ends_and_holds_nothing_up(run: Launch) -> None:
    start = time.monotonic()
    code, out, _ = run("""
        child = "import time; print('grandchild', flush=True); time.sleep(1000)"
        if me == 0:
            subprocess.Popen([sys.executable, "-S", "-c", child])
        elif os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(1000)
        print("done")
    """)
    assert 0 == code and {"[0] done", "[1] done"} <= set(out)
    assert time.monotonic() - start < 15


@pytest.mark.exhaustive
def test_a_daemon_that_writes_for_good_holds_nothing_up(run: Launch) -> None:
    code, _, _ = run("""
        if os.fork() == 0:
            os.setsid()
            while True:
                try:
                    print("more")
                except BrokenPipeError:
                    os._exit(0)
    """)
    assert 0 == code


# Signals

def test_ctrl_c_interrupts_all_and_the_second_one_kills(run: Launch) -> None:
    process = run.start("""
        try:
            sleep()
        except KeyboardInterrupt:
            say("caught")
            time.sleep(1000)
    """)
    run.wait_for("here0")
    run.wait_for("here1")
    process.send_signal(signal.SIGINT)
    run.wait_for("caught0")
    run.wait_for("caught1")
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert 130 == process.wait(20)
    assert process.stderr is not None
    assert b"process" not in process.stderr.read()


def test_signals_are_passed_on(run: Launch) -> None:
    process = run.start("""
        got = []
        for number in (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM, signal.SIGCONT):
            signal.signal(number, lambda number, frame: got.append(signal.Signals(number).name))
        say("here")
        while "SIGTERM" not in got:
            before = len(got)
            time.sleep(0.01)
            if len(got) > before:
                say(f"got{len(got)}-")
        print(*got)
    """)
    for number, wanted in ((signal.SIGUSR1, "here"), (signal.SIGUSR2, "got1-"), (signal.SIGCONT, "got2-"),
                           (signal.SIGTERM, "got3-")):
        run.wait_for(f"{wanted}0")
        run.wait_for(f"{wanted}1")
        process.send_signal(number)
    out, err = process.communicate(timeout=20)
    names = "SIGUSR1 SIGUSR2 SIGCONT SIGTERM"
    assert (0, [f"[0] {names}", f"[1] {names}"]) == (process.returncode, sorted(out.decode().splitlines())), err


@pytest.mark.parametrize("number", [pytest.param(signal.SIGTERM, marks=pytest.mark.exhaustive), signal.SIGHUP])
def test_a_request_to_end_ends_all_without_blame(run: Launch, number: int) -> None:
    process = run.start("sleep()")
    run.wait_for("here0")
    run.wait_for("here1")
    process.send_signal(number)
    _, err = process.communicate(timeout=20)
    assert (128 + number, b"") == (process.returncode, err)


def test_ctrl_z_stops_all_and_they_go_on(run: Launch) -> None:
    process = run.start("sleep()")
    pids = [int(run.wait_for(f"here{i}")) for i in range(2)]
    process.send_signal(signal.SIGTSTP)
    assert eventually(lambda: all(state(pid) == "T" for pid in [process.pid, *pids]))
    process.send_signal(signal.SIGCONT)
    assert eventually(lambda: all(state(pid) in "SR" for pid in [process.pid, *pids]))
    process.send_signal(signal.SIGTERM)
    assert 143 == process.wait(20)


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_all_end_with_a_launch_that_is_killed(run: Launch) -> None:
    process = run.start("sleep()", SERVICE="real")
    pids = [int(run.wait_for(f"here{i}")) for i in range(2)]
    assert 4 == len(run.pids())
    os.kill(pids[0], signal.SIGSTOP)
    process.kill()
    assert eventually(lambda: not run.pids(), 10)  # the service, too


def test_a_terminal_interrupts_each_once_is_read_by_process_0_and_kept(run: Launch) -> None:
    """Process 0 shares the group of the terminal, and so gets Ctrl-C from it."""
    text = """
        import termios
        print("typed", input() if me == 0 else None)
        if me == 0:
            settings = termios.tcgetattr(0)
            settings[3] &= ~termios.ECHO
            termios.tcsetattr(0, termios.TCSANOW, settings)
        got = []
        signal.signal(signal.SIGINT, lambda *_: got.append(1))
        say("here")
        until = time.monotonic() + 100
        while not got and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(0.3)
        print("interrupted", len(got))
    """
    pid, terminal = pty.fork()
    if pid == 0:
        as_in_a_terminal()
        os.chdir(run.folder)
        os.execve(sys.executable, [*ALONE, "-n", "2", run.script(text)], run.environment())
    assert termios.tcgetattr(terminal)[3] & termios.ECHO
    os.write(terminal, b"word\n")
    run.wait_for("here0")
    run.wait_for("here1")
    os.write(terminal, b"\x03")
    text = b"".join(iter(lambda: read_terminal(terminal), b""))
    _, status = os.waitpid(pid, 0)
    assert 0 == os.waitstatus_to_exitcode(status), text
    for line in (b"[0] typed word", b"[1] typed None", b"[0] interrupted 1", b"[1] interrupted 1"):
        assert line + b"\r\n" in text
    assert termios.tcgetattr(terminal)[3] & termios.ECHO  # as it was before
    os.close(terminal)


def read_terminal(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # nobody has it any more
        return b""


# The service

def test_if_the_service_dies_all_end(run: Launch) -> None:
    process = run.start("sleep()", SERVICE="real")
    known = {process.pid, *[int(run.wait_for(f"here{i}")) for i in range(2)]}
    (service,) = set(run.pids()) - known
    os.kill(service, signal.SIGTERM)  # it ignores what a batch system sends to all
    os.kill(service, signal.SIGINT)
    time.sleep(0.3)
    assert process.poll() is None
    os.kill(service, signal.SIGKILL)
    _, err = process.communicate(timeout=20)
    assert (1, "the service that the processes meet at has died; all are ended") == (
        process.returncode, err.decode().splitlines()[-1])


def test_a_service_listens_at_its_address_alone_and_says_what_is_wrong_with_another() -> None:
    service = start_service("127.0.0.1:0", 2)
    port = int(service.address.rpartition(":")[2])
    lines = [Path(f"/proc/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6")]
    listening = [line.split()[1] for line in sum(lines, []) if " 0A " in line and f":{port:04X} " in line]
    assert 1 == len(listening)
    assert listening[0].split(":")[0] in ("0100007F", "0000000000000000FFFF00000100007F")
    with pytest.raises(CorejaxRuntimeError, match=f"can't start at {service.address}\n  got: .*port.* is taken"):
        start_service(service.address, 2)
    assert service.alive()
    service.release()
    assert eventually(lambda: not service.alive(), 10)
    with pytest.raises(CorejaxValueError, match="the address of the service is not an address"):
        start_service("here", 2)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("address", "why"), [("192.0.2.1:5000", "isn't .*this machine"),
                                              ("nowhere.invalid:5000", "there is no .*host")])
def test_a_service_says_what_is_wrong_with_a_host(address: str, why: str) -> None:
    with pytest.raises(CorejaxRuntimeError, match=why):
        start_service(address, 2)


@pytest.mark.exhaustive
def test_a_released_service_waits_for_its_clients() -> None:
    service = start_service("127.0.0.1:0", 2)
    host, _, port = service.address.rpartition(":")
    with socket.create_connection((host, int(port))) as client, socket.create_connection((host, int(port))):
        client.sendall(b'{"hello": 0, "count": 2, "heartbeat": 100}\n')  # a client; the other one says nothing
        assert client.recv(100)
        service.release()
        time.sleep(2.5)
        assert service.alive()
    assert eventually(lambda: not service.alive(), 10)


# Wrong uses

@pytest.mark.parametrize(("arguments", "message"), [
    (["-n", "0", "x.py"], "-n is too small"), (["-n", "9999", "x.py"], "-n is too large"),
    (["-n2", "--devices", "0", "x.py"], "--devices is too small"),
    (["-n2", "--devices=100000", "x.py"], "--devices is too large"),
    (["-n2", "--heartbeat", "0", "x.py"], "--heartbeat makes no sense"),
    (["-n2", "--heartbeat", "nan", "x.py"], "--heartbeat makes no sense"),
    (["-n2"], "there is nothing to run"), (["-n2", "-m"], "there is nothing to run"), (["-n2", "--"], "nothing to run"),
    (["-n2", "nowhere.py"], "there is no script 'nowhere.py'"), (["-n2", "-"], "there is no script '-'"),
])
def test_wrong_uses_are_refused_before_anything_starts(arguments: list[str], message: str) -> None:
    with pytest.raises(CorejaxValueError, match=message):
        list(launching.launch(arguments))


@pytest.mark.parametrize("arguments", [["x.py"], ["-n", "two", "x.py"], ["-n", "2", "--device", "4", "x.py"]])
def test_unknown_options_are_refused_as_by_other_commands(arguments: list[str],
                                                          capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        list(launching.launch(arguments))
    assert 2 == exit.value.code
    assert "usage: python -m corejax launch -n N" in capsys.readouterr().err
