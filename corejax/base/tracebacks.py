"""Trims tracebacks to what concerns users: the frames of their own code.

Every function that users call is an *entry*. It passes exceptions to `trim`, and raises them again:

    try:
        return bind(x, y)
    except Exception as error:
        trim(error)
        raise

A bare `raise` doesn't add a frame for its function, and `try` costs nothing unless something is raised. So small hot
functions write out these lines; `public` puts them around any other function.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from functools import update_wrapper
from inspect import signature, unwrap
from types import CodeType, FunctionType, TracebackType
from typing import Any, TypeVar

from corejax.base.config import config
from corejax.base.errors import CorejaxError, CorejaxRecursionError, CorejaxRuntimeError, CorejaxTypeError, PackError
from corejax.base.miscalls import check_miscall
from corejax.base.source import (
    Location,
    describe,
    here,
    is_library,
    library_packages,
    package_of,
    place_from,
    users_place,
)
from corejax.base.standins import replaced

F = TypeVar("F")

_KERNEL = "corejax"

#: Modules of the kernel whose code acts as hooks of packs.
_FOR_PACKS = ("corejax.packs.families", "corejax.kernel.declarations", "corejax.packs.hook_signatures")

#: Packages that library code calls: their frames belong to whoever called them.
TOOLS = frozenset(("contextlib", "functools", "importlib_metadata", "jaxlib", "ml_dtypes", "numpy", "pluggy", "zipp"))

#: Exceptions that aren't the fault of the code that raised them.
_BLAMELESS = (RecursionError, MemoryError, Warning)

#: Python's messages for a call whose arguments don't fit the function's signature.
_MISCALL = re.compile(r"(missing \d+ required|takes (from )?\d+ (to \d+ )?(positional|keyword)|takes no (keyword )?arg|"
                      r"got an unexpected keyword|got multiple values|positional-only arg|must be a mapping)")

#: Words of the compiler and its bindings, which tell a user nothing.
_INTERNALS = re.compile(r"mlir|hlo\b|loc\(|nanobind|jaxlib|traceback|incompatible function arg", re.IGNORECASE)

_callers: set[CodeType] = set()


# Entries

def public(function: F) -> F:
    """Make a function an entry: frames of the kernel and of packs don't show in its tracebacks.

    For a class, does this to each of its methods.

    >>> @public
    ... def first(x):
    ...     return x[0]
    >>> first([1])
    1
    """
    if isinstance(function, type):
        for name, method in list(vars(function).items()):
            if isinstance(method, FunctionType) and (not name.startswith("_") or name.startswith("__")):
                setattr(function, name, public(method))
        return function
    if is_entry(function):
        return function
    call: Any = update_wrapper(guarded(function), function)  # type: ignore[arg-type]
    return as_entry(call)  # type: ignore[no-any-return]


def as_entry(function: F) -> F:
    """Mark a function that calls `trim` itself as an entry."""
    # The code identifies the function, since functools.wraps copies attributes to others.
    function._entry = function.__code__  # type: ignore[attr-defined]
    return function


def is_entry(function: object) -> bool:
    """Whether a function is marked as an entry."""
    return getattr(function, "_entry", function) is getattr(function, "__code__", None)


def calls_users(function: F) -> F:
    """Mark a function of the kernel or a pack: it, or a function inside it, calls the user's functions.

    So an exception that seems to be raised by it comes from a function written in C that the user passed.
    """
    codes = [function.__code__]  # type: ignore[attr-defined]
    for code in codes:  # grows as inner functions are found
        codes.extend([inner for inner in code.co_consts if isinstance(inner, CodeType)])
    _callers.update(codes)
    return function


def stands_for(fun: Callable[..., Any], function: F) -> F:
    """`function`, marked as calling a user's function `fun` with other arguments, so that errors mention `fun`."""
    function.__wrapped__ = fun  # type: ignore[attr-defined]
    return function


@calls_users
def guarded(function: Any) -> Callable[..., Any]:
    """The function as an entry, without its name and documentation."""
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            try:
                return function(*args, **kwargs)
            except TypeError as error:
                check_miscall(error, function, args, kwargs)
                raise
        except (Exception, SystemExit) as error:
            again = replaced(error, (args, kwargs))
            if again is None:
                trim(error)
                raise
        return call(*again[0], **again[1])
    return call


def check_call(error: TypeError, what: str, fun: Callable[..., Any]) -> None:
    """Raise our own error if `error` says that a user's function doesn't accept the arguments it was called with.

    Our functions that stand for the user's have that as `__wrapped__`, and are marked with `calls_users`.
    """
    frame = [part.tb_frame for part in _walk(error.__traceback__)][-1]
    if isinstance(error, CorejaxError) or frame.f_code not in _callers or not _MISCALL.search(str(error)):
        return
    fun = unwrap(fun)
    try:
        wanted = f"arguments for {getattr(fun, '__name__', type(fun).__name__)}{signature(fun)}"
    except (TypeError, ValueError):  # some functions written in C have no signature
        wanted = None
    raise CorejaxTypeError(f"{what}: the function doesn't take these arguments", got=str(error), wanted=wanted,
                           where=here(), todo="pass as many arguments as it takes; or bind some of them first, with a "
                                              "lambda or functools.partial") from None


# Trimming

def trim(error: Exception | SystemExit) -> None:
    """Prepare an exception that leaves an entry: only the user's frames stay in its traceback, and in its causes'.

    Called in the entry's own `except` clause. An error of corejax without a location gets one here. An exception from a
    pack's code that isn't an error of corejax keeps the pack's frames and gets a note. Packs can't end the user's
    process: a SystemExit of theirs becomes an error.
    """
    if isinstance(error, SystemExit):
        _refuse_exit(error)
        return
    if type(error) is RecursionError:
        told = _tell_of_recursion(error)
        if told is not None:
            raise told from None
    try:
        if isinstance(error, CorejaxError) and error.where is None:
            error.where = describe(_place(error.__traceback__))
        if config.traceback_filtering:
            _trim(error)
    except RecursionError:  # the stack is full: the user's frames have to do
        error.__traceback__ = None


def _tell_of_recursion(error: RecursionError) -> CorejaxRecursionError | None:
    """An error that says what to do about a full stack; None if the stack is still too full to make one."""
    try:
        if not str(error).startswith("maximum recursion depth exceeded"):
            return None
        innermost = list(_walk(error.__traceback__))[-50:]
        if all([is_library(part.tb_frame) and package_of(part.tb_frame) != _KERNEL for part in innermost]):
            return None  # a pack's own function calls itself
        limit = sys.getrecursionlimit()
        told = CorejaxRecursionError(
            "calls are nested too deeply: a function calls itself without end, or transformations and control flow are "
            "nested within each other", got=f"more frames than Python's limit, which is {limit}",
            wanted="a nesting that fits", where=describe(_place(error.__traceback__)),
            todo="write the nesting as a loop (lax.fori_loop, lax.while_loop, lax.scan); or raise the limit, "
                 f"sys.setrecursionlimit({10 * limit}), if the nesting has an end")
        return told.with_traceback(error.__traceback__)
    except RecursionError:
        return None


def _trim(error: Exception) -> None:
    found: list[BaseException] = [error]
    for one in found:  # grows as causes are found
        cause, context = one.__cause__, one.__context__
        if one is not error:
            one.__traceback__ = _shown(one)
        if cause is not None:
            if any(cause is other for other in found) or _says_nothing(one, cause):
                one.__cause__ = None
            else:
                found.append(cause)
        elif context is not None and not one.__suppress_context__:
            if any(context is other for other in found):
                one.__context__ = None
            elif _says_nothing(one, context):
                one.__suppress_context__ = True
            else:
                found.append(context)
    if not isinstance(error, CorejaxError):
        _blame(error)
    error.__traceback__ = _shown(error)


def _walk(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _place(traceback: TracebackType | None) -> Location:
    """The place in the user's code that an error passing an entry came from."""
    if traceback is None:
        return None
    return users_place(traceback) or place_from(traceback.tb_frame.f_back)


def _owned(error: BaseException) -> list[tuple[TracebackType, str]]:
    """The parts of a traceback, each with the library package that it belongs to; "" for the user's."""
    found: list[tuple[TracebackType, str]] = []
    owner = ""
    for part in _walk(error.__traceback__):
        if is_library(part.tb_frame):
            owner = package_of(part.tb_frame)
        elif not owner or package_of(part.tb_frame) not in TOOLS:
            owner = ""
        found.append((part, owner))
    return found


def _shown(error: BaseException) -> TracebackType | None:
    """A traceback of the user's frames, followed by those of the pack to blame, if any."""
    owned = _owned(error)
    culprit = getattr(error, "_culprit", _KERNEL)
    tail = len(owned)
    while culprit != _KERNEL and tail and owned[tail - 1][1]:
        tail -= 1
    shown = None
    for i, (part, owner) in reversed(list(enumerate(owned))):
        if not owner or (i >= tail and owner == culprit):
            part.tb_next = shown
            shown = part
    return shown


def _says_nothing(error: BaseException, inner: BaseException) -> bool:
    """Whether the cause of an error of corejax doesn't tell the user anything more."""
    if not isinstance(error, CorejaxError) or isinstance(error, PackError) or isinstance(inner, PackError):
        return False
    owned = _owned(inner)
    if any(not owner for _, owner in owned):
        return False
    if isinstance(inner, CorejaxError) or is_from_beneath(inner) or not owned or owned[-1][1] in (_KERNEL, owned[0][1]):
        return True  # handlers describe what they catch in their own words
    _set_culprit(inner, owned[-1][1])
    return False


def is_from_beneath(error: BaseException) -> bool:
    """Whether an exception mentions the compiler's internals."""
    return _INTERNALS.search(f"{type(error).__name__} {error}") is not None


#: What to do about an error from the compiler itself.
SEE_MORE = "config.traceback_filtering = False shows what the compiler said"


def plain(error: BaseException) -> str:
    """The text of a foreign error, if users can understand it."""
    text = str(error)
    return "an error inside the compiler or the runtime" if not text or is_from_beneath(error) else text[:500]


def _blame(error: Exception) -> None:
    """Add a note to an exception from library code that isn't an error of corejax: it is a bug there."""
    owned = _owned(error)
    if not owned or not owned[-1][1] or isinstance(error, _BLAMELESS) or hasattr(error, "_culprit"):
        return
    innermost = next(part for part, _ in reversed(owned) if is_library(part.tb_frame))
    code, module = innermost.tb_frame.f_code, innermost.tb_frame.f_globals["__name__"]
    if code in _callers or (isinstance(error, AttributeError) and code.co_name == "__getattr__"):
        _set_culprit(error, _KERNEL)  # so other entries don't look for one
        return
    culprit = owned[-1][1]
    _set_culprit(error, culprit)
    primitive = getattr(error, "_primitive", None)
    whose = library_packages.get(culprit, culprit)
    if primitive is not None and module.startswith(_FOR_PACKS):
        whose = primitive.origin
    rule = "" if primitive is None else f", where the primitive {primitive.name!r} is applied"
    place = describe((code, innermost.tb_lasti))
    error.add_note(f"This is a bug in {whose}, not in your code: it was raised at {place}{rule}. "
                   "config.traceback_filtering = False shows all frames.")


def _refuse_exit(error: SystemExit) -> None:
    """Raise an error in place of a SystemExit from a pack's code; the user's own passes through."""
    mine = [(part, owner) for part, owner in _owned(error) if package_of(part.tb_frame) not in sys.stdlib_module_names]
    part, owner = mine[-1] if mine else (None, "")
    if part is None or not owner or part.tb_frame.f_code in _callers:
        return
    raise CorejaxRuntimeError(
        f"the code of {library_packages.get(owner, owner)} exits the process", got=f"SystemExit: {error.code}",
        wanted="a result, or an exception", where=here(),
        todo=f"report it to the pack's authors: it exits at {describe((part.tb_frame.f_code, part.tb_lasti))}"
    ) from error


def _set_culprit(error: BaseException, package: str) -> None:
    """Remember which library an exception belongs to, since it passes other entries before it is shown."""
    error._culprit = package  # type: ignore[attr-defined]
