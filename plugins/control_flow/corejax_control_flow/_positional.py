"""The arguments of a call by position: a function's rules take them so, whatever way the function is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from corejax.core import here, name_of
from corejax.errors import CorejaxTypeError


class Positional:
    """How the arguments of a function become positional, with defaults filled in. `kind` names it in errors.

    >>> by_position = Positional(lambda x, y=2.0: x * y, "custom_jvp")
    >>> by_position((3.0,), {}), by_position((), {"y": 1.0, "x": 3.0})
    ((3.0, 2.0), (3.0, 1.0))
    """

    def __init__(self, fun: Callable[..., Any], kind: str) -> None:
        self.name, self.kind = name_of(fun), kind
        self._signature, self._arity = _signature(fun)
        self._n_inputs = _n_inputs(fun)
        if self._n_inputs is not None:
            self._arity = self._n_inputs
        elif isinstance(fun, partial):
            self._arity = None  # its author chose what is left to pass; more only comes by its name

    def __call__(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        if not kwargs and self._arity in (None, len(args)):
            return args
        name, signature = self.name, self._signature
        problem = "keyword arguments, for a function without a signature"
        if signature is not None:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError as error:
                raise CorejaxTypeError(f"{self.kind}: {name} doesn't take these arguments", got=str(error),
                                       wanted=f"arguments for {name}{signature}", where=here()) from None
            if self._n_inputs is None or len(bound.arguments) > self._n_inputs:
                bound.apply_defaults()
            given = [each for each in bound.kwargs if each in kwargs]
            if not given:  # others have their defaults
                return bound.args
            problem = f"the keyword-only arguments {', '.join(given)}"
        raise CorejaxTypeError(f"{self.kind}: all arguments of {name} must be positional, as they are for rules",
                               got=problem, wanted=f"positional arguments for {name}{signature or '(...)'}",
                               where=here(), todo="take them by position; close over what is always the same")


def _signature(fun: Callable[..., Any]) -> tuple[inspect.Signature | None, int | None]:
    """The signature of a function, and the number of its arguments if that is fixed."""
    try:
        signature = inspect.signature(fun)
    except (ValueError, TypeError):  # some functions written in C
        return None, None
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    kinds = [p.kind for p in signature.parameters.values()]
    return signature, len(kinds) if all([kind in plain for kind in kinds]) else -1


def _n_inputs(fun: Any) -> int | None:
    """The number of inputs of a universal function, whose further parameters (`out`, `where`) are rarely passed.

    None for other functions: rules get the defaults of their parameters, too.
    """
    bound = 0
    while getattr(fun, "nin", None) is None:
        if isinstance(fun, partial) and not fun.keywords:
            fun, bound = fun.func, bound + len(fun.args)
        elif hasattr(fun, "__wrapped__"):
            fun = fun.__wrapped__
        else:
            return None
    return fun.nin - bound if isinstance(fun.nin, int) else None
