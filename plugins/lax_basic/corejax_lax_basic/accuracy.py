"""Elementwise functions with an accuracy that the caller asks for.

Each is the primitive `with_accuracy` with the function's name as a param, so that functions without one have no param
for it: they are applied in the short way, and programs print as before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias

import numpy as np

from corejax import lax
from corejax.core import ArrayLike, ShapedArray, dtypes
from corejax.errors import CorejaxValueError
from corejax.plugin import Sample, define, factors, hookimpl, not_linear, public, refused
from corejax_lax_basic import _accurate
from corejax_lax_basic._axes import dtype_kind
from corejax_lax_basic._complex_edges import corrected

__all__ = ["AccuracyMode", "Tolerance", "with_accuracy"]


class AccuracyMode(Enum):
    """How accurate an elementwise function is to be: as accurate as a device can be, or as it is without being asked.

    `cbrt`, `cos`, `exp`, `exp2`, `expm1`, `log`, `log1p`, `logistic`, `rsqrt`, `sin`, `sqrt`, `tan` and `tanh` take an
    accuracy, which is passed on to the compiler. The results on the CPU don't depend on it. Nor do those of `exp2`, and
    of `log1p` of float64, on any device: their formulas are within 4 units in the last place for real numbers.

    >>> from corejax import lax
    >>> lax.exp(0.0, accuracy=AccuracyMode.HIGHEST).item()
    1.0
    """

    HIGHEST = 1
    DEFAULT = 2


@dataclass(frozen=True, init=False)
class Tolerance:
    """How far the result of an elementwise function may be off, at most.

    By an absolute error, a relative one, or units in the last place: at least one of them. Where several are given, the
    error may be as large as the largest of them.

    >>> Tolerance(atol=1e-6, ulps=4)
    Tolerance(atol=1e-06, rtol=0.0, ulps=4)
    """

    atol: float
    rtol: float
    ulps: int

    @public
    def __init__(self, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0) -> None:
        given = {"atol": atol, "rtol": rtol, "ulps": ulps}
        for name, value in given.items():
            if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0 <= value < np.inf:
                raise refused("Tolerance", f"{name} must be a number that isn't negative", got=f"{name}={value!r:.60}",
                              wanted="a finite number of at least 0", todo="leave out what needn't hold",
                              kind=CorejaxValueError)
        if not atol and not rtol and not ulps:
            raise refused("Tolerance", "no error is allowed", got="atol, rtol and ulps of 0",
                          wanted="at least one above 0", todo="ask for lax.AccuracyMode.HIGHEST instead",
                          kind=CorejaxValueError)
        if int(ulps) != ulps or ulps >= 2 ** 63:
            raise refused("Tolerance", "ulps must be a 64-bit integer", got=f"ulps={ulps!r:.60}",
                          wanted="a number of units in the last place", todo="round it up", kind=CorejaxValueError)
        object.__setattr__(self, "atol", float(atol))
        object.__setattr__(self, "rtol", float(rtol))
        object.__setattr__(self, "ulps", int(ulps))


#: What an accuracy is in programs: "HIGHEST", or an absolute and a relative tolerance, and one in ulps
Canonical: TypeAlias = str | tuple[float, float, int]

#: The operations that take an accuracy, by function; None if ours is a formula.
OPERATIONS = {
    "cbrt": "cbrt", "cos": "cosine", "exp": "exponential", "exp2": None, "expm1": "exponential_minus_one", "log": "log",
    "log1p": "log_plus_one", "logistic": "logistic", "rsqrt": "rsqrt", "sin": "sine", "sqrt": "sqrt", "tan": "tan",
    "tanh": "tanh"}

#: Functions whose derivatives are other functions that take an accuracy.
_SLOPES = {"sin": lambda x, accuracy: _bind("cos", x, accuracy),
           "cos": lambda x, accuracy: lax.neg(_bind("sin", x, accuracy))}


def accurately(name: str, x: ArrayLike, accuracy: Tolerance | AccuracyMode | None) -> Any:
    """The function of this name, with an accuracy; `accuracy` isn't None."""
    if isinstance(accuracy, AccuracyMode):
        return getattr(lax, name)(x) if accuracy is AccuracyMode.DEFAULT else _bind(name, x, accuracy.name)
    if not isinstance(accuracy, Tolerance):
        raise refused(name, "unknown accuracy", got=repr(accuracy)[:80],
                      wanted="None, a lax.Tolerance or a lax.AccuracyMode",
                      todo=f"for the most accurate result: lax.{name}(x, accuracy=lax.AccuracyMode.HIGHEST)")
    return _bind(name, x, (accuracy.atol, accuracy.rtol, accuracy.ulps))


def _bind(name: str, x: Any, accuracy: Canonical) -> Any:
    return with_accuracy.primitive.bind(x, function=name, accuracy=accuracy)


def _slope(out: Any, x: Any, *, function: str, accuracy: Canonical) -> Any:
    given = _SLOPES.get(function)
    return given(x, accuracy) if given is not None else _primitive(function).factors[0](out, x)


def _primitive(function: str) -> Any:
    return getattr(lax, f"{function}_p")


class WithAccuracy:
    """`with_accuracy(x, function=name, accuracy=...)`: an elementwise function, at least as accurate as asked for.

    `accuracy` is "HIGHEST", or three tolerances: an absolute one, a relative one, and one in ulps. It is passed on to
    the compiler. Call the function itself, with its option `accuracy`.

    >>> lax.with_accuracy(0.0, function="cos", accuracy="HIGHEST").item()
    1.0
    """

    name = "with_accuracy"
    jvp = factors(_slope)
    transpose = not_linear("its functions are not linear")
    operands = ("x",)

    @hookimpl
    def abstract_eval(self, avals: Sequence[ShapedArray], *, function: str, accuracy: Canonical) -> ShapedArray:
        if function not in OPERATIONS:
            raise refused(self.name, "this function has no accuracy", got=repr(function)[:80],
                          wanted=", ".join(OPERATIONS), todo="call it without accuracy")
        if accuracy != "HIGHEST" and not _is_tolerance(accuracy):
            raise refused(self.name, "unknown accuracy", got=repr(accuracy)[:80],
                          wanted='"HIGHEST"; or an absolute and a relative tolerance, and an integer for one in ulps',
                          todo=f"call lax.{function}(x, accuracy=...)")
        if len(avals) != 1 or dtype_kind(avals[0].dtype) not in ("f" if function == "cbrt" else "fc"):
            raise refused(self.name, f"{function} doesn't take such operands", got=[*avals],
                          wanted="one array of floats" + " or complex numbers" * (function != "cbrt"),
                          todo="convert with x.astype(...)")
        return avals[0]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, function: str, accuracy: Canonical) -> Any:
        return _bind(function, args[0], accuracy), dims[0]

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, function: str, accuracy: Canonical) -> Any:
        operation = OPERATIONS[function]
        if operation is None or (function == "log1p" and ctx.avals_in[0].dtype == dtypes.float64):
            return ctx.lower(getattr(lax, function), *args)
        mode, parts = "HIGHEST", ""
        if not isinstance(accuracy, str):
            mode, named = "TOLERANCE", zip(("atol", "rtol", "ulps"), accuracy, strict=True)
            parts = "".join([f"{name} = {_number(value)}, " for name, value in named if value])
        attributes = {"result_accuracy": ctx.attribute(
            f"#stablehlo.result_accuracy<{parts}mode = #stablehlo.result_accuracy_mode<{mode}>>")}
        if function == "cbrt":
            return _accurate.cbrt_with(ctx, args, attributes)
        return corrected(ctx, function, args, ctx.op(f"stablehlo.{operation}", args, attributes))

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        cases: list[tuple[Any, ...]] = [("sin", np.sin, "HIGHEST", (3,)), ("log1p", np.log1p, (1e-8, 0.5, 4), (2,)),
                                        ("exp", np.exp, (0.0, 0.0, 4), ()), ("tanh", np.tanh, "HIGHEST", (0, 2))]
        for function, numpy, accuracy, shape in cases:
            x = rng.uniform(0.3, 1.2, shape)
            yield Sample([x], {"function": function, "accuracy": accuracy}, results=numpy(x))
        yield Sample([np.arange(3)], {"function": "sin", "accuracy": "HIGHEST"}, error=TypeError)
        yield Sample([np.ones(3)], {"function": "neg", "accuracy": "HIGHEST"}, error=TypeError)


def _is_tolerance(accuracy: Any) -> bool:
    """Whether it is a tolerance as it is in programs."""
    if not isinstance(accuracy, tuple) or [float, float, int] != [*map(type, accuracy)]:
        return False
    return all([0 <= part < np.inf for part in accuracy]) and any(accuracy) and accuracy[2] < 2 ** 63


def _number(value: float) -> str:
    """A number as MLIR spells it."""
    if isinstance(value, int):
        return str(value)
    text = repr(value)
    return text if "." in text else text.replace("e", ".0e")


with_accuracy: Any = define(WithAccuracy())
