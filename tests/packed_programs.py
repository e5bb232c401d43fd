"""Random programs of integers of less than a byte, beside the same ones of bytes whose lowest bits are taken each time.

`python -m tests.packed_programs --first 0 --count 500 [int4 ...]` compares that many of each dtype.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import corejax as cj
from corejax import lax
from corejax.core import dtypes

NAMES = ("int2", "uint2", "int4", "uint4")
Wrap = Callable[[Any], Any]
Shape = tuple[int, ...]


class Step(NamedTuple):
    """One statement of a program: what it does with the values so far, and the shape of its result."""

    name: str
    apply: Callable[[Sequence[Any], Wrap], Any]
    shape: Shape


_OF_TWO = ("add", "sub", "mul", "max", "min", "div", "rem", "bitwise_and", "bitwise_or", "bitwise_xor", "pow")
_OF_ONE = ("neg", "sign", "bitwise_not", "square")
_ALONG = ("sum", "prod", "max", "min")


class Program:
    """Some statements on three matrices, drawn by a seed."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.shapes: list[Shape] = [self.sizes(1, 6, 2) for _ in range(3)]
        self.inputs = tuple(self.shapes)
        self.steps: list[Step] = []
        for _ in range(int(self.rng.integers(2, 10))):
            step = self._drawn()
            if step is not None:
                self.steps.append(step)
                self.shapes.append(step.shape)

    def sizes(self, low: int, high: int, count: int) -> Shape:
        return tuple([int(n) for n in self.rng.integers(low, high, count)])

    def _drawn(self) -> Step | None:
        rng = self.rng
        i = int(rng.integers(len(self.shapes)))
        shape = self.shapes[i]
        j = int(rng.choice([k for k, other in enumerate(self.shapes) if other == shape]))
        kind = str(rng.choice(_STATEMENTS))
        return getattr(self, f"_{kind}")(i, j, shape)  # type: ignore[no-any-return]

    # Statements: of the i-th value, and perhaps the j-th, which has the same shape.

    def _two(self, i: int, j: int, shape: Shape) -> Step:
        name = str(self.rng.choice(_OF_TWO))
        return Step(name, lambda e, wrap: wrap(getattr(lax, name)(e[i], e[j])), shape)

    def _one(self, i: int, j: int, shape: Shape) -> Step:
        name = str(self.rng.choice(_OF_ONE))
        return Step(name, lambda e, wrap: wrap(getattr(lax, name)(e[i])), shape)

    def _along(self, i: int, j: int, shape: Shape) -> Step | None:
        if not shape:
            return None
        name, axis = str(self.rng.choice(_ALONG)), int(self.rng.integers(len(shape)))
        rest = shape[:axis] + shape[axis + 1:]
        return Step(f"reduce_{name}", lambda e, wrap: wrap(getattr(lax, f"reduce_{name}")(e[i], (axis,))), rest)

    def _running(self, i: int, j: int, shape: Shape) -> Step | None:
        if not shape:
            return None
        name, axis = str(self.rng.choice(("cumsum", "cumprod", "cummax", "sort"))), int(self.rng.integers(len(shape)))
        return Step(name, lambda e, wrap: wrap(getattr(lax, name)(e[i], axis)), shape)

    def _moved(self, i: int, j: int, shape: Shape) -> Step:
        order = tuple([int(d) for d in self.rng.permutation(len(shape))])
        turned = tuple([int(d) for d in np.flatnonzero(self.rng.random(len(shape)) < 0.5)])
        return Step("transpose", lambda e, wrap: lax.transpose(lax.rev(e[i], turned), order),
                    tuple([shape[d] for d in order]))

    def _sliced(self, i: int, j: int, shape: Shape) -> Step:
        low = [int(self.rng.integers(0, size)) for size in shape]
        high = [int(self.rng.integers(start + 1, size + 1)) for start, size in zip(low, shape, strict=True)]
        return Step("slice", lambda e, wrap: lax.slice(e[i], low, high),
                    tuple([stop - start for start, stop in zip(low, high, strict=True)]))

    def _padded(self, i: int, j: int, shape: Shape) -> Step:
        pads = [self.sizes(0, 3, 3) for _ in shape]
        padded = [n + low + high + (n - 1) * inner for n, (low, high, inner) in zip(shape, pads, strict=True)]
        return Step("pad", lambda e, wrap: lax.pad(e[i], lax.full_like(e[i], 1, shape=()), pads), tuple(padded))

    def _joined(self, i: int, j: int, shape: Shape) -> Step | None:
        if not shape or shape[0] > 12:
            return None
        if len(shape) < 3 and self.rng.random() < 0.5:
            return Step("stack", lambda e, wrap: lax.stack([e[i], e[j]], 0), (2, *shape))
        return Step("concatenate", lambda e, wrap: lax.concatenate([e[i], e[j]], 0), (2 * shape[0], *shape[1:]))

    def _chosen(self, i: int, j: int, shape: Shape) -> Step:
        return Step("select", lambda e, wrap: lax.select(lax.lt(e[i], e[j]), e[j], e[i]), shape)

    def _updated(self, i: int, j: int, shape: Shape) -> Step | None:
        if not shape:
            return None
        sizes, starts = [int(self.rng.integers(1, n + 1)) for n in shape], self.sizes(-2, 6, len(shape))
        return Step("dynamic_update_slice", lambda e, wrap: lax.dynamic_update_slice(
            e[i], lax.dynamic_slice(e[j], starts, sizes), [np.int32(n) for n in starts]), shape)

    def _indexed(self, i: int, j: int, shape: Shape) -> Step | None:
        if not shape:
            return None
        places = self.rng.integers(0, shape[0], 4)
        if self.rng.random() < 0.5:
            return Step("x[places]", lambda e, wrap: e[i][places], (4, *shape[1:]))
        how = str(self.rng.choice(("add", "multiply", "max", "min")))
        return Step(f"x.at[places].{how}", lambda e, wrap: wrap(getattr(e[i].at[places], how)(1)), shape)

    def _product(self, i: int, j: int, shape: Shape) -> Step | None:
        if len(shape) != 2:
            return None
        return Step("dot_general", lambda e, wrap: wrap(lax.dot_general(e[i], e[j], (((1,), (1,)), ((), ())))),
                    (shape[0], shape[0]))

    def _through(self, i: int, j: int, shape: Shape) -> Step:
        """A float, or a wider integer, and back, where the lowest bits must be those of the number, not of more."""
        wide = str(self.rng.choice(("float32", "int32", "int8", "uint8")))
        return Step(wide, lambda e, wrap: wrap(lax.convert_element_type(
            lax.convert_element_type(wrap(lax.add(e[i], e[j])), wide), e[i].dtype)), shape)

    def _places(self, i: int, j: int, shape: Shape) -> Step | None:
        if not shape:
            return None
        return Step("argmax", lambda e, wrap: wrap(lax.convert_element_type(lax.argmax(e[i], 0, np.int32), e[i].dtype)),
                    shape[1:])

    def _loop(self, i: int, j: int, shape: Shape) -> Step | None:
        if not shape:
            return None

        def along(e: Sequence[Any], wrap: Wrap) -> Any:
            def body(total: Any, x: Any) -> Any:
                total = wrap(lax.add(total, x))
                return total, wrap(lax.mul(total, x))
            return lax.scan(body, lax.full_like(e[i], 0, shape=shape[1:]), e[i])[1]

        def repeated(e: Sequence[Any], wrap: Wrap) -> Any:
            return lax.fori_loop(0, 3, lambda n, x: wrap(lax.add(x, e[j])), e[i])
        return Step("scan", along, shape) if self.rng.random() < 0.5 else Step("fori_loop", repeated, shape)

    def _branch(self, i: int, j: int, shape: Shape) -> Step:
        def either(e: Sequence[Any], wrap: Wrap) -> Any:
            some = lax.reduce_max(lax.convert_element_type(e[i], np.int32), tuple(range(len(shape)))) > 0
            return lax.cond(some, lambda x, y: wrap(lax.add(x, y)), lambda x, y: y, e[i], e[j])
        return Step("cond", either, shape)

    def _mapped(self, i: int, j: int, shape: Shape) -> Step | None:
        if not shape:
            return None
        return Step("vmap", lambda e, wrap: cj.vmap(lambda x, y: wrap(lax.sub(wrap(lax.mul(x, y)), x)))(e[i], e[j]),
                    shape)

    def run(self, wrap: Wrap) -> Callable[..., list[Any]]:
        """The function of the inputs that returns what each statement gives."""
        def function(*inputs: Any) -> list[Any]:
            values = [*inputs]
            for step in self.steps:
                values.append(step.apply(values, wrap))
            return values[len(inputs):]
        return function


_STATEMENTS = [name[1:] for name, value in vars(Program).items()
               if name.startswith("_") and not name.startswith("__") and name != "_drawn" and callable(value)]


def lowest_bits(dtype: np.dtype) -> Wrap:
    """A function of bytes: the number that their lowest bits are in this dtype."""
    shift = lax.shift_right_arithmetic if dtypes.kind(dtype) == "i" else lax.shift_right_logical

    def wrap(x: Any) -> Any:
        above = lax.full_like(x, 8 - dtypes.bits_of(dtype))
        return shift(lax.shift_left(x, above), above)
    return wrap


def compared(name: str, seed: int) -> str | None:
    """What differs between a program of packed integers, eager or compiled, and that of bytes; None if nothing does."""
    dtype, program = dtypes.canonical(name), Program(seed)
    limits = dtypes.integer_limits(dtype)
    as_bytes = np.dtype(np.int8 if dtypes.kind(dtype) == "i" else np.uint8)
    inputs = [program.rng.integers(limits.min, limits.max + 1, shape).astype(as_bytes) for shape in program.inputs]
    packed = [x.astype(dtype) for x in inputs]
    wanted = cj.jit(program.run(lowest_bits(dtype)))(*inputs)
    itself = program.run(lambda x: x)
    for way, outs in (("compiled", cj.jit(itself)(*packed)), ("eager", itself(*map(cj.device_put, packed)))):
        for step, out, right in zip(program.steps, outs, wanted, strict=True):
            if out.dtype != dtype or np.asarray(out).astype(np.int64).tolist() != right.tolist():
                return f"{name}, seed {seed}, {way}: {step.name} gave {out}, wanted {right}"
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare random programs of packed integers with those of bytes.")
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    given = parser.parse_args()
    differences = [found for name in given.names for seed in range(given.first, given.first + given.count)
                   if (found := compared(name, seed))]
    print(*differences, f"{len(differences)} of {len(given.names) * given.count} programs differ", sep="\n")
    return bool(differences)


if __name__ == "__main__":
    raise SystemExit(main())
