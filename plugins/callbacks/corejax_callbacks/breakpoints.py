"""`breakpoint`: a prompt in the terminal, where a program comes by, with the values of the variables around it."""

from __future__ import annotations

import cmd
import linecache
import pprint
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import IO, Any, NamedTuple

from corejax.core import Array, Tracer, here
from corejax.errors import CorejaxError, CorejaxRuntimeError, CorejaxValueError
from corejax.plugin import public, shaping
from corejax.tree import map as map_leaves
from corejax_callbacks._calling import make_call
from corejax_callbacks.debugging import debug_callback_p

__all__ = ["breakpoint"]

_NAME = "debug.breakpoint"


class _Place(NamedTuple):
    """Where a frame is in the user's code, and what else its code may name."""

    file: str
    line: int
    function: str
    globals: dict[str, Any]


@public
def breakpoint(*, backend: str | None = None, filter_frames: bool = True, num_frames: int | None = None,
               ordered: bool = False, token: Any = None, stdin: IO[str] | None = None, stdout: IO[str] | None = None,
               ) -> None:
    """Stop whenever a program comes by, with a prompt in the terminal: `h` lists what it understands.

    Expressions see the variables that there were when the function was traced; those that are arrays have the values
    with which the program runs. Frames of corejax are left out unless `filter_frames` is False, and all but
    `num_frames`. It is an error where there is no terminal to ask, unless `stdin` and `stdout` are given. `ordered` is
    as for `cj.debug.callback`. `backend` may be `"cli"`; `token` is there for programs written for JAX, and ignored.

    >>> import io, corejax as cj
    >>> @cj.jit
    ... def f(x):
    ...     y = x * 2
    ...     cj.debug.breakpoint(stdin=io.StringIO("p x, y\\nc\\n"), stdout=sys.stdout)
    ...     return y + 1
    >>> f(3.0)
    Stopped in f, <doctest ...>:4
    (cjdb) (Array(3., dtype=float64), Array(6., dtype=float64))
    (cjdb) Array(7., dtype=float64, weak_type=True)
    """
    if backend not in (None, "cli"):
        raise CorejaxValueError(f"{_NAME}: there is no such debugger", got=repr(backend), wanted="'cli', or None",
                                where=here(), todo="leave it out: it asks in the terminal")
    if num_frames is not None:
        num_frames = shaping.as_int(_NAME, "num_frames", num_frames)
    if (stdin is None) != (stdout is None):
        raise CorejaxValueError(f"{_NAME}: it reads from one and writes to the other", where=here(),
                                got="stdin" if stdout is None else "stdout", wanted="both of stdin and stdout",
                                todo="pass the other one, too; or neither, to use the terminal")
    frames = _frames(sys._getframe(1), shaping.as_flag(_NAME, "filter_frames", filter_frames))[:num_frames]
    places = [_Place(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name, frame.f_globals)
              for frame in frames]

    _check_terminal(stdin)

    def ask(variables: Sequence[dict[str, Any]]) -> None:
        _check_terminal(stdin)
        _Prompt(places, variables, stdin, stdout).cmdloop()

    with warnings.catch_warnings(action="ignore"):  # about what users' variables hold
        variables = [{name: _seen(x) for name, x in frame.f_locals.items()} for frame in frames]
    call, data = make_call(_NAME, ask, (variables,), {}, None, None, fixed=True)
    debug_callback_p.primitive.bind(*data, call=call, ordered=shaping.as_flag(_NAME, "ordered", ordered))


def _check_terminal(stdin: IO[str] | None) -> None:
    if stdin is None and not (sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()):
        raise CorejaxRuntimeError(f"{_NAME}: there is no terminal to ask", where=here(),
                                  got="standard input or output that isn't a terminal", wanted="a terminal",
                                  todo="run the program in a terminal; or print values with cj.debug.print")


def _frames(frame: FrameType | None, filtered: bool) -> list[FrameType]:
    """The frames from this one outward; if filtered, those of users' code."""
    found = []
    while frame is not None:
        if not (filtered and _is_librarys(frame)):
            found.append(frame)
        frame = frame.f_back
    return found


def _is_librarys(frame: FrameType) -> bool:
    """Whether it is corejax's code, or a pack's of that name, or made by it."""
    package, file = str(frame.f_globals.get("__name__", "")).partition(".")[0], frame.f_code.co_filename
    ours = package.startswith("corejax") and (not file.startswith("<") or file.startswith("<corejax"))
    return ours or package in ("functools", "contextlib")


class _Opaque:
    """What isn't an array, or has no value in the program."""

    def __init__(self, value: object) -> None:
        self.value = value


def _seen(value: Any) -> Any:
    """A variable's value as a tree of arrays; anything else in it is left as it is."""
    try:
        return _Opaque(value) if isinstance(value, Iterator) else map_leaves(_leaf, value)
    except CorejaxError:
        return _Opaque(value)


def _leaf(x: Any) -> Any:
    is_data = isinstance(x, Array) if not isinstance(x, Tracer) else x._trace.live
    return x if is_data else _Opaque(x)


def _unseen(x: Any) -> Any:
    return x.value if isinstance(x, _Opaque) else x


class _Prompt(cmd.Cmd):
    """A small debugger, which looks and changes nothing."""

    prompt = "(cjdb) "

    def __init__(self, places: Sequence[_Place], variables: Sequence[dict[str, Any]], stdin: IO[str] | None,
                 stdout: IO[str] | None) -> None:
        super().__init__(stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is None
        self._places, self._variables, self._at = places, variables, 0
        self.intro = f"Stopped in {self._here()}"

    def _here(self) -> str:
        place = self._places[self._at]
        return f"{place.function}, {place.file}:{place.line}"

    def _say(self, text: str) -> None:
        self.stdout.write(f"{text}\n")

    def _value(self, expression: str) -> Any:
        names = {name: map_leaves(_unseen, x) for name, x in self._variables[self._at].items()}
        return eval(expression, self._places[self._at].globals, names)

    def _show(self, expression: str, show: Any) -> None:
        try:
            self._say(show(self._value(expression)))
        except Exception as error:
            self._say("".join(traceback.format_exception_only(error)).rstrip())

    def default(self, line: str) -> None:
        """Anything else is an expression."""
        self._show(line, repr)

    def do_EOF(self, _: str) -> bool:
        """Go on with the program, as there are no more commands."""
        return True

    def emptyline(self) -> bool:
        """Nothing is repeated."""
        return False

    def do_p(self, expression: str) -> None:
        """p EXPRESSION: print its value."""
        self._show(expression, repr)

    def do_pp(self, expression: str) -> None:
        """pp EXPRESSION: print its value, in lines."""
        self._show(expression, pprint.pformat)

    def do_args(self, _: str) -> None:
        """a(rgs): print the variables of this frame."""
        for name in self._variables[self._at]:
            self._show(name, lambda x, name=name: f"{name} = {x!r:.200}")

    def do_list(self, _: str) -> None:
        """l(ist): print the code around."""
        place = self._places[self._at]
        for number in range(max(1, place.line - 5), place.line + 6):
            line = linecache.getline(place.file, number, place.globals)
            if line:
                self._say(f"{'->' if number == place.line else '  '} {number:4} {line.rstrip()}")

    def do_where(self, _: str) -> None:
        """w(here): print the frames; the arrow marks this one."""
        for i, place in reversed(list(enumerate(self._places))):
            self._say(f"{'>' if i == self._at else ' '} {place.file}({place.line}){place.function}()")

    def do_up(self, _: str) -> None:
        """u(p): to the frame that called this one."""
        self._go(1, "the outermost frame")

    def do_down(self, _: str) -> None:
        """d(own): to the frame that this one called."""
        self._go(-1, "the innermost frame")

    def _go(self, step: int, end: str) -> None:
        if not 0 <= self._at + step < len(self._places):
            self._say(f"this is {end}")
            return
        self._at += step
        self._say(f"In {self._here()}")

    def do_continue(self, _: str) -> bool:
        """c(ontinue): go on with the program."""
        return True

    def do_quit(self, _: str) -> bool:
        """q(uit): interrupt the program."""
        raise KeyboardInterrupt

    do_a, do_l, do_w, do_bt, do_u, do_d, do_c, do_cont, do_q, do_exit = (
        do_args, do_list, do_where, do_where, do_up, do_down, do_continue, do_continue, do_quit, do_quit)

    def do_h(self, argument: str) -> None:
        """h(elp): list the commands."""
        self.do_help(argument)
