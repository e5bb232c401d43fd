"""The examples for several devices, in several processes by one command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"


def run(*command: str) -> str:
    """What a command prints, without the numbers of processes."""
    clean = {name: text for name, text in os.environ.items() if not name.startswith("COREJAX_")}
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, timeout=120, check=False,
                          env=clean)
    assert done.returncode == 0, done.stderr
    return done.stdout


def of_process(number: int, said: str) -> list[str]:
    return [line.removeprefix(f"[{number}] ") for line in said.splitlines() if line.startswith(f"[{number}] ")]


def test_losses_of_a_divided_batch_are_those_of_one_process() -> None:
    alone = run(str(EXAMPLES / "data_parallel.py")).splitlines()
    said = run("-m", "corejax", "launch", "-n", "2", "--devices", "4", str(EXAMPLES / "data_parallel.py"))
    assert of_process(0, said)[:-1] == alone[:-1] and not of_process(1, said)
    assert float(of_process(0, said)[-1].rpartition(" ")[2]) < 1e-13


@pytest.mark.exhaustive
def test_a_transformer_block_over_two_by_two_devices_is_that_of_one() -> None:
    said = run("-m", "corejax", "launch", "-n", "2", "--devices", "2", str(EXAMPLES / "tensor_parallel.py"))
    for number in (0, 1):
        lines = of_process(number, said)
        one, four = re.findall(r"\d+\.\d+", lines[0])
        assert abs(float(one) - float(four)) < 1e-10
        differences = [float(each) for line in lines for each in re.findall(r"differs by (\S+)", line)]
        assert len(differences) == 6 and max(differences) < 1e-13
