"""The 23 faults with which somebody tried to break the conformance kit: a small primitive or pack with each of them.

    python tests/testing/planted_faults.py [--full]

prints which checks find each. The table in docs/decisions tells what was found before there were checks for them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Linear, ShapedArray, aval_of, to_dim
from corejax.errors import CorejaxTypeError
from corejax.plugin import Sample, define, hookimpl, not_linear
from corejax.testing import ConformanceError, check_primitive

ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault, and the check that finds it, in the quick mode or only in the full one; `known` if it was found before.

    `found(full, checks)` returns the names of those that fail, of all checks if None are named.
    """

    name: str
    what: str
    found: Callable[[bool, Sequence[str] | None], set[str]]
    check: str
    known: bool = False
    full: bool = False


FAULTS: dict[str, Fault] = {}


def plant(what: str, check: str, known: bool = False, full: bool = False) -> Callable[[type], type]:
    """Make a plugin's class a fault."""
    def planted(kind: type) -> type:
        FAULTS[kind.__name__] = Fault(kind.__name__, what, lambda full, checks: failing(kind(), full, checks), check,
                                      known, full)
        return kind
    return planted


def failing(plugin: Any, full: bool = False, checks: Sequence[str] | None = None) -> set[str]:
    """The checks that fail for the primitive of a plugin."""
    try:
        check_primitive(define(plugin), full=full, checks=checks)
    except ConformanceError as error:
        return {failure.check for failure in error.failures}
    return set()


# The primitives without a fault

class Sine:
    """sin(x) of real floats, by all rules."""

    name = "planted"
    transpose = not_linear()

    @hookimpl
    def impl(self, args: Sequence[Any]) -> Any:
        (x,) = args
        return np.sin(x)

    @hookimpl
    def abstract_eval(self, avals: Sequence[Any]) -> Any:
        (x,) = avals
        if x.dtype.name not in ("float64", "float32", "bfloat16", "float16"):
            raise CorejaxTypeError("planted takes floats", got=str(x), wanted="floats", todo="convert it")
        return x

    @hookimpl
    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        (x,), (x_dot,) = primals, tangents
        return lax.sin(x), lax.cos(x) * x_dot

    @hookimpl
    def vmap(self, axis: Any, args: Sequence[Any], dims: Sequence[Any]) -> Any:
        return lax.sin(args[0]), dims[0]

    @hookimpl
    def xla_translation(self, ctx: Any, args: Sequence[Any]) -> Any:
        (x,) = args
        return ctx.op("stablehlo.sine", [x])

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample([rng.normal(size=(2, 3))], domain=(-3.0, 3.0))
        yield Sample([np.array(0.5)])
        yield Sample([np.ones(2, int)], error=TypeError)


class Row:
    """x[row], the row being a param."""

    name = "planted"
    linear = (0,)

    def attached(self, primitive: Any) -> None:
        self._bind = primitive.bind

    @hookimpl
    def abstract_eval(self, avals: Sequence[Any], *, row: int) -> Any:
        (x,) = avals
        if not x.ndim or not 0 <= row < x.shape[0]:
            raise CorejaxTypeError(f"planted: there is no row {row}", got=str(x), wanted="a row that is there")
        return x.update(shape=x.shape[1:])

    @hookimpl
    def impl(self, args: Sequence[Any], *, row: int) -> Any:
        (x,) = args
        return x[row].copy()

    @hookimpl
    def decompose(self, args: Sequence[Any], *, row: int) -> Any:
        (x,) = args
        return lax.squeeze(lax.slice_in_dim(x, row, row + 1, axis=0), (0,))

    @hookimpl
    def vmap(self, axis: Any, args: Sequence[Any], dims: Sequence[Any], *, row: int) -> Any:
        x = to_dim(args[0], dims[0], aval_of(args[0]).ndim - 1, axis.size)
        return self._bind(x, row=row), x.ndim - 2

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for row in (0, 2):
            yield Sample([rng.normal(size=(3, 3))], {"row": row})
        yield Sample([np.ones((3, 2))], {"row": 3}, error=TypeError)


class Difference:
    """x - y, linear in both."""

    name = "planted"
    linear = (0, 1)

    @hookimpl
    def impl(self, args: Sequence[Any]) -> Any:
        x, y = args
        return x - y

    @hookimpl
    def abstract_eval(self, avals: Sequence[Any]) -> Any:
        x, y = avals
        if x.dtype.kind not in "fc" or (x.shape, x.dtype) != (y.shape, y.dtype):
            raise CorejaxTypeError("planted takes floats of one type", got=f"{x}, {y}", wanted="floats of one type")
        return x.update(weak_type=x.weak_type and y.weak_type)

    @hookimpl
    def transpose(self, cotangents: Any, args: Sequence[Any]) -> Any:
        x, y = args
        return [cotangents if type(x) is Linear else None, -cotangents if type(y) is Linear else None]

    @hookimpl
    def vmap(self, axis: Any, args: Sequence[Any], dims: Sequence[Any]) -> Any:
        x, y = [to_dim(x, dim, 0, axis.size) for x, dim in zip(args, dims, strict=True)]
        return x - y, 0

    @hookimpl
    def xla_translation(self, ctx: Any, args: Sequence[Any]) -> Any:
        x, y = args
        return ctx.op("stablehlo.subtract", [x, y])

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample([rng.normal(size=(2, 3)), rng.normal(size=(2, 3))])
        yield Sample([np.ones(2, int), np.ones(2, int)], error=TypeError)


class Turned:
    """(2 + i) z: linear, not symmetric in the real and the imaginary part."""

    name = "planted"
    linear = (0,)

    @hookimpl
    def abstract_eval(self, avals: Sequence[Any]) -> Any:
        (z,) = avals
        if z.dtype.kind != "c":
            raise CorejaxTypeError("planted takes complex numbers", got=str(z), wanted="complex numbers")
        return z

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        (z,) = args
        return z * (2.0 + 1.0j)

    @hookimpl
    def transpose(self, cotangents: Any, args: Sequence[Any]) -> Any:
        return [cotangents * (2.0 + 1.0j)]

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample([rng.normal(size=3) + 1j * rng.normal(size=3)])
        yield Sample([np.array([1j])], results=np.array([2j - 1]))
        yield Sample([np.ones(3)], error=TypeError)


RIGHT: list[type] = [Sine, Row, Difference, Turned]


# What was missed

def rules_only(full: bool, checks: Sequence[str] | None) -> set[str]:
    """What check_pack says of an installed pack with a wrong rule for somebody else's primitive, and nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        info = Path(folder) / "planted-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: planted\nVersion: 1.0\n"
                                       "Requires-Dist: corejax-lax-basic\n")
        (info / "entry_points.txt").write_text("[corejax.rules]\ncorejax-lax-basic/sin:jvp = planted:slope\n")
        (Path(folder) / "planted.py").write_text(
            "from corejax import lax\nfrom corejax.plugin import factors\n"
            "slope = factors(lambda out, x: -lax.cos(x))\n")
        code = textwrap.dedent(f"""
            from corejax.testing import ConformanceError, check_pack
            try:
                check_pack("planted", full={full}, checks={checks})
            except ConformanceError as error:
                print("\\n".join({{failure.check for failure in error.failures}}))
        """)
        path = os.pathsep.join([folder, *filter(None, [os.environ.get("PYTHONPATH")])])
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True,
                              env={**os.environ, "PYTHONPATH": path})
        return set(done.stdout.split("\n")) - {""}


FAULTS["RulesOnly"] = Fault("RulesOnly", "a wrong rule for another pack's primitive, in a pack of rules only",
                            rules_only, "jvp agrees with differences")


@plant("the derivative is wrong in float32 only", "tangents in narrow types are those of doubles")
class NarrowSlope(Sine):
    @hookimpl
    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        (x,), (x_dot,) = primals, tangents
        return lax.sin(x), (1.5 if x.dtype == np.float32 else 1.0) * lax.cos(x) * x_dot


@plant("lowering for another platform raises", "it lowers for every platform")
class Elsewhere(Sine):
    @hookimpl
    def xla_translation(self, ctx: Any, args: Sequence[Any]) -> Any:
        name = {"cpu": "stablehlo.sine"}[ctx.platform]
        return ctx.op(name, args)


@plant("abstract_eval accepts integers, for which lowering fails", "every dtype that is accepted works")
class Integers(Sine):
    @hookimpl
    def abstract_eval(self, avals: Sequence[Any]) -> Any:
        (x,) = avals
        return x

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample([rng.normal(size=(2, 3))], domain=(-3.0, 3.0))
        yield Sample([np.array(0.5)])


@plant("args[0] swallows surplus operands", "one operand more or less is refused")
class Surplus(Sine):
    @hookimpl
    def abstract_eval(self, avals: Sequence[Any]) -> Any:
        return super().abstract_eval(avals[:1])

    @hookimpl
    def impl(self, args: Sequence[Any]) -> Any:
        return np.sin(args[0])


@plant("a wrong value where there is nothing to compare with", "values are given in two ways")
class Alone:
    """cos(x), which is meant to be sin(x)."""

    name = "planted"

    @hookimpl
    def decompose(self, args: Sequence[Any]) -> Any:
        (x,) = args
        return lax.cos(x)

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample([rng.normal(size=(2, 3))], domain=(-3.0, 3.0))


@plant("impl is wrong for all values of a param but the one of the samples", "each param has two values")
class OneValue:
    """by x."""

    name = "planted"

    @hookimpl
    def decompose(self, args: Sequence[Any], *, by: float) -> Any:
        (x,) = args
        return x * by

    @hookimpl
    def impl(self, args: Sequence[Any], *, by: float) -> Any:
        (x,) = args
        return x + x

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample([rng.normal(size=(2, 3))], {"by": 2.0}, domain=(-3.0, 3.0))


@plant("with a param out of range, the compiled program gives zeros", "params out of range are refused or work")
class OutOfRange(Row):
    @hookimpl
    def abstract_eval(self, avals: Sequence[Any], *, row: int) -> Any:
        (x,) = avals
        if not x.ndim or not x.shape[0]:
            raise CorejaxTypeError("planted: there are no rows", got=str(x), wanted="a row")
        return x.update(shape=x.shape[1:])

    @hookimpl
    def decompose(self, args: Sequence[Any], *, row: int) -> Any:
        (x,) = args
        inside = 0 <= row < x.shape[0]
        return super().decompose(args, row=row) if inside else lax.full(x.shape[1:], 0, x.dtype)

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for row in (0, 2):
            yield Sample([rng.normal(size=(3, 3))], {"row": row})


@plant("the map is wrong for more than 8 rows", "maps of many rows and of more axes are loops")
class ManyRows(Sine):
    @hookimpl
    def vmap(self, axis: Any, args: Sequence[Any], dims: Sequence[Any]) -> Any:
        (x,), (dim,) = args, dims
        return lax.sin(lax.rev(x, (dim,)) if axis.size > 8 else x), dim


@plant("the map is wrong for operands of rank 4", "maps of many rows and of more axes are loops")
class RankFour(Sine):
    @hookimpl
    def vmap(self, axis: Any, args: Sequence[Any], dims: Sequence[Any]) -> Any:
        (x,), (dim,) = args, dims
        return lax.sin(lax.rev(x, (dim,)) if x.ndim == 5 else x), dim


@plant("lowering is wrong for more than 100 elements", "values do not depend on how many there are")
class ManyElements(Sine):
    @hookimpl
    def xla_translation(self, ctx: Any, args: Sequence[Any]) -> Any:
        return ctx.op("stablehlo.sine" if ctx.avals_in[0].size <= 100 else "stablehlo.tanh", args)


@plant("the map is a Python loop", "maps cost the same for any batch")
class Looping(Sine):
    @hookimpl
    def vmap(self, axis: Any, args: Sequence[Any], dims: Sequence[Any]) -> Any:
        rows = to_dim(args[0], dims[0], 0, axis.size)
        if not axis.size:
            return rows, 0
        return lax.concatenate([lax.sin(rows[k:k + 1]) for k in range(axis.size)], 0), 0


@plant("the derivative is wrong outside the declared domain", "jvp agrees with differences outside the domain",
       full=True)
class Beyond(Sine):
    @hookimpl
    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        (x,), (x_dot,) = primals, tangents
        return lax.sin(x), lax.select(lax.abs(x) > 5.0, x, lax.cos(x)) * x_dot


@plant("impl is wrong once in 997 calls", "many runs give the same")
class Seldom(Sine):
    def __init__(self) -> None:
        self._calls = count(1)

    @hookimpl
    def impl(self, args: Sequence[Any]) -> Any:
        (x,) = args
        return np.sin(x) if next(self._calls) % 997 else np.cos(x)


# What was found before

@plant("the derivative has the wrong sign", "jvp agrees with differences", known=True)
class Sign(Sine):
    @hookimpl
    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        (x,), (x_dot,) = primals, tangents
        return lax.sin(x), -lax.cos(x) * x_dot


@plant("the transpose conjugates", "transpose is the adjoint", known=True)
class Conjugated(Turned):
    @hookimpl
    def transpose(self, cotangents: Any, args: Sequence[Any]) -> Any:
        return [cotangents * (2.0 - 1.0j)]


@plant("the map takes the row along the batch axis", "a map is a loop", known=True)
class Axis(Row):
    @hookimpl
    def vmap(self, axis: Any, args: Sequence[Any], dims: Sequence[Any], *, row: int) -> Any:
        return self._bind(args[0], row=min(row, axis.size - 1)), max(dims[0] - 1, 0)


@plant("impl gives doubles for narrower floats", "impl and the compiled program agree", known=True)
class Doubles(Sine):
    @hookimpl
    def impl(self, args: Sequence[Any]) -> Any:
        (x,) = args
        return np.sin(x.astype(np.float64))


@plant("the weak type is lost", "weak types pass through", known=True)
class Strong(Sine):
    @hookimpl
    def abstract_eval(self, avals: Sequence[Any]) -> Any:
        x = super().abstract_eval(avals)
        return ShapedArray(x.shape, x.dtype)


@plant("the derivative is not linear in the tangent", "jvp is linear", known=True)
class Squared(Sine):
    @hookimpl
    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        (x,), (x_dot,) = primals, tangents
        return lax.sin(x), lax.cos(x) * x_dot * x_dot


@plant("a cotangent is lost", "transpose is the adjoint", known=True)
class Lost(Difference):
    @hookimpl
    def transpose(self, cotangents: Any, args: Sequence[Any]) -> Any:
        x, _ = args
        return [cotangents if type(x) is Linear else None, None]


@plant("impl writes to a buffer that earlier results share", "results keep their values", known=True)
class Shared(Sine):
    def __init__(self) -> None:
        self._buffers: dict[Any, Any] = {}

    @hookimpl
    def impl(self, args: Sequence[Any]) -> Any:
        (x,) = args
        found = self._buffers.setdefault((x.shape, x.dtype), np.empty(x.shape, x.dtype))
        found[...] = np.sin(x)
        return found


@plant("impl makes numbers of NaN", "nans and infinities agree", known=True)
class Cleaned(Sine):
    @hookimpl
    def impl(self, args: Sequence[Any]) -> Any:
        (x,) = args
        return np.where(np.isnan(x), np.zeros_like(x), np.sin(x)).astype(x.dtype)


def main() -> None:
    """Print what finds each fault, and that those without a fault pass."""
    full = "--full" in sys.argv
    for kind in RIGHT:
        print(f"{kind.__name__}: {sorted(failing(kind(), full)) or 'passes'}")
    for fault in FAULTS.values():
        found = fault.found(full, None)
        others = f", and {len(found - {fault.check})} others" if len(found) > 1 else ""
        print(f"{fault.name} ({fault.what}): {fault.check + others if fault.check in found else sorted(found) or None}",
              flush=True)


if __name__ == "__main__":
    main()
