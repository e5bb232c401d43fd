"""`composite`: a function that stays one operation in the lowered program, for compilers that know it by name.

What it computes is its decomposition, and that is what every transformation sees.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, wraps
from typing import Any, TypeVar

import numpy as np

from corejax import lax
from corejax.core import Jaxpr, ShapedArray, Tracer, aval_of, here, is_concrete, stage
from corejax.errors import CorejaxTypeError, CorejaxValueError, kind_of
from corejax.plugin import Sample, carrying, define, hookimpl, public, shaping
from corejax_control_flow._equations import check_function

__all__ = ["composite", "composite_call"]

Decomposition = TypeVar("Decomposition", bound=Callable[..., Any])

#: What StableHLO takes as the name of a composite: parts, with a dot between them.
_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*([.][a-zA-Z0-9_$]+)+")


class CompositeCall:
    """`composite_call(*operands, jaxpr=..., name=..., version=0, attributes=())`: call a jaxpr as a composite.

    `attributes` are pairs of a name and a value: a number, a boolean, a string, or nested tuples and `Elements`.

    >>> staged = stage(lambda x: [x + 1.0], [ShapedArray((), "float64")])
    >>> composite_call(np.float64(2.0), jaxpr=staged.jaxpr, name="my.increment", version=0, attributes=())
    [Array(3., dtype=float64)]
    """

    name = "composite_call"
    structural = True
    tracks_varying = True
    operands = ("*operands",)
    multiple_results = True

    @hookimpl
    def evaluate(self, args: Any, *, jaxpr: Jaxpr) -> list[Any]:
        carrying.check_operands(self.name, jaxpr, [aval_of(x) for x in args])
        return carrying.run(jaxpr, args)

    @hookimpl
    def abstract_eval(self, avals: Any, *, jaxpr: Jaxpr, name: str, version: int, attributes: Any
                      ) -> list[ShapedArray]:
        carrying.check_operands(self.name, jaxpr, avals)
        return jaxpr.out_avals

    @hookimpl
    def decompose(self, args: Any, *, jaxpr: Jaxpr) -> list[Any]:
        return carrying.run(jaxpr, args)

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, jaxpr: Jaxpr, name: str, version: int, attributes: Any) -> Any:
        if any([effect.ordered for effect in jaxpr.effects]):  # a composite's operands are its function's
            return ctx.call(jaxpr, args, name)
        ir = ctx.ir
        function, out_types = ctx.function(jaxpr, name)
        made = ctx.op("stablehlo.composite", args, {
            "name": ir.StringAttr.get(name), "decomposition": function, "version": ctx.attribute(f"{version} : i32"),
            "composite_attributes": ir.DictAttr.get({key: _attribute(ctx, value) for key, value in attributes})},
            out_types)
        return made if isinstance(made, list) else [made]

    @hookimpl
    def effects(self, avals: Any, *, jaxpr: Jaxpr) -> frozenset[Any]:
        return jaxpr.effects

    def widened(self, axes: Sequence[Any], *, jaxpr: Jaxpr, **params: Any) -> dict[str, Any]:
        """The program for operands that vary along these axes of a mesh."""
        return {"jaxpr": carrying.retyped(jaxpr, axes)}

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        def params(fun: Any, *args: Any, **attributes: Any) -> dict[str, Any]:
            jaxpr = stage(fun, [aval_of(x) for x in args], "f").jaxpr
            return {"jaxpr": jaxpr, "name": f"test.f_{len(args)}", "version": len(attributes),
                    "attributes": tuple(attributes.items())}

        x, y, n = rng.standard_normal(3), rng.standard_normal(3), np.arange(3, dtype=np.int32)
        yield Sample([x], params(lambda x: [lax.sin(x)], x), results=[np.sin(x)])
        yield Sample([x, y], params(lambda x, y: [lax.mul(x, lax.sin(y)), x], x, y, axis=-1, exact=True,
                                    scale=(0.5, "log")), results=[x * np.sin(y), x])
        yield Sample([x, n], params(lambda x, n: [lax.mul(x, x), lax.add(n, n)], x, n, kind="even"),
                     results=[x * x, n + n])
        yield Sample([x[:2]], params(lambda x: [lax.sin(x)], x), error=TypeError)


composite_call: Any = define(CompositeCall())


@public
def composite(decomposition: Callable[..., Any], name: str, version: int = 0) -> Callable[..., Any]:
    """The function `decomposition`, as an operation of its own in the lowered program: for compilers that know it.

    `name` has a namespace, as in "my.softmax"; `version` is a number that changes with the meaning. The function takes
    pytrees of arrays by position. Its keyword arguments are static, and are attributes of the operation as well, unless
    they are None: numbers, strings, NumPy arrays, sequences and dictionaries of these. A compiler that doesn't know the
    operation compiles the decomposition. Derivatives and maps are those of the decomposition.

    >>> tangent = lax.composite(lambda x: lax.sin(x) / lax.cos(x), "my.tangent")
    >>> tangent(0.5)
    Array(0.54630249, dtype=float64, weak_type=True)
    """
    check_function("composite", "decomposition", decomposition, "*arrays, **attributes")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise CorejaxValueError("composite: a name must have a namespace", got=f"{name!r:.80}", where=here(),
                                wanted="letters, digits and _, in parts with a dot between them",
                                todo="write name='my.function'")
    number = shaping.as_int("composite", "version", version)

    @wraps(decomposition)
    def composed(*args: Any, **attributes: Any) -> Any:
        frozen = tuple([(key, _frozen(value, key)) for key, value in attributes.items() if value is not None])
        function = partial(decomposition, **attributes)
        if carrying.runs_python():
            return carrying.call_python(function, args, f"composite: {name}")
        call = carrying.stage_call(function, args, f"composite: {name}")
        return call.unflatten(composite_call.primitive.bind(
            *call.operands, jaxpr=call.jaxpr, name=name, version=number, attributes=frozen))
    return public(composed)


# Attributes

class Elements:
    """An array as an attribute: compared by its elements."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __corejax_key__(self) -> Any:
        return self.array.dtype.str, self.array.shape, self.array.tobytes()

    def __repr__(self) -> str:
        return repr(self.array)


class Entries(tuple[tuple[str, Any], ...]):
    """A dictionary as an attribute: its items."""

    __slots__ = ()

    def __corejax_key__(self) -> Any:
        return "a dictionary", tuple(self)


def _frozen(value: Any, key: str) -> Any:
    """The value of an attribute as a param, which is compared by value."""
    if isinstance(value, Tracer):
        raise CorejaxTypeError(f"composite: the attribute {key} is a traced value", got=str(aval_of(value)),
                               wanted="a value that is known when the program is traced", where=here(),
                               todo="pass it by position: keyword arguments are attributes of the operation")
    if isinstance(value, int) and not -2**63 <= value < 2**63:
        raise CorejaxValueError(f"composite: the attribute {key} is too large", got=value, wanted="a 64-bit integer",
                                where=here(), todo="pass it as a string, or close over it")
    if isinstance(value, (bool, int, float, str, bytes, np.bool_, np.integer, np.floating, np.dtype)):
        return value
    if isinstance(value, np.ndarray) or (is_concrete(value) and not isinstance(value, complex)):
        array = np.array(value)
        array.flags.writeable = False
        return Elements(array) if array.ndim else array[()]
    if isinstance(value, Mapping):
        return Entries([(str(name), _frozen(item, f"{key}[{name!r}]")) for name, item in value.items()])
    if isinstance(value, (list, tuple)):
        return tuple([_frozen(item, f"{key}[{i}]") for i, item in enumerate(value)])
    raise CorejaxTypeError(f"composite: {key} can't be an attribute", got=f"{kind_of(value)}: {value!r:.80}",
                           wanted="a number, a string, a NumPy array, or a sequence or dictionary of these",
                           where=here(), todo="close over it instead of passing it by keyword")


def _attribute(ctx: Any, value: Any) -> Any:
    """The attribute in a module."""
    ir = ctx.ir
    if isinstance(value, (bool, np.bool_)):
        return ir.BoolAttr.get(bool(value))
    if isinstance(value, (str, bytes)):
        return ir.StringAttr.get(value)
    if isinstance(value, Elements):
        host = np.ascontiguousarray(value.array)
        return ir.DenseElementsAttr.get(host, type=_element(ctx, host.dtype), shape=host.shape)
    if isinstance(value, Entries):
        return ir.DictAttr.get({name: _attribute(ctx, item) for name, item in value})
    if isinstance(value, tuple):
        return ir.ArrayAttr.get([_attribute(ctx, item) for item in value])
    if isinstance(value, np.dtype):
        return ir.TypeAttr.get(_element(ctx, value))
    kind = _element(ctx, np.asarray(value).dtype)
    if isinstance(value, (float, np.floating)):
        return ir.FloatAttr.get(kind, float(value))
    return ir.IntegerAttr.get(kind, int(value))


def _element(ctx: Any, dtype: np.dtype[Any]) -> Any:
    return ctx.type_of(ShapedArray((), dtype)).element_type
