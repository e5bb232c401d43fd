"""Numbers of keys: each element of an array of keys has one, by which it is followed through a program."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from math import prod
from typing import Any, NamedTuple

import numpy as np

from corejax.core import EachTurn, ShapedArray
from corejax.dtypes import issubdtype
from corejax_random._uses import Reused, Use, exclusive, is_again, is_untaken
from corejax_random.generators import prng_key

__all__ = ["COPIES", "MADE", "WORDS", "Codes", "Known", "Numbers", "Opaque", "Value", "is_keys", "may_be_raw"]

MADE, PERHAPS = 1, 2

#: An element has the code `number * COPIES + copy`. Copies are made where an array is broadcast, as for the elements
#: of a batch that share a key: using all of them at once is one use.
COPIES = 1 << 20
#: The code of a word of a key is `code * WORDS + index`.
WORDS = 8


class Opaque(NamedTuple):
    """A value of which only the identity is known."""

    token: Any


class Known(NamedTuple):
    """A small array of numbers."""

    value: Any

    @property
    def token(self) -> Any:
        return self.value.tobytes(), self.value.shape, self.value.dtype.str


class Codes(NamedTuple):
    """Keys by their codes, or words of keys."""

    codes: Any
    of_words: bool = False

    @property
    def token(self) -> Any:
        return self.codes.tobytes(), self.codes.shape, self.of_words


Value = Opaque | Known | Codes


def is_keys(aval: ShapedArray) -> bool:
    """Whether arrays of this type hold keys."""
    return issubdtype(aval.dtype, prng_key)


def may_be_raw(aval: ShapedArray) -> bool:
    """Whether arrays of this type may hold words of keys."""
    return aval.dtype == np.uint32 and 1 <= aval.ndim <= 4 and aval.shape[-1] in (2, 4)


class Numbers:
    """The numbers of keys in a program, and which of them are used where."""

    def __init__(self) -> None:
        self.numbers = 1
        #: For each number the index of its first use in `uses`; 0 if there is none.
        self.first = np.zeros(1024, np.int64)
        self.uses: list[Use] = [Use((), (), "")]
        #: Further uses of a number, in other alternatives.
        self.others: dict[int, list[int]] = {}
        #: Of a number that stands for one of several, which ones: the first in the case 0, and so on.
        self.parts: dict[int, list[int]] = {}
        #: Of a number that `fold_in` made, of which one.
        self.parents: dict[int, int] = {}
        #: The keys that the program holds.
        self.constants: dict[int, Any] = {}
        #: The first number that is made for each turn of a loop.
        self.starts: dict[int, int] = {}
        self._made: dict[Any, Any] = {}
        self._tokens = count()

    def token(self) -> int:
        """A name for something of which nothing else is known."""
        return next(self._tokens)

    def once(self, key: Any, make: Any) -> Any:
        """What `make()` gave for this key."""
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = make()
        return found

    def fresh(self, size: int) -> Any:
        """So many new numbers."""
        start, self.numbers = self.numbers, self.numbers + size
        while self.numbers > len(self.first):
            self.first = np.concatenate([self.first, np.zeros(len(self.first), np.int64)])
        return np.arange(start, self.numbers)

    def new(self, aval: ShapedArray) -> Value:
        """A value that is like no other."""
        if is_keys(aval):
            return Codes(self.fresh(prod(aval.shape)).reshape(aval.shape) * COPIES)
        if may_be_raw(aval):
            return self.words(self.fresh(prod(aval.shape[:-1])).reshape(aval.shape[:-1]) * COPIES, aval.shape[-1:])
        return Opaque(self.token())

    def words(self, codes: Any, trailing: tuple[int, ...]) -> Codes:
        """The words of keys."""
        size = prod(trailing)
        return Codes((codes[..., None] * WORDS + np.arange(size) % WORDS).reshape(*codes.shape, *trailing), True)

    def is_made(self, number: int, of_inputs: int) -> int:
        """Whether a key is made here: `MADE`, `PERHAPS` if it is one of several of which only some are, or 0."""
        if number in self.parts:
            made = {self.is_made(part, of_inputs) for part in self.parts[number]}
            return made.pop() if len(made) == 1 else PERHAPS
        return MADE if number >= of_inputs and number not in self.constants else 0

    # Uses

    def use(self, codes: Any, use: Use) -> None:
        """Note that keys are used; raises `Reused` if one was used before."""
        flat = codes.reshape(-1)
        each, counts = np.unique(flat, return_counts=True)
        if (counts > 1).any():
            raise Reused(use, use)
        numbers = np.unique(each // COPIES)
        starts = [self.starts[name.of] for name in use.scopes if type(name) is EachTurn and not is_again(use.scopes)]
        if starts and any([self.origin(number) < starts[0] for number in numbers.tolist()]):
            raise Reused(use, use)
        self.uses.append(use)
        for number in numbers[self.first[numbers] > 0].tolist():
            self._use_again(number, use)
        if self.parts:
            for number in numbers.tolist():
                if number in self.parts:
                    self._use_one_of(number, use)
        new = numbers[self.first[numbers] == 0]
        self.first[new] = len(self.uses) - 1

    def origin(self, number: int) -> int:
        """The number of the key that `fold_in` made this one of; of one that the program holds, 0."""
        while number in self.parents:
            number = self.parents[number]
        return 0 if number in self.constants else number

    def _use_again(self, number: int, use: Use) -> None:
        before = [self.first[number], *self.others.get(number, ())]
        for i in before:
            if not exclusive(self.uses[i], use):
                raise Reused(self.uses[i], use)
        self.others.setdefault(number, []).append(len(self.uses) - 1)

    def _use_one_of(self, number: int, use: Use) -> None:
        """Of a key that is one of several, only some may have been used; it isn't known which."""
        before = self._before(number, use)
        if before is not None:
            raise Reused(before, use)

    def _before(self, number: int, use: Use) -> Use | None:
        """An earlier use of a key that counts beside this one; of one of several, only if each of them has one."""
        if self.first[number]:
            before = self.uses[self.first[number]]
            return None if exclusive(before, use) else before
        found = [self._before(part, use) for part in self.parts.get(number, ())]
        known = [before for case, before in enumerate(found)
                 if before is not None and not is_untaken(before, case, use.scopes)]
        return known[0] if known and len(known) == len(found) else None

    def one_of(self, cases: Sequence[Any], which: Any) -> Any:
        """Codes of elements that are each one of several, it isn't known which; `which` is the token of what decides.
        """
        flat = np.stack([np.broadcast_to(case, cases[0].shape).reshape(-1) for case in cases])
        same = (flat == flat[0]).all(0)
        out = flat[0].copy()
        for i in np.flatnonzero(~same).tolist():
            column = flat[:, i].tolist()
            parts = [code // COPIES for code in column]
            number = self.once(("one of", which, *parts), lambda: int(self.fresh(1)[0]))
            self.parts[number] = parts
            out[i] = number * COPIES + column[0] % COPIES
        return out.reshape(cases[0].shape)
