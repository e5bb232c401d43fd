"""Jaxprs as text, in the grammar that `parsing` reads back.

    jaxpr     ::=  { lambda binder* ; binder* . let equation* in (operand, ...) }
    binder    ::=  name:type                                  `_` names what nothing uses
    type      ::=  f64[3]  |  ~f64[]  |  key<fry>[2]          `~` is a weak type
    equation  ::=  binder+ = primitive[name=value ...] operand*  with {effect, ...}
    primitive ::=  sin  |  distribution/sin                   with its owner only where others have its name
    operand   ::=  name  |  3.0:~f64[]
    value     ::=  None  True  3  -0.0  nan  inf  (1.0+2.0j)  'text'  f64  (value, ...)  jaxpr  closed jaxpr
                |  P(value, ...)  UNCONSTRAINED  <opaque>     `<text>` for those that have no text to parse back

An equation without outputs starts with `() =`; `#` starts a comment; line breaks count as spaces. Names are local to
each jaxpr. All numbers are printed exactly, a NaN with a payload as `nan(0x7ff8000000000001)`. Where different
primitives of one name are in a program, or another installed pack has one, each has its owner in front, as in the names
of rules: the distribution that brings it, or the module that defined it. `corejax.plugin.find` reads such names.
Several of one owner are numbered, and only told apart: there is nothing by which they could be found.

This module only uses the attributes of jaxprs, not their classes, since those import it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Set
from itertools import count, product
from math import isnan
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from corejax.arrays.interned import Interned
from corejax.base import dtypes
from corejax.base.source import describe
from corejax.installed import registry
from corejax.installed.groups import PRIMITIVES
from corejax.kernel.scalars import number_text

if TYPE_CHECKING:
    from corejax.kernel.jaxpr import Atom, Effects, Jaxpr, JaxprEqn, Literal, Var

OPAQUE = "<opaque>"

#: Matches what stands for a value that has no text to parse back.
NO_TEXT = re.compile(r"(?<!\w)<[^<>\n]+>")

#: Words of the grammar that would otherwise be valid names of variables.
RESERVED = frozenset(("in", "inf", "lambda", "let", "nan", "with"))

_WIDTH = 100
_BARE_EFFECT = re.compile(r"[\w.\-]+")


class _Named(Protocol):
    name: str


class _Spelling(dict[_Named, str]):
    """What to write for the primitives of a program: their names, or with owners where these are ambiguous."""

    def __missing__(self, primitive: _Named) -> str:
        name = primitive.name
        text = self[primitive] = f"{_owner(primitive)}/{name}" if _has_rivals(primitive) else name
        return text

    def tell_apart(self) -> bool:
        """Write the owners of ambiguous names from now on. Are there any?"""
        if len(set(self.values())) == len(self):
            return False
        names = [primitive.name for primitive in self]
        several = [primitive for primitive in self if names.count(primitive.name) > 1]
        owned = [f"{_owner(primitive)}/{primitive.name}" for primitive in several]
        for i, (primitive, text) in enumerate(zip(several, owned, strict=True)):
            self[primitive] = f"{text}.{owned[:i].count(text) + 1}" if owned.count(text) > 1 else text
        return True


def _has_rivals(primitive: _Named) -> bool:
    """Does another pack have a primitive of this name? Of one that is known by its name only, nobody can tell."""
    if not hasattr(primitive, "pack"):
        return False
    return any([entry.pack.name != primitive.pack
                for entry in registry.installed().providers(PRIMITIVES, primitive.name)])


def _owner(primitive: _Named) -> str:
    return getattr(primitive, "pack", None) or getattr(primitive, "module", None) or "?"


class Style:
    """How to print: with or without each equation's place in the user's code; by `pretty` hooks or raw."""

    __slots__ = ("pretty", "source_info", "spelled")

    def __init__(self, source_info: bool = False, pretty: bool = True) -> None:
        self.source_info, self.pretty = source_info, pretty
        self.spelled = _Spelling()


class Printed:
    """A program that prints itself in the grammar."""

    __slots__ = ()

    def lines(self, style: Style) -> list[str]:
        """Its text, line by line."""
        raise NotImplementedError(type(self).__name__)

    def param_lines(self, style: Style) -> list[str]:
        """Its text where it is the value of a param."""
        return self.lines(style)

    def __str__(self) -> str:
        return _text(self.lines, Style())

    __repr__ = __str__


class Names(dict[Hashable, str]):
    """Names of variables, assigned when first seen: a, b, ..., z, aa, ab, ..."""

    def __init__(self) -> None:
        self._unused = _names()

    def __missing__(self, var: Hashable) -> str:
        name = self[var] = next(self._unused)
        return name


def _names() -> Iterator[str]:
    for length in count(1):
        for letters in product(ascii_lowercase, repeat=length):
            name = "".join(letters)
            if name not in RESERVED:
                yield name


def jaxpr_text(jaxpr: Printed, *, source_info: bool = False, pretty: bool = True) -> str:
    """A jaxpr (closed or not) as text.

    `source_info` appends to each equation where in the user's code it came from. `pretty=False` prints all params in
    full, even if the primitive has a `pretty` hook: that text can be parsed back.
    """
    return _text(jaxpr.lines, Style(source_info, pretty))


def _text(lines: Callable[[Style], list[str]], style: Style) -> str:
    written = lines(style)
    return "\n".join(lines(style) if style.spelled.tell_apart() else written)


def program_lines(jaxpr: Jaxpr, style: Style) -> list[str]:
    """The lines of a jaxpr: one if it has at most one short equation."""
    names = Names()
    consts, ins = _binders(jaxpr.constvars, names), _binders(jaxpr.invars, names)
    head = " ".join(["{ lambda", *consts, ";", *ins]) + ("" if ins else " ") + ". let"
    used = {x for eqn in jaxpr.eqns for x in eqn.invars}
    used.update(jaxpr.outvars)
    body: list[str] = []
    for eqn in jaxpr.eqns:
        body += equation_lines(eqn, names, style, used)
    outs = [operand_text(x, names) for x in jaxpr.outvars]
    tail = f"in ({', '.join(outs)}{',' if len(outs) == 1 else ''}) }}"
    if len(body) <= 1 and not style.source_info:
        line = " ".join([head, *body, tail])
        if len(line) <= _WIDTH:
            return [line]
    return [head, *["    " + line for line in body], "  " + tail]


def _binders(variables: Iterable[Var], names: Names) -> list[str]:
    return [f"{names[v]}:{v.aval}" for v in variables]


def equation_lines(eqn: JaxprEqn, names: Names, style: Style, used: Set[Atom] | None = None) -> list[str]:
    """The lines of an equation; outputs that are not in `used` are named `_`."""
    operands = "".join([" " + operand_text(x, names) for x in eqn.invars])
    if eqn.effects:
        operands += f" with {{{', '.join(effect_texts(eqn.effects))}}}"
    outs = [f"{names[v] if used is None or v in used else '_'}:{v.aval}" for v in eqn.outvars]
    head = f"{' '.join(outs) or '()'} = {style.spelled[eqn.primitive]}"
    params: Mapping[str, Any] = eqn.params
    hook = getattr(eqn.primitive, "pretty", None) if style.pretty and params else None
    if hook is not None:
        params = hook(**params)
    lines = [head + operands] if not params else _bracketed(head, params, operands, style)
    if style.source_info and eqn.source is not None:
        lines[-1] += f"  # {describe(eqn.source)}"
    return lines


def _bracketed(head: str, params: Mapping[str, object], operands: str, style: Style) -> list[str]:
    """`head[params] operands` on one line if it fits and no param is a jaxpr, else as a block."""
    block: list[str] = []
    for name in sorted(params):
        first, *rest = value_lines(params[name], style)
        block += [f"{name}={first}", *rest]
    line = f"{head}[{' '.join(block)}]{operands}"
    if len(block) == len(params) and len(line) <= _WIDTH and "{ lambda" not in line:
        return [line]
    return [head + "[", *["  " + line for line in block], "]" + operands]


def equation_text(eqn: JaxprEqn, names: Names | None = None) -> str:
    """One equation by itself, by default with names of its own."""
    return _text(lambda style: equation_lines(eqn, Names() if names is None else names, style), Style())


def effect_texts(effects: Effects) -> list[str]:
    """Effects as texts, sorted."""
    texts = sorted(map(str, effects))
    return [text if _BARE_EFFECT.fullmatch(text) else repr(text) for text in texts]


def operand_text(atom: Atom, names: Names) -> str:
    """A variable's name, or a literal with its type."""
    return repr(atom) if hasattr(atom, "val") else names[atom]


def literal_text(literal: Literal) -> str:
    """`3.0:~f64[]`."""
    aval = literal.aval
    value = literal.val
    if type(value) is float and aval.dtype == dtypes.float64 and not isnan(value):
        return f"{value!r}:{aval}"
    array = np.asarray(value, aval.dtype)
    return f"{number_text(array[()]) if not array.shape and dtypes.kind(array.dtype) in 'biufc' else OPAQUE}:{aval}"


def value_lines(value: object, style: Style) -> list[str]:
    """The lines of a param's value; `<opaque>` if it has no text that could be parsed back.

    An object may say what is written: `__corejax_text__(text)`, where `text` writes its parts. It is in angle brackets
    unless it can be parsed.
    """
    write = _WRITERS.get(type(value))
    if write is not None:
        return [write(value)]
    if type(value) is tuple:
        return _tuple_lines([value_lines(item, style) for item in value])
    if isinstance(value, Printed):
        return value.param_lines(style)
    if isinstance(value, np.dtype) and value in dtypes._SHORT:
        return [dtypes.short_name(value)]
    if style.pretty and isinstance(value, Interned):  # meshes, and how arrays are divided
        return [repr(value)]
    own = getattr(type(value), "__corejax_text__", None)
    return [OPAQUE if own is None else own(value, lambda part: " ".join(value_lines(part, style)))]


def _tuple_lines(items: list[list[str]]) -> list[str]:
    if all(len(item) == 1 and not item[0].startswith(("{", "closed")) for item in items):
        inner = ", ".join([item[0] for item in items])
        return [f"({inner}{',' if len(items) == 1 else ''})"]
    lines = ["("]
    for item in items:
        lines += ["  " + line for line in item]
        lines[-1] += ","
    return [*lines, ")"]


_WRITERS: dict[type, Callable[[Any], str]] = {
    type(None): str, bool: str, int: str, str: repr,
    float: lambda value: number_text(np.float64(value)),
    complex: lambda value: number_text(np.complex128(value)),
}
