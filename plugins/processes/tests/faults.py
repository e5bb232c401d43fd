"""What may go wrong among processes, what each of them must be told, and how soon. `python faults.py` prints a table.

Each fault is committed by the last of several real processes; those that compute with it must raise a `PeerError`
within a limit, or be as if nothing had happened.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from together import free_port

PROGRAM = Path(__file__).with_name("misbehaving.py")

#: As in the program; and the time that news may take.
HEARTBEAT, PATIENCE, SLACK = 2.0, 4.0, 5.0


class Fault(NamedTuple):
    """What the others are told, as a pattern; within how many seconds; and what becomes of the culprit itself."""

    told: str
    limit: float
    culprit: str = ""


#: For those of which nothing is told: all goes on.
NOTHING = ""
SOON = SLACK
SILENT = HEARTBEAT + SLACK

FAULTS: dict[str, Fault] = {
    "killed": Fault("process {last} ended without a word", SOON, "exit -9"),
    "killed, others idle": Fault("process {last} ended without a word", SILENT, "exit -9"),
    "killed while connecting": Fault("process {last} ended without a word", SOON, "exit -9"),
    "crashed": Fault("process {last} ended without a word", SOON, "exit -11"),
    "stopped": Fault("process {last} has not been heard of", SILENT, "have given up this one"),
    "stopped, others idle": Fault("process {last} has not been heard of", SILENT, "have given up this one"),
    "stopped while connecting": Fault("process {last} has not been heard of", SILENT, "have given up this one"),
    "stopped for a moment": Fault(NOTHING, 0.0),
    "all stopped": Fault(NOTHING, 0.0),
    "raised": Fault("process {last} has failed: ValueError: it is wrong", SOON, "it is wrong"),
    "raised before devices": Fault("process {last} has failed: ValueError: it is wrong", SOON, "it is wrong"),
    "exited": Fault("process {last} (is at its end|ended without)", SOON, "3"),
    "Ctrl-C": Fault("process {last} has failed: KeyboardInterrupt", SOON, "KeyboardInterrupt"),
    "service killed": Fault("the service at which the processes meet is gone|exit -6", SOON, "service|exit -6"),
    "service stopped": Fault("the service at which the processes meet is gone", SILENT, "service"),
    "late": Fault(NOTHING, 0.0),
    "never": Fault("process {last} did not come", PATIENCE + SLACK, "SystemExit"),
    "other count": Fault("process {last} has come and can't take part.*another num_processes", PATIENCE + SLACK,
                         "don't agree on how many"),
    "equal ids": Fault("process 0 has come and can't take part|there is a process 0 already|has given up",
                       PATIENCE + SLACK, "there is a process 0 already|process 0 has come|has given up"),
    "other version": Fault("can't take part.*version|different versions", PATIENCE + SLACK,
                           "different versions|can't take part.*version"),
    "other setting": Fault("can't take part.*compare_programs|different values", PATIENCE + SLACK,
                           "different values|can't take part.*compare_programs"),
    "port taken": Fault("the port is taken|nobody listens|did not come|is gone", PATIENCE + SLACK,
                        "nobody listens|did not come|is gone"),
    "other constant": Fault("different programs.*7.000000e.00.*process {last}|process {last}.*8.000000e.00", SOON,
                            "different programs.*line"),
    "other shape": Fault("different programs.*process {last}.*line", SOON, "different programs.*line"),
    "other options": Fault("different programs.*process {last}.*other options", SOON,
                           "different programs.*other options"),
    "other order": Fault("run different programs at the same time", SILENT, "run different programs at the same time"),
    "other order at the end": Fault("run different programs at the same time", SILENT,
                                    "run different programs at the same time"),
    "other order of groups": Fault("run different programs at the same time", SILENT,
                                   "run different programs at the same time"),
    "old and new": Fault("run different programs at the same time", SILENT, "run different programs at the same time"),
    "other places": Fault("run different programs at the same time.*to agree on", SOON,
                          "run different programs at the same time.*to agree on"),
    "alone": Fault("process {last} is at its end", SOON),
    "other values": Fault("device_put: the values differ", SOON, "device_put: the values differ"),
}


class Outcome(NamedTuple):
    """What one process has said, and how it ended; its exit code is None if it had to be ended."""

    lines: list[dict[str, Any]]
    errors: str
    code: int | None

    def when(self, what: str) -> float | None:
        """The time at which it said this."""
        return next((line["time"] for line in self.lines if line["what"] == what), None)

    @property
    def raised(self) -> str:
        """What it has raised, or how it ended otherwise, in one line."""
        found = next((line for line in self.lines if line["what"] == "raises"), None)
        if found is not None:
            text = f"{found['type']} {found['message']}"
        elif "PeerError" in self.errors:  # at its end, or ended by corejax as the runtime doesn't return: decision 60
            text = f"{self.errors[self.errors.index('PeerError'):]} (exit {self.code})"
        else:
            text = f"exit {self.code}"
        return " ".join(text.split())


def run(kind: str, count: int) -> list[Outcome]:
    """Let so many processes run into a fault."""
    port = free_port()
    environment = {**os.environ, "COREJAX_COORDINATOR_ADDRESS": f"127.0.0.1:{port}",
                   "COREJAX_NUM_PROCESSES": str(count), "COREJAX_NUM_CPU_DEVICES": str(max(1, 4 // count))}
    taken = socket.create_server(("127.0.0.1", port)) if kind == "port taken" else None
    processes = [subprocess.Popen([sys.executable, str(PROGRAM), kind], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  env={**environment, "COREJAX_PROCESS_ID": str(i)}, text=True, start_new_session=True)
                 for i in range(count)]
    last = processes[-1]
    try:
        if kind == "stopped for a moment":
            _await_state(last, "T")
            time.sleep(HEARTBEAT / 2)
            last.send_signal(signal.SIGCONT)
        if kind == "all stopped":
            _stop_all(processes, port)
        outcomes = [_outcome(each, 30.0) for each in processes[:-1]]
        if kind.startswith("stopped"):
            last.send_signal(signal.SIGCONT)  # it must learn of it, and end
        return [*outcomes, _outcome(last, 15.0)]
    finally:
        if taken is not None:
            taken.close()
        for each in processes:
            each.kill()
            each.wait()
        _end_services(port)


def _stop_all(processes: list[subprocess.Popen[str]], port: int) -> None:
    """As if the machine were asleep for longer than the time-out."""
    time.sleep(2.5)
    everybody = [*[each.pid for each in processes], *services(port)]
    for number, seconds in ((signal.SIGSTOP, HEARTBEAT + 1.5), (signal.SIGCONT, 0.0)):
        for pid in everybody:
            os.kill(pid, number)
        time.sleep(seconds)


def _outcome(process: subprocess.Popen[str], seconds: float) -> Outcome:
    try:
        out, errors = process.communicate(timeout=seconds)
        code: int | None = process.returncode
    except subprocess.TimeoutExpired:
        process.kill()
        out, errors = process.communicate()
        code = None
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    return Outcome(lines, errors, code)


def _await_state(process: subprocess.Popen[str], state: str, seconds: float = 20.0) -> None:
    end = time.time() + seconds
    while time.time() < end:
        with open(f"/proc/{process.pid}/stat") as file:
            if file.read().rpartition(")")[2].split()[0] == state:
                return
        time.sleep(0.02)
    raise AssertionError("it was never stopped")


def services(port: int) -> list[int]:
    """The services at this port that run."""
    found = []
    for each in Path("/proc").iterdir():
        try:
            command = (each / "cmdline").read_bytes().decode(errors="replace") if each.name.isdecimal() else ""
        except OSError:
            continue
        if "corejax_processes._server" in command and f":{port}\0" in command:
            found.append(int(each.name))
    return found


def _end_services(port: int) -> None:
    """See to it that the service ends by itself, unless it was stopped, which nobody could help."""
    end = time.time() + 5.0
    while (left := services(port)) and time.time() < end:
        for pid in left:
            os.kill(pid, signal.SIGCONT)
        time.sleep(0.05)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left, "a service was left over"


def problems(kind: str, count: int, outcomes: list[Outcome]) -> list[str]:
    """In what the processes were not told what they should have been."""
    fault, last = FAULTS[kind], count - 1
    found = []
    begun = min([t for each in outcomes if (t := each.when("misbehaves")) is not None], default=None)
    for i, each in enumerate(outcomes):
        wanted = (fault.culprit if i == last else fault.told).replace("{last}", str(last))
        if each.code is None:
            found.append(f"process {i} did not end: {each.lines} {each.errors[-1500:]}")
        elif not wanted:
            if each.code != 0 or each.when("raises") is not None:
                found.append(f"process {i} should have come to its end: {each.raised} {each.errors[-1500:]}")
        elif re.search(wanted, each.raised) is None:
            found.append(f"process {i} should have raised {wanted!r}: {each.raised} {each.errors[-1500:]}")
        elif begun is not None and i != last and (t := each.when("raises")) is not None:
            since = each.when("computes again") or begun
            if t - since > fault.limit:
                found.append(f"process {i} was told after {t - since:.1f} s, later than {fault.limit}")
    return found


def delay(outcomes: list[Outcome]) -> float | None:
    """How long after the fault the last of the others raised."""
    begun = min([t for each in outcomes if (t := each.when("misbehaves")) is not None], default=None)
    raised = [t for each in outcomes[:-1] if (t := each.when("raises")) is not None]
    return None if begun is None or not raised else max(raised) - begun


def main() -> None:
    """Run all, and print a table."""
    print("| fault of the last process | told the others | limit, s | in 2 processes, s | in 4, s |")
    print("| --- | --- | --- | --- | --- |")
    for kind, fault in FAULTS.items():
        cells = []
        for count in (2, 4):
            outcomes = run(kind, count)
            wrong, took = problems(kind, count, outcomes), delay(outcomes)
            cells.append("**" + "; ".join(wrong)[:200] + "**" if wrong else "ok" if took is None else f"{took:.1f}")
            told = outcomes[0].raised.partition(" got: ")[0]
        told = told if fault.told else "nothing: all goes on"
        print(f"| {kind} | {told} | {fault.limit or ''} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
