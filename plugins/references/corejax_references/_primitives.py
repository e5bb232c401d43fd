"""The primitives of programs with references: all of what one holds is read, or replaced.

They are only applied to variables of programs that are being traced, and to references under `vmap` and `jvp`. A
program that has them is made a pure one where it is bound (`_programs`). As functions of arrays they mean nothing, so
they have no entry points.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.core import ShapedArray, dtypes, here, instantiate, to_dim
from corejax.errors import CorejaxNotImplementedError, CorejaxTypeError
from corejax.plugin import Effect, Holder, HolderType, Zero, define, hookimpl, not_linear, roles
from corejax_references.effects import READING, WRITING

__all__ = ["differentiated", "get_p", "get_trail_p", "mapped", "set_p", "set_trail_p", "trail_type"]


class Reading:
    """What primitives have in common that read a variable which stands for a reference."""

    name: str
    structural = True
    transpose = not_linear()
    _effect = READING

    @hookimpl
    def effects(self, avals: Sequence[ShapedArray]) -> frozenset[Effect]:
        return frozenset((self._effect,))

    @hookimpl
    def xla_translation(self, ctx: Any, args: Sequence[Any]) -> Any:
        raise _not_pure(self.name)


class Writing(Reading):
    """The same for those that write: they have no results."""

    multiple_results = True
    _effect = WRITING


class RefGet(Reading):
    """`ref_get(ref)`: the array that a reference holds, in a program.

    >>> from corejax.core import stage
    >>> from corejax.ref import AbstractRef
    >>> stage(lambda ref: [ref_get(ref)], [AbstractRef((3,), "float64")])
    { lambda ; a:Ref{f64[3]}. let b:f64[3] = ref_get a with {reference_read} in (b,) }
    """

    name = "ref_get"

    @hookimpl
    def abstract_eval(self, avals: Sequence[ShapedArray]) -> ShapedArray:
        return _inner("ref_get", avals[0])

    @hookimpl
    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        (ref,), (ref_dot,) = primals, tangents
        dot = get_p.bind(_tangents(ref_dot))
        return get_p.bind(ref), roles.convert(dot, dot.aval.dtype)  # tangents aren't weak

    @hookimpl
    def vmap(self, axis: Any, args: Sequence[Any], dims: Sequence[int | None]) -> Any:
        return get_p.bind(args[0]), dims[0]


class RefSet(Writing):
    """`ref_set(ref, x)`: from now on a reference holds `x`, an array of just its type.

    >>> from corejax.core import stage
    >>> from corejax.ref import AbstractRef
    >>> aval = AbstractRef((3,), "float64")
    >>> stage(lambda ref, x: ref_set(ref, x), [aval, aval.inner_aval])
    { lambda ; a:Ref{f64[3]} b:f64[3]. let () = ref_set a b with {reference_write} in () }
    """

    name = "ref_set"
    symbolic_zeros = True

    @hookimpl
    def abstract_eval(self, avals: Sequence[ShapedArray]) -> list[ShapedArray]:
        inner = _inner("ref_set", avals[0])
        if not avals[1].matches(inner):
            raise CorejaxTypeError("ref_set: the array isn't of the reference's type", primitive="ref_set",
                                   got=str(avals[1]), wanted=str(inner), where=here(), todo="convert it")
        return []

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


class RefTrail(Reading):
    """`ref_trail(ref)`: the trail of a reference in a program (`_trails` says what that is).

    >>> from corejax.core import stage
    >>> from corejax.ref import AbstractRef
    >>> stage(lambda ref: [ref_trail(ref)], [AbstractRef((3,), "int16")])
    { lambda ; a:Ref{i16[3]}. let b:f32[3,2] = ref_trail a with {reference_read} in (b,) }
    """

    name = "ref_trail"

    @hookimpl
    def abstract_eval(self, avals: Sequence[ShapedArray]) -> ShapedArray:
        return _trail("ref_trail", avals[0])

    @hookimpl
    def vmap(self, axis: Any, args: Sequence[Any], dims: Sequence[int | None]) -> Any:
        return get_trail_p.bind(args[0]), dims[0]


class RefSetTrail(Writing):
    """`ref_set_trail(ref, trail, x)`: where the trail of a reference goes on, and what it holds if rules were run.

    >>> from corejax.core import stage
    >>> from corejax.ref import AbstractRef
    >>> aval = AbstractRef((3,), "float64")
    >>> stage(lambda ref, trail, x: ref_set_trail(ref, trail, x), [aval, aval.inner_aval, aval.inner_aval])
    { lambda ; a:Ref{f64[3]} b:f64[3] c:f64[3]. let
        () = ref_set_trail a b c with {reference_write}
      in () }
    """

    name = "ref_set_trail"

    @hookimpl
    def abstract_eval(self, avals: Sequence[ShapedArray]) -> list[ShapedArray]:
        ref, *given = avals
        wanted = [_trail("ref_set_trail", ref), _inner("ref_set_trail", ref)]
        if not all([x.matches(y) for x, y in zip(given, wanted, strict=True)]):
            raise CorejaxTypeError("ref_set_trail: this isn't for this reference", primitive="ref_set_trail",
                                   got=", ".join(map(str, given)), wanted=", ".join(map(str, wanted)), where=here(),
                                   todo="pass what a call with the reference returned")
        return []

    @hookimpl
    def vmap(self, axis: Any, args: Sequence[Any], dims: Sequence[int | None]) -> Any:
        ref, *given = args
        if dims[0] is None:
            raise mapped(ref)
        set_trail_p.bind(ref, *[to_dim(x, d, dims[0], axis.size) for x, d in zip(given, dims[1:], strict=True)])
        return [], []


ref_get: Any = define(RefGet())
ref_set: Any = define(RefSet())
ref_trail: Any = define(RefTrail())
ref_set_trail: Any = define(RefSetTrail())
get_p, set_p = ref_get.primitive, ref_set.primitive
get_trail_p, set_trail_p = ref_trail.primitive, ref_set_trail.primitive


def trail_type(aval: ShapedArray) -> Any:
    """The type of the trail of a reference to an array of this type; None if it holds no numbers, so there is none."""
    if dtypes.kind(aval.dtype) not in "biufc":
        return None
    if dtypes.is_inexact(aval.dtype):
        return aval.update(weak_type=False)
    size = () if aval.dtype.itemsize == 1 else (aval.dtype.itemsize,)
    return aval.update(shape=(*aval.shape, *size), dtype=np.dtype(np.float32), weak_type=False)


def _trail(name: str, aval: ShapedArray) -> ShapedArray:
    found = trail_type(_inner(name, aval))
    if found is None:
        raise CorejaxTypeError(f"{name}: only references to numbers have trails", primitive=name, got=str(aval),
                               wanted="a reference to numbers", where=here(), todo="use its value: ref[...]")
    return found  # type: ignore[no-any-return]


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


def mapped(ref: Any, what: str = "a mapped function writes to a reference", done: str = "a write to"
           ) -> CorejaxTypeError:
    """The error for a write to a reference that all elements of a batch share, or what may write to it."""
    return CorejaxTypeError(
        f"{what} from outside of it, which all elements of the batch share",
        got=f"{done} {ref.aval} under vmap", where=here(), wanted="a reference for each element",
        todo="pass the reference as an argument that is mapped, with an axis for the batch; or make it in the mapped "
             "function, and return what it holds")
