"""Checks of repeated runs, in this process and another, and in threads; of pickling; and that nothing stays behind."""

from __future__ import annotations

import gc
import json
import os
import pickle
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any, cast

import numpy as np

from corejax import jit, make_jaxpr
from corejax.core import Primitive, Trace, Tracer, aval_of
from corejax.errors import CorejaxError, CorejaxTypeError
from corejax_testing.case import Case
from corejax_testing.check import check
from corejax_testing.comparing import host
from corejax_testing.programs import program_of, transformed
from corejax_testing.report import NotApplicable
from corejax_testing.specification import samples_of

Fingerprint = dict[str, str]

RUNS, THREADS = 10, 4

#: How many times impl is called in a row, unless that takes too many seconds.
MANY, LONGEST = 1024, 0.25

#: Run by another process: unpickles a primitive and prints the fingerprints of its samples.
_CHILD = """
import json, pickle, sys, warnings
warnings.simplefilter("ignore")
from corejax_testing.repetition import fingerprints
print(json.dumps(fingerprints(pickle.loads(bytes.fromhex(sys.argv[1])))))
"""


# Again

def fingerprint(case: Case, compiled: bool = True) -> Fingerprint:
    """Digests of what a case gives: the values, the program, and the program in StableHLO."""
    values = [(str(aval_of(out)), host(out).tobytes()) for out in case.apply(*case.args)]
    found = {"the values": _digest(repr(values)), "the program": _digest(str(program_of(case)))}
    if compiled:
        found["the lowered program"] = _digest(jit(case.apply).lower(*case.args).as_text())
    return found


def fingerprints(primitive: Primitive) -> list[Fingerprint]:
    """The fingerprint of each sample from a primitive's hook; empty for those that must raise an error."""
    return [{} if sample.error else fingerprint(Case(primitive, sample, number))
            for number, sample in enumerate(samples_of(primitive))]


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


@check("impl")
def runs_are_deterministic(case: Case) -> None:
    """Ten runs give the same bits and the same program."""
    first = fingerprint(case, case.full)
    for run in range(1, RUNS):
        _equal(case, first, fingerprint(case, case.full), f"run {run + 1} differs from the first",
               "hooks must depend on nothing but their arguments")


@check("impl")
def many_runs_give_the_same(case: Case) -> None:
    """A thousand calls of impl give the same bits: no cache, counter or buffer decides."""
    if case.primitive.impl is None:
        raise NotApplicable("it has no impl")
    taken = [sample for sample in case.samples if sample.error is None]
    if case.sample is not min(taken, key=lambda sample: sum([aval_of(x).size or np.inf for x in sample.args])):
        raise NotApplicable("the smallest sample stands for all")
    first = [host(out).tobytes() for out in case.apply(*case.args)]
    late = time.perf_counter() + LONGEST
    for run in range(1, MANY):
        if [host(out).tobytes() for out in case.apply(*case.args)] != first:
            raise case.fail("impl", "one of many runs differs from the first", got=f"other bits in run {run + 1}",
                            wanted="the same bits", todo="impl must depend on nothing but its arguments")
        if time.perf_counter() > late:
            return


@check("impl", full=True)
def another_process_gives_the_same(case: Case) -> None:
    """A process with a different hash seed computes the same bits, and makes the same programs."""
    pickled = _pickled(case.primitive)
    if case.primitive.pack is None and case.primitive.module == "__main__":
        raise NotApplicable("it is defined in a script or a session, which another process does not have")
    if case.primitive.samples is None:
        raise NotApplicable("another process finds its samples by the hook, which it doesn't have")
    found = _of_another_process(pickled)
    if case.number >= len(found) or not found[case.number]:
        raise NotApplicable("the sample is not from the hook")
    _equal(case, found[case.number], fingerprint(case), "another process",
           "let nothing depend on the order of sets, on ids, or on the time")


def _equal(case: Case, wanted: Fingerprint, got: Fingerprint, how: str, todo: str) -> None:
    for what, digest in wanted.items():
        if got[what] != digest:
            raise case.fail("impl" if what == "the values" else "abstract_eval" if what == "the program" else
                            "xla_translation", f"{how}: {what} differ" + "s" * (what != "the values"),
                            got="other bits", wanted="the same bits", todo=todo)


@lru_cache(maxsize=4)
def _of_another_process(pickled: bytes) -> list[Fingerprint]:
    here = os.environ.get("PYTHONHASHSEED", "random")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
           "PYTHONHASHSEED": "2" if here == "1" else "1"}
    done = subprocess.run([sys.executable, "-c", _CHILD, pickled.hex()], env=env, capture_output=True, text=True,
                          timeout=300, check=False)
    if done.returncode:
        raise CorejaxError("another process could not run the samples", got=done.stderr[-2000:],
                           todo="see whether the pack can be imported there")
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


# Pickling

@check("samples")
def the_primitive_can_be_pickled(case: Case) -> None:
    """Unpickled, and copied, it is the same primitive."""
    _pickled(case.primitive)


def _pickled(primitive: Primitive) -> bytes:
    """A pickle of the primitive; not applicable if it can't be imported from anywhere."""
    try:
        pickled = pickle.dumps(primitive)
    except CorejaxTypeError as error:
        raise NotApplicable(f"{error.message}: {error.got}") from None
    try:
        found = pickle.loads(pickled)
    except (ImportError, AttributeError, CorejaxError) as error:
        raise NotApplicable(f"it has no place from which it can be imported: {error}".partition("\n")[0]) from None
    if found is not primitive:
        raise NotApplicable(f"from where it would be imported there is another primitive, {found!r} ({found.origin})")
    return pickled


# What stays behind

class Watch:
    """Remembers, with weak references, the traces of all tracers that functions get."""

    def __init__(self) -> None:
        self.traces: list[weakref.ref[Trace]] = []

    def __call__(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        """The function, watched."""
        def watched(*args: Any, **params: Any) -> Any:
            for x in args:
                trace = x._trace if isinstance(x, Tracer) else None
                while trace is not None and trace.parent is not None:  # the bottom trace lives as long as its thread
                    self.traces.append(weakref.ref(trace))
                    trace = trace.parent
            return fun(*args, **params)
        return watched

    def alive(self) -> list[Trace]:
        """The traces that are still referenced."""
        if any([ref() is not None for ref in self.traces]):
            gc.collect()
        return list({id(trace): trace for ref in self.traces if (trace := ref()) is not None}.values())


@check("jvp")
def no_tracer_outlives_its_transformation(case: Case) -> None:
    """No rule leaves a traced value behind: not in an attribute, a global or a list."""
    watch = Watch()
    watched = Case(cast(Primitive, _Watched(case.primitive, watch)), case.sample, case.number, case.check, case.full)
    for name, hook, fun, args in transformed(watched):
        make_jaxpr(watch(fun))(*args)
        held = watch.alive()
        if held:
            raise case.fail(hook, f"after {name} a traced value is still alive", got=f"held by {_holders(case, held)}",
                            wanted="nothing that stays behind",
                            todo="return values instead of storing them; cache by types, never traced values")


class _Watched:
    """A primitive whose operands are watched when it is bound."""

    def __init__(self, primitive: Primitive, watch: Watch) -> None:
        self._primitive = primitive
        self.bind = watch(primitive.bind)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._primitive, name)


def _holders(case: Case, traces: Sequence[Trace]) -> str:
    """What holds tracers of these traces: attributes of the plugin, by name, or else whatever refers to them."""
    tracers = [x for trace in traces for x in gc.get_referrers(trace) if isinstance(x, Tracer)]
    ids = set(map(id, tracers))
    names = [f"{type(owner).__name__}.{name}" for owner in (case.primitive.plugin, type(case.primitive.plugin))
             for name, value in vars(owner).items() if any([id(x) in ids for x in _inside(value)])]
    others = {type(holder).__name__ for tracer in tracers for holder in gc.get_referrers(tracer)
              if holder is not tracers and type(holder).__name__ not in ("frame", "list_iterator")}
    return ", ".join(names) or f"a {' or a '.join(sorted(others)) or 'cycle'} outside of the plugin"


def _inside(value: object, depth: int = 3) -> Iterator[Any]:
    yield value
    if depth and isinstance(value, (list, tuple, set, frozenset, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _inside(item, depth - 1)


# Threads

@check("impl", full=True)
def threads_do_not_disturb_each_other(case: Case) -> None:
    """Four threads at once compute and stage the same as one."""
    def work() -> list[str]:
        found = []
        for _, _, fun, args in transformed(Case(case.primitive, case.sample, case.number, case.check, case.full)):
            outs = fun(*args)
            found += [str(make_jaxpr(fun)(*args)), *[_digest(repr(host(x).tobytes())) for x in outs]]
        return found

    wanted, barrier = work(), threading.Barrier(THREADS)
    results: list[list[str]] = [[] for _ in range(THREADS)]

    def thread(k: int) -> None:
        barrier.wait()
        try:
            results[k] = work()
        except Exception as error:
            results[k] = [repr(error)]
    threads = [threading.Thread(target=thread, args=(k,)) for k in range(THREADS)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for k, got in enumerate(results):
        if got != wanted:
            mine, other = next(((x, y) for x, y in zip(wanted, got, strict=False) if x != y), (wanted, got))
            raise case.fail("impl", f"thread {k} computes something different", got=other, wanted=mine,
                            todo="keep no state between calls, in the plugin or in its module")
