"""Random programs with effects at every level: what happened, in which order, beside the program run in Python.

A program is a list of steps, each a kind with its parts; it
is run by a library (corejax, jax) or by `Plain`, which is Python's own control flow and says what must happen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

Step = tuple[Any, ...]
Steps = list[Step]
Event = tuple[str, float]

#: How deep steps nest, and how many there are in a block.
DEPTH, LENGTH = 3, 4


class Program(NamedTuple):
    """Steps, and which transformations they allow."""

    steps: Steps
    seed: int

    @property
    def kinds(self) -> set[str]:
        """The kinds of steps in it, at every level."""
        return {*_kinds(self.steps)}

    def __str__(self) -> str:
        return "\n".join(_lines(self.steps))


def program(seed: int) -> Program:
    """The random program with this number."""
    rng = np.random.default_rng(seed)
    tags = iter(range(10 ** 6))
    without = ("while", "checked_while") if seed % 3 else ("vjp",)
    return Program(_block(rng, DEPTH, tags, without), seed)


def _block(rng: np.random.Generator, depth: int, tags: Iterator[int], without: Sequence[str]) -> Steps:
    steps: Steps = []
    for _ in range(int(rng.integers(1, LENGTH + 1))):
        steps.append(_step(rng, depth, tags, without))
    return steps


_LEAVES = ("math", "write", "write", "note")
_NESTED = ("cond", "switch", "scan", "fori", "while", "checked_while", "jit", "checkpoint", "jvp", "vjp", "unused",
           "twice")


def _step(rng: np.random.Generator, depth: int, tags: Iterator[int], without: Sequence[str]) -> Step:
    nested = [kind for kind in _NESTED if kind not in without]
    kind = str(rng.choice(_LEAVES if depth == 0 or rng.random() < 0.45 else nested))

    def block(*others: str) -> Steps:
        return _block(rng, depth - 1, tags, (*without, *others))

    def tag() -> str:
        return f"{kind}{next(tags)}"

    if kind == "math":
        return kind, int(rng.integers(0, 4))
    if kind in ("write", "note"):
        return kind, tag()
    if kind in ("cond", "switch"):
        return kind, float(rng.normal()), [block() for _ in range(2 if kind == "cond" else 3)]
    if kind in ("scan", "fori", "while"):
        return kind, int(rng.integers(0, 4)), block()
    if kind == "checked_while":
        return kind, tag(), int(rng.integers(0, 3)), block()
    if kind in ("jvp", "vjp"):
        return kind, tag(), block("while", "checked_while", "vjp")
    if kind == "unused":
        return kind, block("vjp")
    return kind, block()


def _kinds(steps: Steps) -> Iterator[str]:
    for kind, *parts in steps:
        yield kind
        for part in parts:
            for block in part if isinstance(part, list) and part and isinstance(part[0], list) else [part]:
                if isinstance(block, list):
                    yield from _kinds(block)


def _lines(steps: Steps, indent: str = "") -> Iterator[str]:
    for kind, *parts in steps:
        blocks = [part for part in parts if isinstance(part, list)]
        yield f"{indent}{kind} {', '.join(str(part) for part in parts if not isinstance(part, list))}"
        for part in blocks:
            for k, block in enumerate(part if part and isinstance(part[0], list) else [part]):
                if k:
                    yield f"{indent}or"
                yield from _lines(block, indent + "  ")


# In Python

class Plain:
    """What must happen: in the order of the program, and in the pass backward."""

    def __init__(self, differentiated: bool) -> None:
        self.differentiated = differentiated
        self.written: list[Event] = []
        self.noted: list[Event] = []
        self.backward: list[str] = []

    def run(self, steps: Steps, x: float, differentiated: bool) -> float:
        """The result of steps, of which custom rules run instead of their functions if they are differentiated."""
        for kind, *parts in steps:
            if kind == "math":
                x = (math.sin(x), 0.5 * x + 1.0, x * math.cos(x), math.tanh(x) - 0.25)[parts[0]]
            elif kind == "write":
                self.written.append((parts[0], x))
            elif kind == "note":
                self.noted.append((parts[0], x))
            elif kind == "cond":
                x = self.run(parts[1][0 if x > parts[0] else 1], x, differentiated)
            elif kind == "switch":
                x = self.run(parts[1][_branch(x, parts[0])], x, differentiated)
            elif kind in ("scan", "fori", "while"):
                for _ in range(parts[0]):
                    x = self.run(parts[1], x, differentiated)
            elif kind == "checked_while":
                for _ in range(parts[1]):
                    self.written.append((parts[0], x))
                    x = self.run(parts[2], x, differentiated)
                self.written.append((parts[0], x))
            elif kind == "unused":
                self.run(parts[0], x, differentiated)
            elif kind == "twice":
                x = self.run(parts[0], self.run(parts[0], x, differentiated), differentiated)
            elif kind in ("jvp", "vjp") and differentiated:
                self.written.append((f"{parts[0]} rule", x))
                if kind == "vjp":
                    self.backward.append(f"{parts[0]} back")
                x = self.run(parts[1], x, False)
            else:
                x = self.run(parts[-1], x, differentiated)
        return x


def _branch(x: float, shift: float) -> int:
    return min(max(math.floor(x + shift), 0), 2)


class Happened(NamedTuple):
    """The events of a run: ordered ones, others, and those of the pass backward (by tag)."""

    written: list[Event]
    noted: list[Event]
    backward: list[str]


def expected(which: Program, xs: Sequence[float], differentiated: bool) -> Happened:
    """What must happen for these arguments, one after the other."""
    plain = Plain(differentiated)
    for x in xs:
        plain.run(which.steps, x, differentiated)
    return Happened(plain.written, plain.noted, plain.backward[::-1])


# In a library

class Library(NamedTuple):
    """What a program is written with. `write(tag, x)` is ordered, `note(tag, x)` isn't."""

    lax: Any
    np: Any
    jit: Callable[..., Any]
    checkpoint: Callable[..., Any]
    custom_jvp: Any
    custom_vjp: Any
    write: Callable[[str, Any], None]
    note: Callable[[str, Any], None]


def function(which: Program, lib: Library) -> Callable[[Any], Any]:
    """The program as a function of one number."""
    return lambda x: _run(lib, which.steps, x)


def _run(lib: Library, steps: Steps, x: Any) -> Any:
    for kind, *parts in steps:
        x = _RUNS[kind](lib, x, *parts)
    return x


def _math(lib: Library, x: Any, which: int) -> Any:
    return (lambda: lib.lax.sin(x), lambda: 0.5 * x + 1.0, lambda: x * lib.lax.cos(x),
            lambda: lib.lax.tanh(x) - 0.25)[which]()


def _write(lib: Library, x: Any, tag: str) -> Any:
    lib.write(tag, x)
    return x


def _note(lib: Library, x: Any, tag: str) -> Any:
    lib.note(tag, x)
    return x


def _cond(lib: Library, x: Any, limit: float, blocks: list[Steps]) -> Any:
    return lib.lax.cond(x > limit, *[_function(lib, block) for block in blocks], x)


def _switch(lib: Library, x: Any, shift: float, blocks: list[Steps]) -> Any:
    index = lib.lax.convert_element_type(lib.lax.floor(x + shift), np.int32)
    return lib.lax.switch(index, [_function(lib, block) for block in blocks], x)


def _scan(lib: Library, x: Any, count: int, block: Steps) -> Any:
    return lib.lax.scan(lambda x, _: (_run(lib, block, x), None), x, None, length=count)[0]


def _fori(lib: Library, x: Any, count: int, block: Steps) -> Any:
    return lib.lax.fori_loop(0, count, lambda _, x: _run(lib, block, x), x)


def _while(lib: Library, x: Any, count: int, block: Steps) -> Any:
    return lib.lax.while_loop(lambda s: s[0] < count, lambda s: (s[0] + 1, _run(lib, block, s[1])), (0, x))[1]


def _checked_while(lib: Library, x: Any, tag: str, count: int, block: Steps) -> Any:
    def going(state: Any) -> Any:
        lib.write(tag, state[1])
        return state[0] < count

    return lib.lax.while_loop(going, lambda s: (s[0] + 1, _run(lib, block, s[1])), (0, x))[1]


def _jvp(lib: Library, x: Any, tag: str, block: Steps) -> Any:
    function = lib.custom_jvp(_function(lib, block))

    def rule(primals: Any, tangents: Any) -> Any:
        lib.write(f"{tag} rule", primals[0])
        return function(*primals), 0.5 * tangents[0]

    function.defjvp(rule)
    return function(x)


def _vjp(lib: Library, x: Any, tag: str, block: Steps) -> Any:
    function = lib.custom_vjp(_function(lib, block))

    def forward(x: Any) -> Any:
        lib.write(f"{tag} rule", x)
        return _run(lib, block, x), None

    def backward(_: Any, ct: Any) -> Any:
        lib.write(f"{tag} back", ct)
        return (0.5 * ct,)

    function.defvjp(forward, backward)
    return function(x)


def _unused(lib: Library, x: Any, block: Steps) -> Any:
    _run(lib, block, x)
    return x


def _twice(lib: Library, x: Any, block: Steps) -> Any:
    function = lib.jit(_function(lib, block))
    return function(function(x))


def _function(lib: Library, block: Steps) -> Callable[[Any], Any]:
    return lambda x: _run(lib, block, x)


_RUNS: dict[str, Callable[..., Any]] = {
    "math": _math, "write": _write, "note": _note, "cond": _cond, "switch": _switch, "scan": _scan, "fori": _fori,
    "while": _while, "checked_while": _checked_while, "jvp": _jvp, "vjp": _vjp, "unused": _unused, "twice": _twice,
    "jit": lambda lib, x, block: lib.jit(_function(lib, block))(x),
    "checkpoint": lambda lib, x, block: lib.checkpoint(_function(lib, block))(x),
}


def difference(wanted: Happened, got_written: list[Event], got_noted: list[Event]) -> str | None:
    """What differs from what must happen; None if nothing does."""
    backward = len(wanted.backward)
    forward = got_written[:len(got_written) - backward] if backward else got_written
    back = [tag for tag, _ in got_written[len(got_written) - backward:]] if backward else []
    if back != wanted.backward:
        return f"backward: {back} instead of {wanted.backward}"
    for what, ours, theirs in (("ordered", wanted.written, forward),
                               ("unordered", sorted(wanted.noted), sorted(got_noted))):
        if [tag for tag, _ in ours] != [tag for tag, _ in theirs]:
            return f"{what}: {theirs} instead of {ours}"
        if not np.allclose([x for _, x in ours], [x for _, x in theirs], rtol=1e-7, atol=1e-9):
            return f"{what}, values: {theirs} instead of {ours}"
    return None
