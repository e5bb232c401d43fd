"""How transformations go through primitives that carry programs: the `Lift` that the hook `carry` is given."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from corejax.arrays.array import Array
from corejax.base.avals import ShapedArray, aval_of
from corejax.base.caches import WeakCache
from corejax.base.errors import CorejaxError, CorejaxNotImplementedError, RuleError
from corejax.base.source import here
from corejax.interpreters.carrying import run
from corejax.interpreters.staging import stage_closed
from corejax.ir.interpret import eval_jaxpr
from corejax.kernel import checks
from corejax.kernel.axes import AxisEnv
from corejax.kernel.context import context
from corejax.kernel.jaxpr import Jaxpr
from corejax.kernel.trace import Trace

if TYPE_CHECKING:
    from corejax.interpreters.lifting import Lifting
    from corejax.kernel.primitive import Primitive

T = TypeVar("T")

Form = Hashable
"""What is known of a box besides its arrays; None for a value that isn't in a box."""
Forms = tuple[Form, ...]

#: Once all values are boxed that will be, so many steps find their final forms, or there are none.
_STEPS = 100


class Lift:
    """How a transformation goes through a primitive that carries programs: what the hook `carry` is given.

    Operands of the primitive are boxes and plain values. Those of the transformed one are their arrays: for each
    operand all of its arrays, in order, so that groups of operands remain groups.
    """

    def __init__(self, lifting: Lifting, primitive: Primitive) -> None:
        self.lifting, self.primitive = lifting, primitive

    def form(self, x: Any) -> Form:
        """The form of an operand, None for a plain one."""
        return self.lifting.form(x)

    def forms(self, args: Iterable[Any]) -> Forms:
        """The form of each operand."""
        return tuple([self.form(x) for x in args])

    def parts(self, args: Iterable[Any]) -> list[Any]:
        """The operands of the transformed primitive."""
        parts: list[Any] = []
        for x in args:
            if self.form(x) is None:
                parts.append(x)
            else:
                parts += self.lifting.parts(x)
        return parts

    def results(self, parts: Sequence[Any], forms: Sequence[Form]) -> list[Any]:
        """The results of the primitive, from those of the transformed one."""
        counts = [self.count(form) for form in forms]
        if len(parts) != sum(counts):
            raise self._wrong(f"makes boxes of {sum(counts)} arrays from {len(parts)}", len(parts), sum(counts),
                              "bind the program that Lift.program returned, with all results", "carry")
        rest = iter(parts)
        return [next(rest) if form is None else self.lifting.box(form, [next(rest) for _ in range(n)])
                for form, n in zip(forms, counts, strict=True)]

    def count(self, *forms: Form) -> int:
        """How many arrays values of these forms have together."""
        return sum([1 if form is None else len(self.lifting.avals(_ANY, form)) for form in forms])

    def each(self, items: Iterable[T], forms: Iterable[Form]) -> list[T]:
        """What is said of each value, said of each of its arrays."""
        return [item for item, form in zip(items, forms, strict=True) for _ in range(self.count(form))]

    def sides(self, ins: Iterable[T], outs: Iterable[T], forms: Forms, out_forms: Forms) -> tuple[list[T], list[T]]:
        """What is said of each operand and each result, said of those of the transformed primitive."""
        return self.each(ins, forms), self.each(outs, out_forms)

    def through(self, jaxpr: Jaxpr, args: Sequence[Any]) -> list[Any]:
        """The results of a program, as if it weren't called by a primitive."""
        program, forms = self.program(jaxpr, self.forms(args))
        return self.results(run(program, self.parts(args)), forms)

    def program(self, jaxpr: Jaxpr, forms: Sequence[Form], wanted: Sequence[Form] | None = None) -> tuple[Jaxpr, Forms]:
        """The transformed program for inputs of these forms, and the forms of its outputs (cached).

        They are as `wanted`, if that is given: forms into which those that it finds by itself are joined.
        """
        if len(forms) != len(jaxpr.invars):
            raise self._wrong(f"gives the forms of {len(forms)} inputs to a program of {len(jaxpr.invars)}",
                              len(forms), len(jaxpr.invars), "pass the form of each operand that the program takes",
                              "carry")
        wanted = None if wanted is None else tuple(wanted)
        forms = tuple(forms)
        try:
            hash((forms, wanted))
        except TypeError as error:
            raise self._wrong(f"has a form that can't be hashed, among {forms!r:.80}", f"{error}",
                              "hashable forms, such as tuples", "let `form` return a tuple, not a list") from None
        return _program(jaxpr, self, forms, wanted, context.axes, _kinds(forms), _kinds(wanted))

    def decision(self, jaxpr: Jaxpr, forms: Sequence[Form], what: str) -> Jaxpr:
        """The transformed program of a value that decides what runs, which must be plain; `what` it is."""
        program, (decides,) = self.program(jaxpr, forms)
        if decides is None:
            return program
        raise self._undecided(what)

    def joined(self, *rows: Sequence[Form]) -> Forms:
        """For values that come from one of several programs: the form of each."""
        return tuple([self._join(column) for column in zip(*rows, strict=True)])

    def _join(self, column: Sequence[Form]) -> Form:
        found: Form = None
        for form in column:
            joint = form if found is None else found if form is None or form == found else \
                self.lifting.join(found, form)
            if joint is None and form is not None:
                raise self.refused(f"values of the forms {found!r} and {form!r} have no common one",
                                   "values of one form", "let all branches, and all steps, return the same")
            found = joint
        return found

    def raised(self, args: Iterable[Any], forms: Iterable[Form]) -> list[Any]:
        """The values in boxes of these forms, into which their own are joined."""
        return [x if self.form(x) == form else self._raised(x, form)
                for x, form in zip(args, forms, strict=True)]

    def _raised(self, x: Any, form: Form) -> Any:
        own, lifting = self.lifting.form(x), self.lifting
        aval = aval_of(x) if own is None else lifting.aval(x)
        box = None if form is None else lifting.raised(x, form)
        if form is None or lifting.form(box) != form:
            raise self._wrong(f"raises a value of the form {own!r} to {lifting.form(box)!r}", lifting.form(box), form,
                              "let `raised` return a box of the form that it is given, which `join` chose")
        return checked_box(lifting, self.primitive, box, aval, context.trace)

    def settled(self, start: Sequence[Form], step: Callable[[Forms], tuple[T, Sequence[Form]]]) -> tuple[Forms, T]:
        """The forms of a loop's carry, and what `step(forms)` returns for them besides the forms after the step."""
        forms = tuple(start)
        for _ in range(len(forms) + _STEPS):
            found, after = step(forms)
            grown = self.joined(forms, after)
            if grown == forms:
                return forms, found
            forms = grown
        raise self._wrong(f"the forms of a loop's carry keep growing: {len(forms) + _STEPS} steps don't settle them",
                          f"{forms!r:.100}", "forms that settle", "let `join` return one of finitely many forms")

    def plain(self, x: Any, what: str) -> Any:
        """A value that decides what runs, which can't be in a box; `what` it is, for the error."""
        if self.form(x) is None:
            return x
        raise self._undecided(what)

    def _undecided(self, what: str) -> CorejaxError:
        """The error where what decides is in a box."""
        return self.refused(f"{what} is in a box, so it isn't known what runs", "a plain value",
                            "write a rule for this primitive, which says what happens; or let a plain value decide")

    def check_pointwise(self, what: str, forms: Iterable[Form]) -> None:
        """Raise unless slices of boxes are boxes of slices, for values of these forms that `what` takes apart."""
        if not self.lifting.pointwise and any([form is not None for form in forms]):
            raise self.refused(f"{what} takes values apart, and a slice of a box isn't a box of slices",
                               "a transformation that is pointwise", "write a rule for this primitive")

    def refused(self, problem: str, wanted: str, todo: str) -> CorejaxError:
        """The error for what this transformation can't go through."""
        name, primitive = self.lifting.name, self.primitive
        return CorejaxNotImplementedError(f"{primitive.name}: {name}: {problem}", primitive=primitive.name, hook=name,
                                          pack=primitive.origin, where=here(), wanted=wanted, todo=todo,
                                          got=f"{name} of such a program")

    def _wrong(self, problem: str, got: object, wanted: object, todo: str, hook: str = "") -> RuleError:
        """The error for what a rule or the transformation does wrong."""
        return checks.rule_error(self.primitive, hook or self.lifting.name, problem, got, wanted, todo)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.lifting is self.lifting

    def __hash__(self) -> int:
        return hash((type(self), self.lifting))

    def stage(self, jaxpr: Jaxpr, forms: Forms, wanted: Forms | None) -> tuple[Jaxpr, Forms]:
        """What `program` returns, made anew."""
        lifting, found = self.lifting, Forms()

        def fun(*parts: Any) -> list[Any]:
            nonlocal found
            outs = lifting.run(partial(eval_jaxpr, jaxpr, ()), self.results(parts, forms))
            found = self.forms(outs)
            if wanted is not None:
                outs, found = self.raised(outs, wanted), wanted
            return self.parts(outs)

        avals = [part for aval, form in zip(jaxpr.in_avals, forms, strict=True)
                 for part in ([aval] if form is None else lifting.avals(aval, form))]
        return stage_closed(fun, avals, jaxpr.name), found


def checked_box(lifting: Lifting, primitive: Primitive, box: Any, expected: ShapedArray, trace: Trace | None) -> Any:
    """A box that a rule returned for a result of type `expected`, with arrays of the right types."""
    form, parts = lifting.form(box), lifting.parts(box)
    wanted = lifting.avals(expected, form)
    if all([type(x) is Array and x.aval is aval for x, aval in zip(parts, wanted, strict=False)]) and (
            len(parts) == len(wanted)):
        return box
    parts = checks.check_sequence(primitive, lifting.name, parts, len(wanted), "arrays in a box")
    return lifting.box(form, [checks.check_value(primitive, lifting.name, x, aval, trace)
                              for x, aval in zip(parts, wanted, strict=True)])


_ANY = ShapedArray((), "float64")


def _kinds(form: Any) -> Any:
    """The types in a form: 1 and True are equal, but not the same form."""
    return (type(form), *map(_kinds, form)) if isinstance(form, tuple) else type(form)


def _stage(jaxpr: Jaxpr, lift: Lift, forms: Forms, wanted: Forms | None, axes: AxisEnv, *kinds: Any
           ) -> tuple[Jaxpr, Forms]:
    return lift.stage(jaxpr, forms, wanted)


_program = WeakCache(_stage)
