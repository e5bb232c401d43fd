"""Which axes of the operands and of the result of a convolution are batch, features and space.

In words, `("NHWC", "HWIO", "NHWC")`: N is the batch, C the features, O and I the output and input features of the
kernel; any other letters are axes in space. In numbers, `ConvDimensionNumbers`: for each array its axes in the order
batch, features, space; for the kernel output features, input features, space.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias, Union

from corejax.plugin import public, refused, shaping

__all__ = ["ConvDimensionNumbers", "ConvGeneralDilatedDimensionNumbers", "conv_dimension_numbers",
           "conv_general_permutations"]

Axes = tuple[int, ...]

#: What they are in programs: the axes of lhs, of rhs and of the result
Numbers = tuple[Axes, Axes, Axes]

#: More axes have neither NumPy's views of windows nor any use.
_MOST_AXES = 32

_ARRAYS = ("lhs", "rhs", "the result")
_LETTERS = (("N", "C"), ("O", "I"), ("N", "C"))


class ConvDimensionNumbers(NamedTuple):
    """Which axes are batch, features and space: `(batch, features, *space)` for lhs and for the result.

    For rhs, the kernel, it is `(output features, input features, *space)`.

    >>> from corejax import lax
    >>> images = ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    >>> images == lax.conv_dimension_numbers((1, 8, 8, 3), (2, 2, 3, 5), ("NHWC", "HWIO", "NHWC"))
    True
    """

    lhs_spec: Sequence[int]
    rhs_spec: Sequence[int]
    out_spec: Sequence[int]


#: What functions take: three words, numbers, or None for ("NC...", "OI...", "NC...")
ConvGeneralDilatedDimensionNumbers: TypeAlias = Union[  # noqa: UP007, entry points must be callable
    tuple[str, str, str], ConvDimensionNumbers, None]


@public
def conv_dimension_numbers(lhs_shape: Sequence[int], rhs_shape: Sequence[int],
                           dimension_numbers: ConvGeneralDilatedDimensionNumbers) -> ConvDimensionNumbers:
    """`conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)`: what three words, or None, are in numbers.

    >>> conv_dimension_numbers((1, 3, 8), (5, 3, 2), None)
    ConvDimensionNumbers(lhs_spec=(0, 1, 2), rhs_spec=(0, 1, 2), out_spec=(0, 1, 2))
    """
    name = "conv_dimension_numbers"
    lhs, rhs = shaping.as_ints(name, "lhs_shape", lhs_shape), shaping.as_ints(name, "rhs_shape", rhs_shape)
    return ConvDimensionNumbers(*canonical_numbers(name, len(lhs), len(rhs), dimension_numbers))


@public
def conv_general_permutations(dimension_numbers: Sequence[str]) -> Numbers:
    """`conv_general_permutations(dimension_numbers)`: what three words are in numbers.

    Axes in space come in the order that they have in the second word.

    >>> conv_general_permutations(("NHWC", "HWIO", "NWHC"))
    ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 2, 1))
    """
    return _of_words("conv_general_permutations", dimension_numbers)


def canonical_numbers(name: str, lhs_ndim: int, rhs_ndim: int, given: Any) -> Numbers:
    """What dimension numbers are in programs, for operands of so many axes."""
    if lhs_ndim != rhs_ndim or not 2 <= lhs_ndim <= _MOST_AXES:
        raise refused(name, f"lhs and rhs must have equally many axes, from 2 to {_MOST_AXES}",
                      got=f"{lhs_ndim} and {rhs_ndim} axes",
                      wanted="batch, features, and the axes in space: of rhs, output and input features and space",
                      todo="reshape the operands, such as with x[None] for a batch of one")
    if given is None:
        plain = tuple(range(lhs_ndim))
        return plain, plain, plain
    if not isinstance(given, ConvDimensionNumbers):
        numbers = _of_words(name, given)
    else:
        lhs, rhs, out = [shaping.as_ints(name, f"an axis in {field}", axes)
                         for field, axes in zip(ConvDimensionNumbers._fields, given, strict=True)]
        numbers = lhs, rhs, out
    check_numbers(name, lhs_ndim, rhs_ndim, numbers, given)
    return numbers


def check_numbers(name: str, lhs_ndim: int, rhs_ndim: int, numbers: Any, given: Any = None) -> None:
    """Raise unless these are three permutations of the axes of the operands."""
    wanted = list(range(lhs_ndim))
    if (lhs_ndim != rhs_ndim or not 2 <= lhs_ndim <= _MOST_AXES or len(numbers) != 3
            or any([type(axes) is not tuple or any([type(d) is not int for d in axes]) or sorted(axes) != wanted
                    for axes in numbers])):
        raise refused(name, "dimension_numbers must name each axis of lhs, of rhs and of the result once",
                      got=f"{numbers if given is None else given} for {lhs_ndim} and {rhs_ndim} axes",
                      wanted=f"each time the {lhs_ndim} axes 0 to {lhs_ndim - 1}, or as many letters",
                      todo='leave them out for ("NC...", "OI...", "NC..."); for images: ("NHWC", "HWIO", "NHWC")')


def _of_words(name: str, given: Any) -> Numbers:
    if not isinstance(given, (tuple, list)) or len(given) != 3 or not all([isinstance(word, str) for word in given]):
        raise refused(name, "dimension_numbers must be three words", got=repr(given)[:100],
                      wanted='three strings such as ("NHWC", "HWIO", "NHWC"), or a lax.ConvDimensionNumbers',
                      todo="put numbers into lax.ConvDimensionNumbers; leave them out for batch, features, space")
    for word, letters, array in zip(given, _LETTERS, _ARRAYS, strict=True):
        if any([word.count(letter) != 1 for letter in letters]) or len({*word}) != len(word):
            raise refused(name, f"the word for {array} must have {letters[0]} and {letters[1]}, and no letter twice",
                          got=repr(word), wanted=f"{letters[0]}, {letters[1]}, and a letter for each axis in space",
                          todo='write N and C for batch and features, O and I for those of the kernel: "NCHW", "OIHW"')
    spaces = [{*word} - {*letters} for word, letters in zip(given, _LETTERS, strict=True)]
    if not spaces[0] == spaces[1] == spaces[2]:
        raise refused(name, "the three words must have the same letters for axes in space", got=repr(tuple(given)),
                      wanted="the same letters besides N and C, and besides O and I in the second word",
                      todo='use the same letters three times, as in ("NHWC", "HWIO", "NHWC")')
    space = [letter for letter in given[1] if letter not in _LETTERS[1]]
    lhs, rhs, out = [tuple([word.index(letter) for letter in (*letters, *space)])
                     for word, letters in zip(given, _LETTERS, strict=True)]
    return lhs, rhs, out
