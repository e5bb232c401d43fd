"""Calls of compiled functions: finding the program for a call as fast as possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.api.programs import Program, Table
from corejax.api.signatures import types_of
from corejax.api.statics import Statics
from corejax.arrays.array import Array
from corejax.base import trees
from corejax.base.caches import generation
from corejax.base.config import config
from corejax.base.known_trees import OTHER, Code
from corejax.base.tracebacks import as_entry, trim
from corejax.base.trees import TreeDef
from corejax.eager.evaluate import EvalTrace
from corejax.kernel.context import context
from corejax.kernel.keys import static_atom
from corejax.xla.runtime.entries import MOST_ENTRIES, OFTEN, make_entry

#: How many ways to split arguments a function keeps, of which most functions need one.
_MOST_SPLITS = 64

#: Makes data and others of positional arguments and keywords.
Split = Callable[[tuple[Any, ...], dict[str, Any]], tuple[Sequence[Any], tuple[Any, ...]]]


class Lookup:
    """Finds the program for a call by the types of its arguments, and whatever else distinguishes it from other calls.

    What is often found gets an entry, which is tried before the next look-up.

    Calls that are unusual in any way are left to the general code, which also reports what is wrong with them.
    """

    __slots__ = ("flat", "entries", "nums", "names", "special", "splits")

    def __init__(self, table: Table, statics: Statics) -> None:
        self.flat, self.entries = table.flat, table.entries
        self.nums, self.names = statics.nums, statics.names
        self.special = bool(self.nums or self.names)
        #: By number of positional arguments and names of the others: see `split`.
        self.splits: dict[tuple[Any, ...], Split] = {}

    def split(self, n_args: int, names: Sequence[str]) -> Split:
        """A function that splits such arguments: into those that are data, in the program's order; and what else
        distinguishes calls, static arguments and names of keywords.
        """
        code = Code()
        args = [code.new() for _ in range(n_args)]
        code.add(f"[{', '.join(args)}] = args")
        data, others, atom = [], [str(n_args)] if self.special else [], code.constant(static_atom)
        for i, arg in enumerate(args):
            if i in self.nums:
                others.append(f"{atom}({arg})")
            else:
                data.append(arg)
        for name in sorted(names):
            arg = f"kwargs[{code.constant(name)}]"
            others.append(code.constant(name))
            if name in self.names:
                others.append(f"{atom}({arg})")
            else:
                data.append(arg)
        code.add(f"return [{', '.join(data)}], ({', '.join(others)},)")
        if len(self.splits) >= _MOST_SPLITS:
            self.splits.clear()
        made = self.splits[n_args, *names] = code.function("args, kwargs")
        return made

    def find(self, data: Sequence[object], others: tuple[Any, ...] | None, where: Any
             ) -> tuple[Program | None, Any, Sequence[Any]]:
        """The program for a call with these parts, where to store it, and its leaves. `where` is for its entries.

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
                if program.looked_up in OFTEN:
                    self._add_entry(program, where, tree, data)
            return program, (known, types), data
        except Exception:  # raised by a container, or by the == of a static argument or of a container's static part
            return None, None, data

    def _add_entry(self, program: Program, where: Any, tree: TreeDef | None, leaves: Sequence[Any]) -> None:
        since, runner = generation(), program.runner_for(leaves)
        entry = None if runner is None else make_entry(
            runner.parts, runner.at, leaves, kept=runner.kept, donated=program.donated, moves=program.moves, tree=tree,
            out_tree=program.out_tree)
        if entry is not None:
            entries = self.entries[config.default_bits]
            entries[where] = (entry, *entries.get(where, ())[:MOST_ENTRIES - 1])
            if since != generation():
                entries.clear()


def make_call(general: Callable[..., Any], lookup: Lookup) -> Callable[..., Any]:
    """The function that users call: a plain one, which is the fastest to call and can be a method of a class.

    It finds the program for a call; if there is none, or under a transformation, it leaves the call to `general`.
    """
    entries, splits, find, special = lookup.entries, lookup.splits, lookup.find, lookup.special

    @as_entry
    def jitted(*args: Any, **kwargs: Any) -> Any:
        try:
            if type(context.trace) is not EvalTrace:
                return general(args, kwargs)
            data: Sequence[Any] = args
            others = None
            if special or kwargs:
                split = splits.get((len(args), *kwargs)) or lookup.split(len(args), tuple(kwargs))
                data, others = split(args, kwargs)
            first = data[0] if data else None
            where = others, first.aval if type(first) is Array else type(first)  # most functions have one entry there
            try:
                alike = entries[config.default_bits].get(where, ())
            except Exception:  # a static argument can't be looked up
                return general(args, kwargs)
            for enter in alike:
                result = enter(data)
                if result is not OTHER:
                    return result
            program, place, data = find(data, others, where)
            return general(args, kwargs, place) if program is None else program.run(data)
        except (Exception, SystemExit) as error:
            trim(error)
            raise

    return jitted
