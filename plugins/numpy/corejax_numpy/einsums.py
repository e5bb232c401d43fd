"""`einsum`: sums of products by subscripts, two operands at a time, in an order that a search finds."""

# mypy: no-warn-return-any

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from string import ascii_letters
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, DTypeLike, aval_of
from corejax.errors import CorejaxValueError
from corejax.plugin import NotDirectly, directly, public, refused
from corejax_lax_basic import PrecisionLike, of_one_dtype
from corejax_numpy._arrays import array, no_out
from corejax_numpy._contracting import Names, contracted, no_sharding, ordered, total
from corejax_numpy._subscripts import names_and_operands, sizes_of, with_dots
from corejax_numpy.products import diagonal

__all__ = ["einsum", "einsum_path"]

Path = tuple[tuple[int, ...], ...]

#: Up to this many products, NumPy's loop over all of them is faster than products of matrices.
_FEW = 300_000

#: Up to this many operands, all orders are compared.
_ALL_ORDERS = 4


@public
def einsum(subscripts: Any, /, *operands: Any, out: None = None, optimize: Any = "auto",
           precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None,
           out_sharding: None = None) -> Array:
    """Sums of products by subscripts, as in "ij,jk->ik", or by lists of axes that alternate with operands.

    Operands are taken two by two. `optimize` says in which order: False from left to right; True, "optimal", "greedy"
    or "auto" by a search; or a path, as `jnp.einsum_path` returns it.

    >>> x, y = jnp.array([[1.0, 2.0], [3.0, 4.0]]), jnp.array([1.0, 10.0])
    >>> jnp.einsum("ij,j->i", x, y), jnp.einsum(x, [0, 0], [0])
    (Array([21., 43.], dtype=float64), Array([1., 4.], dtype=float64))
    """
    if type(subscripts) is str and optimize == "auto" and out is precision is preferred_element_type is out_sharding:
        return _by_subscripts(subscripts, len(operands))(*operands)
    no_out("einsum", out)
    no_sharding("einsum", out_sharding)
    return _einsum((subscripts, *operands), optimize, precision, preferred_element_type)


@public
def einsum_path(subscripts: Any, /, *operands: ArrayLike, optimize: Any = "auto") -> tuple[list[Any], str]:
    """In which order `einsum` takes operands, and a table of the costs; as `np.einsum_path` returns them.

    >>> path, _ = jnp.einsum_path("ij,jk,k->i", jnp.ones((9, 9)), jnp.ones((9, 9)), jnp.ones(9))
    >>> path
    ['einsum_path', (1, 2), (0, 1)]
    """
    inputs, result, arrays = names_and_operands((subscripts, *operands))
    avals = [aval_of(array(x)) for x in arrays]
    names, result = with_dots(inputs, result, avals)
    sizes_of(names, avals)
    return _searched(*_as_letters(names, result), tuple([aval.shape for aval in avals]), _method(optimize, len(avals)))


@lru_cache(maxsize=256)
def _by_subscripts(subscripts: str, count: int) -> Callable[..., Any]:
    """The function for these subscripts, which NumPy computes at once where there are few products."""
    def general(*operands: Any) -> Any:
        return _einsum((subscripts, *operands), "auto")

    def by_numpy(*operands: Any) -> Any:
        if count > 1 and sum([x.size for x in operands]) ** 1.5 > _FEW:
            raise NotDirectly
        return np.einsum(subscripts, *operands)
    return directly(by_numpy, arrays=count)(general)


def _einsum(operands: Sequence[Any], optimize: Any, precision: PrecisionLike = None,
            preferred: DTypeLike | None = None) -> Any:
    inputs, result, found = names_and_operands(operands)
    arrays = of_one_dtype([array(x) for x in found])
    avals = [aval_of(x) for x in arrays]
    terms, result = with_dots(inputs, result, avals)
    sizes = sizes_of(terms, avals)
    parts = [_each_once(names, x, sizes) for names, x in zip(terms, arrays, strict=True)]
    if preferred is not None and len(parts) == 1:
        parts = [(lax.convert_element_type(x, preferred), names) for x, names in parts]
    for step in _path(terms, result, avals, optimize):
        taken = [parts.pop(i) for i in sorted(step, reverse=True)][::-1]
        later = {n for _, names in parts for n in names} | {*result}
        parts.append(_product(taken, later, result, precision, preferred))
    (x, names), = parts
    return ordered(*total(x, names, {*result}, preferred), result)


def _product(taken: list[tuple[Any, Names]], later: set[Any], result: Names, precision: PrecisionLike,
             preferred: DTypeLike | None) -> tuple[Any, Names]:
    """The product of these operands from left to right, with the names that are needed later, in the result's order."""
    x, names = taken[0]
    for i, (y, others) in enumerate(taken[1:], 1):
        needed = later | {n for _, more in taken[i + 1:] for n in more}
        kept = [n for n in dict.fromkeys((*names, *others)) if n in needed]
        if {*kept} == {*result}:
            out = result
        else:  # as a product of matrices gives it
            shared = [n for n in kept if n in names and n in others]
            out = (*shared, *[n for n in kept if n not in shared])
        x, names = contracted(x, names, y, others, out, precision, preferred), out
    return x, names


def _each_once(names: Names, x: Any, sizes: dict[Any, int]) -> tuple[Any, Names]:
    """An operand with each name once: its diagonals; without axes of size 1 that are longer in other operands."""
    shape = aval_of(x).shape
    short = tuple([i for i, size in enumerate(shape) if size != sizes[names[i]]])
    if short:
        x, names = lax.squeeze(x, short), tuple([n for i, n in enumerate(names) if i not in short])
    for name in [n for n in dict.fromkeys(names) if names.count(n) > 1]:
        while names.count(name) > 1:
            first = names.index(name)
            second = names.index(name, first + 1)
            x = diagonal(x, 0, first, second)
            names = (*names[:first], *names[first + 1:second], *names[second + 1:], name)
    return x, names

# In which order

def _path(terms: Sequence[Names], result: Names, avals: Sequence[Any], optimize: Any) -> Path:
    count = len(terms)
    if isinstance(optimize, (list, tuple)) and len(optimize) and not isinstance(optimize[0], str):
        return _checked(tuple([tuple(step) for step in optimize]), count)
    if isinstance(optimize, (list, tuple)) and len(optimize) and optimize[0] == "einsum_path":
        return _checked(tuple([tuple(step) for step in optimize[1:]]), count)
    if count <= 2 or optimize is False:
        return ((0, 1), *[(0, count - 1 - i) for i in range(1, count - 1)])[:count - 1]
    letters, out = _as_letters(terms, result)
    path, _ = _searched(letters, out, tuple([aval.shape for aval in avals]), _method(optimize, count))
    return tuple(path[1:])


def _checked(path: Path, count: int) -> Path:
    left = count
    for step in path:
        if not step or any([not 0 <= i < left for i in step]) or len({*step}) < len(step):
            break
        left -= len(step) - 1
    else:
        if left == 1:
            return path
    raise refused("einsum", "the path doesn't fit the operands", got=f"optimize={list(path)}", kind=CorejaxValueError,
                  wanted=f"steps that take {count} operands together", todo="take it from jnp.einsum_path")


def _method(optimize: Any, count: int) -> str:
    """What `np.einsum_path` calls the search."""
    if optimize in (True, "auto"):
        return "optimal" if count <= _ALL_ORDERS else "greedy"
    if optimize in ("optimal", "greedy"):
        return str(optimize)
    name = optimize[0] if isinstance(optimize, (list, tuple)) and len(optimize) else optimize
    if name in ("optimal", "greedy"):  # the second entry limits memory, which isn't done here
        return str(name)
    raise refused("einsum", "there is no such way to choose an order", got=f"optimize={optimize!r}",
                  wanted="True, False, 'auto', 'optimal', 'greedy' or a path", todo="leave it out",
                  kind=CorejaxValueError)


def _as_letters(terms: Sequence[Names], result: Names) -> tuple[tuple[str, ...], str]:
    """The names as letters, as far as these go."""
    distinct = list(dict.fromkeys([n for names in terms for n in names]))
    if len(distinct) > len(ascii_letters):
        raise refused("einsum", "the order of operands with so many axes can't be searched for",
                      got=f"{len(distinct)} different axes", wanted=f"at most {len(ascii_letters)}",
                      todo="pass optimize=False", kind=CorejaxValueError)
    letter = dict(zip(distinct, ascii_letters, strict=False))
    return tuple(["".join([letter[n] for n in names]) for names in terms]), "".join([letter[n] for n in result])


@lru_cache(maxsize=1024)
def _searched(terms: tuple[str, ...], result: str, shapes: tuple[tuple[int, ...], ...], method: str
              ) -> tuple[list[Any], str]:
    zero = np.zeros(())
    stand_ins = [np.broadcast_to(zero, shape) for shape in shapes]
    largest = max(1, prod([max(1, size) for shape in shapes for size in shape]))  # no limit of memory
    return np.einsum_path(f"{','.join(terms)}->{result}", *stand_ins, optimize=(method, largest))
