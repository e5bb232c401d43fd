"""What a faulty rule is: a way to be wrong in a hook; and the programs that run it."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

#: Ways that are like others: most contexts leave them out.
RARE = ("another rank", "an integer dtype", "a complex dtype", "a tuple", "a ragged list", "an array of objects",
        "an array of strings", "an array of dates", "a structured array", "an array of float0", "a type",
        "a function", "a dictionary", "an Ellipsis", "an object with an aval", "a subclass of float")

#: How a primitive is used, by name. `f` applies it to one array and gives one array.
CONTEXTS: dict[str, str] = {
    "eager": "f(x)",
    "jit": "cj.jit(f)(x)",
    "cond": "lax.cond(True, f, f, x)",
    "jit of cond": "cj.jit(lambda p, x: lax.cond(p, f, f, x))(True, x)",
    "scan": "lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0]",
    "make_jaxpr": "str(cj.make_jaxpr(f)(x))",
    "print": "str(cj.make_jaxpr(f)(x))",
    "typecheck": "typecheck(cj.make_jaxpr(f)(x).jaxpr) or 'well typed'",
    "jvp": "cj.jvp(f, (x,), (x,))[1]",
    "jvp of jit": "cj.jvp(cj.jit(f), (x,), (x,))[1]",
    "jit of jvp": "cj.jit(lambda x, t: cj.jvp(f, (x,), (t,))[1])(x, x)",
    "grad": "cj.grad(lambda x: f(x).sum())(x)",
    "jit of value_and_grad": "cj.jit(cj.value_and_grad(lambda x: f(x).sum()))(x)[0]",
    "jit of grad": "cj.jit(cj.grad(lambda x: f(x).sum()))(x)",
    "grad of jit": "cj.grad(lambda x: cj.jit(f)(x).sum())(x)",
    "jvp of grad": "cj.jvp(cj.grad(lambda x: (f(x) * f(x)).sum()), (x,), (x,))[1]",
    "grad of cond": "cj.grad(lambda x: lax.cond(True, f, f, x).sum())(x)",
    "grad of scan": "cj.grad(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0].sum())(x)",
    "linear_transpose": "cj.linear_transpose(f, x)(x)[0]",
    "vmap": "cj.vmap(f)(xs)",
    "vmap of jit": "cj.vmap(cj.jit(f))(xs)",
    "jit of vmap": "cj.jit(cj.vmap(f))(xs)",
    "vmap of vmap": "cj.vmap(cj.vmap(f))(np.stack([xs, xs]))",
    "vmap of scan": "cj.vmap(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0])(xs)",
    "vmap of grad": "cj.vmap(cj.grad(lambda x: f(x).sum()))(xs)",
    "grad of vmap": "cj.grad(lambda xs: cj.vmap(f)(xs).sum())(xs)",
    "vmap of grad of jit": "cj.vmap(cj.grad(lambda x: cj.jit(f)(x).sum()))(xs)",
}

COMPUTED = ("eager", "jit", "cond", "scan", "vmap", "jit of vmap", "jit of value_and_grad", "grad")
FORWARD = ("jvp", "jit of jvp", "jvp of jit")
REVERSE = ("grad", "jit of grad", "grad of jit", "vmap of grad", "grad of vmap", "vmap of grad of jit", "jvp of grad",
           "grad of cond", "grad of scan")
MAPPED = ("vmap", "jit of vmap", "vmap of jit", "vmap of vmap", "vmap of scan", "vmap of grad", "grad of vmap")

#: Hooks whose faults show when a program is compiled or runs.
COMPILED = ("impl", "xla_translation", "transpose")

#: The right rules of a primitive that doubles its operand, and of one that has its double and its triple.
ONE = {
    "abstract_eval": "return avals[0]",
    "impl": "return args[0] + args[0]",
    "jvp": "return twice(*primals), twice(*tangents)",
    "transpose": "return [twice(cotangents)]",
    "vmap": "return twice(*args), dims[0]",
    "xla_translation": 'return ctx.op("stablehlo.add", [args[0], args[0]])',
    "decompose": "return args[0] * 2.0",
}
SEVERAL = {
    "abstract_eval": "return [avals[0], avals[0]]",
    "impl": "return [args[0] + args[0], args[0] + args[0] + args[0]]",
    "jvp": "return twice(*primals), twice(*tangents)",
    "transpose": "return [cotangents[0] * 2.0 + cotangents[1] * 3.0]",
    "vmap": "return twice(*args), [dims[0], dims[0]]",
    "xla_translation": """
        y = ctx.op("stablehlo.add", [args[0], args[0]], None, ctx.out_types[:1])
        return [y, ctx.op("stablehlo.add", [args[0], y], None, ctx.out_types[:1])]""",
    "decompose": "return [args[0] * 2.0, args[0] * 3.0]",
}
ARGUMENTS = {
    "abstract_eval": "avals", "impl": "args", "jvp": "primals, tangents", "transpose": "cotangents, args",
    "vmap": "axis, args, dims", "xla_translation": "ctx, args", "decompose": "args", "evaluate": "args",
    "partial_eval": "eqn, unknown_in", "dce": "eqn, used_out", "linearize": "primals, nonzero", "effects": "avals",
    "typecheck": "avals", "pretty": "",
}
USE = {False: "def f(x):\n    return twice(x)\n", True: "def f(x):\n    y, z = twice(x)\n    return y + z\n"}


@dataclass(frozen=True, eq=False)
class Fault:
    """One way in which one hook is wrong.

    `one` and `several` are the faulty rule's statements for a primitive with one result and with several; None where
    there is no such way. `caught` is what the error names if not the hook itself: "note" if the rule's own exception
    passes on with a note, "harmless" if the results are right in spite of it, else the check of the conformance kit
    that finds it. `unseen` are the contexts in which only that check sees it.
    """

    hook: str
    way: str
    one: str | None
    several: str | None
    contexts: tuple[str, ...]
    caught: str = "error"
    without: tuple[str, ...] = ()
    rules: Mapping[str, str] | None = None
    declared: str = ""
    before: str = ""
    raises: str = ""
    named: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    check: str = ""
    applied: str = ""
    decomposes: bool = False
    second: bool = False
    first: bool = False
    params: bool = False
    jax: str | None = None

    @property
    def title(self) -> str:
        """The name that no other has."""
        return f"{self.hook}: {self.way}"

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Each context, with one result and with several.

        Some of the contexts do for a way that is like others, and for several results where most are compiled.
        """
        some = tuple(dict.fromkeys([*self.contexts[:2], self.contexts[-1]]))
        of_one = some if self.rare else self.contexts
        of_several = some if self.rare or (self.hook in COMPILED and self.one is not None) else self.contexts
        return (*[Cell(self, context, False) for context in of_one if self.one is not None],
                *[Cell(self, context, True) for context in of_several if self.several is not None])

    @property
    def rare(self) -> bool:
        """Is it one of many that are like each other?"""
        return any(self.way.endswith(f": {way}") or f": {way}, " in self.way for way in RARE)


@dataclass(frozen=True)
class Cell:
    """A fault in one context."""

    fault: Fault
    context: str
    several: bool

    @property
    def title(self) -> str:
        return f"{self.fault.title}, {self.context}{', several results' if self.several else ''}"

    @property
    def expected(self) -> str:
        """What must come of it: see `Fault.caught`; "unseen" where nothing is raised."""
        return "unseen" if self.context in self.fault.unseen else self.fault.caught

    @property
    def code(self) -> str:
        """The program."""
        fault = self.fault
        body = (fault.several if self.several else fault.one) or ""
        return self._program(self._rules() | ({fault.hook: body} if body else {}), fault.declared)

    @property
    def primitive_code(self) -> str:
        """The program that gives, in place of a result, the primitive and an operand for it."""
        return _giving_the_primitive(self.code)

    @property
    def right_code(self) -> str:
        """The same without the fault."""
        rules = self._rules()
        right = SEVERAL if self.several else ONE
        if self.fault.hook in right:
            rules[self.fault.hook] = right[self.fault.hook]
        return self._program(rules, "")

    @property
    def right_primitive_code(self) -> str:
        """The same without the fault."""
        return _giving_the_primitive(self.right_code)

    def _rules(self) -> dict[str, str]:
        rules = {**(SEVERAL if self.several else ONE), **(self.fault.rules or {})}
        left_out = (*self.fault.without, *(() if self.fault.decomposes else ("decompose",)))
        return {hook: body for hook, body in rules.items() if hook not in left_out}

    def _program(self, rules: Mapping[str, str], declared: str) -> str:
        declared += "\nmultiple_results = True" if self.several else ""
        f = self.fault.applied or USE[self.several]
        if self.fault.params:
            f = f.replace("twice(x)", "twice(x, by=2)")
        if self.fault.second:
            f = f.replace("y + z", "z")
        if self.fault.first:
            f += "cj.jit(lambda x: f(x) + 1.0)(x)\n"
        if "seen" in str(rules):
            f = f.replace("(x):\n", "(x):\n    seen.append(x)\n", 1)
        head = _helpers(self.fault.before, str(rules) + declared)
        return f"{head}{_plugin(rules, declared.strip(), self.fault.params)}{f}result = {CONTEXTS[self.context]}\n"


def _giving_the_primitive(code: str) -> str:
    return f"{code.rpartition('result = ')[0]}result = twice.primitive, x\n"


def _helpers(before: str, text: str) -> str:
    head = 'x = np.arange(1.0, 4.0)\nxs = np.stack([x, x + 1.0])\n'
    if "seen" in text:
        head += "seen = []\n"
    if "leaked(" in before + text:
        head += ("def leaked(v):\n    kept = []\n"
                 "    cj.make_jaxpr(lambda y: kept.append(y) or y)(np.zeros(v.shape, v.dtype))\n    return kept[0]\n")
    return head + textwrap.dedent(before).strip("\n") + "\n" * bool(before)


def _plugin(rules: Mapping[str, str], declared: str, params: bool) -> str:
    lines = ["class Twice:", '    name = "twice"', *[f"    {line.strip()}" for line in declared.splitlines()]]
    for hook, body in rules.items():
        arguments = ", ".join(filter(None, ("self", ARGUMENTS[hook], "*, by" if params else "")))
        lines += ["    @hookimpl", f"    def {hook}({arguments}):"]
        lines += textwrap.indent(textwrap.dedent(body.strip("\n") if "\n" in body else body), " " * 8).splitlines()
    return "\n".join([*lines, "twice = define(Twice())", ""])


def faults(hook: str, ways: Iterable[tuple[str, str | None, str | None]], contexts: Sequence[str], **more: object
           ) -> list[Fault]:
    """Faults of one hook that have everything else in common."""
    return [Fault(hook, way, one, several, tuple(contexts), **more)  # type: ignore[arg-type]
            for way, one, several in ways]
