"""What a plugin can declare instead of writing a rule, and the marker for the rules that it does write.

A declaration takes the place of a hook:

>>> class Floor:
...     name = "floor"
...     jvp = not_differentiable("it is constant between integers; its derivative is declared missing, not zero")
...     transpose = not_linear()
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, NamedTuple, TypeAlias

import pluggy

from corejax.base.errors import CorejaxTypeError
from corejax.base.source import here
from corejax.kernel.factors import Divisor, weighted

#: Marks a method as an implementation of the hook of that name; pluggy's options (`wrapper`, `tryfirst`) apply.
hookimpl = pluggy.HookimplMarker("corejax")

Function = Callable[..., Any]


#: What a primitive's plugin may declare by name, besides its hooks.
OWNER_DECLARATIONS = frozenset(("name", "multiple_results", "symbolic_zeros", "linear", "not_linear_in", "cheap",
                                "structural", "tracks_varying", "element_types", "operands", "attached", "function",
                                "holds", "widened", "axes_within", "substitutes", "api_version"))


class Declaration:
    """Takes the place of the hook named `hook` in a plugin."""

    __slots__ = ()
    hook = ""


class Partials(Declaration):
    """A derivative for each operand: `f_i(tangent_i, out, *args, **params)`, `itself`, None for zero, or a refusal."""

    __slots__ = ("functions",)
    hook = "jvp"

    functions: tuple[Partial, ...]

    def __init__(self, functions: Sequence[Partial]) -> None:
        self.functions = tuple(functions)

    def __repr__(self) -> str:
        return f"{type(self).__name__.lower()}(...)"


class Itself:
    """The derivative of a primitive that is linear in an operand: the primitive, with the tangent in its place."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "itself"


#: Stands for the function of an operand in `partials`: see there.
itself = Itself()


class Factors(Partials):
    """A derivative for each operand of an elementwise primitive as a factor: `f_i(out, *args, **params)`, 1 or -1."""

    __slots__ = ("factors",)

    def __init__(self, factors: Sequence[Factor]) -> None:
        self.factors = tuple(factors)
        super().__init__([factor if factor is None or isinstance(factor, NotDifferentiable) else _times(factor)
                          for factor in factors])


class Linearity(Declaration):
    """Linear in these operands, jointly, for each value of the others."""

    __slots__ = ("operands",)
    hook = "jvp"

    def __init__(self, operands: Sequence[int]) -> None:
        self.operands = tuple(operands)

    def __repr__(self) -> str:
        return f"linear{self.operands}"


class NotDifferentiable(Declaration):
    """Declares that there is no derivative, and why."""

    __slots__ = ("reason",)
    hook = "jvp"

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __repr__(self) -> str:
        return f"not_differentiable({self.reason!r})"


Factor = Function | NotDifferentiable | int | None
Partial: TypeAlias = Function | Itself | NotDifferentiable | None


class NotLinear(Declaration):
    """Declares that there is no transpose, and why."""

    __slots__ = ("reason",)
    hook = "transpose"

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __repr__(self) -> str:
        return f"not_linear({self.reason!r})"


def _times(factor: Function | int) -> Function:
    if not callable(factor):
        return lambda tangent, out, *args, **params: weighted(tangent, factor)

    def partial(tangent: object, out: object, *args: Any, **params: Any) -> Any:
        return weighted(tangent, factor(out, *args, **params))
    return partial


def partials(*functions: Partial) -> Partials:
    """`jvp = partials(f0, f1, ...)`: the derivative with respect to each operand.

    `f_i(tangent_i, out, *args, **params)` returns what the operand's tangent contributes to the output's; it is linear
    in the tangent, and only called where that isn't zero. None stands for a derivative of zero, and
    `not_differentiable(reason)` for one that doesn't exist: differentiating with respect to this operand is refused.

    `itself` stands for the primitive with the tangent in the operand's place, as is right for an operand in which it is
    linear while the others are fixed: a product has `partials(itself, itself)`. Reverse mode records these without
    running a rule on the tangents.
    """
    return Partials(functions)


def factors(*functions: Factor) -> Factors:
    """`jvp = factors(f0, f1, ...)`: partials that multiply the tangent, elementwise.

    The factor of an operand is `f_i(out, *args, **params)`; 1 and -1 stand for themselves, None for a derivative of
    zero, `over(f_i)` for one over what the function returns, `not_differentiable(reason)` for none at all. Reverse mode
    records these without running a rule on the tangents.
    """
    for factor in functions:
        if not (callable(factor) or factor is None or isinstance(factor, NotDifferentiable) or (
                type(factor) is int and factor in (1, -1))):
            raise CorejaxTypeError("a factor must be a function, None, 1 or -1", got=repr(factor), where=here(),
                                   wanted="a function (out, *args, **params) -> factor; None where it is zero",
                                   todo="write lambda out, *args: ... for any other constant")
    return Factors(functions)


def over(function: Function) -> Function:
    """`jvp = factors(over(f))`: the tangent is divided by `f(out, *args, **params)`, elementwise."""
    @wraps(function)
    def factor(*args: Any, **params: Any) -> Divisor:
        return Divisor(function(*args, **params))
    return factor


def linear(*operands: int) -> Linearity:
    """`jvp = linear(0, 1)`, or `linear = (0, 1)` for short: linear in these operands jointly."""
    return Linearity(operands)


def not_differentiable(reason: str) -> NotDifferentiable:
    """`jvp = not_differentiable(reason)`: differentiating is refused. For a zero derivative write `partials(None)`.

    In the place of one function in `partials` or `factors`, it refuses this operand only.
    """
    return NotDifferentiable(reason)


def not_linear(reason: str = "it is not linear in any operand") -> NotLinear:
    """`transpose = not_linear()`: it is never transposed, since no jvp rule applies it to a tangent."""
    return NotLinear(reason)


def per_operand(function: Function, count: int | None = None, *, beside: str = "",
                more: Callable[[Any, Sequence[Any]], Any] | None = None) -> staticmethod[[Sequence[Any]], Any]:
    """`impl = per_operand(np.hypot, 2)`: the rule calls a function of `count` arrays, or of any number if that is None.

    It does the same as a method `impl(self, args)` that returns `np.hypot(*args)`, but faster: given one or two
    operands, evaluation calls the function itself. For dtypes of the kinds in `beside` it doesn't: there the rule
    continues with `more(out, args)`.

    >>> import numpy as np
    >>> per_operand(np.hypot, 2)([3.0, 4.0])
    np.float64(5.0)
    """
    rule: Any
    if more is not None:
        def rule(args: Sequence[Any]) -> Any:
            out = function(*args)
            return more(out, args) if args[0].dtype.kind in beside else out
    elif count == 1:
        rule = lambda args: function(args[0])
    elif count == 2:
        rule = lambda args: function(args[0], args[1])
    else:
        rule = lambda args: function(*args)
    # Includes the rule itself, since functools.wraps copies attributes to other rules, which do more.
    rule.per_operand = PerOperand(rule, function, count, frozenset(beside))
    return staticmethod(hookimpl(rule))


class PerOperand(NamedTuple):
    """The arguments of `per_operand`, attached to the rule."""

    rule: Function
    function: Function
    arity: int | None
    beside: frozenset[str]


class Sample:
    """An input for the conformance kit, from the hook `samples`. All samples together specify a primitive.

    - `domain`: the interval from which the kit draws more floating operands of the same shapes (for complex ones, both
      parts); or one interval for each operand, integers included, with None where the given operand is to be kept.
    - `singular`: points of the domain where no derivative exists; the kit keeps away from them.
    - `ulps`: how many units in the last place `impl` and the compiled program may be apart.
    - `atol`: how far results and derivatives may be apart whatever their size, in every check. Without it, where
      results cancel, rounding errors of the operands' size are allowed.
    - `error`: the exception class that this input must raise.
    - `results`: the expected result, known from elsewhere: one array, or a list of several. Useful for a primitive that
      has a lowering and no `impl`, so that there is nothing else to compare with. A corejax `Array` also says of which
      type the result must be, weak or not.
    - `axes`: names of axes with their sizes, for a primitive that communicates along named axes. Operands and results
      have a leading axis for each, in this order; the primitive gets what is at one position, under maps.
    - `happened`: for a primitive with effects, a function that returns what has happened since it was last called, as a
      list whose items print alike if they are alike.
    - `exempt`: names of checks, with the reason why each doesn't hold here; or `"derivative"`, with the reason why the
      derivative is meant to be another one than the value's.

    >>> Sample([1.0, 2.0], {"axis": 0})
    Sample(args=(1.0, 2.0), params={'axis': 0})
    """

    __slots__ = ("args", "atol", "axes", "domain", "error", "exempt", "happened", "params", "results", "singular",
                 "ulps")

    def __init__(self, args: Sequence[Any], params: Mapping[str, Any] | None = None, domain: Any = None,
                 error: type[BaseException] | None = None, exempt: Mapping[str, str] | None = None,
                 singular: Sequence[float] = (), ulps: float | None = None, results: Any = None,
                 atol: float | None = None, axes: Mapping[str, int] | None = None,
                 happened: Callable[[], list[Any]] | None = None) -> None:
        self.args = tuple(args)
        self.params = dict(params or {})
        self.domain = domain
        self.error = error
        self.exempt = dict(exempt or {})
        self.singular = tuple(singular)
        self.ulps = ulps
        self.results = results
        self.atol = atol
        self.axes = dict(axes or {})
        self.happened = happened

    def __repr__(self) -> str:
        fields = [(name, getattr(self, name)) for name in (
            "args", "params", "domain", "error", "exempt", "singular", "ulps", "results", "atol", "axes", "happened")]
        shown = [f"{name}={value!r}" for name, value in fields
                 if name == "args" or not (value is None or (isinstance(value, (dict, tuple)) and not value))]
        return f"Sample({', '.join(shown)})"
