"""A mutant: one fault that an author of rules might make, as a replacement of a piece of a module's source.

A table is a tuple of mutants, most easily made in groups, as `sums.py` would begin:

    MUTANTS = (
        *mutants_of("reduce_sum", "corejax_reductions.sums", "ReduceSum", (
            ("transpose", "dropped axis", "summed or ()", "summed[:-1]"),
            ("vmap", "off by one", "axis + 1", "axis"),
        )),
    )

Each row is (hook, kind, old, new), or (hook, kind, old, new, survives) where `survives` is the reason why the kit can't
tell this mutant from the true rule, or need not. `old` occurs exactly once in the place that the group names: a
function, a class, a method ("ReduceSum.vmap"), or the value that a name at the top of the module is bound to; "" is the
whole module.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

#: Of faults. A row names one of them.
KINDS = {
    "sign": "a sign is wrong",
    "conj": "a conjugation is missing or too many",
    "axis": "another axis",
    "broadcast sum": "a cotangent isn't summed over what was broadcast, or is summed over too much",
    "swapped operands": "two operands or branches have changed places",
    "dropped term": "a term or a factor is missing",
    "wrong function": "another function or operation, which is close",
    "dtype": "a wrong dtype",
    "weak type": "a weak type lost or made up",
    "off by one": "an index, a bound, a size or a batch dim beside the right one",
    "constant": "a wrong constant",
    "comparison": "a wrong comparison: strict or not, the other way round",
    "declaration": "linear, factors, not_differentiable or symbolic zeros declared wrongly",
    "missing case": "a case is forgotten: zero sizes, rank 0, negative, NaN, unmapped operands, another dtype",
    "param": "a param is wrong, ignored or not passed on",
    "permutation": "a permutation instead of its inverse, or another one",
    "order": "reversed, or in another order",
    "lost cotangent": "an operand gets no cotangent",
    "shape": "a wrong shape",
    "side effect": "an operand is written to, or shares its memory with a result that changes",
    "refusal": "an input that has to be refused is taken",
}

HOOKS = ("impl", "abstract_eval", "jvp", "transpose", "vmap", "xla_translation", "evaluate", "partial_eval",
         "recompute", "dce", "decompose", "linearize", "effects")


@dataclass(frozen=True)
class Mutant:
    """One fault: in the hook of a primitive, of a kind; `new` stands where `old` stood, once, within a place.

    `primitive` names the primitive that the kit then checks: that of the module, or for a helper one that uses it.
    `survives` is the reason why it isn't killed; empty where it has to be.
    """

    name: str
    primitive: str
    module: str
    within: str
    hook: str
    kind: str
    old: str
    new: str
    survives: str = ""

    def __str__(self) -> str:
        return self.name

    def source(self) -> str:
        """The source of the module with the fault in it."""
        text = source_of(self.module)
        start, stop = place(self.module, self.within)
        at = text.find(self.old, start, stop)
        assert at >= 0, f"{self.name}: {self.old!r} is not in {self.module}, {self.within or 'anywhere'}"
        assert text.find(self.old, at + 1, stop) < 0, f"{self.name}: {self.old!r} occurs twice in {self.within}"
        return text[:at] + self.new + text[at + len(self.old):]


def mutants_of(primitives: str, module: str, within: str,
               rows: Iterable[tuple[str, str, str, str] | tuple[str, str, str, str, str]]) -> list[Mutant]:
    """The mutants of one place in a module; several primitives, separated by blanks, make a mutant of each."""
    return [Mutant("", primitive, module, within, hook, kind, old, new, *survives)
            for hook, kind, old, new, *survives in rows for primitive in primitives.split()]


def numbered(mutants: Sequence[Mutant]) -> tuple[Mutant, ...]:
    """The mutants with names of their own: primitive, hook, kind, and a number from the second one on."""
    seen: dict[str, int] = {}
    out = []
    for m in mutants:
        name = f"{m.primitive}-{m.hook}-{m.kind}".replace(" ", "_")
        seen[name] = seen.get(name, 0) + 1
        name = name if seen[name] == 1 else f"{name}-{seen[name]}"
        out.append(Mutant(name, m.primitive, m.module, m.within, m.hook, m.kind, m.old, m.new, m.survives))
    return tuple(out)


def path_of(module: str) -> Path:
    """The file of an installed module, which isn't imported; its package is."""
    spec = find_spec(module)
    assert spec is not None and spec.origin is not None, module
    return Path(spec.origin)


@cache
def source_of(module: str) -> str:
    """The true source of a module."""
    return path_of(module).read_text(encoding="utf-8")


@cache
def place(module: str, within: str) -> tuple[int, int]:
    """Where a function, class, method or assignment stands in the source: positions of its begin and end."""
    text = source_of(module)
    if not within:
        return 0, len(text)
    body: list[ast.stmt] = ast.parse(text).body
    node: ast.stmt | None = None
    for name in within.split("."):
        found = [statement for statement in body if name in _names(statement)]
        assert len(found) == 1, f"{module} has {len(found)} places called {within}"
        node = found[0]
        body = getattr(node, "body", [])
    assert node is not None and node.end_lineno is not None
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts[node.lineno - 1], starts[node.end_lineno]


def _names(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return [statement.name]
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return [target.id for target in targets if isinstance(target, ast.Name)]
