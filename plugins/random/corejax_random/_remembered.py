"""What is remembered of keys: which were used where, and of which others they were made."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TypeAlias
from weakref import ref

from corejax.core import Array
from corejax_random._uses import Reused, Use, exclusive, is_each_turn

__all__ = ["Key", "Keys"]

#: A key's generator and words.
Key: TypeAlias = tuple[str, bytes]


class _Remembered:
    """What is remembered of one key."""

    __slots__ = ("children", "meant", "parent", "seeded", "spread", "use")

    def __init__(self) -> None:
        self.use: Use | None = None
        #: How many more uses are meant.
        self.meant = 0
        #: Whether it stands in several places of an array since it was broadcast.
        self.spread = False
        #: The arrays in which seeds gave it.
        self.seeded: tuple[ref[Array], ...] = ()
        #: The key of which `fold_in` made it, and those that it made of this one: all of them are remembered.
        self.parent: Key | None = None
        self.children: set[Key] | None = None  # an empty set for each would take most of the memory


class Keys:
    """The keys that were used or made last, at most so many. A key that is made anew counts as another one.

    A key about which nothing is to be said isn't among them. The one that nothing happened to for longest goes first:
    it may then be used again without an error, as a new one.
    """

    def __init__(self, most: int) -> None:
        self.lock = threading.RLock()
        self.most = most
        #: The generators whose keys were used.
        self.tags: set[str] = set()
        self._known: OrderedDict[Key, _Remembered] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def use(self, key: Key, use: Use) -> None:
        """Note that a key is used; raises `Reused` if it was used before."""
        self.tags.add(key[0])
        known = self._at(key)
        before = use if is_each_turn(use.scopes) else known.use
        if before is not None and not exclusive(before, use):
            if not known.meant:
                raise Reused(before, use)
            known.meant -= 1
        known.use = use

    def used(self, key: Key) -> Use | None:
        """The last use of a key."""
        known = self._known.get(key)
        return None if known is None else known.use

    def unuse(self, key: Key) -> None:
        """It wasn't used after all."""
        self._at(key).use = None

    def meant(self, key: Key) -> int:
        """How many more uses of a key are meant."""
        known = self._known.get(key)
        return 0 if known is None else known.meant

    def mean(self, key: Key, count: int) -> None:
        """So many more uses are meant."""
        self._at(key).meant = count

    def is_spread(self, key: Key) -> bool:
        """Whether a key stands in several places of an array since it was broadcast."""
        known = self._known.get(key)
        return known is not None and known.spread

    def spread(self, key: Key) -> None:
        """Note that a key was broadcast."""
        self._at(key).spread = True

    def fold(self, key: Key, parent: Key) -> None:
        """`fold_in` made this key of another. The same number gives the same key."""
        known = self._known.get(key)
        if known is None or known.parent != parent:
            self.forget(key)
        self._at(key).parent = parent
        above = self._at(parent)
        above.children = above.children or set()
        above.children.add(key)

    def make(self, key: Key, array: Array) -> None:
        """A seed gave this key, in this array. Earlier ones that still exist may be used, too."""
        known = self._at(key)
        alive = [ref for ref in known.seeded if ref() is not None]
        if alive and known.use is None:
            known.meant += 1
        else:
            self.forget(key)
            known = self._at(key)
        known.seeded = (*alive, ref(array))

    def forget(self, key: Key) -> None:
        """From now on it is another key, and so are those that were made of it."""
        keys = [key]
        for each in keys:  # grows as children are found
            known = self._known.pop(each, None)
            if known is not None:
                keys += known.children or ()
                self._leave(each, known)

    def _at(self, key: Key) -> _Remembered:
        """What is remembered of a key, to which something happens now."""
        known = self._known.get(key)
        if known is not None:
            self._known.move_to_end(key)
            return known
        if len(self._known) >= self.most:
            oldest, left = self._known.popitem(last=False)
            self._leave(oldest, left)
            for child in left.children or ():
                self._known[child].parent = None
        known = self._known[key] = _Remembered()
        return known

    def _leave(self, key: Key, known: _Remembered) -> None:
        above = None if known.parent is None else self._known.get(known.parent)
        if above is not None and above.children is not None:
            above.children.discard(key)
