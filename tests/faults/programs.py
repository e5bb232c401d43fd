"""Runs a program of a few lines as the module `model`, and keeps what comes of it."""

from __future__ import annotations

import contextlib
import io
import linecache
import re
import sys
import traceback
import types
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

#: The file that programs seem to stand in.
FILE = "model.py"

#: What an error of corejax has.
PARTS = ("primitive", "hook", "pack", "got", "wanted", "where", "todo")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a program raised, as plain data, so that it can come from another process.

    `kind` is the class of the error, `classes` are those that it derives from; `parts` are those of a `CorejaxError`.
    Where nothing was raised, `kind` is what a kind of cases calls that.
    """

    kind: str
    classes: Sequence[str] = ()
    message: str = ""
    notes: Sequence[str] = ()
    parts: dict[str, str | None] = field(default_factory=dict)
    trace: str = ""

    @property
    def first_line(self) -> str:
        return next((line.strip() for line in self.message.splitlines() if line.strip()), "")

    @property
    def internal_frames(self) -> list[str]:
        """The files in the traceback, and in those of its causes, that are neither the program nor its runner."""
        files = re.findall(r'^ +File "([^"]+)"', self.trace, re.MULTILINE)
        return [file for file in files if file not in (FILE, __file__)]

    def is_at(self, lines: Sequence[int]) -> bool:
        """Whether it says that one of these lines of the program is wrong."""
        found = re.match(rf"{re.escape(FILE)}:(\d+)( |$)", self.parts.get("where") or "")
        return found is not None and int(found[1]) in lines


def outcome_of(error: BaseException) -> Outcome:
    """An error as plain data."""
    parts = {name: None if getattr(error, name, None) is None else str(getattr(error, name)) for name in PARTS}
    return Outcome(type(error).__name__, [c.__name__ for c in type(error).__mro__], str(error),
                   [*getattr(error, "__notes__", ())], parts, "".join(traceback.format_exception(error)))


def execute(code: str, names: dict[str, Any]) -> dict[str, Any] | Exception:
    """Run a program: the names that it leaves, or the exception that it raises."""
    module = types.ModuleType("model")
    module.__dict__.update(names, __file__=FILE)
    linecache.cache[FILE] = (len(code), None, code.splitlines(True), FILE)
    program = compile(code, FILE, "exec", dont_inherit=True)
    sys.modules["model"] = module  # where `inspect` looks for the source of classes
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            exec(program, module.__dict__)
    except Exception as error:
        return error
    finally:
        del sys.modules["model"]
    return module.__dict__
