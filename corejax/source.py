"""Where in the user's code something happened.

A location is recorded as (code object, instruction offset): two references, no text. It is resolved to a file and
line only when somebody looks.
"""

from __future__ import annotations

import sys
from types import CodeType, FrameType
from typing import TypeAlias

Location: TypeAlias = tuple[CodeType, int] | None

#: Top-level packages whose frames are not the user's: the kernel's, and each loaded pack's.
library_packages: set[str] = {"corejax"}

_is_library: dict[str, bool] = {}


def add_library_package(name: str) -> None:
    """Count the frames of the top-level package `name` as library code from now on."""
    if name in library_packages or name == "__main__":
        return
    library_packages.add(name)
    _is_library.clear()


def _classify(frame: FrameType) -> bool:
    package = frame.f_globals.get("__name__", "").partition(".")[0]
    verdict = _is_library[frame.f_code.co_filename] = package in library_packages
    return verdict


def user_frame(depth: int = 1) -> FrameType | None:
    """The innermost frame that is not library code, starting `depth` frames above the caller."""
    frame: FrameType | None = sys._getframe(depth)
    is_library = _is_library
    while frame is not None:
        filename = frame.f_code.co_filename
        known = is_library.get(filename)
        if known is False or (known is None and not _classify(frame)):
            return frame
        frame = frame.f_back
    return None


def location() -> Location:
    """The place in the user's code that is running now."""
    frame = user_frame(2)
    return None if frame is None else (frame.f_code, frame.f_lasti)


def describe(place: Location) -> str | None:
    """`file:line (function)` of a location."""
    if place is None:
        return None
    code, offset = place
    line = next((line for start, stop, line in code.co_lines() if start <= offset < stop), None)
    return f"{code.co_filename}:{line or code.co_firstlineno} ({code.co_qualname})"


def here() -> str | None:
    """`file:line (function)` of the place in the user's code that is running now."""
    frame = user_frame(2)
    return None if frame is None else describe((frame.f_code, frame.f_lasti))
