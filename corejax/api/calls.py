"""Calls of compiled functions: finding the program for a call as fast as possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.api.entries import OTHER, make_entry
from corejax.api.programs import Program, Table
from corejax.api.signatures import types_of
from corejax.api.statics import Statics
from corejax.base import trees
from corejax.base.caches import generation
from corejax.base.config import config
from corejax.base.tracebacks import as_entry, trim
from corejax.base.trees import TreeDef
from corejax.eager.evaluate import EvalTrace
from corejax.kernel.context import context
from corejax.kernel.keys import static_atom

#: A program gets an entry for the n-th call that none was made for. The later ones are for calls with other
#: arguments in host memory.
_OFTEN = frozenset((3, 6, 12, 24))

#: How many entries may be tried for a call before the program is looked up.
_MOST_ENTRIES = 8


class Lookup:
    """Finds the program for a call by the types of its arguments, and whatever else distinguishes it from other calls.

    What is often found gets an entry, which is tried before the next look-up.

    Calls that are unusual in any way are left to the general code, which also reports what is wrong with them.
    """

    __slots__ = ("flat", "entries", "nums", "names", "special", "_positions")

    def __init__(self, table: Table, statics: Statics) -> None:
        self.flat, self.entries = table.flat, table.entries
        self.nums, self.names = sorted(statics.nums), statics.names
        self.special = bool(self.nums or self.names)
        #: By number of positional arguments: the positions of data, and those of static arguments.
        self._positions: dict[int, tuple[list[int], list[int]]] = {}

    def parts(self, args: tuple[object, ...], kwargs: dict[str, Any]) -> tuple[Sequence[Any], tuple[Any, ...] | None]:
        """The arguments that are data, in the program's order; then static ones and names of keywords, or None."""
        if not self.special:
            names = tuple(sorted(kwargs))
            return ((*args, *[kwargs[name] for name in names]), names) if names else (args, None)
        n_args = len(args)
        data_at, static_at = self._positions.get(n_args) or self._count(n_args)
        data = [args[i] for i in data_at]
        others = (n_args, *[static_atom(args[i]) for i in static_at])
        for name in sorted(kwargs) if len(kwargs) > 1 else kwargs:
            if name in self.names:
                others = (*others, name, static_atom(kwargs[name]))
            else:
                others = (*others, name)
                data.append(kwargs[name])
        return data, others

    def _count(self, n_args: int) -> tuple[list[int], list[int]]:
        data_at = [i for i in range(n_args) if i not in self.nums]
        found = self._positions[n_args] = data_at, [i for i in self.nums if i < n_args]
        return found

    def find(self, data: Sequence[object], others: tuple[Any, ...] | None) -> tuple[Program | None, Any, Sequence[Any]]:
        """The program for a call with these parts, where to store it, and its leaves.

        Where to store it is None if that can't be found out quickly.
        """
        types: tuple[Any, ...] = types_of(data)
        tree = None
        try:
            if None in types:  # a container, perhaps
                data, tree = trees.flatten(tuple(data))
                types = types_of(data)
                if None in types:
                    return None, None, data
                types = (tree, *types)
            if others is not None:
                types = (others, *types)
            known = self.flat[config.default_bits]
            program = known.get(types)
            if program is not None:
                program.looked_up += 1
                if program.looked_up in _OFTEN:
                    self._add_entry(program, others, tree, data)
            return program, (known, types), data
        except Exception:  # raised by a container, or by the == of a static argument or of a container's static part
            return None, None, data

    def _add_entry(self, program: Program, others: tuple[Any, ...] | None, tree: TreeDef | None,
                   leaves: Sequence[Any]) -> None:
        since = generation()
        entry = make_entry(program, tree, leaves)
        if entry is not None:
            entries = self.entries[config.default_bits]
            entries[others] = (entry, *entries.get(others, ())[:_MOST_ENTRIES - 1])
            if since != generation():
                entries.clear()


def make_call(general: Callable[..., Any], lookup: Lookup) -> Callable[..., Any]:
    """The function that users call: a plain one, which is the fastest to call and can be a method of a class.

    It finds the program for a call; if there is none, or under a transformation, it leaves the call to `general`.
    """
    entries, parts, find, special = lookup.entries, lookup.parts, lookup.find, lookup.special

    @as_entry
    def jitted(*args: Any, **kwargs: Any) -> Any:
        try:
            if type(context.trace) is not EvalTrace:
                return general(args, kwargs)
            data: Sequence[Any] = args
            others = None
            if special or kwargs:
                data, others = parts(args, kwargs)
            try:
                alike = entries[config.default_bits].get(others, ())
            except Exception:  # a static argument can't be looked up
                return general(args, kwargs)
            for enter in alike:
                result = enter(data)
                if result is not OTHER:
                    return result
            program, place, data = find(data, others)
            return general(args, kwargs, place) if program is None else program.run(data)
        except (Exception, SystemExit) as error:
            trim(error)
            raise

    return jitted
