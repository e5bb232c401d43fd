"""Signatures of hooks, and small adapters that make every hook callable in the same way.

A hook may name fewer positional arguments than its spec, and fewer params than its primitive has. A hook that names all
of them needs no adapter.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from corejax.base.errors import CorejaxRuntimeError
from corejax.kernel.declarations import PerOperand

if TYPE_CHECKING:
    from corejax.kernel.primitive import Rule

T = TypeVar("T")


class Signature(NamedTuple):
    """What a hook accepts: names of positional arguments and of params, `*args`, `**params`."""

    positional: tuple[str, ...]
    keywords: tuple[str, ...]
    spread: bool
    open: bool

    @classmethod
    def of(cls, function: Rule) -> Signature:
        """The signature of a function or bound method."""
        parameters = inspect.signature(function).parameters.values()
        return cls(tuple([p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]),
                   tuple([p.name for p in parameters if p.kind is p.KEYWORD_ONLY]),
                   any(p.kind is p.VAR_POSITIONAL for p in parameters),
                   any(p.kind is p.VAR_KEYWORD for p in parameters))

    def __str__(self) -> str:
        star = ["*args"] if self.spread else ["*"] if self.keywords else []
        return f"({', '.join([*self.positional, *star, *self.keywords, *(['**params'] if self.open else [])])})"


def place_of(function: object) -> str | None:
    """`file:line` of a function, if it is written in Python."""
    code = getattr(inspect.unwrap(function) if callable(function) else None, "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else None


def takes(function: Rule, count: int) -> bool:
    """Whether a function can be called with `count` positional arguments, as far as one can tell."""
    function = inspect.unwrap(function)
    code = getattr(function, "__code__", None)
    if type(function) is FunctionType and code is not None and not code.co_flags & inspect.CO_VARARGS:
        return bool(code.co_argcount - len(function.__defaults__ or ()) <= count <= code.co_argcount)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some built-in functions have no signature
        return True
    named = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    most = count if any(p.kind is p.VAR_POSITIONAL for p in parameters) else len(named)
    return len([p for p in named if p.default is p.empty]) <= count <= most


def adapt(rule: Rule, signature: Signature, positional: Sequence[str], params: Signature) -> Rule:
    """The rule as a callable that accepts `positional` and all the params."""
    takes_all = signature.open or (not params.open and set(signature.keywords) == set(params.keywords))
    keep = signature.keywords
    if signature.positional == tuple(positional):
        if takes_all:
            return rule
        if not keep:
            return _without_params(rule, len(positional))
        return lambda *args, **given: rule(*args, **{name: given[name] for name in keep})
    places = [list(positional).index(name) for name in signature.positional]
    if takes_all:
        return lambda *args, **given: rule(*[args[i] for i in places], **given)
    return lambda *args, **given: rule(*[args[i] for i in places], **{name: given[name] for name in keep})


def _without_params(rule: Rule, count: int) -> Rule:
    if count == 1:
        return lambda x, **_: rule(x)
    if count == 2:
        return lambda x, y, **_: rule(x, y)
    return lambda *args, **_: rule(*args)


def of_operands(rule: object) -> tuple[Rule | None, Rule | None, frozenset[str]]:
    """The functions that a rule calls for one and for two operands, and the kinds of dtypes for which it does more."""
    told: PerOperand | None = getattr(rule, "per_operand", None)
    if told is None or told.rule is not rule:
        return None, None, frozenset()
    return told.function if told.arity == 1 else None, told.function if told.arity == 2 else None, told.beside


def adapt_partial(function: T, params: Signature) -> T | Rule:
    """A function of `partials` or `factors`, adapted to accept all the params; what else stands there is unchanged."""
    if not callable(function) or not params.keywords:
        return function
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some built-in functions have no signature: they get all arguments
        return function
    keep = [p.name for p in parameters if p.name in params.keywords]
    if any(p.kind is p.VAR_KEYWORD for p in parameters) or len(keep) == len(params.keywords):
        return function
    return lambda *args, **given: function(*args, **{name: given[name] for name in keep})


def chain(rules: Sequence[Rule]) -> Rule:
    """A rule that returns the first result that isn't None."""
    def first(*args: Any, **params: Any) -> Any:
        for rule in rules:
            out = rule(*args, **params)
            if out is not None:
                return out
        return None
    return first


def instantiated(rule: Rule, instantiate: Callable[[Any], Any], place: int) -> Rule:
    """Adapt a rule that doesn't know symbolic zeros: in the sequence at position `place`, it gets arrays instead."""
    def call(*args: Any, **params: Any) -> Any:
        values = args[place]
        if type(values) in (list, tuple):
            args = (*args[:place], [instantiate(x) for x in values], *args[place + 1:])
        return rule(*args, **params)
    return call


def wrapped(wrapper: Rule, inner: Rule) -> Rule:
    """`inner` wrapped by a generator function, which yields once, is sent the result and returns another."""
    def call(*args: Any, **params: Any) -> Any:
        generator = wrapper(*args, **params)
        try:
            next(generator)
        except StopIteration:
            raise CorejaxRuntimeError(f"the wrapper {wrapper!r} does not yield", wanted="one yield",
                                      where=place_of(wrapper),
                                      todo="yield once, whatever the operands: the rule runs there") from None
        try:
            out = inner(*args, **params)
        except BaseException as error:  # thrown into the wrapper, which may or may not raise it again
            resume, sent = generator.throw, error
        else:
            resume, sent = generator.send, out
        try:
            resume(sent)
        except StopIteration as stop:
            return stop.value
        generator.close()
        raise CorejaxRuntimeError(f"the wrapper {wrapper!r} yields more than once", wanted="one yield",
                                  where=place_of(wrapper), todo="return the result after the yield")
    return call
