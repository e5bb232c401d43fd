"""What is wrong with rows of families, as far as it can be known without running a program.

A row says everything about a primitive in a few words, which nobody tries before its first use: the types that it
takes, NumPy's function, the operation of StableHLO, the derivative.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from corejax.base import dtypes
from corejax.base.avals import ShapedArray, aval_of
from corejax.base.errors import CorejaxError, CorejaxImportError, MissingRuleError, RuleError
from corejax.installed import groups, registry
from corejax.interpreters import reverse
from corejax.interpreters.staging import stage, stage_closed
from corejax.kernel import checks
from corejax.kernel.declarations import NotDifferentiable, Partials, Sample
from corejax.kernel.primitive import Primitive
from corejax.packs.families.elementwise import Elementwise
from corejax.xla.lowering.programs import lower_module
from corejax.xla.lowering.targets import targets_of
from corejax.xla.runtime import kernels

#: The roles that derivatives of elementwise primitives ask, whatever their rows say.
_ROLES = ("accumulate", "broadcast", "multiply", "sum_axes", "zeros")

_DTYPES = "name the kinds of dtypes that it takes, of b i u f c"


class Fault(NamedTuple):
    """What a row can't do and why, and what to do about it."""

    problem: str
    todo: str


def faults(primitive: Primitive) -> Iterator[Fault]:
    """What a primitive can't do if it comes from a row of a family; nothing for others. Each is found once."""
    if not isinstance(primitive.plugin, Elementwise):
        return
    try:
        samples = _samples(primitive)
    except (Exception, SystemExit) as error:  # whatever a row raises is what is wrong with it
        yield _fault("has no samples", error, _DTYPES)
        return
    if not samples:
        yield Fault("takes no operands", _DTYPES)
    found: dict[str, Fault] = {}
    for sample in samples:
        shown = ", ".join([str(aval_of(x)) for x in sample.args])
        for attempt, (problem, todo) in _ATTEMPTS.items():
            try:
                attempt(primitive, sample)
            except (Exception, SystemExit) as error:
                if type(error) is CorejaxImportError:  # it's jaxlib that is broken
                    continue
                found.setdefault(problem, _fault(f"{problem} {shown}", error, todo))
                if attempt is _types:  # all others need them
                    break
    yield from found.values()


def _fault(problem: str, error: BaseException, todo: str) -> Fault:
    if not isinstance(error, CorejaxError):
        return Fault(f"{problem}: {registry.words(error)}", todo)
    if error.hook == "xla_translation" and error.__cause__ is not None:
        return Fault(f"{problem}: {_first_words(error.__cause__)}", todo)
    return Fault(f"{problem}: {error.message}", error.todo or todo)


def _first_words(error: BaseException) -> str:
    """What the compiler says is wrong, without the program."""
    lines = [line.strip() for line in str(error).splitlines()]
    said = next((line.partition("error: ")[2] for line in lines if "error: " in line), registry.words(error))
    return said.removeprefix("unknown: ")  # the line in the program


def _samples(primitive: Primitive) -> list[Sample]:
    """A good sample for each combination of dtypes that the row takes."""
    found: dict[Any, Sample] = {}
    assert primitive.samples is not None
    for sample in primitive.samples(np.random.default_rng(0)):
        avals = [aval_of(x) for x in sample.args]
        if sample.error is None and avals[-1].size > 1:
            found.setdefault(tuple([aval.dtype for aval in avals]), sample)
    return list(found.values())


def _types(primitive: Primitive, sample: Sample) -> None:
    """Infer the result's type, also for the other dtypes of the same kind."""
    avals = tuple([aval_of(x) for x in sample.args])
    primitive.infer(avals, sample.params)
    typed = avals[primitive.plugin._typed_from].dtype
    for other in dtypes.ALL:
        if dtypes.kind(other) == dtypes.kind(typed):
            try:
                primitive.infer(tuple([ShapedArray(x.shape, other) if x.dtype == typed else x for x in avals]),
                                sample.params)
            except CorejaxError as error:
                if isinstance(error, RuleError):  # others refuse a dtype, as a row's subclass may
                    raise


def _evaluates(primitive: Primitive, sample: Sample) -> None:
    """Evaluate NumPy's function, which takes nothing but the elements of a few numbers."""
    if primitive.impl is None or primitive.evaluate is not None:
        return
    declared = getattr(primitive.plugin.impl, "per_operand", None)
    args = [np.array(x) for x in sample.args]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if declared is None or args[0].dtype.kind not in declared.beside:
            primitive.bind(*args, **sample.params)
            return
        out = declared.function(*args)  # the primitive would ask the compiled program too
    expected = primitive.infer(tuple(map(aval_of, args)), sample.params)
    if not isinstance(out, (np.ndarray, np.generic)):
        raise checks.no_host_array(primitive, out, expected)
    if out.shape != expected.shape or out.dtype != expected.dtype:
        raise checks.wrong_host_array(primitive, out, expected)


def _lowers(primitive: Primitive, sample: Sample) -> None:
    """Lower it to StableHLO, which verifies its operations, and look for the native functions that it calls."""
    jaxpr = stage_closed(lambda *xs: [primitive.bind(*xs, **sample.params)], list(map(aval_of, sample.args)))
    eqn = jaxpr.eqns[-1]
    lowered = lower_module(jaxpr, (), primitive.name, kernels.DEFAULT)
    with lowered.context:
        try:
            lowered.module.operation.verify()
        except Exception as error:
            raise checks.failed_lowering(eqn, error) from error
        for target in targets_of(lowered.module):
            if kernels.is_named_after_a_pack(target) and not kernels.provides(target):
                raise kernels.missing(target, kernels.DEFAULT, eqn)


def _differentiates(primitive: Primitive, sample: Sample) -> None:
    """Stage its derivative in reverse mode, which calls the functions that the row declares."""
    avals = [aval_of(x) for x in sample.args]
    result = primitive.infer(tuple(avals), sample.params)
    declared = getattr(primitive.plugin, "jvp", None)
    given = declared.functions if isinstance(declared, Partials) else [declared] * len(avals)
    chosen = [i for i, (f, aval) in enumerate(zip(given, avals))
              if not isinstance(f, NotDifferentiable) and dtypes.is_inexact(aval.dtype)]
    if not chosen or not dtypes.is_inexact(result.dtype):
        return
    if not all([registry.installed().providers(groups.ROLES, role) for role in _ROLES]):
        return  # nothing can be differentiated here, which isn't the row's fault

    def derivative(cotangent: Any, *xs: Any) -> list[Any]:
        def apply(*ys: Any) -> list[Any]:
            operands = list(xs)
            for i, y in zip(chosen, ys, strict=True):
                operands[i] = y
            return [primitive.bind(*operands, **sample.params)]

        _, pull = reverse.vjp(apply, [xs[i] for i in chosen])
        pull([cotangent])
        return []

    try:
        stage(derivative, [result, *avals])
    except MissingRuleError as error:
        if error.primitive != primitive.name:  # a row may have no derivative: its use says so
            raise


#: What is attempted with each sample, in order; with the problem if it fails, and what to do about it.
_ATTEMPTS: dict[Callable[[Primitive, Sample], None], tuple[str, str]] = {
    _types: ("has no type for", "correct the row's `result`: a function from each dtype that it takes to the result's"),
    _evaluates: ("can't be evaluated for", "let its NumPy function take these operands; or write None instead, so that "
                 "each call is compiled"),
    _lowers: ("can't be compiled for", "write as `hlo` an operation of StableHLO that takes these operands, or a "
              "function (ctx, args) -> value"),
    _differentiates: ("can't be differentiated for", "correct the functions in the row's `jvp` and `transpose`")}
