"""Every public function, called with what it can't take: it works, or it refuses in its own words.

Calls are made eagerly, while a program is traced, under `vjp` and under `vmap`. What comes out is a result, or a
`CorejaxError` that names the user's line; or Python's own error for a call with the wrong number of arguments. The
traceback shows the user's frames only, and no message speaks of what lies beneath.
"""

from __future__ import annotations

import re
import signal
import traceback
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Any, get_origin

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.arrays.datamodel import BINARY
from corejax.errors import CorejaxError
from corejax.installed import groups, manifest
from exhaustive import exhaustive_unless

HERE = str(Path(__file__))
X = np.arange(1.0, 5.0).reshape(2, 2)
SECONDS = 60


class Opaque:
    """Something that is no data."""

    def __repr__(self) -> str:
        return "<opaque>"


OPAQUE = Opaque()
HUGE = 10 ** 30

#: Arguments, as functions of an array: eagerly it is one, under a transformation a tracer.
ARGUMENTS: list[Callable[[Any], tuple[Any, ...]]] = [
    lambda x: (), lambda x: (None,), lambda x: ("text",), lambda x: (OPAQUE,), lambda x: ([],), lambda x: ({"a": x},),
    lambda x: (x,), lambda x: (3,), lambda x: (HUGE,), lambda x: (1.5,), lambda x: (np.array("text"),),
    lambda x: (np.array(None),), lambda x: ([x, OPAQUE],), lambda x: (len,), lambda x: (lambda: 0,),
    lambda x: (x, None), lambda x: (x, "text"), lambda x: (x, OPAQUE), lambda x: (x, ()), lambda x: (x, []),
    lambda x: (x, {}), lambda x: (x, x), lambda x: (x, (0,)), lambda x: (x, (9,)), lambda x: (x, (x, x)),
    lambda x: (x, (2, -1)), lambda x: (x, (0, 0)), lambda x: (x, 1), lambda x: (x, -7), lambda x: (x, HUGE),
    lambda x: (x, 1.5), lambda x: (x, True), lambda x: (x, float), lambda x: (x, np.ones(3)),
    lambda x: (x, ("a", None)),
    lambda x: (x, x[0, 0]), lambda x: (x, np.array("text")), lambda x: (x, len), lambda x: (x, (HUGE,)),
    lambda x: (None, x), lambda x: ("text", x), lambda x: ((2,), x), lambda x: (float, x), lambda x: (float, 3),
    lambda x: (len, x), lambda x: (lambda y: y, x), lambda x: (lambda: 0, x), lambda x: (lambda y: OPAQUE, x),
    lambda x: (lambda y: y, None), lambda x: (lambda y: y, OPAQUE), lambda x: (lambda y: y, (x,), (x,)),
    lambda x: (x, x, x), lambda x: (x, 0, 1), lambda x: (x, (0,), (1,)), lambda x: (x, (0, 0), (1, 1)),
    lambda x: (x, x, None), lambda x: (x, x, "text"), lambda x: (x, None, None), lambda x: (x, 0, OPAQUE),
    lambda x: (x, x, (x, x)), lambda x: (x, (2, 2), (0,)), lambda x: (x, (2, 2), (7, 8)), lambda x: (x, "a", "b"),
    lambda x: (x, (x, x), (1, 1)), lambda x: (True, len, len), lambda x: (x, lambda: 0, lambda: 1),
    lambda x: (x, x, x, x), lambda x: (x, 0, 1, 2), lambda x: (x, (0,), (1,), (1,)), lambda x: (x, None, None, None),
    lambda x: (x, x, (0,), OPAQUE), lambda x: (x, (0, 0), (2, 2), (0, 0)), lambda x: (x, x, x, (1, 1)),
    lambda x: (x, x, (((1,), (0,)), ((), ()))), lambda x: (x, x, (((1,), (0,)), ((x,), ()))),
    lambda x: (x, [(0, 0, x)]),
    lambda x: (x, 0.0, [(0, 0, 0), (1, 1, -1)]), lambda x: (x, 0.0, "text"), lambda x: ([x, x], 5),
    lambda x: ([x, "a"], 0),
    lambda x: (*(x,) * 9,),
    # for functions of functions
    lambda x: (lambda c: False, lambda c: c, x), lambda x: (lambda c: c, lambda c: c, x),
    lambda x: (lambda c: False, lambda c: (c, c), x), lambda x: (lambda c: False, lambda c: OPAQUE, x),
    lambda x: (lambda c: False, lambda: 0, x), lambda x: (lambda c: "text", lambda c: c, x),
    lambda x: (0, 3, lambda i, c: c, x), lambda x: (0, x, lambda i, c: c, x), lambda x: (0, 1.5, lambda i, c: c, x),
    lambda x: (0, 3, lambda i, c: (c, c), x),
    lambda x: (0, 3, lambda c: c, x), lambda x: (0, 3, lambda i, c: OPAQUE, x),
    lambda x: (0, 3, len, x), lambda x: (None, 3, lambda i, c: c, x), lambda x: (HUGE, HUGE, lambda i, c: c, x),
    lambda x: (lambda c, y: (c, y), x, x), lambda x: (lambda c, y: c, x, x), lambda x: (lambda c, y: (OPAQUE, y), x, x),
    lambda x: (lambda c, y: (c, OPAQUE), x, x), lambda x: (lambda: 0, x, x), lambda x: (lambda c, y: (c, y), x, 3),
    lambda x: (lambda c, y: (c, y), x, None), lambda x: (lambda c, y: (c, y), x, None, 2),
    lambda x: (lambda c, y: (c, y), x, x, 7), lambda x: (lambda c, y: (c, y), x, x, "text"),
    lambda x: (lambda c, y: ((c, c), y), x, x), lambda x: (lambda c, y: (c[0], y), x, x),
    lambda x: (True, lambda y: y, lambda y: y, x), lambda x: (True, lambda y: y, lambda y: (y, y), x),
    lambda x: (x, lambda y: y, lambda y: y, x), lambda x: (x[0, 0], lambda y: y, lambda y: y[0], x),
    lambda x: (True, lambda: 0, lambda y: y, x), lambda x: ("text", lambda y: y, lambda y: y, x),
    lambda x: (True, lambda y: y, lambda y: OPAQUE, x), lambda x: (True, lambda y: y, 3, x),
    lambda x: (0, [lambda y: y, len], x), lambda x: (0, [], x), lambda x: (0, [lambda y: y, OPAQUE], x),
    lambda x: (x, [lambda y: y, lambda y: y], x), lambda x: (1.5, [lambda y: y, lambda y: y], x),
    lambda x: (0, [lambda y: y, lambda y: {"a": y}], x), lambda x: (0, 3, x),
]

#: The same for options.
OPTIONS: list[dict[str, Any]] = [{}, {"unheard_of": 1}]


def eagerly(call: Callable[[Any], Any]) -> Any:
    return call(cj.device_get(X))


def of_host_arrays(call: Callable[[Any], Any]) -> Any:
    return call(lax.add(X, 0.0))


def traced(call: Callable[[Any], Any]) -> Any:
    return cj.make_jaxpr(call)(X)


def differentiated(call: Callable[[Any], Any]) -> Any:
    return cj.vjp(call, X)


def batched(call: Callable[[Any], Any]) -> Any:
    return cj.vmap(call)(np.stack([X, X]))


MODES = (eagerly, of_host_arrays, traced, differentiated, batched)


def mode_of(i: int, modes: tuple[Callable[..., Any], ...] = MODES) -> Callable[..., Any]:
    """The mode of the i-th call, so that all get their turn: each call in each would take a minute."""
    return modes[i % len(modes)]


#: Each call is made in one mode, and in an exhaustive run in another.
each_turn = pytest.mark.parametrize("turn", exhaustive_unless(lambda turn: turn == 0, (0, 2)))


def public_functions() -> dict[str, Callable[..., Any]]:
    """Everything callable that users find in `cj`, `cj.lax` and `cj.tree`, by the name that they write; not types."""
    found: dict[str, Callable[..., Any]] = {}
    for module, names in ((cj, cj.__all__), (cj.tree, cj.tree.__all__), (lax, dir(lax))):
        for name in names:
            value = getattr(module, name)
            made_of_types = get_origin(value) is not None
            plain = isinstance(value, type) and not made_of_types and issubclass(value, (Enum, tuple))
            if callable(value) and not made_of_types and not plain:
                found[f"{module.__name__}.{name}".removeprefix("corejax.")] = value
    return found


FUNCTIONS = public_functions()


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    class Hangs(BaseException):
        pass

    def stop(*_: Any) -> None:
        raise Hangs

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def complaint(error: Exception, mode: Callable[..., Any]) -> str | None:
    """What is wrong with how a call was refused."""
    text = str(error)
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    strangers = [frame.f_code.co_filename for frame in frames if frame.f_code.co_filename != HERE]
    if strangers:
        return f"a frame of {strangers[-1]}"
    whole = "".join(traceback.format_exception(error))
    word = next((word for word in ("mlir", "stablehlo", "jaxlib", "xlaruntime") if word in whole.lower()), None)
    if word or "Traceback" in text:
        return f"its text speaks of {word or 'Traceback'}"
    if getattr(error, "__notes__", None) and not isinstance(error, CorejaxError):
        return error.__notes__[0]  # it came out of a hook, which refuses nothing by itself
    if frames[-1].f_code.co_name == "<lambda>" and not isinstance(error, CorejaxError):
        return None  # raised by the function that is among the arguments
    if isinstance(error, CorejaxError):
        return None if str(error.where).startswith(HERE) else f"where is {error.where}"
    if type(error) is TypeError and re.search(r"argument|has no len|only 0-dimensional", text):
        return None  # Python's own, or what the function raised that is among the arguments
    return "no error of corejax"


def refused(name: str, function: Callable[..., Any], make: Callable[[Any], tuple[Any, ...]], options: dict[str, Any],
            mode: Callable[..., Any], make_again: Callable[[Any], tuple[Any, ...]] | None = None) -> str | None:
    """What is wrong with how one call ends, and that of the function that it returns."""
    def user(x: Any) -> Any:
        out = function(*make(x), **options)
        if isinstance(out, types.FunctionType) and make_again is not None:
            out = out(*make_again(x))
        return x if mode in (differentiated, batched) and not isinstance(out, (cj.Array, cj.core.Tracer)) else out
    try:
        if mode is traced:
            mode(lambda x: [leaf for leaf in [user(x)] if isinstance(leaf, (cj.Array, cj.core.Tracer))])
        else:
            mode(user)
    except Exception as error:
        wrong = complaint(error, mode)
        arguments = ", ".join(map(repr, make(X))) + (f")({', '.join(map(repr, make_again(X)))}" if make_again else "")
        return wrong and f"{mode.__name__}: {name}({arguments}): {type(error).__name__}: {str(error)[:200]}: {wrong}"
    return None


@pytest.mark.sample(90)
@each_turn
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore")
def test_nonsense_is_refused_in_own_words(name: str, turn: int) -> None:
    with time_limit(SECONDS):
        found = [refused(name, FUNCTIONS[name], make, options, mode)
                 for i, make in enumerate(ARGUMENTS, len(name)) for options in OPTIONS[:1 + (make is ARGUMENTS[6])]
                 for mode in [mode_of(i + turn)]]
    assert [] == [wrong for wrong in found if wrong]


# Methods

#: Python's own methods that take nothing, or a number.
CONVERSIONS = ("bool", "int", "float", "complex", "index", "len", "iter", "hash", "repr", "str", "round", "setitem")


def method(name: str) -> Callable[..., Any]:
    """The method, operator or property of an array, as a function of the array and arguments."""
    def call(x: Any, *args: Any, **options: Any) -> Any:
        value = getattr(x, name)
        return value(*args, **options) if callable(value) else value
    return call


def methods() -> dict[str, Callable[..., Any]]:
    """What arrays can do, by the name of the role or of Python's own method; and what `x.at` can do."""
    roles = [role.removeprefix("operators.") for role in manifest.read().names(groups.ROLES) if "operators." in role]
    own = [name for name in vars(cj.Array) if not name.startswith("_") and name not in ("from_host", "from_device")]
    found = {name: method(name) for name in (*roles, *own, *[f"__{name}__" for name in (*BINARY, *CONVERSIONS)])}
    for name in ("get", "set", "add", "subtract", "multiply", "divide", "power", "min", "max", "apply"):
        found[f"at[0].{name}"] = lambda x, *args, name=name, **options: getattr(x.at[0], name)(*args, **options)
    found["at[...]"] = lambda x, *args: x.at[args].set(1.0)
    found["[...]"] = lambda x, *args: x[args]
    return found


METHODS = methods()


@pytest.mark.sample(50)
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.filterwarnings("ignore")
def test_methods_refuse_nonsense_in_own_words(name: str) -> None:
    with time_limit(SECONDS):
        found = [refused(name, METHODS[name], lambda x, make=make: (lax.add(x, 0.0), *make(x)), {}, mode)
                 for i, make in enumerate(ARGUMENTS, len(name)) if len(make(X)) <= 2
                 for mode in [mode_of(i, MODES[1:])]]
    assert [] == [wrong for wrong in found if wrong]


# Functions that transformations return

#: Functions that users may pass to a transformation.
USERS = [lambda y: y, lambda y: y.sum(), lambda: 0.0, lambda y: OPAQUE, lambda y: "text", lambda y: None,
         lambda *ys: ys, lambda y: (y, OPAQUE), lambda y: y + OPAQUE, lambda y: y.unheard_of, lambda y: float(y),
         lambda y: lax.add(y, "a"), lambda y: lax.reshape(y, (7,)), lambda y: {1: y, "a": y}, lambda y, *, z: z, len,
         float, OPAQUE]

RETURN_FUNCTIONS = ("grad", "value_and_grad", "jit", "vmap", "jacfwd", "jacrev", "hessian", "make_jaxpr")


@each_turn
@pytest.mark.parametrize("name", RETURN_FUNCTIONS)
@pytest.mark.filterwarnings("ignore")
def test_functions_that_transformations_return_refuse_nonsense_too(name: str, turn: int) -> None:
    with time_limit(SECONDS):
        found = [refused(name, FUNCTIONS[name], lambda x, f=f: (f,), {}, mode, again)
                 for i, f in enumerate(USERS) for k, again in enumerate(ARGUMENTS[:70:6], i + turn)
                 for mode in [mode_of(k)]]
    assert [] == [wrong for wrong in found if wrong]
