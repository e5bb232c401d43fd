"""`check`: the primitive by which a program says what must hold, and the functions that bind it.

Evaluated at once, a check that fails raises. In a program, it has an effect, so that it is kept; `checkify` takes it
out, and a program that still has one can't be compiled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import (
    Array,
    ArrayLike,
    ShapedArray,
    aval_of,
    dtypes,
    flatten,
    here,
    paths_of,
    to_dim,
    values,
)
from corejax.errors import CorejaxTypeError, CorejaxValueError, kind_of
from corejax.plugin import Effect, Sample, define, hookimpl, public, shaping
from corejax_checkify._sites import Signature, Site, Sites, parted, signatures
from corejax_checkify.error import Error
from corejax_checkify.failures import FailedCheckError

__all__ = ["CHECK", "check_p"]

#: A check is made. It isn't ordered: what failed first is told by the program that `checkify` makes.
CHECK = Effect("check")

_COUNT = ShapedArray((), np.dtype(np.int32))


class Check:
    """`check(code, *values, sites=..., debug=False)`: `code` is 0, or the number of the site whose check has failed.

    `values` are what the sites report, in the order of their types. With `debug`, nothing happens where it isn't
    functionalized by `checkify`.

    >>> sample = next(check_p.primitive.samples(np.random.default_rng(0)))
    >>> check_p.primitive.bind(*sample.args, **sample.params)
    []
    """

    name = "check"
    tracks_varying = True
    operands = ("code", "*values")
    multiple_results = True
    symbolic_zeros = True

    @hookimpl
    def evaluate(self, args: Any, *, sites: Sites, debug: bool) -> list[Any]:
        failure = None if debug else Error(args[0], args[1:], sites).get_exception()
        if failure is not None:
            failure.primitive = self.name
            raise failure
        return []

    @hookimpl
    def abstract_eval(self, avals: Any, *, sites: Sites, debug: bool = False) -> list[ShapedArray]:
        _check_operands(sites, avals, True)
        return []

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, sites: Sites, debug: bool) -> Any:
        return _bind(primals, sites, debug), []

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, sites: Sites, debug: bool) -> Any:
        return [None] * len(args)

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, sites: Sites, debug: bool) -> Any:
        """The check of the first element for which it fails."""
        _check_operands(sites, [aval_of(x) for x in args], False)
        if not axis.size:
            return [], []
        (code, *rest), (code_dim, *rest_dims) = args, dims
        at = np.int32(0)
        if code_dim is not None:
            code = to_dim(code, code_dim, 0, axis.size)
            at = _first(code)
            code = _row(code, at)
        rest = [x if d is None else _row(to_dim(x, d, 0, axis.size), at) for x, d in zip(rest, rest_dims, strict=True)]
        found: list[Any] = []
        mapped = tuple([_mapped(site) for site in sites])
        given = parted(rest, signatures(sites))
        known = {new.reported: old.reported for new, old in zip(mapped, sites, strict=True)}
        for kind in signatures(mapped):
            found += [lax.convert_element_type(at, np.int32), *(given[known[kind]] if known[kind] else ())]
        return _bind([code, *found], mapped, debug), []

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, sites: Sites, debug: bool) -> list[Any]:
        if debug:
            return []
        raise CorejaxValueError(
            "check: a program that is compiled holds a check that isn't functionalized", primitive="check",
            hook="xla_translation", got="check in a compiled function or loop", where=sites[0].where or here(),
            wanted="a program whose checks are among its results",
            todo="compile the checkified function, err, out = cj.jit(checkify.checkify(f))(x), and call err.throw(); "
                 "or write checkify.debug_check, which does nothing here")

    @hookimpl
    def effects(self, avals: Any) -> frozenset[Effect]:
        return frozenset((CHECK,))

    @hookimpl
    def pretty(self, *, sites: Sites, debug: bool) -> Mapping[str, Any]:
        texts = ", ".join([site.text for site in sites])
        return {"message": texts, **({"debug": True} if debug else {})}

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        tree = flatten(((np.float64(0.0),), {}))[1]
        one = Site(FailedCheckError, "x is {}", None, (ShapedArray((), np.dtype(np.float64)),), tree)
        other = Site(FailedCheckError, "no", None, (), flatten(((), {}))[1])
        zero, x = np.int32(0), rng.standard_normal(())
        kept = {"each param has two values": "without debug, it can't be compiled: the pack's tests are about that",
                "effects are declared": "a check that holds does nothing that could be seen"}
        yield Sample([zero, x], {"sites": (one,), "debug": True}, results=[], exempt=kept)
        yield Sample([zero, x], {"sites": (one, other), "debug": True}, results=[], exempt=kept)
        yield Sample([zero], {"sites": (other,), "debug": True}, results=[], exempt=kept)
        yield Sample([np.int32(1), x], {"sites": (one, other), "debug": True}, results=[], exempt=kept)
        yield Sample([zero], {"sites": (one,), "debug": True}, error=TypeError)


check_p: Any = define(Check())


def _check_operands(sites: Sites, avals: Sequence[ShapedArray], shapes_too: bool) -> None:
    """Raise if these aren't the types of a number and of what the sites report."""
    wanted = [_COUNT, *[aval for kind in signatures(sites) for aval in kind]]
    if [x.dtype for x in avals] != [x.dtype for x in wanted] or (
            shapes_too and [x.shape for x in avals] != [x.shape for x in wanted]):
        raise CorejaxTypeError("check: the operands don't fit its sites", primitive="check", where=here(),
                               got=", ".join(map(str, avals)), wanted=", ".join(map(str, wanted)),
                               todo="call checkify.check or checkify.check_error")


def _mapped(site: Site) -> Site:
    """The same check, of one of the elements of a batch."""
    return Site(site.kind, site.text, site.where, (_COUNT, *site.reported), site.tree, site.axes, site.shape,
                site.mapped + 1)


def _first(codes: Any) -> Any:
    """The position of the first check that has failed."""
    return lax.argmax(lax.ne(codes, np.int32(0)), 0, np.int32)


def _row(x: Any, at: Any) -> Any:
    return lax.dynamic_index_in_dim(x, at, 0, keepdims=False)


def _bind(operands: Sequence[Any], sites: Sites, debug: bool) -> list[Any]:
    return check_p.primitive.bind(*operands, sites=sites, debug=debug)  # type: ignore[no-any-return]


# The public functions

@public
def check(pred: ArrayLike, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any) -> None:
    """Raise `FailedCheckError`, with `msg`, if `pred` is false.

    `msg` is a format string, and the other arguments, pytrees of arrays, are its values: these may be traced. Where a
    program is traced, the check has to be functionalized by `checkify`, or compiling the program is an error. With
    `debug`, nothing happens unless it is.

    >>> from corejax import checkify
    >>> checkify.check(True, "never seen")
    >>> checkify.check(False, "{} isn't {limit} or less", np.int32(3), limit=np.int32(2))
    Traceback (most recent call last):
      ...
    corejax_checkify.failures.FailedCheckError: 3 isn't 2 or less (`check` failed)
      where:  ...
      to do:  see that what is checked holds, for the arguments of this call
    """
    _check("check", pred, msg, shaping.as_flag("check", "debug", debug), fmt_args, fmt_kwargs)


@public
def debug_check(pred: ArrayLike, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """A `check` that is made only where `checkify` functionalizes it. Elsewhere, nothing happens.

    >>> from corejax import checkify
    >>> def f(x):
    ...     checkify.debug_check(x != 0, "x is zero")
    ...     return lax.div(1.0, x)
    >>> f(2.0).item(), checkify.checkify(f)(0.0)[0].get()
    (0.5, 'x is zero (`check` failed)')
    """
    _check("debug_check", pred, msg, True, fmt_args, fmt_kwargs)


@public
def check_error(error: Error) -> None:
    """Raise what `error.throw()` would. Unlike that, it can be functionalized by a `checkify` around it.

    >>> from corejax import checkify
    >>> import corejax as cj
    >>> def f(x):
    ...     checkify.check(x > 0, "x must be positive")
    ...     return lax.log(x)
    >>> def compiled_within(x):
    ...     err, y = cj.jit(checkify.checkify(f))(x)
    ...     checkify.check_error(err)
    ...     return y
    >>> checkify.checkify(compiled_within)(-1.0)[0].get()
    'x must be positive (`check` failed)'
    """
    if not isinstance(error, Error):
        raise CorejaxTypeError("check_error takes an Error", got=f"{kind_of(error)}: {error!r:.80}", where=here(),
                               wanted="the first result of a checkified function",
                               todo="call it as err, out = checkify.checkify(f)(x); checkify.check_error(err)")
    sites = error._sites
    if not sites or 0 in aval_of(error._code).shape:
        return
    code, found = error._code, [*error._values]
    shape = aval_of(code).shape
    if shape:  # of a mapped function: the first element of which a check failed
        code, *found = [lax.reshape(x, (prod(shape), *aval_of(x).shape[len(shape):])) for x in (code, *found)]
        at = _first(code)
        code, *found = [_row(x, at) for x in (code, *found)]
    _bind([code, *found], sites, False)


def _check(what: str, pred: Any, msg: Any, debug: bool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    holds = _predicate(what, pred)
    if not isinstance(msg, str):
        raise CorejaxTypeError(f"{what}: the message must be a string", got=f"{kind_of(msg)}: {msg!r:.80}",
                               wanted="a str, which may be a format", where=here(),
                               todo=f"{what}(pred, 'x is {{x}}', x=x)")
    leaves, tree = flatten((args, kwargs))
    found = _values(what, leaves, (args, kwargs))
    reported: Signature = tuple([ShapedArray(x.aval.shape, x.aval.dtype) for x in found])
    _check_format(what, msg, tree, reported)
    site = Site(FailedCheckError, msg, here(), reported, tree)
    failed = lax.convert_element_type(lax.bitwise_not(holds), np.int32)
    _bind([failed, *[lax.convert_element_type(x, x.aval.dtype) for x in found]], (site,), debug)


def _predicate(what: str, pred: Any) -> Any:
    """A boolean as an array, or a tracer."""
    if isinstance(pred, (bool, np.bool_)):
        return np.asarray(pred)
    aval = aval_of(pred) if isinstance(pred, (Array, np.ndarray)) else None
    if aval is None or aval.shape or aval.dtype != dtypes.bool_:
        hint = "reduce it: (x > 0).all()" if aval is not None and aval.dtype == dtypes.bool_ else "compare: x > 0"
        raise CorejaxTypeError(f"{what}: the predicate must be one boolean", where=here(), wanted="bool[]", todo=hint,
                               got=str(aval) if aval is not None else f"{kind_of(pred)}: {pred!r:.80}")
    return pred


def _values(what: str, leaves: Sequence[Any], whole: Any) -> list[Any]:
    """What is reported, as arrays."""
    for i, x in enumerate(leaves):
        if not isinstance(x, (Array, np.ndarray, np.generic, *dtypes.PYTHON_SCALARS)) or (
                isinstance(x, np.ndarray) and x.dtype.kind not in "biufcV"):
            raise _no_number(what, paths_of(whole)[i], f"{kind_of(x)}: {x!r:.80}")
    found = values(leaves, what, lambda i: f"value{paths_of(whole)[i]}")
    for i, x in enumerate(found):
        if dtypes.kind(x.aval.dtype) == "E":
            raise _no_number(what, paths_of(whole)[i], str(x.aval))
    return found


def _no_number(what: str, path: Any, got: str) -> CorejaxTypeError:
    return CorejaxTypeError(f"{what}: the values of a message must be arrays of numbers, at {path}", got=got,
                            wanted="numbers and arrays of them, or pytrees of these", where=here(),
                            todo="format what is known now into the message itself")


def _check_format(what: str, msg: str, tree: Any, reported: Signature) -> None:
    """Raise now if the message can't be formatted, and not when the check fails."""
    args, kwargs = tree.unflatten([np.zeros(aval.shape, aval.dtype)[()] for aval in reported])
    try:
        msg.format(*args, **kwargs)
    except Exception as error:
        raise CorejaxValueError(
            f"{what}: the message can't be formatted: {type(error).__name__}: {error}", got=f"{msg!r:.120}",
            wanted="a place {} for each value, or {name} for a keyword; {{ for a brace", where=here(),
            todo="pass the missing values, or change the format") from error
