"""Arguments that aren't data: static ones, and how arguments are chosen by position or by name."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Hashable, Sequence
from difflib import get_close_matches
from typing import Any

from corejax.base.errors import CorejaxTypeError, CorejaxValueError, kind_of
from corejax.base.source import here
from corejax.base.tracebacks import calls_users, stands_for
from corejax.kernel.keys import static_atom

Call = tuple[tuple[Any, ...], dict[str, Any]]


def static_positions(argnums: Any, what: str, option: str = "static_argnums") -> tuple[int, ...]:
    """Convert an int, a sequence of ints or None to a tuple."""
    if argnums is None:
        return ()
    try:
        return tuple(map(operator.index, argnums)) if isinstance(argnums, (tuple, list, set, frozenset, range)) else (
            operator.index(argnums),)
    except TypeError as error:
        raise CorejaxTypeError(f"{what}: {option} must be positions of arguments", got=repr(argnums), where=here(),
                               wanted="an int or a sequence of ints",
                               todo=f"for names use {option.replace('nums', 'names')}") from error


def static_names(argnames: Any, what: str, option: str = "static_argnames") -> tuple[str, ...]:
    """Convert names or None to a tuple; a string may contain several names, separated by commas or blanks."""
    if argnames is None:
        return ()
    names = tuple(argnames.replace(",", " ").split()) if isinstance(argnames, str) else tuple(argnames)
    for name in names:
        if not isinstance(name, str):
            raise CorejaxTypeError(f"{what}: {option} must be names of arguments", got=repr(argnames), where=here(),
                                   wanted="a string or a sequence of strings",
                                   todo=f"for positions use {option.replace('names', 'nums')}")
    return names


def choose(fun: Callable[..., Any], nums: tuple[int, ...], names: tuple[str, ...], what: str, option: str
           ) -> tuple[frozenset[int], frozenset[str]]:
    """Arguments by position and by name; if only one of the two is given, it is completed from the signature."""
    if not nums and not names:
        return frozenset(), frozenset()
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (ValueError, TypeError):
        parameters = []  # some functions written in C have none
    kinds = {p.kind for p in parameters}
    by_position = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    by_name = [p.name for p in parameters if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
    found = [i + len(by_position) if i < 0 else i for i in nums]
    bounded = bool(parameters) and inspect.Parameter.VAR_POSITIONAL not in kinds
    for i, given in zip(found, nums, strict=True):
        if i < 0 or (bounded and i >= len(by_position)):
            raise CorejaxValueError(f"{what}: {option}nums has {given}, but there is no such argument", where=here(),
                                    got=f"a function of {len(by_position)} positional arguments",
                                    wanted=f"0 to {len(by_position) - 1}", todo="count positional arguments from 0")
    for name in names:
        if parameters and name not in by_name and inspect.Parameter.VAR_KEYWORD not in kinds:
            close = get_close_matches(name, by_name, n=1)
            raise CorejaxValueError(f"{what}: {option}names has {name!r}, but there is no such argument", where=here(),
                                    got=name, wanted=", ".join(by_name) or "no names",
                                    todo=f"did you mean {close[0]!r}?" if close else "take names of its parameters")
    if not names:
        names = tuple([by_position[i].name for i in found
                       if i < len(by_position) and by_position[i].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD])
    elif not nums:
        found = [i for i, p in enumerate(by_position) if p.name in names]
    return frozenset(found), frozenset(names)


class Statics:
    """The static arguments of a function, and how to take them out of a call."""

    __slots__ = ("fun", "nums", "names", "what", "__weakref__")

    def __init__(self, fun: Callable[..., Any], argnums: Sequence[int], argnames: Sequence[str], what: str) -> None:
        self.fun, self.what = fun, what
        self.nums, self.names = choose(fun, tuple(argnums), tuple(argnames), what, "static_arg")

    @calls_users
    def split(self, args: tuple[object, ...], kwargs: dict[str, Any]) -> tuple[Callable[..., Any], Call]:
        """The function of the other arguments, and these arguments."""
        if not self.nums and not self.names:
            return self.fun, (args, kwargs)
        fun, nums, n_args = self.fun, self.nums, len(args)
        fixed = {i: args[i] for i in nums if i < n_args}
        fixed_kwargs = {name: x for name, x in kwargs.items() if name in self.names}

        def of_dynamic(*rest: Any, **others: Any) -> Any:
            dynamic = iter(rest)
            return fun(*[fixed[i] if i in fixed else next(dynamic) for i in range(n_args)], **fixed_kwargs, **others)

        return stands_for(fun, of_dynamic), (tuple([x for i, x in enumerate(args) if i not in nums]),
                            {name: x for name, x in kwargs.items() if name not in self.names})

    def values(self, args: tuple[object, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The static arguments of a call."""
        return [*[args[i] for i in sorted(self.nums) if i < len(args)],
                *[kwargs[name] for name in sorted(self.names) if name in kwargs]]

    def key(self, args: tuple[object, ...], kwargs: dict[str, Any]) -> tuple[object, ...]:
        """The static arguments' part of a call's key."""
        if not self.nums and not self.names:
            return ()
        at = [(i, self._atom(args[i], f"args[{i}]")) for i in sorted(self.nums) if i < len(args)]
        named = [(name, self._atom(kwargs[name], name)) for name in sorted(self.names) if name in kwargs]
        return len(args), *at, *named

    def _atom(self, value: object, name: str) -> Hashable:
        try:
            hash(value)
        except TypeError as error:
            raise CorejaxValueError(
                f"{self.what}: the static argument {name} can't be hashed",
                got=f"{kind_of(value)}: {getattr(value, 'aval', value)!s:.60}",
                wanted="a value with == and hash: it is part of the key of the traced program", where=here(),
                todo="pass arrays as ordinary arguments; make lists tuples") from error
        return static_atom(value)
