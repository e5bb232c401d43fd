"""Format strings, checked before a program runs: whether there is an argument for each place, of the right kind."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from string import Formatter
from typing import Any

import numpy as np

from corejax.core import Array, Tracer, dtypes, here
from corejax.errors import CorejaxError, CorejaxTypeError, CorejaxValueError, kind_of

_TODO = "pass an argument for each place: cj.debug.print('x = {}, y = {y:.3f}', x, y=y)"


def check(name: str, fmt: object, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raise unless the arguments fit the format."""
    if not isinstance(fmt, str):
        raise CorejaxTypeError(f"{name}: the format must be text", got=f"{kind_of(fmt)}: {fmt!r:.60}", where=here(),
                               wanted="a str", todo=f"write {name}('{{}}', x)")
    checked = _Check(name, fmt, args, kwargs)
    try:
        checked.places(fmt)
    except CorejaxError:
        raise
    except Exception as error:
        raise checked.wrong(f"the format can't be used: {error}", repr(fmt)) from error
    unused = [f"{i}" for i in range(len(args)) if i not in checked.used]
    unused += [repr(key) for key in kwargs if key not in checked.used]
    if unused:
        raise checked.wrong(f"the format has no place for argument {', '.join(unused)}", repr(fmt))


class _Check:
    """The places of a format, one after the other, with arguments whose values aren't known yet."""

    def __init__(self, name: str, fmt: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self._name, self._fmt, self._args, self._kwargs = name, fmt, args, kwargs
        self._next: int | None = None  # of those without a number; None as long as there was no number
        self._numbered = False
        self.used: set[int | str] = set()

    def places(self, fmt: str) -> bool:
        """Check each place; whether the text is known already."""
        known = True
        for _, field, spec, conversion in Formatter().parse(fmt):
            if field is not None:
                value = self._argument(field)
                is_data = isinstance(value, (Array, Tracer, np.ndarray))
                spec_known = self.places(spec or "")
                known = known and not is_data
                if conversion is not None:
                    Formatter().convert_field(value if not is_data else "", conversion)
                elif is_data and spec_known:
                    self._check_data(value, self._text(spec or ""))
                elif spec_known:
                    format(value, self._text(spec or ""))
        return known

    def _argument(self, field: str) -> Any:
        first = re.match(r"[^.\[]*", field).group()  # type: ignore[union-attr]
        key: int | str = int(first) if first.isdigit() else first
        if first == "" or isinstance(key, int):
            if (first == "" and self._numbered) or (first and self._next is not None):
                raise self.wrong("the format numbers some places, and not others", repr(self._fmt))
            if first == "":
                key = self._next = 0 if self._next is None else self._next + 1
            else:
                self._numbered = True
        given: Any = self._args if isinstance(key, int) else self._kwargs
        if (key >= len(given)) if isinstance(key, int) else key not in given:
            there = f"{len(given)} positional" if isinstance(key, int) else ", ".join(given) or "none by keyword"
            raise self.wrong(f"there is no argument {key!r} for the format", there)
        self.used.add(key)
        try:
            return Formatter().get_field(f"0{field[len(first):]}", (given[key],), {})[0]
        except Exception as error:
            raise self.wrong(f"the format can't be used: {getattr(error, 'message', error)}", f"{{{field}}}") from error

    def _text(self, spec: str) -> str:
        """A specification, with what is in its own places."""
        return spec.format(*self._args, **self._kwargs) if "{" in spec else spec

    def _check_data(self, value: Any, spec: str) -> None:
        if not spec:
            return
        if value.shape or dtypes.kind(value.dtype) not in "biufc":
            raise CorejaxValueError(f"{self._name}: {spec!r} is a format for one number", where=here(),
                                    got=str(getattr(value, "aval", value.dtype)), wanted="an array without axes",
                                    todo="leave it out, {}, or format the elements one by one")
        format(np.zeros((), value.dtype)[()], spec)

    def wrong(self, problem: str, got: str) -> CorejaxValueError:
        return CorejaxValueError(f"{self._name}: {problem}", got=got, wanted=f"arguments for {self._fmt!r}",
                                 where=here(), todo=_TODO)
