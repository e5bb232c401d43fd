"""The function that users call."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from corejax.core import aval_of, check_callable, flatten, here, namer, stage_function, values
from corejax.errors import CorejaxTypeError
from corejax.plugin import calls_users, public
from corejax_inverse._rules import Unknown
from corejax_inverse._solving import solve
from corejax_inverse._transformation import INVERSE

__all__ = ["inverse"]

AT_TOP = ("inverse",)


@public
def inverse(fun: Callable[[Any], Any], like: Any = None) -> Callable[[Any], Any]:
    """The inverse of a function of one argument, which may be a tree of arrays.

    `like` is an argument of the type that `fun` takes; by default it is as its result. A function that isn't
    one-to-one, as far as its equations tell, is refused. What the inverse is given has to be a result of the function:
    that isn't checked, and where a factor is 0, the result is NaN. It can be compiled, mapped and differentiated.

    >>> from corejax import lax
    >>> inverse(lambda x: lax.exp(x) * 2.0)(2.0).item()
    0.0

    Values may be used more than once if they can be found by one of the uses, as in the layers of a normalizing flow:

    >>> layer = lambda x, y: (x, y * lax.exp(x) + lax.sin(x))
    >>> [round(z.item(), 12) for z in inverse(lambda xy: layer(*xy))(layer(0.5, 2.0))]
    [0.5, 2.0]
    """
    check_callable(fun, "inverse")

    @wraps(fun)
    @public
    @calls_users
    def inverted(y: Any) -> Any:
        leaves, out_tree = flatten(y)
        given, in_tree = flatten((y if like is None else like,))
        outs = values(leaves, "inverse", namer("y", y))
        avals = [aval_of(x) for x in values(given, "inverse", namer("like", like))]
        staged = stage_function(fun, avals, in_tree, "inverse")
        if staged.out_tree != out_tree:
            raise CorejaxTypeError("inverse: the function doesn't return a tree like this", got=str(out_tree),
                                   wanted=str(staged.out_tree), where=here(), todo="pass what the function returns")
        wrong = [f"{aval_of(x)} for {aval}" for x, aval in zip(outs, staged.closed.out_avals, strict=True)
                 if not aval_of(x).matches(aval)]
        if wrong:
            raise CorejaxTypeError("inverse: the function doesn't return values of these types", got=wrong[0],
                                   wanted="values of the types that it returns", where=here(),
                                   todo="pass an argument of the function as `like`, if its type is another one")
        found = solve(INVERSE, staged.closed.jaxpr, [Unknown(aval) for aval in avals], outs, staged.closed.consts)
        return in_tree.unflatten(found)[0]
    return inverted
