"""What a program is compared with: jax where it is installed, or the library itself without compiling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import corejax as cj

from .comparing import Failure, Outcome, Refused, difference, outcome, rounding, sensitivity, types
from .differences import known
from .plain import Plain, PlainLax, Uncompiled
from .programs import Program

Inputs = dict[str, Any]
Run = Callable[[Inputs], Outcome]
Difference = tuple[str, str]


class Oracle:
    """What is right; `name` is that of the rows of `differences` that hold beside it."""

    name: str

    def subject(self, program: Program) -> Outcome:
        """What corejax gives."""
        return subject(program)

    def difference(self, program: Program, got: Outcome) -> Difference | None:
        """How it differs from what is right: the kind, and a text."""
        raise NotImplementedError


def subject(program: Program) -> Outcome:
    """What corejax gives; inputs are in NumPy's memory or on the device, by the seed."""
    put = cj.device_put if program.seed % 2 else cj.lax.copy
    return outcome(lambda: program.run(cj, cj.lax, put), cj.tree.leaves)


def compared(program: Program, got: Outcome, run: Run, exact: bool = True) -> Difference | None:
    wanted = run(program.inputs)
    found = difference(got, wanted, rounding(program, wanted), exact)
    if found and found[0] == "value":
        found = difference(got, wanted, sensitivity(program, run, wanted), exact)
    return found


class Jax(Oracle):
    """jax. It runs without jit first, which is much faster; what differs then, it compiles too."""

    name = "jax"

    def __init__(self, bits: int = 64) -> None:
        import jax
        import jax.ad_checkpoint  # programs have these as `api.ad_checkpoint` and `api.numpy`
        import jax.numpy
        jax.config.update("jax_enable_x64", bits == 64)
        self.jax = jax

    def difference(self, program: Program, got: Outcome) -> Difference | None:
        # Without jit, jax doesn't join the weak types of branches; with it, a division by zero ends its process.
        found = compared(program, got, self.uncompiled(program), exact=not program.divides)
        if program.divides and found and "disable_jit" in found[1]:
            return None  # it can say nothing: it neither compiles nor runs
        if program.divides or found is None and not isinstance(got, Refused):
            return found
        return compared(program, got, self.compiled(program))

    def compiled(self, program: Program) -> Run:
        jax = self.jax
        return lambda inputs: outcome(lambda: program.run(jax, jax.lax, jax.device_put, inputs), jax.tree.leaves)

    def uncompiled(self, program: Program) -> Run:
        def run(inputs: Inputs) -> Outcome:
            with self.jax.disable_jit():
                return self.compiled(program)(inputs)
        return run


def traced(program: Program, api: Any) -> Outcome:
    """What types the results of a program have; nothing is computed, so values are zeros."""
    args = [program.inputs[key] for key in program.slots]
    return types(lambda: api.eval_shape(program.transformed(api, api.lax), *args), api.tree.leaves)


class Staged(Jax):
    """jax, asked for types alone, which it refuses where it refuses a program; of some programs for values, too.

    Nothing is compiled then, so many more programs are tried in the same time.
    """

    def __init__(self, bits: int = 64, run_one_of: int = 5) -> None:
        super().__init__(bits)
        self.run_one_of = run_one_of

    def subject(self, program: Program) -> Outcome:
        return traced(program, cj)

    def difference(self, program: Program, got: Outcome) -> Difference | None:
        wanted = traced(program, self.jax)
        found = difference(got, wanted, lambda i: 0.0)
        if found and found[0] == "error" and not program.divides and isinstance(
                self.compiled(program)(program.inputs), Refused):
            return None  # a traced value is in jax's program that isn't one of its: only its compiler refuses that
        if found or isinstance(wanted, Refused) or program.seed % self.run_one_of:
            return found
        return super().difference(program, super().subject(program))


class Itself(Oracle):
    """corejax without jit; and with control flow and batches in plain Python, where that means the same.

    It doesn't at special inputs: both branches of a batched cond are computed, and infinities show. And carries
    aren't made strong.
    """

    name = "itself"

    def difference(self, program: Program, got: Outcome) -> Difference | None:
        def eager(inputs: Inputs) -> Outcome:
            return outcome(lambda: program.run(Uncompiled(), cj.lax, cj.lax.copy, inputs), cj.tree.leaves)

        def plain(inputs: Inputs) -> Outcome:
            return outcome(lambda: program.run(Plain(), PlainLax(), cj.lax.copy, inputs), cj.tree.leaves)

        found = compared(program, got, eager)
        if found or not program.ordinary or isinstance(got, Refused):
            return found
        return compared(program, got, plain, exact=False)


def check(program: Program, oracle: Oracle) -> Failure | None:
    """Run it, and compare."""
    with np.errstate(all="ignore"):
        got = oracle.subject(program)
        found = oracle.difference(program, got)
        if found is None:
            return None
        failure = Failure(program, *found, got)
    if not known(failure, oracle.name):
        return failure
    return None if oracle.name == Itself.name or check(program, Itself()) is None else failure


