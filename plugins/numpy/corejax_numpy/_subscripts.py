"""What the subscripts of `einsum` say: names for the axes of each operand, and for those of the result."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from corejax.core import ShapedArray
from corejax.errors import CorejaxTypeError, CorejaxValueError
from corejax.plugin import refused
from corejax_numpy._contracting import Names

__all__ = ["names_and_operands", "sizes_of", "with_dots"]

#: An ellipsis, in the names of an operand.
_DOTS = ...


def names_and_operands(operands: Sequence[Any]) -> tuple[list[Names], Names | None, list[Any]]:
    """The names of each operand and of the result (None: those that appear once), and the operands.

    Names are letters, or the integers of lists that alternate with operands.
    """
    if isinstance(operands[0], str):
        terms, result = _from_text(str(operands[0]), len(operands) - 1)
        return list(terms), result, list(operands[1:])
    if len(operands) < 2:
        raise refused("einsum", "there are no subscripts", got="one operand", todo="pass jnp.einsum('ij->ji', x)",
                      wanted="subscripts and operands, or operands and lists of axes", kind=CorejaxTypeError)
    out = _from_list(operands[-1]) if len(operands) % 2 else None
    return [_from_list(axes) for axes in operands[1::2]], out, list(operands[:len(operands) // 2 * 2:2])


@lru_cache(maxsize=1024)
def _from_text(text: str, count: int) -> tuple[tuple[Names, ...], Names | None]:
    left, arrow, right = text.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != count:
        raise refused("einsum", f"there are subscripts of {len(terms)} operands", got=f"{text!r} and {count} operands",
                      wanted="a term for each operand, with commas between", kind=CorejaxValueError,
                      todo="correct the subscripts, or pass the missing operand")
    return tuple([_letters(term, text) for term in terms]), _letters(right, text) if arrow else None


def _letters(term: str, text: str) -> Names:
    before, dots, after = term.partition("...")
    if any([not name.isalpha() for name in before + after]):
        raise refused("einsum", f"the subscripts {term!r} can't be read", got=repr(text), kind=CorejaxValueError,
                      wanted="letters, and at most one ellipsis in each term", todo="write a letter for each axis")
    return (*before, *([_DOTS] if dots else []), *after)


def _from_list(axes: Any) -> Names:
    try:
        names = tuple(axes)
        hash(names)
    except TypeError as error:
        raise refused("einsum", "operands must alternate with lists of axes", got=repr(axes)[:80],
                      wanted="jnp.einsum(x, [0, 1], y, [1, 2], [0, 2])", todo="pass a list of integers after each "
                      "operand, or subscripts first", kind=CorejaxTypeError) from error
    return names


def with_dots(inputs: Sequence[Names], out: Names | None, avals: Sequence[ShapedArray]) -> tuple[list[Names], Names]:
    """The names with those axes for which an ellipsis stands, by their places from the last: ("...", -1)."""
    found, longest = [], 0
    for names, aval in zip(inputs, avals, strict=True):
        more = aval.ndim - len([n for n in names if n is not _DOTS])
        if more < 0 or (more and _DOTS not in names) or names.count(_DOTS) > 1:
            raise refused("einsum", f"the subscripts {_shown(names)} don't fit an operand of {aval.ndim} axes",
                          got=str(aval), wanted="a name for each axis, or an ellipsis for those that have none",
                          todo="correct the subscripts", kind=CorejaxValueError)
        found.append(_replaced(names, more))
        longest = max(longest, more)
    if out is None:
        every: list[Any] = [n for names in inputs for n in names if n is not _DOTS]
        out = (_DOTS, *sorted({n for n in every if every.count(n) == 1}))
    result = _replaced(out, longest)
    known = {n for names in found for n in names}
    dots = set(_replaced((_DOTS,), longest))
    if len({*result}) < len(result) or not dots <= {*result} <= known:
        raise refused("einsum", f"the subscripts {_shown(out)} of the result don't fit those of the operands",
                      got=" and ".join(map(_shown, inputs)), kind=CorejaxValueError,
                      wanted="names of the operands' axes, each once, and the ellipsis if they have one",
                      todo="correct the subscripts; an ellipsis is not summed over")
    return found, result


def _replaced(names: Names, count: int) -> Names:
    if _DOTS not in names:
        return names
    at = names.index(_DOTS)
    return (*names[:at], *[("...", -k) for k in range(count, 0, -1)], *names[at + 1:])


def _shown(names: Names) -> str:
    return repr("".join(["..." if n is _DOTS else str(n) for n in names]))


def sizes_of(inputs: Sequence[Names], avals: Sequence[ShapedArray]) -> dict[Any, int]:
    """The size that each name stands for; an axis of size 1 fits any."""
    sizes: dict[Any, int] = {}
    for names, aval in zip(inputs, avals, strict=True):
        for name, size in zip(names, aval.shape, strict=True):
            known = sizes.get(name, 1)
            if 1 not in (known, size) and known != size:
                raise refused("einsum", f"the axis {name!r} has two sizes", got=f"{known} and {size}",
                              wanted="one size", todo="correct the subscripts, or slice an operand",
                              kind=CorejaxValueError)
            sizes[name] = size if known == 1 else known
    return sizes
