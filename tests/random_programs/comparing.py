"""What a program gave, and whether two libraries gave the same.

Values are compared relative to the largest of their leaf, to some hundred roundings of the narrowest type in the
program. Where that is exceeded, the program is asked how well it is conditioned: its inputs are moved by a few
roundings, and the difference must be no larger than a hundred times what this does to the result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import corejax as cj

from .programs import Program

ROUNDINGS = 500.0


@dataclass(frozen=True)
class Leaf:
    value: Any
    dtype: str
    weak: bool

    def __str__(self) -> str:
        shape = f"[{','.join(map(str, self.value.shape))}]"
        return f"{'~' * self.weak}{self.dtype}{shape} {np.array2string(self.value, separator=', ')}"


@dataclass(frozen=True)
class Refused:
    """It raised."""

    error: BaseException

    def __str__(self) -> str:
        return f"{type(self.error).__name__}: {str(self.error)[:1500]}"


Outcome = Sequence[Leaf] | Refused


@dataclass(frozen=True)
class Failure:
    """`kind` is error, accepted (what the other refused), count, shape, dtype, weak, or value."""

    program: Program
    kind: str
    what: str
    got: Sequence[Leaf] | Refused = ()

    @property
    def maps(self) -> bool:
        return "vmap" in self.program.transformations or "vmap" in self.program.text

    @property
    def signature(self) -> str:
        """What failures of the same cause have in common."""
        if self.kind != "error":
            return self.kind
        line = self.what.splitlines()[0]
        return f"{self.kind}: {re.sub(r'[0-9]+', '0', line)[:100]}"

    def __str__(self) -> str:
        return f"{self.program}\n{self.kind}: {self.what}"


def leaf(x: Any) -> Leaf:
    """A result; a Python number, which a program without jit returns as it is, is as wide as by default."""
    value = np.asarray(x, cj.typeof(x).dtype if type(x) in (int, float, complex) else None)
    return Leaf(value, _name(value), _weak(value, getattr(x, "weak_type", type(x) in (int, float, complex))))


def _weak(value: Any, weak: bool) -> bool:
    """Whether a boolean is weak makes no difference: no type is weaker."""
    return bool(weak) and value.dtype.kind != "b"


def _name(value: Any) -> str:
    dtype = value.dtype
    return "float0" if dtype.names or dtype.kind == "V" and dtype.name != "bfloat16" else str(dtype)


def outcome(run: Callable[[], Any], leaves: Callable[[Any], list[Any]]) -> Outcome:
    try:
        return [leaf(x) for x in leaves(run())]
    except Exception as error:
        return Refused(error)


def types(run: Callable[[], Any], leaves: Callable[[Any], list[Any]]) -> Outcome:
    """What has a shape and a dtype, and may be weak, as zeros of that type."""
    def zero(like: Any) -> Leaf:
        value = np.zeros(like.shape, np.dtype(like.dtype))
        return Leaf(value, _name(value), _weak(value, getattr(like, "weak_type", False)))
    try:
        return [zero(x) for x in leaves(run())]
    except Exception as error:
        return Refused(error)


def difference(got: Outcome, wanted: Outcome, tolerance: Callable[[int], Any], exact: bool = True
               ) -> tuple[str, str] | None:
    """What kind of difference there is, and a text; `tolerance` of a leaf is how far it may be away.

    Dtypes and weak types are compared if `exact`.
    """
    if isinstance(got, Refused) or isinstance(wanted, Refused):
        if isinstance(got, Refused) and isinstance(wanted, Refused):
            return None
        return "error" if isinstance(got, Refused) else "accepted", f"got {_shown(got)}\nwanted {_shown(wanted)}"
    if len(got) != len(wanted):
        return "count", f"got {len(got)} results, wanted {len(wanted)}"
    pairs = [*enumerate(zip(got, wanted, strict=True))]
    for kind, same in [("shape", lambda i, x, y: x.value.shape == y.value.shape),
                       ("value", lambda i, x, y: close(x.value, y.value, tolerance(i))),
                       ("dtype", lambda i, x, y: not exact or x.dtype == y.dtype),
                       ("weak", lambda i, x, y: not exact or x.weak == y.weak)]:
        for i, (x, y) in pairs:
            if not same(i, x, y):
                return kind, f"result {i}: got {x}\n  wanted {y}"
    return None


def _shown(found: Outcome) -> str:
    return str(found) if isinstance(found, Refused) else "; ".join(map(str, found))


def close(x: Any, y: Any, bound: Any) -> bool:
    """The same infinities and nans, and elsewhere no further apart than the bound; what is exact must be equal."""
    if "float0" in (_name(x), _name(y)):
        return _name(x) == _name(y)
    if x.dtype.kind in "biu" and y.dtype.kind in "biu":
        return bool((x == y).all())
    wide = np.complex128 if "c" in (x.dtype.kind, y.dtype.kind) else np.float64
    a, b = (np.atleast_1d(t.astype(wide)) for t in (x, y))
    if wide is np.complex128:
        a, b = (np.stack([t.real, t.imag]) for t in (a, b))
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    finite = np.isfinite(a) & np.isfinite(b)
    return bool((same | (finite & (np.abs(a - b) <= bound))).all())


def rounding(program: Program, wanted: Outcome) -> Callable[[int], float]:
    """The tolerance that roundings alone justify, given what was wanted."""
    unit = narrowest(program)

    def tolerance(i: int) -> float:
        assert not isinstance(wanted, Refused)
        value = np.abs(np.atleast_1d(wanted[i].value).astype(np.complex128))
        return ROUNDINGS * unit * max(1.0, float(value[np.isfinite(value)].max(initial=0.0)))
    return tolerance


def narrowest(program: Program) -> float:
    return max(program.types[key].precision for key in program.slots if key != "a")


def moved(program: Program, draw: int) -> dict[str, Any]:
    """The inputs, each finite number but zero moved by some roundings; zeros, infinities and integers are kept."""
    rng, unit = np.random.default_rng(draw), narrowest(program)

    def move(x: Any) -> Any:
        if np.asarray(x).dtype.kind in "biu":
            return x
        steps = 1 + 8 * unit * rng.choice([-1.0, 1.0], np.shape(x))
        return float(x * steps) if type(x) is float else (x * steps.astype(x.dtype)).astype(x.dtype)
    return {key: move(x) for key, x in program.inputs.items()}


def sensitivity(program: Program, run: Callable[[dict[str, Any]], Outcome], wanted: Outcome) -> Callable[[int], Any]:
    """The tolerance that the program's condition justifies: how far its results move with its inputs."""
    found = [run(moved(program, draw)) for draw in range(4)]
    plain = rounding(program, wanted)

    def tolerance(i: int) -> float:
        assert not isinstance(wanted, Refused)
        spread = 0.0
        for other in found:
            if isinstance(other, Refused) or other[i].value.shape != wanted[i].value.shape:
                continue
            x, y = (t.value.astype(np.complex128) for t in (other[i], wanted[i]))
            apart = np.abs(np.where(np.isfinite(x) & np.isfinite(y), x - y, np.where(_alike(x, y), 0, np.inf)))
            spread = max(spread, float(apart.max(initial=0.0)))
        return plain(i) + 100.0 * spread
    return tolerance


def _alike(x: Any, y: Any) -> Any:
    return (x == y) | (np.isnan(x) & np.isnan(y))
