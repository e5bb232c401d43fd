"""Where in the user's code something happened.

A location is recorded as (code object, instruction offset): two references, no text. It is only resolved to a file and
line when needed.
"""

from __future__ import annotations

import linecache
import sys
import threading
import warnings
from itertools import islice
from opcode import opmap
from types import CodeType, FrameType, TracebackType
from typing import Any, NamedTuple, Protocol, TypeAlias

from corejax.base.errors import CorejaxAttributeError, CorejaxError, CorejaxImportError, CorejaxWarning


class WrittenCode(NamedTuple):
    """What remains of a code object in a pickled location; attributes are named as in a code object.

    Its first line is the line of the location, since it has no instructions.
    """

    co_filename: str
    co_qualname: str
    co_firstlineno: int

    @property
    def co_code(self) -> bytes:
        return b"\0"

    def co_lines(self) -> tuple[()]:
        return ()

    def co_positions(self) -> tuple[()]:
        return ()


Location: TypeAlias = tuple[CodeType | WrittenCode, int] | None

#: The place beyond a frame within which only what the user wrote there counts: see `_AtHand.inside`.
NOWHERE: Location = (WrittenCode("", "", 0), 0)

#: Top-level packages whose frames aren't the user's, and their owners: the kernel, and each loaded pack.
library_packages: dict[str, Any] = {"corejax": "corejax"}

#: Packages that users call and that call corejax, through NumPy's protocols or finders of modules: the user's line is
#: the one that calls them.
_BETWEEN = frozenset(["numpy", "scipy", "importlib"])

_IMPORT_FROM = opmap["IMPORT_FROM"]
_SUBSCRIPTS = frozenset([opmap.get(name) for name in ("BINARY_SUBSCR", "STORE_SUBSCR")])  # the first until 3.13

_is_library: dict[str, bool] = {}
_is_users: dict[str, bool] = {}


def add_library_package(name: str, owner: object = None) -> None:
    """From now on, treat frames of the top-level package `name` as library code; `str(owner)` is its owner's name."""
    if name in library_packages or name == "__main__":
        return
    library_packages[name] = name if owner is None else owner
    _is_library.clear()
    _is_users.clear()


def package_of(frame: FrameType) -> str:
    """The top-level package whose code a frame runs."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def is_library(frame: FrameType) -> bool:
    """Whether the frame runs the kernel's code or a pack's."""
    known = _is_library.get(frame.f_code.co_filename)
    return _classify(frame) if known is None else known


def _classify(frame: FrameType) -> bool:
    verdict, filename = package_of(frame) in library_packages, frame.f_code.co_filename
    if not (verdict and filename.startswith("<")):  # generated code and the user's may both be called `<string>`
        _is_library[filename] = verdict
    return verdict


def is_users(frame: FrameType) -> bool:
    """Whether the frame runs the user's code."""
    known = _is_users.get(frame.f_code.co_filename)
    if known is not None:
        return known
    verdict = not is_library(frame) and package_of(frame) not in _BETWEEN
    if verdict or not frame.f_code.co_filename.startswith("<"):
        _is_users[frame.f_code.co_filename] = verdict
    return verdict


def is_librarys(function: object) -> bool:
    """Whether a function is of the kernel or a pack."""
    return str(getattr(function, "__module__", "")).partition(".")[0] in library_packages


def error_without(module: str, name: str, depth: int = 1) -> type[CorejaxError]:
    """The class of the error for a missing name of a module, looked up `depth` frames above the caller.

    `from module import name` replaces any AttributeError by its own ImportError and drops the message, so there it is a
    CorejaxImportError; but not for a submodule that is being imported, which Python then looks up elsewhere.
    """
    return CorejaxImportError if imports_from(sys._getframe(depth + 1), module, name) else CorejaxAttributeError


def imports_from(frame: FrameType, module: str, name: str) -> bool:
    """Whether a frame runs `from module import name`, for what isn't a submodule that is being imported."""
    return frame.f_code.co_code[frame.f_lasti] == _IMPORT_FROM and f"{module}.{name}" not in sys.modules


def location(depth: int = 0, anywhere: bool = False) -> Location:
    """The place in the user's code that is running now, looked for from `depth` frames above the caller outward.

    With `anywhere`, also beyond a program that is kept for other callers.
    """
    frame: FrameType | None = sys._getframe(depth + 1)
    inside, beyond = at_hand.inside
    if anywhere and beyond is NOWHERE:
        inside = beyond = None
    known_files = _is_users
    met = False
    while frame is not None:
        try:
            found = known_files[frame.f_code.co_filename]
        except KeyError:
            found = is_users(frame)
        if found:
            place = frame.f_code, frame.f_lasti
            if met:
                at_hand.inside = inside, place
            return place
        if frame is inside:
            if beyond is not None:
                return None if beyond is NOWHERE else beyond
            met = True
        frame = frame.f_back
    return None


def describe(place: Location) -> str | None:
    """`file:line (function)` of a location."""
    if place is None:
        return None
    return f"{place[0].co_filename}:{line_of(place)} ({place[0].co_qualname})"


def written(place: Location) -> Location:
    """A location in a form that can be pickled."""
    return None if place is None else (WrittenCode(place[0].co_filename, place[0].co_qualname, line_of(place)), 0)


def line_of(place: tuple[CodeType | WrittenCode, int]) -> int:
    """The line of a location."""
    code, offset = place
    line = next((line for start, stop, line in code.co_lines() if start <= offset < stop), None)
    return line or code.co_firstlineno


def expression(place: Location) -> str | None:
    """The source of what runs at a location, on one line; None if the source isn't available."""
    if place is None:
        return None
    code, offset = place
    line, last, start, stop = next(islice(code.co_positions(), offset // 2, None), (None,) * 4)
    if line is None or start is None or stop is None:
        return None
    text = linecache.getline(code.co_filename, line)
    found = text.encode()[start:stop if last == line else None].decode(errors="replace")
    if "(" not in found and not found.isidentifier():
        found = text  # an assignment's position is its target
    found = found.strip()
    return found[:57] + "..." if len(found) > 60 else found or None


def is_subscript(place: Location) -> bool:
    """Whether what runs at a location is an index expression."""
    return place is not None and place[0].co_code[place[1]] in _SUBSCRIPTS


# Equations, which know the place they came from

class Placed(Protocol):
    """Anything that knows where in the user's code it came from, such as an equation."""

    @property
    def source(self) -> Location: ...


class _AtHand(threading.local):
    """The equation that this thread is processing; `around` is the processing frame, and both outer values.

    Code that evaluates, transforms or lowers equations sets it, for everything that happens below its own frame:

        eqn, around = at_hand.eqn, at_hand.around
        try:
            at_hand.around = sys._getframe(), eqn, around
            for at_hand.eqn in eqns:
                ...
        finally:
            at_hand.eqn, at_hand.around = eqn, around

    This is written out because a context manager may be interrupted while exiting: see docs/decisions/0005.
    """

    eqn: Placed | None = None
    around: tuple[FrameType, Placed | None, Any] | None = None
    inside: tuple[FrameType | None, Location] = None, None
    """A frame of the library's that runs now, and the user's place seen from there once that is known: it stays.

    It is `NOWHERE` for a program that is kept for other callers.
    """


at_hand = _AtHand()


def tell_where(error: CorejaxError) -> None:
    """Give an error that has no location the current one, when it passes code that processes an equation."""
    if error.where is None:
        place = users_place(error.__traceback__)
        error.where = describe(at_hand.eqn.source if place is None and at_hand.eqn is not None else place)


def here() -> str | None:
    """`file:line (function)` of the place in the user's code that is running now.

    While an equation that was recorded earlier is being evaluated, transformed or lowered, that is the place that
    the equation came from.
    """
    return describe(place_from(sys._getframe(1)))


def place_here() -> Location:
    """The same place, as a location."""
    return place_from(sys._getframe(1))


def place_from(frame: FrameType | None) -> Location:
    """The place of the innermost frame, from this one outward, that is the user's or processes an equation."""
    eqn, around = at_hand.eqn, at_hand.around
    while frame is not None:
        if is_users(frame):
            return frame.f_code, frame.f_lasti
        if around is not None and frame is around[0]:
            if eqn is not None and eqn.source is not None:
                return eqn.source
            _, eqn, around = around
        frame = frame.f_back
    return None


def users_place(traceback: TracebackType | None) -> Location:
    """The innermost place in the user's code of a traceback."""
    found: Location = None
    while traceback is not None:
        if is_users(traceback.tb_frame):
            found = traceback.tb_frame.f_code, traceback.tb_lasti
        traceback = traceback.tb_next
    return found


def warn(message: str, kind: type[Warning] = CorejaxWarning) -> None:
    """Warn, at the line of the user's code that led here."""
    place = place_here()
    if place is None:
        warnings.warn(message, kind, stacklevel=2)
    else:
        warnings.warn_explicit(message, kind, place[0].co_filename, line_of(place))
