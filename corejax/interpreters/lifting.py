"""Transformations under which a value becomes several arrays: intervals, power series, a value with its error.

A `Lifting` needs a type of boxes and rules; it has an interpreter, and goes through primitives that carry programs by
their hook `carry`. That hook gets a `Lift`, which transforms programs and arranges operands, so that a primitive says
once, for all such transformations, how it is put together.

>>> from typing import Any, NamedTuple
>>> from corejax import lax
>>> from corejax.plugin import define, hookimpl
>>> class Pair(NamedTuple):
...     low: Any
...     high: Any
>>> def doc_range(args):
...     '''`doc_range(args, *, ...)`: a Pair for each result; operands are Pairs, or arrays.'''
>>> class Ranges(Lifting):
...     boxes = Pair
...     def raised(self, x, form):
...         return Pair(x, x)
>>> RANGES = Ranges(doc_range)
>>> class Shift:
...     name = "doc_shift"
...     @hookimpl
...     def abstract_eval(self, avals):
...         return avals[0]
...     @hookimpl
...     def impl(self, args):
...         return args[0] + 1.0
...     @hookimpl(optionalhook=True)
...     def doc_range(self, args):
...         return Pair(*[lax.add(x, 1.0) for x in args[0]])
>>> shift = define(Shift())
>>> RANGES.run(lambda x: [shift(shift(x))], [Pair(0.0, 2.0)])
[Pair(low=Array(2., dtype=float64, weak_type=True), high=Array(4., dtype=float64, weak_type=True))]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from corejax.arrays.array import Array
from corejax.base.avals import ShapedArray, aval_of
from corejax.base.errors import CorejaxNotImplementedError, CorejaxTypeError, RuleError
from corejax.base.source import here
from corejax.installed.roles import roles
from corejax.interpreters.composing import composition, once
from corejax.interpreters.lifts import Form, Lift, checked_box
from corejax.kernel import checks
from corejax.kernel.context import context
from corejax.kernel.jaxpr import Params, subjaxprs
from corejax.kernel.primitive import Primitive, Rule
from corejax.kernel.trace import Trace, Tracer, as_value, check_belongs
from corejax.kernel.transformations import Transformation, Way
from corejax.kernel.varying import along, joint, varied


class Lifting(Transformation):
    """A transformation under which a value becomes a box of arrays.

    By default a box is an instance of `boxes`, a NamedTuple class, whose arrays all have the value's type. Override the
    methods up to `join` for others. `pointwise` says that a slice of a value has the slices of its arrays for a box:
    scans and maps over devices need that.
    """

    boxes: type[Any]
    pointwise = True

    def __init__(self, spec: Callable[..., Any], *, ways: Mapping[str, Way] | None = None, **options: Any) -> None:
        super().__init__(spec, ways=WAYS if ways is None else ways, **options)
        boxes = getattr(type(self), "boxes", None)
        if type(self).form is Lifting.form and not hasattr(boxes, "_fields"):
            raise CorejaxTypeError(f"{self.name}: its class must say what a box is", hook=self.name, got=repr(boxes),
                                   wanted="boxes = a NamedTuple class; or methods form, parts, box, avals and aval",
                                   where=here(), todo="write a NamedTuple with a field for each array, and name it")

    # What a box is

    def form(self, x: Any) -> Form:
        """What is known of a box besides its arrays, as a hashable value that isn't None; None for a plain value."""
        return self.boxes.__name__ if isinstance(x, self.boxes) else None

    def parts(self, box: Any) -> Sequence[Any]:
        """The arrays in a box, in order."""
        return tuple(box)

    def box(self, form: Form, parts: Sequence[Any]) -> Any:
        """The box with these arrays."""
        return self.boxes(*parts)

    def avals(self, aval: ShapedArray, form: Form) -> Sequence[ShapedArray]:
        """The types of the arrays in a box for a value of type `aval`. How many there are depends on the form alone."""
        return [aval] * len(self.boxes._fields)

    def aval(self, box: Any) -> ShapedArray:
        """The type of the value that a box stands for."""
        return aval_of(self.parts(box)[0])

    def raised(self, x: Any, form: Form) -> Any:
        """The box of this form for a plain value, or for one in a box of a form that joins into it."""
        raise CorejaxNotImplementedError(
            f"{self.name}: its class doesn't say what the box of a plain value is", hook=self.name, where=here(),
            got="a value that one branch, or one step, returns plain, and another one in a box",
            wanted="a method raised(self, x, form)", todo="write it: Interval(x, x) for an interval, for example")

    def join(self, one: Form, other: Form) -> Form:
        """The form that boxes of two forms have in common. Neither is None."""
        return one if one == other else None

    # How it runs

    def run(self, fun: Callable[..., Sequence[Any]], args: Sequence[Any]) -> list[Any]:
        """The results of a function of arrays, for boxes and plain values."""
        return run_lifted(self, fun, args)

    def from_boxes(self, function: Rule) -> Rule:
        """A rule for the hook, from a function `(args, **params)` of boxes that returns one, or a list of them."""
        return function

    def lift(self, primitive: Primitive) -> Lift:
        """What the hook `carry` of a primitive is given."""
        return Lift(self, primitive)


class LiftTracer(Tracer):
    """A value with its box."""

    __slots__ = ("box",)

    def __init__(self, trace: Trace, box: Any, aval: ShapedArray) -> None:
        self._trace = trace
        self.box = box
        self.aval = aval


class LiftTrace(Trace):
    """Applies a primitive's rule for a transformation if an operand is in a box."""

    __slots__ = ("lifting",)
    parent: Trace

    def __init__(self, parent: Trace, lifting: Lifting) -> None:
        super().__init__(parent)
        self.lifting = lifting

    def process(self, primitive: Primitive, args: Sequence[object], params: Params) -> Any:
        values: list[Any] = []
        boxed = False
        for i, x in enumerate(args):
            if type(x) is LiftTracer and x._trace is self:
                values.append(x.box)
                boxed = True
            else:
                values.append(x if type(x) is Array else self.rule_operand(primitive, i, x))
        parent = self.parent
        context.trace = parent
        try:
            if not boxed:
                return parent.process(primitive, values, params)
            result = apply_rule(self.lifting, primitive, (values,), args, params)
            expected = primitive.infer(tuple([aval_of(x) for x in args]), params)
            if not primitive.multiple_results:
                return self._box(primitive, result, expected)
            if self.lifting.form(result) is not None:  # its arrays might be as many as the outputs
                raise checks.rule_error(primitive, self.lifting.name, "returned one box for all outputs",
                                        checks.describe(result), f"a sequence of {len(expected)} outputs",
                                        "return a list with a box, or a plain value, for each output")
            outs = checks.check_sequence(primitive, self.lifting.name, result, len(expected), "outputs")
            return [self._box(primitive, out, aval) for out, aval in zip(outs, expected, strict=True)]
        except RuleError as error:
            raise checks.of_user(error, primitive, params)  # noqa: B904
        finally:
            context.trace = self

    def _box(self, primitive: Primitive, out: Any, expected: ShapedArray) -> Any:
        form = self.lifting.form(out)
        if form is None:
            return checks.check_value(primitive, self.lifting.name, out, expected, self.parent)
        return LiftTracer(self, checked_box(self.lifting, primitive, out, expected, self.parent), expected)


def apply_rule(transformation: Transformation, primitive: Primitive, arguments: Sequence[Any], operands: Sequence[Any],
               params: Params) -> Any:
    """What the rule for a primitive returns, after the check for its effects; `operands` are what it was bound to."""
    if primitive.effects is not None:
        check_effects(transformation, primitive, operands, params)
    try:
        return primitive.answer(transformation).rule(*arguments, **params)
    except Exception as error:
        if isinstance(error, (ValueError, IndexError)):  # perhaps from unpacking the operands
            primitive.infer(tuple(map(aval_of, operands)), params)
        raise checks.failed(primitive, transformation.name, error)  # noqa: B904


def check_effects(transformation: Transformation, primitive: Primitive, operands: Sequence[Any], params: Params
                  ) -> None:
    """Refuse an equation with effects that don't allow the transformation's situation.

    Programs among its params are asked inside.
    """
    if next(subjaxprs(params), None) is not None:
        return
    if transformation.situation is not None:
        checks.check_effects_allowed(primitive, transformation.situation, operands, params)
        return
    assert primitive.effects is not None
    effects = primitive.effects(tuple(map(aval_of, operands)), **params)
    if effects and primitive.answer(transformation).how not in ("written", "declared"):
        raise CorejaxNotImplementedError(
            f"{primitive.name}: {transformation.name} doesn't say what becomes of its effects",
            primitive=primitive.name, pack=primitive.origin, hook=transformation.name, where=here(),
            got=f"the effects {', '.join(sorted(map(str, effects)))}",
            wanted=f"a program without them, or a rule {primitive.name}.{transformation.name}",
            todo="move what has the effect out of the transformed function")


def blamed(transformation: Transformation, primitive: Primitive, error: Exception) -> Exception:
    """What to raise where a rule raised this: it says whose rule that was."""
    return checks.failed(primitive, transformation.name, error)


def checked_sequence(transformation: Transformation, primitive: Primitive, values: Any, count: int, what: str
                     ) -> list[Any]:
    """What a rule returned in the place of so many things, as a list of as many."""
    return list(checks.check_sequence(primitive, transformation.name, values, count, what))


def checked_values(transformation: Transformation, primitive: Primitive, values: Any, avals: Sequence[ShapedArray],
                   what: str = "values") -> list[Any]:
    """Values that a rule returned, as arrays of these types; they may be weak where these aren't, and reversely."""
    hook, trace = transformation.name, context.trace
    found = checks.check_sequence(primitive, hook, values, len(avals), what)
    return [_of_type(primitive, hook, checks.check_array(primitive, hook, x, aval, trace), aval)
            for x, aval in zip(found, avals, strict=True)]


def _of_type(primitive: Primitive, hook: str, x: Any, aval: ShapedArray) -> Any:
    if x.aval is not aval and x.aval.matches(aval) and x.aval.weak_type is not aval.weak_type:
        x = roles.convert(x, aval.dtype, aval.weak_type)
    return checks.check_value(primitive, hook, x, aval, context.trace)


def run_lifted(lifting: Lifting, fun: Callable[..., Sequence[Any]], args: Sequence[Any]) -> list[Any]:
    """The results of `fun`, which takes and returns sequences of arrays, for boxes and plain values."""
    parent = context.trace
    trace = LiftTrace(parent, lifting)
    given = [as_value(x) if lifting.form(x) is None else _entered(trace, x) for x in args]
    context.trace = trace
    try:
        outs = []
        for x in fun(*given):
            if type(x) is LiftTracer and x._trace is trace:
                outs.append(x.box)
            else:
                check_belongs(x, trace, lifting.name)
                outs.append(as_value(x))
    finally:
        context.trace = parent
        trace.live = False
    return outs


def _entered(trace: LiftTrace, box: Any) -> LiftTracer:
    """A user's box as a value; numbers in it are arrays of the types that its others want them to have."""
    lifting, form = trace.lifting, trace.lifting.form(box)
    parts = [as_value(part) for part in lifting.parts(box)]
    aval = lifting.aval(lifting.box(form, parts))
    wanted = lifting.avals(aval, form)
    if len(parts) != len(wanted) or not all([
            x.aval.matches(own) for x, own in zip(parts, wanted, strict=True)]):
        raise CorejaxTypeError(f"{lifting.name}: the arrays in a box don't fit each other", where=here(),
                               got=", ".join([str(x.aval) for x in parts]) or "none",
                               wanted=", ".join(map(str, wanted)),
                               todo=f"pass what a value of type {aval} has in its box")
    if any([own.weak_type and not x.aval.weak_type for x, own in zip(parts, wanted, strict=True)]):
        aval = aval.strong
    aval = along(aval, joint([x.aval for x in parts]))
    wanted = lifting.avals(aval, form)
    return LiftTracer(trace, lifting.box(form, [_fitted(x, own) for x, own in zip(parts, wanted, strict=True)]), aval)


def _fitted(x: Any, wanted: ShapedArray) -> Any:
    if x.aval.weak_type is not wanted.weak_type:
        x = roles.convert(x, wanted.dtype, wanted.weak_type)
    return varied(x, wanted.varying)


# Ways to derive rules

def from_programs(lifting: Lifting, primitive: Primitive) -> Rule | None:
    """The rule of a primitive that carries programs, from its hook `carry`."""
    carry = primitive.carry
    if carry is None:
        return None

    def rule(args: Sequence[Any], /, **params: Any) -> Any:
        return carry(lifting.lift(primitive), args, **params)
    return lifting.from_boxes(rule)


def from_decompose(lifting: Lifting, primitive: Primitive) -> Rule | None:
    """The rule of a primitive that is composed of others: its composition, transformed."""
    if primitive.decompose is None:
        return None

    def rule(args: Sequence[Any], /, **params: Any) -> Any:
        operands = [aval_of(x) if lifting.form(x) is None else lifting.aval(x) for x in args]
        outs = once(primitive, params, (lifting, context.trace, *operands),
                    lambda: lifting.run(composition(primitive, params), args))
        return outs if primitive.multiple_results else outs[0]
    return lifting.from_boxes(rule)


#: How a lifting derives rules, unless it says otherwise.
WAYS: Mapping[str, Way] = {"through its programs, by carry": from_programs, "from decompose": from_decompose}
