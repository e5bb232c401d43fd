"""Every public function of corejax.numpy and lax beside JAX's, and NumPy's where it has it: eagerly and compiled.

    make bench ONLY=public                    all of them, into docs/public-functions.md; some 17 minutes
    python -m benchmarks.public WORD ...      those whose names contain a word, only printed

Vectors have 8, 10^4 and 10^6 elements; matrices the largest squares within them, and for linear algebra 8, 100 and 400
rows. Numbers are 32-bit floats. Eagerly, each library takes its own arrays, ours in host memory; compiled functions
take arrays on the device. The libraries take turns; the ratios of each round give a median, and an interval that
contains the true median with at least 95% confidence. A name without arguments, and without a reason, fails a test.
"""

from __future__ import annotations

import gc
import statistics
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from importlib import import_module
from pathlib import Path
from time import perf_counter
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.against import interval
from benchmarks.public_arguments import (
    ARGUMENTS,
    CALL,
    EAGER_ONLY,
    MODULES,
    NOT_TIMED,
    NUMPYS_TIME,
    REASONS,
    REASONS_COMPILED,
    SEVERAL,
    STEPS,
    Function,
    Step,
)
from benchmarks.rows import ready

PAGE = Path(__file__).resolve().parent.parent / "docs" / "public-functions.md"
SIZES, SIDES = (8, 10_000, 1_000_000), (8, 100, 400)
MARGIN = 0.9
_NOT_THERE = "JAX has no such function"
_CALL_SECONDS = 1.5e-6
#: What NumPy takes, at least, where its time is the reason.
_AS_LONG = 0.75
_SEVERAL_SECONDS = 80e-6
#: How slow a call of few elements is at most where the call itself is the reason.
_OF_A_CALL = 0.65
_ROUNDS, _SAMPLE_SECONDS, _MOST_SECONDS = 9, 0.002, 2.5

def public_names() -> list[str]:
    """The names of functions in the public modules."""
    found = []
    for path in MODULES:
        module = import_module(f"corejax.{path}")
        for name in dir(module):
            value = getattr(module, name)
            if not name.startswith("_") and callable(value) and not isinstance(value, (ModuleType, type)):
                found.append(f"{path}.{name}")
    return found


def untold() -> list[str]:
    """The public names for which nothing here says what to time, or why not."""
    known = {*ARGUMENTS, *[name for names in NOT_TIMED.values() for name in names.split()]}
    return [name for name in public_names() if name not in known]


# Timing

@dataclass(frozen=True, slots=True)
class Found:
    """A function's times in µs, and the ratio of JAX's to ours with its interval; NumPy's is None if it has no such."""

    name: str
    size: int
    how: str
    ours: float
    jax: float
    numpy: float | None
    ratio: float
    low: float
    high: float

    @property
    def is_slower(self) -> bool:
        return self.high < MARGIN


def calls(name: str, size: int, how: str) -> dict[str, Callable[[], Any]]:
    """What is timed, for each library that has the function."""
    found = {}
    for library in ("corejax", "jax", "numpy"):
        if library == "numpy" and (how == "compiled" or not name.startswith("numpy")):
            continue
        made = call(import_module(library), name, ARGUMENTS[name](size), how)
        if made is not None:
            found[library] = made
    return found


def call(library: Any, name: str, arguments: tuple[Any, ...], how: str) -> Callable[[], Any] | None:
    """Calls a library's function of this name, and waits for its result; None if it has none."""
    path, _, last = name.rpartition(".")
    module = reduce(getattr, path.split(".")[library is np:], library)
    function = getattr(module, last, None)
    if function is None:
        return None
    operands: list[Any] = []
    named: dict[str, Any] = arguments[-1] if arguments and isinstance(arguments[-1], dict) else {}

    def place(value: Any) -> Any:
        if isinstance(value, (np.ndarray, np.generic)):
            operands.append(value)
            return _Place(len(operands) - 1)
        if isinstance(value, list) and value and isinstance(value[0], (np.ndarray, np.generic, Function)):
            return [place(each) for each in value]
        if isinstance(value, Function):
            return getattr(module, value.name)
        return STEPS[value.name] if isinstance(value, Step) else value
    filled = [place(value) for value in arguments if value is not named]

    def apply(*values: Any) -> Any:
        def back(value: Any) -> Any:
            if type(value) is _Place:
                return values[value.index]
            return [back(each) for each in value] if isinstance(value, list) else value
        return function(*[back(value) for value in filled], **named)
    if library is np:
        return lambda: apply(*operands)
    if how == "compiled":
        compiled, there = library.jit(apply), [library.device_put(x) for x in operands]
        return lambda: ready(compiled(*there))
    own = [library.numpy.asarray(x) for x in operands]
    return lambda: ready(apply(*own))


@dataclass(frozen=True)
class _Place:
    index: int


def timed(name: str, size: int, how: str) -> Found | str:
    """The times of a function; or why there are none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tasks = calls(name, size, how)
            for library, task in list(tasks.items()):
                try:
                    task()
                except Exception:
                    if library != "numpy":  # which has no such option
                        raise
                    del tasks[library]
        except Exception as error:
            return f"{type(error).__name__}: {str(error).splitlines()[0][:90]}"
        if "jax" not in tasks:
            return _NOT_THERE
        runs = {library: _calibrated(task) for library, task in tasks.items()}
        samples: dict[str, list[float]] = {library: [] for library in tasks}
        begin = perf_counter()
        for turn in range(_ROUNDS):
            for library in list(tasks) if turn % 2 else list(tasks)[::-1]:
                samples[library].append(_sample(tasks[library], runs[library]))
            if turn > 5 and perf_counter() - begin > _MOST_SECONDS:
                break
    ratios = [jax / ours for ours, jax in zip(samples["corejax"], samples["jax"], strict=True)]
    medians = {library: statistics.median(times) * 1e6 for library, times in samples.items()}
    return Found(name, size, how, medians["corejax"], medians["jax"], medians.get("numpy"), statistics.median(ratios),
                 *interval(ratios))


def _calibrated(task: Callable[[], Any]) -> int:
    for _ in range(2):
        _sample(task, 1)
    return max(1, min(2_000, round(_SAMPLE_SECONDS / _sample(task, 2))))


def _sample(task: Callable[[], Any], runs: int) -> float:
    gc.disable()
    try:
        start = perf_counter()
        for _ in range(runs):
            task()
        return (perf_counter() - start) / runs
    finally:
        gc.enable()


def sizes_of(name: str) -> Sequence[int]:
    return SIDES if ".linalg." in name else SIZES


def all_timed(names: Sequence[str]) -> Iterator[Found | tuple[str, str]]:
    """The times of these functions, in all sizes, eagerly and compiled; or a name and why there are none."""
    for i, name in enumerate(names):
        for how in ("eager",) if name in EAGER_ONLY else ("eager", "compiled"):
            for size in sizes_of(name):
                found = timed(name, size, how)
                what = name if found == _NOT_THERE else f"{name}, {how}, {size:,}"
                yield (what, found) if isinstance(found, str) else found
        import_module("jax").clear_caches()
        import_module("corejax").clear_caches()
        gc.collect()
        print(f"{i + 1:4}/{len(names)}  {name}", file=sys.stderr, flush=True)


# Printing

def page(found: Sequence[Found], missing: Sequence[tuple[str, str]], minutes: float) -> str:
    """Markdown."""
    slower = [one for one in found if one.is_slower]
    lines = ["# Every public function, beside JAX's", "",
             "Made by `make bench ONLY=public`: [benchmarks/public.py](../benchmarks/public.py) says how. A ratio is "
             "JAX's time divided by ours: above 1, ours is faster. Listed is what is slower: where the "
             "95% interval lies wholly below 0.9.", "",
             f"{len({one.name for one in found})} functions, {len(found):,} rows in {minutes:.0f} minutes; "
             f"{sum(one.ratio >= 1 for one in found):,} of them at least as fast as JAX's, {len(slower)} wholly below "
             "0.9. [All ratios](public-functions.csv), and those of NumPy's time to ours, have a line for each "
             "function, with the sizes from left to right.",
             "", "## Wholly below 0.9", "", "| function | size | | ours | JAX's | ratio | 95% interval | why |",
             "| --- | ---: | --- | ---: | ---: | ---: | --- | --- |"]
    lines += [f"| {one.name} | {one.size:,} | {one.how} | {one.ours:,.1f} µs | {one.jax:,.1f} µs | {one.ratio:.2f} | "
              f"{one.low:.2f} to {one.high:.2f} | {_why(one)} |"
              for one in sorted(slower, key=lambda one: one.ratio)]
    lines += ["", "## Not timed", "", *[f"- {reason}: {', '.join([f'`{name}`' for name in names.split()])}"
                                       for reason, names in NOT_TIMED.items()],
              *[f"- {why}: {', '.join(dict.fromkeys([f'`{what}`' for what, other in missing if other == why]))}"
                for why in dict.fromkeys([why for _, why in missing])]]
    return "\n".join(lines) + "\n"


def _why(one: Found) -> str:
    """The reason why a function is slower, if one is known."""
    is_small = one.size == sizes_of(one.name)[0]
    if one.how == "compiled":
        in_the_call = one.ours - one.jax < _CALL_SECONDS * 1e6 or (is_small and one.ratio > _OF_A_CALL)
        return CALL if in_the_call else REASONS_COMPILED.get(one.name, "")
    if one.numpy is not None and one.numpy > _AS_LONG * one.ours:
        return NUMPYS_TIME
    started = one.ours < _SEVERAL_SECONDS * 1e6 or is_small
    return REASONS.get(one.name, SEVERAL if started else "")


def table(found: Sequence[Found]) -> str:
    """All ratios, as comma-separated values: a line for each function."""
    lines = ["function," + ",".join([f"{how} {size}" for how in ("eager", "compiled", "NumPy")
                                     for size in ("small", "medium", "large")])]
    by_name: dict[str, dict[tuple[str, int], Found]] = {}
    for one in found:
        by_name.setdefault(one.name, {})[one.how, one.size] = one
    for name, rows in by_name.items():
        found_there = [rows.get((how, size)) for how in ("eager", "compiled") for size in sizes_of(name)]
        eager = [rows.get(("eager", size)) for size in sizes_of(name)]
        cells = [*["" if one is None else f"{one.ratio:.2f}" for one in found_there],
                 *["" if one is None or one.numpy is None else f"{one.numpy / one.ours:.2f}" for one in eager]]
        lines.append(",".join([name, *cells]))
    return "\n".join(lines) + "\n"


def main(words: Sequence[str]) -> None:
    """All functions, into docs/; or those with a word in their names, printed."""
    import_module("jax").config.update("jax_enable_x64", True)
    names = [name for name in public_names() if name in ARGUMENTS and (
        not words or any([word in name for word in words]))]
    found, missing, begin = [], [], perf_counter()
    for one in all_timed(names):
        if isinstance(one, Found):
            found.append(one)
            if words:
                print(f"{one.name:32} {one.how:9} {one.size:9,} ours {one.ours:11.1f} jax {one.jax:11.1f} µs  ratio "
                      f"{one.ratio:6.2f} [{one.low:.2f} to {one.high:.2f}]{'  slower' if one.is_slower else ''}")
        else:
            missing.append(one)
            print(*one, sep=": ", file=sys.stderr)
    if not words:
        PAGE.write_text(page(found, missing, (perf_counter() - begin) / 60))
        PAGE.with_suffix(".csv").write_text(table(found))


if __name__ == "__main__":
    main(sys.argv[1:])
