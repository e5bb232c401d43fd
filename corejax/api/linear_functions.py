"""What `linearize`, `vjp` and `linear_transpose` return: linear functions that are pytrees of their residuals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

from corejax.api.arguments import finish_cotangent, tangents_like
from corejax.base import trees
from corejax.base.avals import ShapedArray
from corejax.base.errors import CorejaxTypeError
from corejax.base.prefixes import check_same_structure
from corejax.base.source import here
from corejax.base.tracebacks import public
from corejax.base.trees import TreeDef
from corejax.interpreters.leaves import is_single_leaf, namer
from corejax.interpreters.linearize import LinearMap
from corejax.interpreters.reverse import pull_back
from corejax.interpreters.tape_programs import TapeProgram, divide_map


class Ends(NamedTuple):
    """The argument and result types of a function; a tree is None for a single leaf. Errors name `what` made it."""

    in_tree: TreeDef
    in_avals: tuple[ShapedArray, ...]
    out_tree: TreeDef | None
    out_avals: tuple[ShapedArray, ...]
    what: str


class Static(NamedTuple):
    """The structure of a linear function as a pytree: everything but its residuals."""

    program: TapeProgram
    ends: Ends

    def __repr__(self) -> str:
        ins, outs = (", ".join(map(str, avals)) for avals in (self.ends.in_avals, self.ends.out_avals))
        return f"{self.ends.what} of ({ins}) -> ({outs}), {self.program!r}"


class LinearFunction:
    """A function recorded on a tape. It is taken apart into program and residuals when it is first flattened."""

    __slots__ = ("_ends", "_map", "_parts", "__weakref__")
    _map: LinearMap | None
    _parts: tuple[Static, tuple[Any, ...]] | None

    def __init__(self, linear_map: LinearMap, ends: Ends) -> None:
        self._map, self._ends, self._parts = linear_map, ends, None

    def tree_flatten(self) -> tuple[tuple[Any, ...], Static]:
        """The residuals, and the rest."""
        if self._parts is None:
            assert self._map is not None
            program, residuals = divide_map(self._map)
            ends = self._ends
            if ends.out_tree is None:  # structures only compare with each other
                ends = ends._replace(out_tree=trees.flatten(0)[1])
            self._parts = Static(program, ends), tuple(residuals)
        static, residuals_ = self._parts
        return residuals_, static

    @classmethod
    def tree_unflatten(cls, static: Static, residuals: Sequence[object]) -> Self:
        """The function with these residuals, which are checked when it is called."""
        function = object.__new__(cls)
        function._map, function._ends, function._parts = None, static.ends, (static, tuple(residuals))
        return function

    def _linear_map(self) -> LinearMap:
        if self._map is None:
            assert self._parts is not None
            static, residuals = self._parts
            self._map = static.program.with_residuals(residuals, f"the function that {self._ends.what} returned")
        return self._map

    def __reduce__(self) -> tuple[object, ...]:
        residuals, static = self.tree_flatten()
        return _rebuilt, (type(self), static, residuals)

    def __repr__(self) -> str:
        ins, outs = (", ".join(map(str, avals)) for avals in (self._ends.in_avals, self._ends.out_avals))
        return f"<{self.__name__} of ({ins}) -> ({outs})>"  # type: ignore[attr-defined]


def _rebuilt(cls: type[LinearFunction], static: Static, residuals: Sequence[object]) -> LinearFunction:
    return cls.tree_unflatten(static, residuals)


@trees.register_node_class
class Tangents(LinearFunction):
    """The derivative of a function at a point: maps tangents of its arguments to the tangent of its result."""

    __slots__ = ()
    __name__ = "f_lin"

    @public
    def __call__(self, *tangents: Any) -> Any:
        """The tangent of the result."""
        in_tree, in_avals, out_tree, out_avals, what = self._ends
        dots = fitting_tangents(what, tangents, in_tree, in_avals)
        results = self._linear_map()(*dots)
        outs = [finish_cotangent(t, aval) for t, aval in zip(results, out_avals, strict=True)]
        return outs[0] if out_tree is None else out_tree.unflatten(outs)


@trees.register_node_class
class Pullback(LinearFunction):
    """The transpose of a derivative: maps the cotangent of the result to a tuple of cotangents of the arguments."""

    __slots__ = ()
    __name__ = "pullback"

    @staticmethod
    def _type_of_cotangent(aval: ShapedArray) -> ShapedArray:
        return aval.tangent

    @public
    def __call__(self, *cotangent: Any) -> Any:
        """The cotangents of the arguments."""
        in_tree, in_avals, out_tree, out_avals, what = self._ends
        if len(cotangent) != 1:
            raise CorejaxTypeError(f"{what}: the pullback takes one cotangent, that of the output", where=here(),
                                   got=f"{len(cotangent)} arguments", wanted="one, in the structure of the output",
                                   todo="if the function returns a tuple, pass a tuple")
        ct = cotangent[0]
        leaves, tree = ([ct], None) if out_tree is None and is_single_leaf(ct) else trees.flatten(
            ct, None, "the cotangent")
        if tree is not None and (out_tree is None or tree != out_tree):
            output = out_avals[0] if out_tree is None else out_tree.unflatten(out_avals)
            check_same_structure(output, ct, ("the output", "the cotangent"), what)
        avals = [self._type_of_cotangent(aval) for aval in out_avals]
        cts = tangents_like(leaves, avals, what, namer("the cotangent", ct), "the output", dropped=True)
        back = pull_back(self._linear_map(), cts)
        return in_tree.unflatten([finish_cotangent(x, aval) for x, aval in zip(back, in_avals, strict=True)])


@trees.register_node_class
class Transpose(Pullback):
    """The transpose of a linear function, maybe of integers: what it takes and returns has the types of that one."""

    __slots__ = ()

    @staticmethod
    def _type_of_cotangent(aval: ShapedArray) -> ShapedArray:
        return aval.strong


def fitting_tangents(what: str, tangents: object, in_tree: TreeDef, avals: Sequence[ShapedArray]) -> list[Any]:
    """The leaves of tangents, checked against the structure and types of the arguments."""
    leaves, tree = trees.flatten(tangents, None, "tangents")
    if tree != in_tree:
        check_same_structure(in_tree.unflatten(avals), tangents, ("primals", "tangents"), what)
    return tangents_like(leaves, [aval.tangent for aval in avals], what, namer("tangents", tangents), "its primal")
