"""Settings for every test: few threads in each worker, and NumPy silent where tests compute with it themselves.

What stays alive from one file to the next is kept from the garbage collector.
"""

from __future__ import annotations

import gc
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import left_out
import seconds
from exhaustive import leave_samples

# Before jaxlib loads: several workers with a thread pool each would fight for the cores.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
for _library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

#: Tests of packs that aren't installed here: tests/test_outside_packs.py runs them where they are.
collect_ignore = ["tests/outside"]


@pytest.fixture(autouse=True)
def _quiet_numpy() -> Iterator[None]:
    """Expected values at singular points come from NumPy too; corejax sets what holds for its own computations."""
    with np.errstate(all="ignore"):
        yield


@pytest.fixture(autouse=True)
def _numbers_of_its_own(request: pytest.FixtureRequest) -> None:
    """A test draws the same numbers whichever tests ran before it, so what fails in one worker fails alone, too."""
    drawn = getattr(request.module, "RNG", None)
    if drawn is not None:
        drawn.bit_generator.state = np.random.default_rng(zlib.crc32(request.node.name.encode())).bit_generator.state


@pytest.fixture(scope="session", autouse=True)
def _quick_code() -> Iterator[None]:
    """Few tests are about the code that the compiler writes, so for most it is written quickly."""
    if os.environ.get("COREJAX_TESTS_FULL_CODE") or os.environ.get("COREJAX_PACKS") == "none":
        yield
        return
    from quick_code import quick_code  # it loads jaxlib, whose settings are made above

    with quick_code():
        yield


@pytest.fixture(scope="module", name="usual_code")
def _usual_code() -> Iterator[None]:
    """For modules whose tests are about values, which may depend on the code that the compiler writes."""
    from quick_code import usual_code

    with usual_code():
        yield


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """How long the conformance kit took, and which tests are for `make test-all` alone."""
    seconds.show(terminalreporter)
    left_out.show(terminalreporter)


def pytest_deselected(items: list[pytest.Item]) -> None:
    if items:
        left_out.count(items[0].config, items)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """A worker of xdist, which had the same tests left out as each of the others, has ended."""
    left_out.take_over(node.config, getattr(node, "workeroutput", {}))


#: Those that share a wheel or an environment, which one worker builds: the first has what comes first, to its end.
COSTLY = ("test_wheels.py", "test_plugin_faults.py", "test_native_pack.py", "test_rational_pack.py",
          "test_outside_packs.py", "test_scaffold.py")


@pytest.hookimpl(tryfirst=True)  # before `-m` leaves tests out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    leave_samples(items)
    items.sort(key=lambda item: item.path.name not in COSTLY)


_files: list[Path] = []


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Modules, tests and caches of thousands of tests would be walked by each of hundreds of collections of garbage."""
    if _files != [item.path]:
        _files[:] = [item.path]
        gc.collect()
        gc.freeze()
