"""`custom_gradient`: a function that returns its derivative along with its result."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

from corejax.core import Jaxpr, aval_of, check_callable, flatten, here, name_of, stage_function
from corejax.errors import CorejaxTypeError
from corejax.plugin import carrying, custom_vjp, public
from corejax_control_flow._rule_results import pair

__all__ = ["custom_gradient"]

#: `cj.custom_gradient`.
AT_TOP = ("custom_gradient",)


@public
def custom_gradient(fun: Callable[..., Any]) -> Any:
    """A function with its own derivative for reverse mode: `fun(*args)` returns the output and the rule for it.

    The rule takes the cotangent of the output, and returns a tuple of cotangents of the arguments; of a single argument
    just its cotangent, if that is an array. It may close over what `fun` has computed, which is kept for it.

    >>> import corejax as cj
    >>> from corejax import lax
    >>> @cj.custom_gradient
    ... def clipped(x):
    ...     return x, lambda ct: (lax.clamp(-1.0, ct, 1.0),)
    >>> clipped(2.0), cj.grad(lambda x: 5.0 * clipped(x))(2.0)
    (Array(2., dtype=float64, weak_type=True), Array(1., dtype=float64, weak_type=True))
    """
    check_callable(fun, "custom_gradient")

    def output(*args: Any) -> Any:
        return _pair(fun, args)[0]

    def fwd(*args: Any) -> tuple[Any, Any]:
        out, rule = _pair(fun, args)
        leaves, in_tree = flatten((out,))
        staged = stage_function(rule, [aval_of(x).tangent for x in leaves], in_tree,
                                f"custom_gradient: the rule of {name_of(fun)}")
        return out, (_Program(staged.jaxpr, staged.out_tree), staged.consts)

    def bwd(kept: Any, ct: Any) -> tuple[Any, ...]:
        program, consts = kept
        back = program.out_tree.unflatten(carrying.run(program.jaxpr, [*consts, *flatten(ct)[0]]))
        return back if isinstance(back, (tuple, list)) else (back,)  # type: ignore[return-value]

    update_wrapper(output, fun)
    del output.__wrapped__  # type: ignore[attr-defined]  # rules take all arguments as they are passed
    wrapped = custom_vjp(output)
    wrapped.defvjp(fwd, bwd)
    return wrapped


class _Program:
    """The rule as a program of the values that it closes over, and of a cotangent."""

    def __init__(self, jaxpr: Jaxpr, out_tree: Any) -> None:
        self.jaxpr, self.out_tree = jaxpr, out_tree

    def __eq__(self, other: object) -> bool:
        return type(other) is _Program and (self.jaxpr, self.out_tree) == (other.jaxpr, other.out_tree)

    def __hash__(self) -> int:
        return hash((self.jaxpr, self.out_tree))


def _pair(fun: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, Any]:
    what = f"custom_gradient: {name_of(fun)}"
    out, rule = pair(fun(*args), what, "(output, rule)")
    if not callable(rule):
        raise CorejaxTypeError(f"{what} must return a function after its output", got=f"{rule!r:.80}", where=here(),
                               wanted="a function from the output's cotangent to those of the arguments",
                               todo="return out, lambda ct: (...,)")
    return out, rule
