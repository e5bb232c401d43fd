"""Transformations from packs: a hook for every primitive, beside those that the kernel itself asks for.

A transformation says what the rules for its hook get and return, which declarations may take the place of a rule, how a
missing rule is derived, and which laws the rules keep. An entry point in `corejax.transforms`, named as its hook, leads
to it. Its interpreter then asks for rules by `transformation.rule(primitive)`.

>>> from corejax.plugin import define, hookimpl
>>> def doc_cost(args):
...     '''`doc_cost(args, *, ...)`: about how many operations it takes.'''
>>> COST = Transformation(doc_cost)
>>> class Twice:
...     name = "doc_twice"
...     doc_cost = absent("nobody has counted", optional=True)
...     @hookimpl
...     def decompose(self, args):
...         return args[0] + args[0]
>>> COST.answer(define(Twice()).primitive).what
'declared absent: nobody has counted'
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType, MappingProxyType
from typing import Any, NamedTuple

from corejax.base.effects import SITUATIONS
from corejax.base.errors import CorejaxNotImplementedError, CorejaxTypeError, kind_of
from corejax.base.source import here
from corejax.kernel.declarations import OWNER_DECLARATIONS, Declaration
from corejax.kernel.hookspecs import HOOKS
from corejax.kernel.primitive import Primitive, Rule

Way = Callable[[Any, Primitive], "Rule | Absent | None"]
"""`way(transformation, primitive)`: a rule, or why there can't be one, or None where this way doesn't apply."""

Check = Callable[..., Any]
"""`check(primitive, result, *arguments, **params)`: the result of a rule in its final form; raises if it is wrong."""

Law = Callable[[Any, Any], "str | None"]
"""`law(transformation, case)`, with a `Case` of the conformance kit, one primitive with one input: returns None if it
holds, or why it doesn't apply; raises `case.fail(hook, problem, got=, wanted=)` if it is broken."""


class Answer(NamedTuple):
    """What a transformation has for a primitive."""

    rule: Rule
    """Called with the hook's arguments and all the params; one that is absent or missing raises why."""
    how: str
    """One of `HOW`."""
    what: str
    """The same in words."""
    provider: str | None = None
    """The origin of a rule that is written or declared."""


#: Where an answer comes from.
HOW = ("written", "declared", "derived", "absent", "missing")


class Absent(Declaration):
    """Declares that a transformation has no rule for a primitive, and why."""

    __slots__ = ("optional", "reason")

    def __init__(self, reason: str, optional: bool = False) -> None:
        self.reason, self.optional = reason, optional

    def __repr__(self) -> str:
        return f"absent({self.reason!r})"


def absent(reason: str, *, optional: bool = False) -> Absent:
    """`HOOK = absent(reason)`, in the place of a rule for the hook of a transformation: it is refused.

    A way to derive rules returns it where it finds that there can't be one. An `optional` one does nothing where no
    transformation of that name is installed, as a method marked `hookimpl(optionalhook=True)`.
    """
    if not isinstance(reason, str) or not reason.strip():
        raise CorejaxTypeError("absent: it gives no reason", got=repr(reason), wanted="the reason, in words",
                               where=here(), todo="say why there is no rule: it is shown to anyone who needs it")
    return Absent(reason, optional)


class Declared(Declaration):
    """Base class of what may be declared in the place of a rule for a transformation's hook.

    A subclass says which `hook` that is, and makes the rule: `rule(transformation, primitive)`.
    """

    __slots__ = ()

    def rule(self, transformation: Any, primitive: Primitive) -> Rule | Absent:
        """The rule, called with the hook's arguments and all the params of this primitive."""
        raise CorejaxNotImplementedError(
            f"{type(self).__name__} doesn't make a rule", hook=self.hook, primitive=primitive.name, where=here(),
            got="a declaration without a method `rule`", wanted="def rule(self, transformation, primitive)",
            todo="write it: it returns the rule, or absent(reason)")

    def __repr__(self) -> str:
        return f"{type(self).__name__.lower()}(...)"


class Transformation:
    """A hook that a pack adds to every primitive.

    - `spec`: a function without a body, whose name is the hook's, whose arguments are those that rules get before the
      params, and whose docstring says what they return.
    - `declarations`: the subclasses of `Declared` that may take a rule's place; `absent(reason)` always may.
    - `ways`: how a missing rule is derived, by the words that name each way: the first that applies counts.
    - `check`: called with each result of a rule, see `Check`.
    - `situation`: what an effect is asked about where operands are transformed, such as "derivative"; with None, an
      equation with effects is refused, unless its primitive has a rule of its own.
    - `laws`: what the conformance kit holds all rules to, by name, for all samples of all primitives.
    """

    def __init__(self, spec: Callable[..., Any], *, declarations: Sequence[type[Declared]] = (),
                 ways: Mapping[str, Way] | None = None, check: Check | None = None, situation: str | None = None,
                 laws: Mapping[str, Law] | None = None) -> None:
        self.name, self.arguments = _read(spec)
        self.spec = spec
        for what, mapping in (("ways", ways), ("laws", laws)):
            if mapping is not None and not isinstance(mapping, Mapping):
                raise _wrong(self.name, f"{what} must be a mapping", kind_of(mapping),
                             "functions by the words that name them", f"write {what}={{'in words': function}}")
        if not isinstance(declarations, Sequence):
            raise _wrong(self.name, "declarations must be a sequence", kind_of(declarations), "subclasses of Declared",
                         "write declarations=[MyDeclaration]")
        self.declarations = tuple(declarations)
        self.ways: Mapping[str, Way] = MappingProxyType(dict(ways or {}))
        self.check = check
        self.situation = situation
        self.laws: Mapping[str, Law] = MappingProxyType(dict(laws or {}))
        for kind in self.declarations:
            if not (isinstance(kind, type) and issubclass(kind, Declared) and kind.hook == self.name):
                raise _wrong(self.name, "each declaration must be a subclass of Declared for this hook", repr(kind),
                             f"a class with hook = {self.name!r}", "derive it from transforming.Declared")
        for what, given in (("way", self.ways), ("law", self.laws)):
            for words, function in given.items():
                if not isinstance(words, str) or not words or not callable(function):
                    raise _wrong(self.name, f"a {what} needs words and a function", f"{words!r}: {kind_of(function)}",
                                 "a mapping from words to functions", f"write {what}s={{'in words': function}}")
        if check is not None and not callable(check):
            raise _wrong(self.name, "check must be a function", kind_of(check),
                         "a function (primitive, result, *arguments, **params)", "leave it out, or write the function")
        if situation is not None and situation not in SITUATIONS:
            raise _wrong(self.name, "there is no such situation", repr(situation), ", ".join(SITUATIONS),
                         "leave it out: then equations with effects are refused")

    @property
    def doc(self) -> str:
        """What the specification says."""
        return inspect.getdoc(self.spec) or ""

    def rule(self, primitive: Primitive) -> Rule:
        """The rule for a primitive. Calling it raises if there is none."""
        return self.answer(primitive).rule

    def answer(self, primitive: Primitive) -> Answer:
        """The rule for a primitive, or for that of a public function, and where it comes from."""
        found = primitive if isinstance(primitive, Primitive) else getattr(primitive, "primitive", None)
        if not isinstance(found, Primitive):
            raise CorejaxTypeError(f"{self.name}: rules are for primitives", got=f"{primitive!r:.80}", where=here(),
                                   wanted="a primitive, or its public function",
                                   todo="pass lax.NAME, or corejax.plugin.find(name)")
        return found.answer(self)

    def written(self, primitive: Primitive, rule: Rule) -> Rule:
        """What becomes of a rule that was written, which takes the hook's arguments and all params: itself.

        Override it if the interpreter calls rules otherwise: then declarations and ways make such ones as well.
        """
        return rule

    def __repr__(self) -> str:
        return f"the transformation {self.name!r}"


def is_reserved(name: str) -> bool:
    """Whether no transformation may have this name, since it means something else in a plugin."""
    return name in HOOKS or name in OWNER_DECLARATIONS or name == "platform" or name.startswith("_")


def _read(spec: object) -> tuple[str, tuple[str, ...]]:
    """The hook's name and its arguments."""
    if not isinstance(spec, FunctionType) or not spec.__name__.isidentifier():
        raise _wrong("a transformation", "its specification must be a function", kind_of(spec),
                     "def NAME(args):, with a docstring",
                     "write the hook's name and arguments as a function with a docstring")
    name, parameters = spec.__name__, inspect.signature(spec).parameters.values()
    if is_reserved(name):
        raise _wrong(name, "the kernel has a hook of this name" if name in HOOKS else "plugins can't have such a rule",
                     name, "a name that isn't a hook or a declaration of the kernel, nor begins with an underscore",
                     "choose another name")
    plain = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD and p.default is p.empty]
    if not plain or len(plain) != len(parameters):
        raise _wrong(name, "its specification must have positional arguments only, without defaults",
                     f"def {name}{inspect.signature(spec)}", f"def {name}(args)",
                     "leave params out: each rule names those of its primitive that it reads")
    if not (spec.__doc__ or "").strip():
        raise _wrong(name, "its specification says nothing", "no docstring", "what rules get and return, in words",
                     f"write a docstring: `{name}({', '.join(plain)}, *, ...)`: what it returns")
    return name, tuple(plain)


def _wrong(name: str, problem: str, got: str, wanted: str, todo: str) -> CorejaxTypeError:
    return CorejaxTypeError(f"{name}: {problem}", got=got, wanted=wanted, where=here(), todo=todo)
