"""The cost of checking the results of rules while a program is traced.

    python -m benchmarks.rule_checks [--rounds N] [--equations N ...]

Each figure is measured twice, alternating: with the kernel as it is, and with every check removed from the source of
the same functions. A check is a branch that can only raise or replace a value with its checked self; a call of a
`check_...` that returns what it checked; and anything only used by a check. Nothing else differs.
"""

from __future__ import annotations

import argparse
import ast
import gc
import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from time import thread_time
from typing import Any

import numpy as np

import corejax as cj
from benchmarks.measure import Timing
from corejax import lax
from corejax.interpreters import batching, forward, linearize, partial_eval, reverse
from corejax.packs import derivation
from corejax.plugin import Primitive

#: Which argument a check returns as its result; the others return nothing.
HANDED_ON = {"check_jvp_pair": 1, "check_avals": 1, "check_factor": 1, "check_sequence": 2, "check_list": 2,
             "check_array": 2, "check_value": 2, "check_outputs": 2, "check_tangent": 2, "check_batched": 1,
             "_check_weight": 1}

#: The functions to rewrite: those through which results of rules enter the kernel.
METHODS = (
    (forward, forward.JVPTrace, ("process", "box", "box_all")),
    (linearize, linearize.LinearizeTrace, ("process_one", "_weight", "box", "_by_rule", "_by_linearize")),
    (batching, batching.BatchTrace, ("process", "_box")),
)
FUNCTIONS = ((reverse, "backward"),)
MAKERS = ("_jvp_of_partials", "_times")


class Stripped(ast.NodeTransformer):
    """A function without its checks."""

    def __init__(self, owner: str | None) -> None:
        self.owner = owner
        self.removed = 0

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        name = _name(node)
        if name in HANDED_ON:
            self.removed += 1
            return node.args[HANDED_ON[name]]
        if isinstance(node.func, ast.Name) and node.func.id == "super" and self.owner:
            node.args = [ast.Name(self.owner, ast.Load()), ast.Name("self", ast.Load())]
        return node

    def visit_If(self, node: ast.If) -> Any:
        if not node.orelse and all(_only_checks(statement) for statement in node.body):
            self.removed += 1
            return None
        return self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> Any:
        if isinstance(node.value, ast.Call) and _is_check(node.value):
            self.removed += 1
            return None
        return self.generic_visit(node)


class Unused(ast.NodeTransformer):
    """A function without the variables that only checks read."""

    def __init__(self, tree: ast.AST) -> None:
        names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        self._read = {node.id for node in names if isinstance(node.ctx, ast.Load)}
        self.tree = self.visit(tree)

    def visit_Assign(self, node: ast.Assign) -> Any:
        calls = [_name(call) for call in ast.walk(node) if isinstance(call, ast.Call)]
        match node.targets:
            case [ast.Name(id=name)] if name not in self._read and not set(calls) - {"getattr", "get", "len", "type"}:
                return None
        return node


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _is_check(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and (_name(node).startswith(("check_", "_check")))


def _only_checks(statement: ast.stmt) -> bool:
    """Whether a statement can only raise, or replace a value with its checked self."""
    match statement:
        case ast.Raise() | ast.Assign(targets=[ast.Name(id="expected")]):  # the type to compare to
            return True
        case ast.Assign(targets=[ast.Subscript(value=ast.Attribute(attr="known"))]):  # the same, for the next time
            return True
        case ast.Expr(value=ast.Call() as call):
            return _is_check(call)
        case ast.Assign(value=ast.Call() as call):
            return _is_check(call)
        case ast.If(body=body, orelse=orelse):
            return all(_only_checks(inner) for inner in (*body, *orelse)) or all(
                isinstance(inner, ast.Continue) for inner in body)
        case _:
            return False


def stripped(function: Any, namespace: dict[str, Any], owner: str | None = None) -> Any:
    """The function without its checks, in the same namespace."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    transformer = Stripped(owner)
    tree = ast.fix_missing_locations(Unused(transformer.visit(tree)).tree)
    assert transformer.removed, f"{function.__qualname__} has no checks"
    scope = dict(namespace)
    # with the file name, by which the kernel tells which frames are the user's
    exec(compile(tree, function.__code__.co_filename, "exec"), scope)
    return scope[function.__name__]


class Kernel:
    """The kernel with its checks, and without."""

    def __init__(self, primitives: list[Any]) -> None:
        self._places: list[tuple[Any, str, Any, Any]] = []
        for module, owner, names in METHODS:
            for name in names:
                function = vars(owner)[name]
                self._places.append((owner, name, function, stripped(function, vars(module), owner.__name__)))
        for module, name in FUNCTIONS:
            function = getattr(module, name)
            without = stripped(function, vars(module))
            for user in (reverse, *[m for m in (derivation, partial_eval) if getattr(m, name, None) is function]):
                self._places.append((user, name, function, without))
        without_times = stripped(derivation._times, vars(derivation))
        maker = stripped(derivation._jvp_of_partials, {**vars(derivation), "_times": without_times})
        for primitive in primitives:
            declared = getattr(primitive.plugin, "jvp", None)
            if primitive.factors is not None or type(declared).__name__ == "Partials":
                self._places.append((primitive, "jvp", primitive.jvp,
                                     maker(primitive, declared.functions, primitive.factors)))

    @contextmanager
    def without_checks(self) -> Iterator[None]:
        """Within the block, results of rules aren't checked."""
        for holder, name, _, without in self._places:
            setattr(holder, name, without)
        try:
            yield
        finally:
            for holder, name, function, _ in self._places:
                setattr(holder, name, function)


def elementwise(count: int) -> Callable[[Any], Any]:
    """A program of elementwise operations with derivatives declared as factors."""
    def fun(x: Any) -> Any:
        for _ in range(count // 4):
            x = lax.sin(x) * x + lax.cos(x)
        return x
    return fun


def mixed(count: int) -> Callable[[Any], Any]:
    """A program in which half of the operations have functions for derivatives and batching."""
    def fun(x: Any) -> Any:
        for _ in range(count // 8):
            y = lax.reshape(x, (2, 3))
            z = lax.transpose(y, (1, 0))
            w = lax.concatenate([y, y], 0)
            s = lax.slice(w, (0, 0), (2, 3))
            m = lax.cumsum(s, 1) if hasattr(lax, "cumsum") else s
            x = lax.reshape(lax.max(m, s) + lax.transpose(z, (1, 0)), (6,))
            x = lax.dynamic_slice(x, (0,), (6,))
        return x
    return fun


PROGRAMS = {"elementwise": (elementwise, np.linspace(0.1, 0.9, 6)), "mixed": (mixed, np.linspace(0.1, 0.9, 6))}


def tracings(fun: Callable[[Any], Any], x: Any) -> dict[str, Callable[[], Any]]:
    """The ways of tracing to measure."""
    xs = np.stack([x, x])
    return {
        "make_jaxpr": lambda: cj.make_jaxpr(fun)(x),
        "make_jaxpr(jvp)": lambda: cj.make_jaxpr(lambda x, t: cj.jvp(fun, (x,), (t,)))(x, x),
        "make_jaxpr(grad)": lambda: cj.make_jaxpr(cj.grad(lambda x: fun(x).sum()))(x),
        "make_jaxpr(vmap)": lambda: cj.make_jaxpr(cj.vmap(fun))(xs),
        "make_jaxpr(vmap(grad))": lambda: cj.make_jaxpr(cj.vmap(cj.grad(lambda x: fun(x).sum())))(xs),
    }


def measure(counts: list[int], rounds: int) -> Iterator[tuple[str, Timing, Timing, Timing]]:
    """Each figure, with and without checks."""
    for program, (make, x) in PROGRAMS.items():
        for count in counts:
            for name, trace in tracings(make(count), x).items():
                jaxpr = trace()
                kernel = Kernel(primitives_of(cj.make_jaxpr(make(count))(x), jaxpr))
                with kernel.without_checks():
                    assert str(trace()) == str(jaxpr)
                yield f"{program}, {count} equations, {name}", *in_turns(trace, kernel, rounds)


def in_turns(trace: Callable[[], Any], kernel: Kernel, rounds: int) -> tuple[Timing, Timing, Timing]:
    """The CPU times of tracing with and without checks, and the relative cost of the checks in each turn.

    Each turn starts with a run that isn't counted, since Python specializes its code for what it saw last.
    """
    def sample() -> float:
        trace()
        gc.collect()
        gc.disable()
        try:
            start = thread_time()
            trace()
            return thread_time() - start
        finally:
            gc.enable()

    times: tuple[list[float], list[float]] = ([], [])
    for turn in range(rounds):
        for without in ((False, True), (True, False))[turn % 2]:
            with kernel.without_checks() if without else nullcontext():
                times[without].append(sample())
    added = [checked / bare - 1 for checked, bare in zip(*times, strict=True)]
    return Timing.of(times[False]), Timing.of(times[True]), Timing.of(added)


def primitives_of(*programs: Any) -> list[Primitive]:
    """The primitives of some programs."""
    return list({id(eqn.primitive): eqn.primitive for closed in programs for eqn in closed.jaxpr.eqns}.values())


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="samples of each figure")
    parser.add_argument("--equations", type=int, nargs="*", default=[1000, 10000], help="lengths of the programs")
    options = parser.parse_args()
    print("| tracing | with checks, ms (quartiles) | without | the checks add |\n| --- | ---: | ---: | ---: |")
    for name, checked, bare, added in measure(options.equations, options.rounds):
        print(f"| {name} | {_ms(checked)} | {_ms(bare)} | "
              f"{added.median:+.1%} ({added.low:+.1%} to {added.high:+.1%}) |", flush=True)


def _ms(timing: Timing) -> str:
    return f"{timing.median * 1e3:.1f} ({timing.low * 1e3:.1f} to {timing.high * 1e3:.1f})"


if __name__ == "__main__":
    main()
