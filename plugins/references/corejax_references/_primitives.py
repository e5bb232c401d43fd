"""The primitives of programs with references: all of what one holds is read, or replaced.

They are only applied to variables of programs that are being traced, and to references under `vmap` and `jvp`. A
program that has them is made a pure one where it is bound (`_programs`). As functions of arrays they mean nothing, so
they have no entry points.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax.core import ShapedArray, here, instantiate, to_dim
from corejax.errors import CorejaxNotImplementedError, CorejaxTypeError
from corejax.plugin import Effect, Holder, HolderType, Zero, define, hookimpl, not_linear
from corejax_references.effects import READING, WRITING

__all__ = ["differentiated", "get_p", "mapped", "set_p"]


class RefGet:
    """`ref_get(ref)`: the array that a reference holds, in a program.

    >>> from corejax.core import stage
    >>> from corejax.ref import AbstractRef
    >>> stage(lambda ref: [ref_get(ref)], [AbstractRef((3,), "float64")])
    { lambda ; a:Ref{f64[3]}. let b:f64[3] = ref_get a with {reference_read} in (b,) }
    """

    name = "ref_get"
    structural = True
    transpose = not_linear()

    @hookimpl
    def abstract_eval(self, avals: Sequence[ShapedArray]) -> ShapedArray:
        return _inner("ref_get", avals[0])

    @hookimpl
    def effects(self, avals: Sequence[ShapedArray]) -> frozenset[Effect]:
        return frozenset((READING,))

    @hookimpl
    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        (ref,), (ref_dot,) = primals, tangents
        return get_p.bind(ref), get_p.bind(_tangents(ref_dot))

    @hookimpl
    def vmap(self, axis: Any, args: Sequence[Any], dims: Sequence[int | None]) -> Any:
        return get_p.bind(args[0]), dims[0]

    @hookimpl
    def xla_translation(self, ctx: Any, args: Sequence[Any]) -> Any:
        raise _not_pure("ref_get")


class RefSet:
    """`ref_set(ref, x)`: from now on a reference holds `x`, an array of just its type.

    >>> from corejax.core import stage
    >>> from corejax.ref import AbstractRef
    >>> aval = AbstractRef((3,), "float64")
    >>> stage(lambda ref, x: ref_set(ref, x), [aval, aval.inner_aval])
    { lambda ; a:Ref{f64[3]} b:f64[3]. let () = ref_set a b with {reference_write} in () }
    """

    name = "ref_set"
    structural = True
    multiple_results = True
    symbolic_zeros = True
    transpose = not_linear()

    @hookimpl
    def abstract_eval(self, avals: Sequence[ShapedArray]) -> list[ShapedArray]:
        inner = _inner("ref_set", avals[0])
        if not avals[1].matches(inner):
            raise CorejaxTypeError("ref_set: the array isn't of the reference's type", primitive="ref_set",
                                   got=str(avals[1]), wanted=str(inner), where=here(), todo="convert it")
        return []

    @hookimpl
    def effects(self, avals: Sequence[ShapedArray]) -> frozenset[Effect]:
        return frozenset((WRITING,))

    @hookimpl
    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        (ref, x), (ref_dot, x_dot) = primals, tangents
        if type(ref_dot) is Zero:
            raise differentiated(ref)
        dots = _tangents(ref_dot)
        set_p.bind(ref, x)
        set_p.bind(dots, instantiate(x_dot))
        return [], []

    @hookimpl
    def vmap(self, axis: Any, args: Sequence[Any], dims: Sequence[int | None]) -> Any:
        ref, x = args
        if dims[0] is None:
            raise mapped(ref)
        set_p.bind(ref, to_dim(x, dims[1], dims[0], axis.size))
        return [], []

    @hookimpl
    def xla_translation(self, ctx: Any, args: Sequence[Any]) -> Any:
        raise _not_pure("ref_set")


ref_get: Any = define(RefGet())
ref_set: Any = define(RefSet())
get_p, set_p = ref_get.primitive, ref_set.primitive


def _tangents(ref_dot: Any) -> Any:
    """The reference to tangents. Reverse mode has none: which array would be its cotangent?"""
    if isinstance(ref_dot, Holder):
        return ref_dot
    raise CorejaxNotImplementedError(
        "there is no derivative with respect to a reference in reverse mode", where=here(),
        got="grad, vjp or linearize by an argument that is a reference", wanted="a derivative with respect to arrays",
        todo="take the array as an argument, and make the reference within the function: cj.new_ref(x)")


def _inner(name: str, aval: ShapedArray) -> ShapedArray:
    if isinstance(aval, HolderType):
        return aval.inner_aval  # type: ignore[attr-defined,no-any-return]
    raise CorejaxTypeError(f"{name}: its operand must be a reference", primitive=name, got=str(aval), where=here(),
                           wanted="a reference", todo="make one: cj.new_ref(x)")


def _not_pure(name: str) -> CorejaxNotImplementedError:
    return CorejaxNotImplementedError(
        f"{name}: this program still has references, and can't be compiled", primitive=name, where=here(),
        got="a program that is compiled as it was traced", wanted="one that is called with references",
        todo="call the jitted function, or let it take and return arrays")


def differentiated(ref: Any) -> CorejaxTypeError:
    """The error for a value with a tangent that is written to a reference without one."""
    return CorejaxTypeError(
        "a value that is being differentiated is written to a reference from outside of the differentiated function",
        got=f"a write to {ref.aval}, which has no tangent", where=here(),
        wanted="a value without derivative, or a reference that was made within the function",
        todo="write lax.stop_gradient(x) if its value is enough; or make the reference in the function, and return "
             "what it holds")


def mapped(ref: Any) -> CorejaxTypeError:
    """The error for a write to a reference that all elements of a batch share."""
    return CorejaxTypeError(
        "a mapped function writes to a reference from outside of it, which all elements of the batch share",
        got=f"a write to {ref.aval} under vmap", where=here(), wanted="a reference for each element",
        todo="pass the reference as an argument that is mapped, with an axis for the batch; or make it in the mapped "
             "function, and return what it holds")
