"""Jaxprs: programs as data.

A `Jaxpr` is a typed function in which every intermediate value has a name (a `Var`) and every equation applies one
primitive. It is immutable. Values that it closes over are its `constvars`; a `ClosedJaxpr` pairs it with the values.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Self, TypeAlias, final

from corejax.base.avals import ShapedArray
from corejax.base.effects import Effect
from corejax.base.errors import CorejaxTypeError, kind_of
from corejax.base.source import Location, here, written
from corejax.kernel.printing import OPAQUE, Printed, Style, equation_text, literal_text, program_lines

if TYPE_CHECKING:
    from corejax.kernel.primitive import Primitive

Effects: TypeAlias = frozenset[Effect]

#: An equation's static metadata by name: ints, dtypes, jaxprs, functions. Its primitive decides what they may be.
Params: TypeAlias = dict[str, Any]

no_effects: Effects = frozenset()


class _Immutable:
    """The parts of a program never change, so copying one returns the object itself."""

    __slots__ = ()

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self


@final
class Var(_Immutable):
    """A variable, whose identity is its name. Objects that are pickled together still share variables when loaded."""

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"Var({self.aval})"


@final
class Literal(_Immutable):
    """A scalar written into the equation that uses it."""

    __slots__ = ("val", "aval")

    def __init__(self, val: Any, aval: ShapedArray) -> None:
        self.val = val
        self.aval = aval

    def __repr__(self) -> str:
        return literal_text(self)


Atom: TypeAlias = Var | Literal


class JaxprEqn(_Immutable):
    """One application of a primitive: `outvars = primitive[params] invars`.

    `source` is where in the user's code it came from, `scope` the named scopes around it.
    """

    __slots__ = ("primitive", "invars", "outvars", "params", "effects", "source", "scope")

    def __init__(self, primitive: Primitive, invars: Sequence[Atom], outvars: Sequence[Var], params: Mapping[str, Any],
                 effects: Effects = no_effects, source: Location = None, scope: tuple[str, ...] = ()) -> None:
        self.primitive = primitive
        self.invars = invars
        self.outvars = outvars
        self.params = params
        self.effects = effects
        self.source = source
        self.scope = scope

    def replace(self, **fields: Any) -> JaxprEqn:
        """The same equation with these fields replaced."""
        return JaxprEqn(**{name: fields.get(name, getattr(self, name)) for name in self.__slots__})

    def __reduce__(self) -> tuple[object, ...]:
        check_picklable(self.primitive, self.params)
        return JaxprEqn, (self.primitive, self.invars, self.outvars, dict(self.params), self.effects,
                          written(self.source), self.scope)

    def __repr__(self) -> str:
        return equation_text(self)


def check_picklable(primitive: Primitive, params: Mapping[str, object]) -> None:
    """Raise if a param can't be pickled. Otherwise the error wouldn't say which one."""
    for name, value in params.items():
        items = value if type(value) is tuple else (value,)
        for item in items:
            if isinstance(item, (Jaxpr, ClosedJaxpr, int, str, type(None))):
                continue  # jaxprs check their own params
            try:
                pickle.dumps(item)
            except (pickle.PicklingError, TypeError, AttributeError) as error:
                if isinstance(error, CorejaxTypeError):
                    raise
                raise CorejaxTypeError(
                    f"{primitive.name}: its param {name!r} can't be pickled", primitive=primitive.name, where=here(),
                    got=f"{kind_of(item)}: {error}", wanted="functions that are known by the name of their module",
                    todo="define its functions at the top of a module; or export the compiled program: "
                         "cj.export.export(cj.jit(f))(*args).serialize()") from error


class Jaxpr(Printed, _Immutable):
    """`{ lambda constvars ; invars. let eqns in outvars }`."""

    __slots__ = ("constvars", "invars", "outvars", "eqns", "effects", "name", "_memo", "__weakref__")

    def __init__(self, constvars: Sequence[Var], invars: Sequence[Var], outvars: Sequence[Atom],
                 eqns: Sequence[JaxprEqn], effects: Effects = no_effects, name: str = "") -> None:
        self.constvars = tuple(constvars)
        self.invars = tuple(invars)
        self.outvars = tuple(outvars)
        self.eqns = tuple(eqns)
        self.effects = effects
        self.name = name
        self._memo: dict[str, Any] = {}  # computed once per jaxpr: its structural key, its text

    @property
    def in_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.invars]

    @property
    def out_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.outvars]

    @property
    def is_unique(self) -> bool:
        """Whether no other jaxpr can be known to be equal, see `are_unique`. So no cache by structure keeps it."""
        found = self._memo.get("unique")
        if found is None:
            found = self._memo["unique"] = any([are_unique(eqn.params) for eqn in self.eqns])
        return found

    def replace(self, **fields: Any) -> Jaxpr:
        """The same jaxpr with these fields replaced."""
        names = ("constvars", "invars", "outvars", "eqns", "effects", "name")
        return Jaxpr(**{name: fields.get(name, getattr(self, name)) for name in names})

    def lines(self, style: Style) -> list[str]:
        return program_lines(self, style)

    def __reduce__(self) -> tuple[object, ...]:
        return Jaxpr, (self.constvars, self.invars, self.outvars, self.eqns, self.effects, self.name)


class ClosedJaxpr(Printed, _Immutable):
    """A jaxpr with the values of its constvars."""

    __slots__ = ("jaxpr", "consts", "__weakref__")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any] = ()) -> None:
        if len(jaxpr.constvars) != len(consts):
            raise CorejaxTypeError("a closed jaxpr needs one constant for each constvar",
                                   got=len(consts), wanted=len(jaxpr.constvars))
        self.jaxpr = jaxpr
        self.consts = tuple(consts)

    def __deepcopy__(self, memo: Any) -> ClosedJaxpr:
        return ClosedJaxpr(self.jaxpr, deepcopy(self.consts, memo))

    def __reduce__(self) -> tuple[object, ...]:
        return ClosedJaxpr, (self.jaxpr, self.consts)

    in_avals = property(lambda self: self.jaxpr.in_avals)
    out_avals = property(lambda self: self.jaxpr.out_avals)
    eqns = property(lambda self: self.jaxpr.eqns)
    effects = property(lambda self: self.jaxpr.effects)

    def lines(self, style: Style) -> list[str]:
        return self.jaxpr.lines(style)

    def param_lines(self, style: Style) -> list[str]:
        # Constants have no text, so the word `closed` is what distinguishes it from a jaxpr.
        first, *rest = self.lines(style)
        return [f"closed {'' if not self.consts else OPAQUE + ' '}{first}", *rest]


def subjaxprs(params: Mapping[str, object]) -> Iterator[Jaxpr]:
    """The jaxprs in an equation's params, found by type, one level of tuples deep."""
    for value in params.values():
        if isinstance(value, Jaxpr):
            yield value
        elif type(value) is tuple:
            yield from (item for item in value if isinstance(item, Jaxpr))


def are_unique(params: Mapping[str, object]) -> bool:
    """Whether params equal no others: an object with a true `__corejax_unique__` is among them.

    By a Python function, it refers to traced values, which end with their transformation, or to what can't be compared.
    """
    for value in params.values():
        for item in value if type(value) is tuple else (value,):
            if item.is_unique if type(item) is Jaxpr else getattr(item, "__corejax_unique__", False):
                return True
    return False
