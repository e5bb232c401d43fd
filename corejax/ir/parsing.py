"""Parses the text that `printing` prints. The grammar is described there.

>>> parse_jaxpr("{ lambda ; a:f64[3]. let b:f64[3] = sin a c:f64[3] = mul b 2.0:~f64[] in (c,) }")
{ lambda ; a:f64[3]. let
    b:f64[3] = sin a
    c:f64[3] = mul b 2.0:~f64[]
  in (c,) }
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NoReturn

import numpy as np

from corejax.arrays.partitions import UNCONSTRAINED, PartitionSpec
from corejax.base import dtypes
from corejax.base.avals import ShapedArray, scalar_aval
from corejax.base.errors import CorejaxNotImplementedError, CorejaxTypeError, CorejaxValueError
from corejax.kernel.jaxpr import Atom, ClosedJaxpr, Effects, Jaxpr, JaxprEqn, Literal, Params, Var, no_effects
from corejax.kernel.primitive import Primitive
from corejax.kernel.printing import NO_TEXT, OPAQUE, RESERVED, effect_texts
from corejax.kernel.scalars import NUMBER, read_number, read_python_number

_SPACE = re.compile(r"(?:\s+|#[^\n]*)*")
_WORD = re.compile(r"[a-zA-Z_]\w*")
_DTYPE = re.compile(r"[^\W\d]\w*(?:<[^\W\d]\w*>)?")
_VARIABLE = re.compile(r"[a-z]+(?![\w:])")
_BINDER = re.compile(r"([a-z]+|_):")
_PRIMITIVE = re.compile(r"[^\s\[\](){},:;=#]+")
_TYPE = re.compile(rf"(~?)({_DTYPE.pattern})\[([\d,]*)\](?:\{{([^{{}}]+)\}})?")
_STRING = re.compile(r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"")
_EFFECT = re.compile(rf"[\w.\-]+|{_STRING.pattern}")


class JaxprSyntaxError(CorejaxValueError):
    """A text isn't a jaxpr: the message shows the line, with a caret where parsing stopped."""

    def __init__(self, problem: str, text: str, position: int, **parts: Any) -> None:
        self.line = text.count("\n", 0, position) + 1
        start = text.rfind("\n", 0, position) + 1
        self.column = position - start + 1
        shown = text[start:].partition("\n")[0]
        super().__init__(f"line {self.line}, column {self.column}: {problem}\n    {shown}\n"
                         f"    {' ' * (position - start)}^", **parts)


class PlainPrimitive:
    """A primitive with nothing but a name, which is enough to look at a program but not to run it."""

    __slots__ = ("name",)
    params = effects = dce = pretty = typecheck = None
    multiple_results = False

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name

    def bind(self, *args: Any, **params: Any) -> NoReturn:
        raise CorejaxNotImplementedError(f"{self.name}: only the name of this primitive is known",
                                         todo="give parse_jaxpr a function from names to primitives")


@lru_cache(maxsize=4096)
def plain_primitive(name: str) -> PlainPrimitive:
    """The plain primitive of this name; the same object each time."""
    return PlainPrimitive(name)


def parse_jaxpr(text: str, primitives: Callable[[str], Any] = plain_primitive,
                literal: Callable[[np.ndarray, ShapedArray], Any] | None = None) -> Jaxpr:
    """The jaxpr that `text` describes; `primitives` maps names to primitives.

    Printing the result gives `text` again, up to layout. A param printed as `<opaque>` is an error that names it.
    Constants have no text: pair the result with their values in a `ClosedJaxpr`. `literal` makes the values of
    literals, by default Python scalars for weak types and NumPy scalars for others.
    """
    reader = _Reader(text, primitives, literal or _plain_value)
    jaxpr = reader.jaxpr()
    reader.skip()
    if reader.position != len(text):
        reader.fail("the end of the text")
    return jaxpr


def _plain_value(array: np.ndarray, aval: ShapedArray) -> Any:
    kind = dtypes.kind(aval.dtype)
    return array.item() if kind != "u" and aval is scalar_aval(kind) else array[()]


class _Reader:
    """A position in a text, and methods to parse what may come next."""

    def __init__(self, text: str, primitives: Callable[[str], Any], literal: Callable[..., Any]) -> None:
        self.text, self.position = text, 0
        self.primitives, self.literal = primitives, literal

    def skip(self) -> None:
        self.position = _SPACE.match(self.text, self.position).end()  # type: ignore[union-attr]

    def accept(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Move past a match at this position, if there is one."""
        self.skip()
        found = pattern.match(self.text, self.position)
        if found is not None:
            self.position = found.end()
        return found

    def accept_text(self, token: str) -> bool:
        self.skip()
        if not self.text.startswith(token, self.position):
            return False
        end = self.position + len(token)
        if token[-1].isalpha() and self.text[end: end + 1].isalnum():
            return False
        self.position = end
        return True

    def expect(self, token: str) -> None:
        if not self.accept_text(token):
            self.fail(f"`{token}`")

    def fail(self, wanted: str, at: int | None = None) -> NoReturn:
        at = self.position if at is None else at
        got = self.text[at: at + 30].partition("\n")[0]
        raise JaxprSyntaxError(f"expected {wanted}", self.text, at, got=f"`{got}`" if got else "the end", wanted=wanted)

    def refuse(self, problem: str, at: int, **parts: Any) -> NoReturn:
        raise JaxprSyntaxError(problem, self.text, at, **parts)

    def jaxpr(self) -> Jaxpr:
        scope: dict[str, Var] = {}
        self.expect("{")
        self.expect("lambda")
        constvars = self.binders(scope)
        self.expect(";")
        invars = self.binders(scope)
        self.expect(".")
        self.expect("let")
        eqns: list[JaxprEqn] = []
        effects = no_effects
        while not self.accept_text("in"):
            eqns.append(eqn := self.equation(scope))
            effects = effects | eqn.effects if eqn.effects else effects
        self.expect("(")
        outvars: list[Atom] = []
        while not self.accept_text(")"):
            outvars.append(self.operand(scope) or self.fail("an output or `)`"))
            if not self.accept_text(","):
                self.expect(")")
                break
        self.expect("}")
        return Jaxpr(constvars, invars, outvars, eqns, effects)

    def binders(self, scope: dict[str, Var]) -> list[Var]:
        found = []
        while name := self.accept(_BINDER):
            at = self.position - len(name[0])
            var = Var(self.type())
            found.append(var)
            if name[1] == "_":
                continue
            if name[1] in scope or name[1] in RESERVED:
                self.refuse(f"`{name[1]}` is {'bound twice' if name[1] in scope else 'not a name for a variable'}", at)
            scope[name[1]] = var
        return found

    def type(self) -> ShapedArray:
        found = self.accept(_TYPE)
        if found is None:
            self.fail("a type, as in f64[3]")
        weak, dtype, shape, axes = found.groups()
        try:
            return ShapedArray(tuple([int(size) for size in shape.split(",") if size]), dtypes.from_short_name(dtype),
                               bool(weak), axes.split(",") if axes else ())
        except CorejaxTypeError as error:
            raise JaxprSyntaxError(error.message, self.text, found.start(2), wanted=error.wanted) from error

    def equation(self, scope: dict[str, Var]) -> JaxprEqn:
        self.skip()
        start = self.position
        own: dict[str, Var] = {}  # in scope only after the operands are parsed
        outvars = self.binders(own)
        if not outvars and not self.accept_text("()"):
            self.fail("an equation or `in`")
        self.expect("=")
        primitive = self.primitive()
        params = self.params(primitive)
        invars: list[Atom] = []
        while (x := self.operand(scope)) is not None:
            invars.append(x)
        for name in own.keys() & scope.keys():
            self.refuse(f"`{name}` is bound twice", start)
        scope.update(own)
        return JaxprEqn(primitive, invars, outvars, params, self.effects(primitive, invars, params))

    def primitive(self) -> Any:
        name = self.accept(_PRIMITIVE) or self.fail("the name of a primitive")
        try:
            return self.primitives(name[0])
        except (KeyError, AttributeError) as error:
            raise JaxprSyntaxError(f"there is no primitive `{name[0]}`", self.text, name.start(), got=name[0],
                                   todo="install the pack that provides it") from error

    def operand(self, scope: dict[str, Var]) -> Atom | None:
        self.skip()
        at = self.position
        found = self.accept(_VARIABLE)
        if found is not None and found[0] not in RESERVED:
            if found[0] not in scope:
                self.refuse(f"`{found[0]}` is not bound here", at, todo="names are local to each jaxpr")
            return scope[found[0]]
        self.position = at
        if self.accept_text(OPAQUE):
            self.refuse("an array was written into the program; it has no text", at,
                        todo="make it an operand before printing")
        number = self.accept(NUMBER)
        if number is None:
            return None
        self.expect(":")
        aval = self.type()
        try:
            value = read_number(number[0], aval.dtype)
        except (ValueError, OverflowError, TypeError) as error:
            raise JaxprSyntaxError(f"`{number[0]}` is no {dtypes.short_name(aval.dtype)}", self.text, at) from error
        return Literal(self.literal(value, aval), aval)

    def params(self, primitive: Primitive) -> Params:
        start = self.position
        found: Params = {}
        bracket = self.accept_text("[")
        while bracket and not self.accept_text("]"):
            name = self.accept(_WORD) or self.fail("the name of a param or `]`")
            if name[0] in found:
                self.refuse(f"param `{name[0]}` of {primitive.name} is given twice", name.start())
            self.expect("=")
            found[name[0]] = self.value(f"param `{name[0]}` of {primitive.name}")
        known = getattr(primitive, "params", None)
        for name, value in getattr(primitive, "defaults", {}).items():
            found.setdefault(name, value)  # a `pretty` hook may leave out defaults
        if known is not None and known != found.keys():
            self.refuse(f"these are not the params of {primitive.name}", start, got=", ".join(sorted(found)) or "none",
                        wanted=", ".join(sorted(known)) or "none",
                        todo="if its `pretty` hook hides some, print with jaxpr_text(jaxpr, pretty=False)")
        return found

    def value(self, owner: str) -> Any:
        self.skip()
        at = self.position
        if found := self.accept(NO_TEXT):
            self.refuse(f"{owner} is {found[0]}: it has no text that could be parsed", at,
                        todo="only None, bools, numbers, strings, dtypes, specs, jaxprs and tuples of these can be "
                             "parsed")
        if self.text.startswith("{", at):
            return self.jaxpr()
        if self.accept_text("closed"):
            if self.accept_text(OPAQUE):
                self.refuse(f"{owner} closes over constants, which have no text", at)
            return ClosedJaxpr(self.jaxpr())
        if found := self.accept(NUMBER):
            return read_python_number(found[0])
        if found := self.accept(_STRING):
            return ast.literal_eval(found[0])
        if self.accept_text("("):
            return self.tuple(owner)
        if self.accept_text("P("):
            return PartitionSpec(*self.tuple(owner))
        if self.accept_text("UNCONSTRAINED"):
            return UNCONSTRAINED
        if self.accept_text("None"):
            return None
        if found := self.accept(_DTYPE):
            try:
                return dtypes.from_short_name(found[0])
            except CorejaxTypeError:
                pass
        self.fail(f"the value of {owner}", at)

    def tuple(self, owner: str) -> tuple[Any, ...]:
        items = []
        while not self.accept_text(")"):
            items.append(self.value(owner))
            if not self.accept_text(","):
                self.expect(")")
                break
        return tuple(items)

    def effects(self, primitive: Primitive, invars: list[Atom], params: Params) -> Effects:
        self.skip()
        at = self.position
        hook = primitive.effects
        effects = hook(tuple([x.aval for x in invars]), **params) if hook is not None else no_effects
        texts = []
        if self.accept_text("with"):
            self.expect("{")
            while not self.accept_text("}"):
                texts.append((self.accept(_EFFECT) or self.fail("an effect or `}`"))[0])
                self.accept_text(",")
        if texts != effect_texts(effects):
            self.refuse(f"these are not the effects of {primitive.name}", at, got=", ".join(texts) or "none",
                        wanted=", ".join(effect_texts(effects)) or "none")
        return effects
