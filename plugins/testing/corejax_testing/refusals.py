"""Checks of rejections: of invalid inputs, missing derivatives, and rules that would be slow."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corejax import config, eval_shape, jit, jvp, make_jaxpr, vjp, vmap
from corejax.core import Primitive
from corejax.errors import CorejaxError, CorejaxNotImplementedError, MissingRuleError, PluginError, RuleError
from corejax.plugin import NotDifferentiable
from corejax_testing.batches import carries_programs
from corejax_testing.case import Case
from corejax_testing.check import check
from corejax_testing.comparing import host
from corejax_testing.report import NotApplicable

#: What a message for users must not mention.
_INTERNALS = re.compile(r"NoneType|jaxlib|MLIR|StableHLO|stablehlo\.|object has no attribute|unexpected keyword|"
                        r"<built-in|Traceback|XlaRuntimeError")


@check("abstract_eval", errors=True)
def unsupported_inputs_are_refused(case: Case) -> None:
    """What must raise does, however it is called: the right class, and a CorejaxError that users understand."""
    function = case.apply
    roads: dict[str, Callable[[], Any]] = {
        "evaluated": lambda: function(*case.args), "staged by make_jaxpr": lambda: make_jaxpr(function)(*case.args),
        "in eval_shape": lambda: eval_shape(function, *case.args), "under jit": lambda: jit(function)(*case.args)}
    if case.args:
        stacked = [np.stack([host(x)] * 2) for x in case.args]
        roads["under vmap"] = lambda: vmap(function)(*stacked)
    for road, run in roads.items():
        try:
            out = run()
        except Exception as error:
            _check_refusal(case, road, error)
        else:
            raise case.fail("abstract_eval", f"it accepts what it must reject, {road}", got=str(out)[:100],
                            wanted=_name(case.sample.error),
                            todo="reject it in abstract_eval, which every way goes through")


def _check_refusal(case: Case, road: str, error: Exception) -> None:
    wanted: Any = case.sample.error
    where = f"{case.primitive.name} {road}"
    if not isinstance(error, CorejaxError) or isinstance(error, (RuleError, PluginError)):
        raise case.fail("abstract_eval", f"it is rejected as if the pack were wrong: {where}", wanted=_name(wanted),
                        got=f"{_name(type(error))}: {str(error).partition(chr(10))[0]}",
                        todo="check the operands in abstract_eval, and raise a CorejaxError of that class")
    if not isinstance(error, wanted):
        raise case.fail("abstract_eval", f"it is rejected with the wrong class: {where}", got=_name(type(error)),
                        wanted=_name(wanted), todo="raise the class that is also that built-in one")
    text = f"{error} {error.primitive or ''}"
    runs_first = case.primitive.evaluate is not None and "vmap" in road  # its types are only known once it has run
    if case.primitive.name not in text and _public_name(case.primitive) not in text and not runs_first:
        raise case.fail("abstract_eval", f"the rejection doesn't name the primitive: {where}", got=error.message,
                        wanted=f"an error that says {case.primitive.name}", todo="begin the message with its name")
    found = _INTERNALS.search(str(error))
    if found:
        raise case.fail("abstract_eval", f"the rejection mentions internals: {where}", got=str(error)[:200],
                        wanted=f"words that a user knows, not {found.group()!r}", todo="say what was got and wanted")
    if error.todo is None and error.wanted is None:
        raise case.fail("abstract_eval", f"the rejection doesn't say what would be right: {where}",
                        got=str(error)[:200],
                        wanted="an error with wanted= or todo=", todo="give them to the CorejaxError")


def _public_name(primitive: Primitive) -> str:
    return str(getattr(primitive.function, "__name__", primitive.name))


def _name(kind: object) -> str:
    return getattr(kind, "__name__", str(kind))


@check("abstract_eval")
def one_operand_more_or_less_is_refused(case: Case) -> None:
    """With an operand more, or one less, it is an error, unless samples have other numbers of operands.

    With a program in its params, which says how many there are, only samples with this program count.
    """
    carries = carries_programs(case)
    counts = {len(sample.args) for sample in case.samples
              if sample.error is None and (not carries or sample.params == case.params)}
    names = getattr(case.primitive.plugin, "operands", None) or ("",)
    if len(counts) > 1 or (names[-1].startswith("*") and not carries):
        raise NotApplicable("it takes any number of operands")
    if not case.args:
        raise NotApplicable("it has no operands")
    for what, args in (("one more operand", (*case.args, case.args[-1])), ("one operand less", case.args[:-1])):
        for road, run in _roads_for(case, args).items():
            try:
                out = run()
            except Exception as error:  # an error of abstract_eval may say whatever it likes: it doesn't go on
                if road and not (isinstance(error, CorejaxError) and case.primitive.name in f"{error.primitive}"):
                    raise case.fail("evaluate" if road == "evaluated" else "vmap",
                                    f"{what} than the samples have isn't rejected by name, {road}",
                                    got=f"{_name(type(error))}: {str(error).partition(chr(10))[0]}",
                                    wanted=f"an error that says {case.primitive.name}", todo="count the operands: with "
                                    "a hook `evaluate`, abstract_eval comes later or not at all") from error
                continue
            raise case.fail("abstract_eval", f"it accepts {what} than the samples have" + f", {road}" * bool(road),
                            got=out, wanted=f"{len(case.args)} operand{'s' * (len(case.args) > 1)}",
                            todo="unpack the operands: (x,) = avals, rather than avals[0]; if it takes any number, add "
                            "samples with others, or declare operands = ('x', '*others')")


def _roads_for(case: Case, args: Sequence[Any]) -> dict[str, Callable[[], Any]]:
    """What to call with another number of operands: abstract_eval, and where it isn't called first, the primitive."""
    avals = case.with_args(args).avals
    roads: dict[str, Callable[[], Any]] = {"": lambda: case.primitive.infer(avals, case.params)}
    if case.primitive.evaluate is not None:
        roads["evaluated"] = lambda: case.apply(*args)
        if args:
            stacked = [np.stack([host(x)] * 2) for x in args]
            roads["under vmap"] = lambda: vmap(case.apply)(*stacked)
    return roads


@check("vmap")
def no_fallback_is_hidden(case: Case) -> None:
    """With config.fallbacks = "error", mapping and compiling work: no rule is a slow substitute."""
    with config(fallbacks="error"):
        for hook, run in (("vmap", _map_once), ("xla_translation", _lower_once)):
            try:
                run(case)
            except MissingRuleError as error:
                if error.primitive != case.primitive.name or error.hook != hook:
                    raise
                raise case.fail(hook, "a slow substitute takes the place of the rule", got=error.message,
                                wanted=f"a hook {hook}, or decompose",
                                todo=f"write {hook}; or exempt the sample from this check, with the reason") from error


def _map_once(case: Case) -> None:
    if case.args:
        types = [aval.update(shape=(2, *aval.shape), weak_type=False) for aval in case.avals]
        make_jaxpr(vmap(case.apply))(*types)


def _lower_once(case: Case) -> None:
    jit(case.apply).lower(*case.args)


@check("jvp")
def a_derivative_is_given_or_declared_missing(case: Case) -> None:
    """In each mode, differentiating works, or is an error that names the primitive and the declared reason."""
    for i, reason in case.refused.items():
        _check_refused(case, i, reason)
    if not case.inexact:
        raise NotApplicable("no operand has a derivative")
    declared = case.declared("jvp")
    xs = [case.args[i] for i in case.inexact]
    dots = [case.direction(x) for x in xs]
    function = case.function_of(case.inexact)
    roads: dict[str, Callable[[], Any]] = {
        "jvp": lambda: jvp(function, xs, dots), "vjp": lambda: vjp(function, *xs),
        "jvp under jit": lambda: make_jaxpr(lambda *given: jvp(function, given, dots))(*xs)}
    for road, run in roads.items():
        try:
            run()
        except CorejaxNotImplementedError as error:
            _check_declared(case, road, error, declared)
        except CorejaxError as error:
            if isinstance(error, RuleError) or error.todo is None:  # otherwise it is a proper rejection, with advice
                raise
        else:
            if isinstance(declared, NotDifferentiable):
                raise case.fail("jvp", f"it is declared not differentiable, and {road} differentiates it",
                                got="a derivative", wanted=f"a refusal: {declared.reason}",
                                todo="remove the declaration, or the rule that takes precedence over it")


def _check_refused(case: Case, operand: int, reason: str) -> None:
    """Check that differentiating with respect to an operand is refused with the reason, forward and in reverse."""
    function, x = case.function_of([operand]), case.args[operand]
    roads: dict[str, Callable[[], Any]] = {
        "jvp": lambda: jvp(function, [x], [case.direction(x)]), "vjp": lambda: vjp(function, x)}
    for road, run in roads.items():
        try:
            run()
        except CorejaxNotImplementedError as error:
            _check_declared(case, road, error, NotDifferentiable(reason))
        else:
            raise case.fail("jvp", f"operand {operand} is declared not differentiable, and {road} differentiates by it",
                            got="a derivative", wanted=f"a refusal: {reason}", todo="remove the declaration")


def _check_declared(case: Case, road: str, error: CorejaxNotImplementedError, declared: object) -> None:
    if isinstance(declared, NotDifferentiable):
        if declared.reason in str(error) and case.primitive.name in str(error):
            return
        raise case.fail("jvp", f"{road} is rejected with a different message than declared", got=error.message,
                        wanted=f"{case.primitive.name}, and {declared.reason!r}",
                        todo="let the declaration reject it, not a rule of your own")
    if error.primitive == case.primitive.name and isinstance(error, MissingRuleError):
        raise case.fail("jvp", f"{road} fails: there is neither a derivative nor a declaration that there is none",
                        got=error.message, wanted="a jvp rule or a declaration",
                        todo="write jvp, or declare jvp = not_differentiable(reason), or partials(None) if it is zero")
    raise error
