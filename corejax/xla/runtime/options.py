"""Compiler options: names, with values of the right types."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypeAlias

from corejax.base import _jaxlib
from corejax.base.errors import CorejaxError, CorejaxTypeError, CorejaxValueError, kind_of
from corejax.base.source import here

Settings: TypeAlias = tuple[tuple[str, Any], ...]

#: The compiler's names of types, and what to call them in Python.
_KINDS = {"bool": "True or False", "int32": "an int", "int64": "an int", "float": "a float", "double": "a float",
          "string": "a str", "enum": "one of its words, as a str"}


def settings_of(options: Mapping[str, Any] | None) -> Settings:
    """Compiler options as pairs of a name and a value, sorted by name."""
    if options is None:
        return ()
    if not isinstance(options, Mapping):
        raise CorejaxTypeError("compiler options must be a dict", got=f"{kind_of(options)}: {options!r:.80}",
                               where=here(),
                               wanted="a dict from names to values", todo="write {'xla_dump_to': 'folder'}")
    for name, value in options.items():
        if not isinstance(name, str) or type(value) not in (bool, int, float, str):
            raise CorejaxTypeError("a compiler option must be a name with a bool, int, float or str", where=here(),
                                   got=f"{name!r:.80}: {value!r:.80}", wanted="one plain value for each name",
                                   todo="convert the value")
    return tuple(sorted(options.items()))


def wrong_option(error: BaseException, settings: Sequence[tuple[str, object]]) -> CorejaxError | None:
    """The error to raise if the compiler refused one of these options; None if something else is wrong."""
    found = _jaxlib.refused_option(error)
    values = dict(settings)
    if found is None or found[0] not in values:
        return None
    name, kind = found
    got = f"{name}={values[name]!r:.80}"
    if kind is None:
        close = get_close_matches(name, _known(), 1)
        return CorejaxValueError(f"the compiler has no option {name!r:.80}", got=got, where=here(),
                                 wanted="the name of an option of this release of XLA",
                                 todo=f"did you mean {close[0]!r}?" if close else
                                      "most are listed under `flags` in the documentation of XLA")
    return CorejaxTypeError(f"the compiler option {name} takes a different type", got=got, where=here(),
                            wanted=_KINDS.get(kind, f"a value of type {kind}"), todo="convert the value")


def _known() -> list[str]:
    """The names of compiler options, as far as the runtime lists them."""
    whole = _jaxlib.CompileOptions()
    build = whole.executable_build_options
    options = build.debug_options  # a view: its owners must outlive it
    told = re.findall(r"^(xla_\w+):", str(options), re.MULTILINE)
    return sorted({*told, *[name for name in dir(options) if name.startswith("xla_")]})
