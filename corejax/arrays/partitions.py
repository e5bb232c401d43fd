"""`PartitionSpec`: which axes of a mesh divide which dimension of an array."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any, ClassVar, TypeAlias, final

from corejax.arrays.interned import Interned
from corejax.base.errors import CorejaxNotImplementedError, CorejaxTypeError, CorejaxValueError
from corejax.base.source import here
from corejax.base.tracebacks import public


@final
class Unconstrained:
    """The type of `P.UNCONSTRAINED`, for a dimension about which nothing is said: the compiler decides."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> str:
        return "UNCONSTRAINED"

    def __corejax_text__(self, text: Callable[[object], str]) -> str:
        return "UNCONSTRAINED"


UNCONSTRAINED = Unconstrained()

#: What divides a dimension: nothing, an axis, or several axes, the first of which has the largest parts.
Entry: TypeAlias = Hashable


@final
@public
class PartitionSpec(Interned):
    """For each dimension of an array, the mesh axes along which it is divided. `P` is short for it.

    >>> P("x", None), P(("x", "y")), P()
    (P('x', None), P(('x', 'y')), P())

    An entry is the name of an axis, a tuple of names (the first one divides into the largest parts), `None` for a
    dimension that isn't divided, or `P.UNCONSTRAINED`. Dimensions beyond the last entry aren't divided; a spec with
    a `None` at its end says the same as the one without, but is another object and not equal to it.
    """

    __slots__ = ("partitions",)
    partitions: tuple[Entry, ...]
    UNCONSTRAINED: ClassVar[Unconstrained] = UNCONSTRAINED

    @public
    def __new__(cls, *partitions: Entry, unreduced: frozenset[Any] = frozenset(),
                reduced: frozenset[Any] = frozenset()) -> PartitionSpec:
        if not unreduced and not reduced:
            try:
                found = cls._known.get((partitions, *map(type, partitions)))
            except TypeError:  # a list among them
                found = None
            if found is not None:
                return found  # type: ignore[no-any-return]
        else:
            raise CorejaxNotImplementedError(
                "partial sums that wait for their reduction aren't supported", where=here(), wanted="axis names only",
                got=f"unreduced={unreduced!r}" if unreduced else f"reduced={reduced!r}",
                todo="leave it out, and sum inside shard_map with lax.psum")
        entries = tuple([_entry(each, position) for position, each in enumerate(partitions)])
        return cls._one((entries, *map(type, entries)), partitions=entries)  # 1 is not True

    def names(self, position: int) -> tuple[Hashable, ...]:
        """The axes that divide the dimension at this position, none if it is beyond the last entry."""
        entry = self.partitions[position] if position < len(self.partitions) else None
        if entry is None or entry is UNCONSTRAINED:
            return ()
        return entry if isinstance(entry, tuple) else (entry,)

    def all_names(self) -> tuple[Hashable, ...]:
        """The axes that divide any dimension."""
        return tuple([name for position in range(len(self.partitions)) for name in self.names(position)])

    # As a tuple

    def __getitem__(self, position: Any) -> Any:
        return self.partitions[position]

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.partitions)

    def __len__(self) -> int:
        return len(self.partitions)

    def __bool__(self) -> bool:
        return bool(self.partitions)

    def __contains__(self, entry: object) -> bool:
        return entry in self.partitions

    def __add__(self, other: object) -> PartitionSpec:
        return PartitionSpec(*self, *other) if isinstance(other, (PartitionSpec, tuple)) else NotImplemented

    def __radd__(self, other: object) -> PartitionSpec:
        return PartitionSpec(*other, *self) if isinstance(other, tuple) else NotImplemented

    def index(self, entry: Entry) -> int:
        """The first position with this entry."""
        return self.partitions.index(_entry(entry, 0))

    def count(self, entry: Entry) -> int:
        """At how many positions this entry is."""
        return self.partitions.count(_entry(entry, 0))

    # As a value

    def __repr__(self) -> str:
        return f"P({', '.join(map(repr, self.partitions))})"

    def __reduce__(self) -> tuple[object, ...]:
        return PartitionSpec, self.partitions

    def __corejax_key__(self) -> tuple[Entry, ...]:
        return self.partitions

    def __corejax_text__(self, text: Callable[[object], str]) -> str:
        return f"P({', '.join(map(text, self.partitions))})"


P = PartitionSpec


def _entry(entry: object, position: int) -> Entry:
    """An entry as it is kept: one axis without a tuple around it, and None in place of no axes."""
    if isinstance(entry, str) or entry is None or entry is UNCONSTRAINED:
        return entry
    if isinstance(entry, (tuple, list)):
        names: tuple[Hashable, ...] = tuple(entry)
        for each in names:
            if each is None or each is UNCONSTRAINED or isinstance(each, (tuple, list)):
                raise CorejaxValueError("a tuple in a PartitionSpec must hold names of axes", got=repr(entry)[:80],
                                        wanted="the axes that divide one dimension, as ('x', 'y')", where=here(),
                                        todo="give each dimension an entry of its own: P('x', None)")
            check_axis_name(each, f"entry {position} of a PartitionSpec")
        if len(names) == 1:
            return names[0]
        return names or None
    name: Hashable = entry
    check_axis_name(name, f"entry {position} of a PartitionSpec")
    return name


def check_axis_name(name: object, what: str) -> None:
    """Raise if this can't be the name of an axis."""
    try:
        hash(name)
    except TypeError as error:
        raise CorejaxTypeError(f"{what} can't be the name of an axis: it is unhashable", got=repr(name)[:80],
                               wanted="a string, such as 'x'", where=here(), todo="name axes by strings") from error
    if name is None or isinstance(name, (tuple, PartitionSpec, Unconstrained)):
        raise CorejaxTypeError(f"{what} can't be the name of an axis", got=repr(name)[:80], where=here(),
                               wanted="a string, such as 'x'", todo="name axes by strings")
