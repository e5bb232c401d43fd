"""`checkify`: a function that returns, beside its result, which of its checks failed first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, TypeVar

from corejax.core import check_callable, here
from corejax.errors import CorejaxTypeError, kind_of
from corejax.plugin import calls_users, carrying, public
from corejax_checkify import _carriers  # noqa: F401  # its rules
from corejax_checkify._following import Plan, Walk, sites_of
from corejax_checkify._sites import signatures
from corejax_checkify.error import Error
from corejax_checkify.failures import Errors, all_checks, user_checks

__all__: list[str] = []

Out = TypeVar("Out")


@public
def checkify(f: Callable[..., Out], errors: Iterable[Any] = user_checks) -> Callable[..., tuple[Error, Out]]:
    """`f`, with its checks as a value: the function of the same arguments that returns `(err, f(...))`.

    `err` is an `Error`: `err.get()` says what failed first, or is None, and `err.throw()` raises it. The function can
    be compiled, mapped and differentiated. `errors` says what is checked: `user_checks`, what `check` is called for,
    which is the default; `nan_checks`, whether operations make NaN; `index_checks`, whether indices are out of bounds;
    `div_checks`, whether anything is divided by zero; `float_checks`, `automatic_checks` and `all_checks` are several
    of these, and `a | b` is both. Checks of other kinds are left out.

    First is what comes first as the program runs: a loop's steps one after the other, and in a mapped operation the
    first element.

    >>> from corejax import checkify, lax
    >>> import corejax as cj
    >>> def root(x):
    ...     checkify.check(x >= 0, "{x} is negative", x=x)
    ...     return lax.sqrt(x)
    >>> checked = cj.jit(checkify.checkify(root, errors=checkify.user_checks | checkify.nan_checks))
    >>> checked(4.0)
    (Error(None), Array(2., dtype=float64, weak_type=True))
    >>> checked(-4.0)[0]
    Error(-4.0 is negative (`check` failed))
    """
    check_callable(f, "checkify")
    kinds = _kinds(errors)

    @public
    @calls_users
    @wraps(f)
    def checked(*args: Any, **kwargs: Any) -> tuple[Error, Out]:
        # closed over, so that Python's control flow may depend on arguments that aren't traced
        call = carrying.stage_call(lambda: f(*args, **kwargs), (), "checkify")
        plan = Plan(kinds, sites_of(call.jaxpr, kinds))
        walk = Walk.start(plan)
        outs = walk.run(call.jaxpr, call.operands)
        if not plan.sites:
            return Error(), call.unflatten(outs)
        return Error(walk.code, walk.flat(signatures(plan.sites))[1:], plan.sites), call.unflatten(outs)

    return checked


def _kinds(errors: Any) -> Errors:
    """The kinds of checks that are chosen."""
    try:
        found = frozenset(errors)
    except TypeError:
        found = frozenset()
        chosen = errors if isinstance(errors, str) else kind_of(errors)
        raise _unknown(f"{chosen}: {errors!r:.80}") from None
    unknown = [kind for kind in found if kind not in all_checks]
    if unknown or isinstance(errors, str):
        names = [kind.__name__ if isinstance(kind, type) else repr(kind) for kind in unknown]
        raise _unknown(f"{errors!r:.80}" if isinstance(errors, str) else f"a set with {', '.join(names):.80}")
    return found


def _unknown(got: str) -> CorejaxTypeError:
    return CorejaxTypeError("checkify: errors must be a set of kinds of checks", got=got, where=here(),
                            wanted="user_checks, nan_checks, index_checks, div_checks, float_checks, automatic_checks, "
                                   "all_checks, or several of them, joined by |",
                            todo="write errors=checkify.user_checks | checkify.nan_checks")
