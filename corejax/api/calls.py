"""Calls of compiled functions: finding the program for a call as fast as possible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.api.programs import Program, Table
from corejax.api.signatures import types_of
from corejax.api.statics import Statics
from corejax.arrays.array import Array
from corejax.base import _jaxlib, trees
from corejax.base.config import config
from corejax.base.tracebacks import as_entry, trim
from corejax.eager.evaluate import EvalTrace
from corejax.kernel.context import context
from corejax.kernel.keys import static_atom
from corejax.xla.runtime.execution import FAILURES, TIDY, started

_new = object.__new__

#: A function whose arguments came from host memory checks after this many calls whether that is still so.
_LOOK_AGAIN = 16


class Lookup:
    """Finds the program for a call by the types of its arguments, and whatever else distinguishes it from other calls.

    Calls that are unusual in any way are left to the general code, which also reports what is wrong with them.
    """

    __slots__ = ("flat", "nums", "names", "special", "_positions")

    def __init__(self, table: Table, statics: Statics) -> None:
        self.flat = table.flat
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
            return known.get(types), (known, types), data
        except Exception:  # raised by a container, or by the == of a static argument or of a container's static part
            return None, None, data


def make_call(general: Callable[..., Any], lookup: Lookup) -> Callable[..., Any]:
    """The function that users call: a plain one, which is the fastest to call and can be a method of a class.

    It finds the program for a call; if there is none, or under a transformation, it leaves the call to `general`.
    """
    flat, parts, find, special = lookup.flat, lookup.parts, lookup.find, lookup.special
    on_device, calls = True, 0

    @as_entry
    def jitted(*args: Any, **kwargs: Any) -> Any:
        nonlocal on_device, calls
        try:
            if type(context.trace) is not EvalTrace:
                return general(args, kwargs)
            data: Sequence[Any] = args
            others = plain = program = None
            if special or len(kwargs) > 1:
                data, others = parts(args, kwargs)
            elif kwargs:
                data, others = (*args, *kwargs.values()), tuple(kwargs)
            if on_device:  # a guess: they were last time. If it is wrong, that costs a caught AttributeError
                try:
                    types: Any
                    count = len(data)
                    if count == 2:  # one and two are written out: a comprehension costs 0.1 µs
                        x, y = data
                        if type(x) is not Array or type(y) is not Array:
                            raise AttributeError
                        types = (x.aval, y.aval)
                        buffers = [x._buffer, y._buffer]
                    elif count == 1:
                        x, = data
                        if type(x) is not Array:
                            raise AttributeError
                        types = (x.aval,)
                        buffers = [x._buffer]
                    else:
                        types = tuple([x.aval for x in data if type(x) is Array])
                        buffers = [x._buffer for x in data]
                        if len(types) != count:
                            raise AttributeError
                    if others is not None:
                        types = (others, *types)
                    program = flat[config.default_bits][types]
                    plain = program.plain
                    if plain is None and program.plain_by_homes:
                        plain = program.plain_by_homes.get(tuple([id(buffer._sharding) for buffer in buffers]))
                    box = None
                except AttributeError:
                    on_device = False
                except Exception:  # it isn't known yet, or a static argument can't be looked up
                    pass
            else:
                calls += 1
                on_device = not calls % _LOOK_AGAIN
            if plain is None:
                if program is None:
                    program, place, data = find(data, others)
                    if program is None:
                        return general(args, kwargs, place)
                    plain = program.plain
                if plain is None:
                    return program.run(data)
                buffers, box = plain.start(data)
            # `Calls.call_for_one`, inlined
            try:
                outs = plain.execute(buffers).consume_with_handlers(plain.handlers)
            except FAILURES as error:
                raise plain.failure(error, data) from None
            if not started() % TIDY:
                _jaxlib.collect_garbage()
            array = _new(Array)
            array.aval = plain.aval
            array._buffer = out = outs[0]
            if box is not None:
                plain.finish(box, out)
            return array
        except (Exception, SystemExit) as error:
            trim(error)
            raise

    return jitted
