"""NumPy's products for traced values: `np.dot`, `np.outer`, `np.tensordot`, `np.einsum` and the like."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import aval_of, dtypes, from_array_like
from corejax.plugin import operators, refused, shaping
from corejax_lax_basic import of_one_dtype
from corejax_numpy._numpy_ufuncs import vector_product


def dot(a: Any, b: Any) -> Any:
    """`np.dot`."""
    return operators.dot(from_array_like(a), from_array_like(b))


def inner(a: Any, b: Any) -> Any:
    """`np.inner`: sums of products over the last axes."""
    a, b = of_one_dtype((from_array_like(a), from_array_like(b)))
    if not aval_of(a).ndim or not aval_of(b).ndim:
        return operators.mul(a, b)
    return lax.dot_general(a, b, (((aval_of(a).ndim - 1,), (aval_of(b).ndim - 1,)), ((), ())))


def vdot(a: Any, b: Any) -> Any:
    """`np.vdot`: the sum of products of all elements, those of `a` conjugated."""
    return vector_product(operators.ravel(from_array_like(a)), operators.ravel(from_array_like(b)))


def outer(a: Any, b: Any) -> Any:
    """`np.outer`: each element of `a` times each of `b`, as a matrix."""
    a, b = operators.ravel(from_array_like(a)), operators.ravel(from_array_like(b))
    return operators.mul(lax.expand_dims(a, (1,)), lax.expand_dims(b, (0,)))


def tensordot(a: Any, b: Any, axes: Any = 2) -> Any:
    """`np.tensordot`."""
    a, b = of_one_dtype((from_array_like(a), from_array_like(b)))
    a_ndim, b_ndim = aval_of(a).ndim, aval_of(b).ndim
    if isinstance(axes, (list, tuple, np.ndarray)):
        left, right = [shaping.canonical_axes("tensordot", part, ndim) for part, ndim in zip(axes, (a_ndim, b_ndim),
                                                                                             strict=True)]
    else:
        count = shaping.as_int("tensordot", "a number of axes", axes)
        left, right = tuple(range(a_ndim - count, a_ndim)), tuple(range(count))
    return lax.dot_general(a, b, ((left, right), ((), ())))


def kron(a: Any, b: Any) -> Any:
    """`np.kron`: blocks of b, each times an element of a."""
    a, b = from_array_like(a), from_array_like(b)
    ndim = max(aval_of(a).ndim, aval_of(b).ndim)
    a, b = [operators.reshape(x, ((1,) * (ndim - aval_of(x).ndim) + aval_of(x).shape)) for x in (a, b)]
    product = operators.mul(lax.expand_dims(a, tuple(range(1, 2 * ndim, 2))),
                            lax.expand_dims(b, tuple(range(0, 2 * ndim, 2))))
    return operators.reshape(product, tuple([m * n for m, n in zip(a.aval.shape, b.aval.shape, strict=True)]))


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """`np.trace`; integers are summed in the dtype of `np.sum`."""
    return from_array_like(diagonal(a, offset, axis1, axis2)).sum(axis=-1)


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """`np.diagonal`: the elements whose indices along two axes differ by `offset`, along a new last axis."""
    a = from_array_like(a)
    ndim = aval_of(a).ndim
    if ndim < 2:
        raise refused("diagonal", "a diagonal needs two axes", got=str(a.aval), wanted="at least two axes",
                      todo="np.diag makes a matrix from a vector")
    rows, columns = shaping.canonical_axis("diagonal", axis1, ndim), shaping.canonical_axis("diagonal", axis2, ndim)
    rest = [d for d in range(ndim) if d not in (rows, columns)]
    a = lax.transpose(a, (*rest, rows, columns))
    m, n = a.aval.shape[-2:]
    start = (builtins.max(-offset, 0), builtins.max(offset, 0))
    count = builtins.max(0, builtins.min(m - start[0], n - start[1]))
    steps = np.arange(count)
    return operators.getitem(a, (..., steps + start[0], steps + start[1]))

# einsum

def einsum(*operands: Any, optimize: Any = False) -> Any:
    """`np.einsum`: sums of products by subscripts, taking operands from left to right, whatever `optimize` is."""
    if not isinstance(operands[0], str):
        raise refused("einsum", "for traced values, the subscripts must be a string", got="lists of axes",
                      wanted="np.einsum('ij,jk->ik', x, y)", todo="write the axes as letters")
    arrays = of_one_dtype([from_array_like(x) for x in operands[1:]])
    inputs, output = _subscripts(operands[0], [aval_of(x).ndim for x in arrays])
    sizes = _sizes(inputs, arrays)
    found = [_prepared(names, x, sizes) for names, x in zip(inputs, arrays, strict=True)]
    names, total = found[0]
    for i, (others, x) in enumerate(found[1:], 1):
        later = {name for more, _ in found[i + 1:] for name in more} | set(output)
        names, total = _contracted(names, total, others, x, later)
    names, total = _summed(names, total, set(output))
    return lax.transpose(total, tuple([names.index(name) for name in output]))


def _subscripts(text: str, ndims: Sequence[int]) -> tuple[list[str], str]:
    """The letters of each operand and of the result; an ellipsis becomes new letters."""
    left, arrow, right = text.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ndims) or any([not name.isalpha() for name in left.replace(",", "").replace("...", "")]):
        raise refused("einsum", "the subscripts don't fit the operands", got=repr(text),
                      wanted=f"{len(ndims)} terms, of letters and at most one ellipsis each",
                      todo="write a letter for each axis")
    free = [chr(c) for c in range(0x391, 0x391 + 64)]
    longest = 0
    for i, (term, ndim) in enumerate(zip(terms, ndims, strict=True)):
        more = ndim - len(term.replace("...", ""))
        if more < 0 or (more and "..." not in term):
            raise refused("einsum", f"the subscripts {term!r} don't fit an operand of {ndim} axes", got=repr(text),
                          wanted="a letter for each axis", todo="correct the subscripts, or write an ellipsis")
        terms[i] = term.replace("...", "".join(free[:more][::-1]))
        longest = builtins.max(longest, more)
    dots = "".join(free[:longest][::-1])
    if not arrow:
        letters = "".join(terms)
        right = dots + "".join(sorted([name for name in set(letters) - set(dots) if letters.count(name) == 1]))
    right = right.replace("...", dots)
    if len(set(right)) < len(right) or not set(dots) <= set(right) <= set("".join(terms)):
        raise refused("einsum", "the subscripts of the result don't fit those of the operands", got=repr(text),
                      wanted="letters of operands, each once, and the ellipsis if they have one",
                      todo="correct the subscripts; an ellipsis is not summed over")
    return terms, right


def _sizes(inputs: Sequence[str], arrays: Sequence[Any]) -> dict[str, int]:
    """The size that each letter stands for; an axis of size 1 fits any."""
    sizes: dict[str, int] = {}
    for names, x in zip(inputs, arrays, strict=True):
        for name, size in zip(names, aval_of(x).shape, strict=True):
            known = sizes.get(name, 1)
            if 1 not in (known, size) and known != size:
                raise refused("einsum", f"the axis {name!r} has two sizes", got=f"{known} and {size}",
                              wanted="one size", todo="correct the subscripts, or slice an operand")
            sizes[name] = size if known == 1 else known
    return sizes


def _prepared(names: str, x: Any, sizes: dict[str, int]) -> tuple[list[str], Any]:
    """An operand with each letter once, and without axes of size 1 that are longer in other operands."""
    longer = tuple([i for i, size in enumerate(aval_of(x).shape) if size != sizes[names[i]]])
    if longer:
        x, names = lax.squeeze(x, longer), "".join([name for i, name in enumerate(names) if i not in longer])
    for name in sorted(set(names)):
        while names.count(name) > 1:
            first = names.index(name)
            second = names.index(name, first + 1)
            x = diagonal(x, 0, first, second)
            names = names[:first] + names[first + 1:second] + names[second + 1:] + name
    return list(names), x


def _contracted(names: list[str], x: Any, others: list[str], y: Any, later: set[str]) -> tuple[list[str], Any]:
    """The product of two operands, summed over the letters that aren't needed later."""
    names, x = _summed(names, x, later | set(others))
    others, y = _summed(others, y, later | set(names))
    shared = [name for name in names if name in others]
    batch, contract = [n for n in shared if n in later], [n for n in shared if n not in later]
    numbers = tuple([tuple([tuple([own.index(n) for n in group]) for own in (names, others)])
                     for group in (contract, batch)])
    out = [*batch, *[n for n in names if n not in shared], *[n for n in others if n not in shared]]
    return out, lax.dot_general(x, y, numbers)


def _summed(names: list[str], x: Any, kept: set[str]) -> tuple[list[str], Any]:
    axes = tuple([i for i, name in enumerate(names) if name not in kept])
    add = lax.reduce_or if aval_of(x).dtype == dtypes.bool_ else lax.reduce_sum
    return [name for name in names if name in kept], add(x, axes) if axes else x
