"""Functions of Python, applied to elements, or to slices along axes; and to the indices of an array."""

# mypy: no-warn-return-any

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from functools import update_wrapper
from typing import Any

from corejax import lax
from corejax.core import Array, ArrayLike, DTypeLike, aval_of, call_user, check_callable, dtypes, name_of
from corejax.errors import CorejaxValueError
from corejax.plugin import calls_users, operators, public, refused, shaping
from corejax_lax_basic import broadcast_shapes, expand_dims
from corejax_numpy._arrays import array
from corejax_numpy._mapping import following, over_axes, results

__all__ = ["apply_along_axis", "apply_over_axes", "fromfunction", "vectorize"]

Function = Callable[..., Any]

#: The core axes of each argument, or of each result: their names, or their sizes.
Core = tuple[tuple[str, ...], ...]


@public
def vectorize(pyfunc: Function, *, excluded: Collection[int | str] = frozenset(), signature: str | None = None
              ) -> Function:
    """A function of elements, or of small arrays, as a function of arrays that broadcast against each other.

    `signature` names the last axes that the function takes and returns: `"(n,m),(m)->(n)"`. `excluded`: the positions
    and names of arguments that are passed as they are.

    >>> scaled = jnp.vectorize(lambda x, y: x * y.sum(), signature="(),(n)->()")
    >>> scaled(jnp.array([1.0, 10.0]), jnp.ones((3, 1, 4))).shape
    (3, 2)
    """
    check_callable(pyfunc, "vectorize")
    for item in excluded:
        if not isinstance(item, (int, str)):
            raise refused("vectorize", "excluded names arguments", got=repr(item)[:80], wanted="positions and names",
                          todo="pass a set of integers and strings")
    parsed = None if signature is None else _parsed(signature)
    name = f"vectorize({name_of(pyfunc)})"

    def call(*args: Any, **kwargs: Any) -> Any:
        fixed = {k: v for k, v in kwargs.items() if k in excluded or v is None}
        names = [k for k in kwargs if k not in fixed]
        places = [i for i, x in enumerate(args) if i not in excluded and x is not None]
        _check_excluded(name, excluded, args)

        def of_mapped(*xs: Any) -> Any:
            whole = list(args)
            for i, x in zip(places, xs, strict=False):
                whole[i] = x
            return pyfunc(*whole, **fixed, **dict(zip(names, xs[len(places):], strict=True)))
        mapped = [array(x) for x in [*[args[i] for i in places], *[kwargs[k] for k in names]]]
        of_mapped.__wrapped__ = pyfunc  # type: ignore[attr-defined]  # which errors show
        return _vectorized(name, of_mapped, mapped, parsed)

    return update_wrapper(public(calls_users(call)), pyfunc, updated=())


def _check_excluded(name: str, excluded: Collection[Any], args: Sequence[Any]) -> None:
    for item in excluded:
        if isinstance(item, int) and not 0 <= item < len(args):
            raise refused(name, f"argument {item} is excluded, but there is none", got=f"{len(args)} arguments",
                          wanted=f"more than {item}", todo="pass it by position; or exclude it by name",
                          kind=CorejaxValueError)


def _vectorized(name: str, function: Function, args: list[Any], parsed: tuple[Core, Core | None] | None) -> Any:
    cores, out_cores = parsed or (((),) * len(args), None)
    if len(cores) != len(args):
        raise refused(name, "the signature doesn't fit the arguments", got=f"{len(args)} arguments",
                      wanted=f"{len(cores)}", todo="pass an argument for each, or change the signature")
    sizes: dict[str, int] = {}
    for i, (x, core) in enumerate(zip(args, cores, strict=True)):
        _bind_sizes(f"{name}: argument {i}", aval_of(x).shape, core, sizes)
    ranks = [aval_of(x).ndim - len(core) for x, core in zip(args, cores, strict=True)]
    shape = broadcast_shapes(*[aval_of(x).shape[:rank] for x, rank in zip(args, ranks, strict=True)])
    is_single = True

    def of_one(*xs: Any) -> list[Any]:
        nonlocal is_single
        found = call_user(function, xs, name)
        is_single = not isinstance(found, (tuple, list))
        count = 1 if is_single else len(found)
        if out_cores is not None and count != len(out_cores):
            raise refused(name, "the function's results don't fit the signature", got=f"{count} results",
                          wanted=len(out_cores), todo="return what the signature says")
        outs = results(name, found if is_single else list(found), 1) if is_single else results(name, found, count) if (
            count > 1) else [array(found[0])]
        for i, out in enumerate(outs):
            _bind_sizes(f"{name}: result {i}", aval_of(out).shape, () if out_cores is None else out_cores[i], sizes,
                        exactly=True)
        return outs
    outs = over_axes(of_one, args, ranks, shape)
    return outs[0] if is_single else tuple(outs)


def _bind_sizes(what: str, shape: tuple[int, ...], core: tuple[str, ...], sizes: dict[str, int],
                exactly: bool = False) -> None:
    """Check the last axes against their names in the signature, whose sizes are noted."""
    if len(shape) < len(core) or (exactly and len(shape) != len(core)):
        raise refused(what, f"it has {len(shape)} axes where the signature has {len(core)}", got=f"shape {shape}",
                      wanted=f"({','.join(core)})", todo="write the axes that it has into signature=",
                      kind=CorejaxValueError)
    for axis, size in zip(core, shape[len(shape) - len(core):], strict=True):
        known = int(axis) if axis.isdigit() else sizes.setdefault(axis, size)
        if known != size:
            raise refused(what, f"axis {axis} of the signature has another size", got=size, wanted=known,
                          todo="pass arrays whose axes of one name have one size", kind=CorejaxValueError)


_CORE = r"\(\s*(?:\w+(?:\s*,\s*\w+)*)?\s*,?\s*\)"
_SIGNATURE = re.compile(rf"\s*({_CORE}(?:\s*,\s*{_CORE})*)\s*->\s*({_CORE}(?:\s*,\s*{_CORE})*)\s*")


def _parsed(signature: str) -> tuple[Core, Core]:
    match = _SIGNATURE.fullmatch(signature) if isinstance(signature, str) else None
    if match is None:
        raise refused("vectorize", "this is not a signature", got=repr(signature)[:80], wanted="\"(n,m),(m)->(n)\"",
                      todo="name the axes of each argument and result in parentheses", kind=CorejaxValueError)
    takes, gives = [tuple([tuple(re.findall(r"\w+", core)) for core in re.findall(_CORE, part)])
                    for part in match.groups()]
    return takes, gives


@public
def apply_along_axis(func1d: Function, axis: int, arr: ArrayLike, *args: Any, **kwargs: Any) -> Array:
    """The function of each vector along an axis; its results' axes take the place of that axis.

    >>> jnp.apply_along_axis(lambda v: v[:2] * v.sum(), 0, jnp.ones((3, 4))).shape
    (2, 4)
    """
    check_callable(func1d, "apply_along_axis")
    whole: Any = array(arr)
    axis = shaping.canonical_axis("apply_along_axis", axis, whole.aval.ndim)
    order = [*[d for d in range(whole.aval.ndim) if d != axis], axis]
    vectors = operators.transpose(whole, tuple(order))
    shape = aval_of(vectors).shape[:-1]

    def of_one(x: Any) -> list[Any]:
        found = call_user(following(func1d, args, kwargs), (x,), "apply_along_axis: func1d")
        return results("apply_along_axis: func1d", array(found), 1)
    (out,) = over_axes(of_one, [vectors], [len(shape)], shape)
    new = aval_of(out).ndim - len(shape)
    before, after = range(axis), range(axis, len(shape))
    return operators.transpose(out, (*before, *range(len(shape), len(shape) + new), *after)) if aval_of(out).ndim else (
        out)


@public
def apply_over_axes(func: Function, a: ArrayLike, axes: int | Sequence[int]) -> Array:
    """`func(a, axis)` for one axis after the other; an axis that it removes is kept with size 1.

    >>> jnp.apply_over_axes(jnp.sum, jnp.ones((2, 3, 4)), (0, 2)).tolist()
    [[[8.0], [8.0], [8.0]]]
    """
    check_callable(func, "apply_over_axes")
    found: Any = array(a)
    for axis in shaping.canonical_axes("apply_over_axes", axes, found.aval.ndim):
        out = array(call_user(func, (found, axis), "apply_over_axes: func"))
        ndim = aval_of(out).ndim
        if ndim == found.aval.ndim - 1:
            out = expand_dims(out, (axis,))
        elif ndim != found.aval.ndim:
            raise refused("apply_over_axes", "func must keep the axes or remove the one that it is given",
                          got=f"{aval_of(out)} for {found.aval}", wanted=f"{found.aval.ndim} axes, or one less",
                          todo="return an array with these axes", kind=CorejaxValueError)
        found = out
    return found


@public
def fromfunction(function: Function, shape: int | Sequence[int], *, dtype: DTypeLike = float, **kwargs: Any) -> Any:
    """The function of the indices along each axis of an array of this shape, element by element.

    >>> jnp.fromfunction(lambda i, j: 10 * i + j, (2, 3), dtype=int).tolist()
    [[0, 1, 2], [10, 11, 12]]
    """
    check_callable(function, "fromfunction")
    sizes = shaping.as_ints("fromfunction", "a size", shape)
    dtype = dtypes.canonical(dtype)
    places = [operators.astype(lax.broadcasted_iota(dtypes.default_dtype("i"), sizes, d), dtype)
              for d in range(len(sizes))]
    count = 1

    def of_one(*xs: Any) -> list[Any]:
        nonlocal count
        found = call_user(following(function, (), kwargs), xs, "fromfunction: the function")
        count = len(found) if isinstance(found, (tuple, list)) else 0
        return [array(out) for out in (found if count else [found])]
    outs = over_axes(of_one, places, [len(sizes)] * len(sizes), sizes)
    return tuple(outs) if count else outs[0]
