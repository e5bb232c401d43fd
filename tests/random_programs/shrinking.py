"""Making a failing program smaller while it fails in the same way."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .comparing import Failure
from .programs import Program
from .slots import ALWAYS
from .writing import Block, Statement


def shrink(failure: Failure, check: Callable[[Program], Failure | None], attempts: int = 400) -> Failure:
    """The smallest program found that fails with the same kind and the same first line of its error."""
    progress = True
    while progress:
        progress = False
        for smaller in candidates(failure.program):
            if not attempts:
                return failure
            attempts -= 1
            found = check(smaller)
            if found and found.signature == failure.signature:
                failure, progress = found, True
                break
    return failure


def candidates(program: Program) -> Iterator[Program]:
    """Programs with one thing less, what takes most away first."""
    for k in range(len(program.transformations)):
        yield replace(program, transformations=program.transformations[:k] + program.transformations[k + 1:])
    for block in fewer(program.block):
        yield replace(program, block=block)
    for k, key in enumerate(program.slots):
        if key not in ALWAYS and not re.search(rf"\b{key}[0-9]+\b", program.text):
            yield without(program, k)
    for k in range(len(program.argnums)):
        if len(program.argnums) > 1:
            yield replace(program, argnums=program.argnums[:k] + program.argnums[k + 1:])
    if sum(program.mapped) > 1:
        for k in [k for k, mapped in enumerate(program.mapped) if mapped]:
            yield replace(program, mapped=(*program.mapped[:k], False, *program.mapped[k + 1:]))
    for key, value in program.inputs.items():
        simple = np.ones_like(value) if np.asarray(value).dtype.kind != "b" else np.zeros_like(value)
        if np.asarray(value).tolist() != simple.tolist():
            yield replace(program, inputs={**program.inputs, key: simple if np.ndim(value) or
                                           hasattr(value, "dtype") else type(value)(1)})


def without(program: Program, k: int) -> Program:
    """The program without a slot that it doesn't use."""
    slots = program.slots[:k] + program.slots[k + 1:]
    argnums = tuple([i - (i > k) for i in program.argnums if i != k]) or (0,)
    mapped = program.mapped[:k] + program.mapped[k + 1:]
    inputs = {key: program.inputs[key] for key in slots}
    return replace(program, slots=slots, inputs=inputs, argnums=argnums, mapped=mapped if any(mapped) else
                   (True, *mapped[1:]))


def fewer(block: Block) -> Iterator[Block]:
    """Blocks with a statement less, or with a statement smaller."""
    for k, statement in enumerate(block):
        before, after = block[:k], block[k + 1:]
        yield before + after
        for inner in statement.blocks:
            yield before + inner + after
        for smaller in smaller_statements(statement):
            yield (*before, smaller, *after)


def smaller_statements(statement: Statement) -> Iterator[Statement]:
    for i, block in enumerate(statement.blocks):
        for inner in fewer(block):
            yield replace(statement, blocks=(*statement.blocks[:i], inner, *statement.blocks[i + 1:]))
    for k in range(len(statement.parts)):
        yield replace(statement, parts=statement.parts[:k] + statement.parts[k + 1:])
    for name in ("args", "outs"):
        keys = getattr(statement, name)
        if len(keys) > 1 and statement.droppable:
            for key in keys:
                fewer_keys: Any = {name: tuple([k for k in keys if k != key])}
                yield replace(statement, **fewer_keys)
