"""Transformations under which values become boxes, and how they go through programs: toy primitives and no pack."""

from __future__ import annotations

import numpy as np
import pytest
from calculus import add, calculus, mul, sin

from corejax.core import Array, ShapedArray, aval_of, eval_jaxpr, stage
from corejax.errors import CorejaxNotImplementedError, CorejaxTypeError, RuleError
from corejax.plugin import define, hookimpl, provide, transforming

F64 = ShapedArray((), np.float64)


@pytest.fixture(autouse=True)
def _roles():
    with calculus(), provide({"convert": converted}):
        yield


def converted(x, dtype, weak_type=False):
    return Array.from_host(np.asarray(x, dtype), ShapedArray(x.shape, dtype, weak_type))


class Call:
    """carry_call(*operands, jaxpr): a program."""

    name = "carry_call"
    multiple_results = True
    structural = True

    @hookimpl
    def abstract_eval(self, avals, *, jaxpr):
        return jaxpr.out_avals

    @hookimpl
    def evaluate(self, args, *, jaxpr):
        return eval_jaxpr(jaxpr, (), *args)

    @hookimpl
    def xla_translation(self, ctx, args, **params):
        raise AssertionError("nothing here is compiled")

    @hookimpl
    def carry(self, lift, args, *, jaxpr):
        program, out_forms = lift.program(jaxpr, lift.forms(args))
        return lift.results(called(program, *lift.parts(args)), out_forms)


class Repeat(Call):
    """carry_repeat(*operands, jaxpr): a program twice, as a loop has it."""

    name = "carry_repeat"

    @hookimpl
    def evaluate(self, args, *, jaxpr):
        return eval_jaxpr(jaxpr, (), *eval_jaxpr(jaxpr, (), *args))

    @hookimpl
    def carry(self, lift, args, *, jaxpr):
        def step(forms):
            return lift.program(jaxpr, forms)
        forms, _ = lift.settled(lift.forms(args), step)
        program, _ = lift.program(jaxpr, forms, forms)
        return lift.results(repeat.primitive.bind(*lift.parts(lift.raised(args, forms)), jaxpr=program), forms)


class Either(Call):
    """carry_either(i, *operands, jaxpr, other): one of two programs."""

    name = "carry_either"

    @hookimpl
    def abstract_eval(self, avals, *, jaxpr, other):
        return jaxpr.out_avals

    @hookimpl
    def evaluate(self, args, *, jaxpr, other):
        return eval_jaxpr(other if args[0].item() else jaxpr, (), *args[1:])

    @hookimpl
    def carry(self, lift, args, *, jaxpr, other):
        index, *operands = args
        forms = lift.forms(operands)
        joint = lift.joined(*[lift.program(one, forms)[1] for one in (jaxpr, other)])
        programs = [lift.program(one, forms, joint)[0] for one in (jaxpr, other)]
        return lift.results(either.primitive.bind(
            lift.plain(index, "the index"), *lift.parts(operands), jaxpr=programs[0], other=programs[1]), joint)


call, repeat, either = define(Call()), define(Repeat()), define(Either())


def called(jaxpr, *args):
    return call.primitive.bind(*args, jaxpr=jaxpr)


class Box:
    """Some arrays, with a label that is its form."""

    def __init__(self, label, *parts):
        self.label, self.parts = label, parts


def boxed(args):
    """`boxed(args, *, ...)`: a Box for each result, or a plain value."""


class Boxing(transforming.Lifting):
    """Boxes of two arrays. Rules are given in a table, by name; labels are numbers, of which the larger ones count."""

    def __init__(self, **rules):
        self.rules = {"add": self.pairwise(add), "mul": self.pairwise(mul), "sin": self.pairwise(sin), **rules}
        super().__init__(boxed, ways={
            "by programs": transforming.from_programs,
            "by a table": lambda lifting, primitive: self.rules.get(primitive.name)})

    def form(self, x):
        return x.label if isinstance(x, Box) else None

    def parts(self, box):
        return box.parts

    def box(self, form, parts):
        return Box(form, *parts)

    def avals(self, aval, form):
        return [aval, aval]

    def join(self, one, other):
        return max(one, other)

    def raised(self, x, form):
        return Box(form, *(x.parts if isinstance(x, Box) else (x, x)))

    def pairwise(self, function):
        def rule(args, /, **params):
            label = max([x.label for x in args if isinstance(x, Box)])
            return Box(label, *[function(*[x.parts[i] if isinstance(x, Box) else x for x in args]) for i in range(2)])
        return rule


def program(fun, count=1):
    return stage(fun, [F64] * count, "f").jaxpr


def value(x):
    return Array.from_host(np.asarray(x, np.float64), F64)


def shown(out):
    return (out.label, *map(float, out.parts)) if isinstance(out, Box) else float(out)


ONE = Box(1, value(2.0), value(3.0))
TWICE = program(lambda x: [add(x, x)])


def test_a_box_goes_through_a_program():
    both = program(lambda x, y: [add(x, y), y], 2)
    assert [(1, 7.0, 8.0), 5.0] == [*map(shown, Boxing().run(lambda x, y: called(both, x, y), [ONE, value(5.0)]))]
    assert [2.5, 2.5] == [*map(shown, Boxing().run(lambda x: called(both, 0.0, value(2.5)), [ONE]))]


def test_a_program_is_transformed_once_for_each_row_of_forms():
    lifting, other = Boxing(), Boxing()
    lifts = [lifting.lift(call.primitive), lifting.lift(repeat.primitive), other.lift(call.primitive)]
    first, again, third = [lift.program(TWICE, [1])[0] for lift in lifts]
    assert first is again is not third
    assert lifts[0].program(TWICE, [2])[0] is not first
    assert [F64, F64] == first.in_avals == first.out_avals


def test_what_is_said_of_values_is_said_of_their_arrays():
    lift = Boxing().lift(call.primitive)
    assert ["a", "b", "b", "c"] == lift.each("abc", [None, 1, None])
    assert (["a", "a"], ["b", "c", "c"]) == lift.sides("a", "bc", [1], [None, 2])
    assert 4 == lift.count(1, None, None)
    assert 0 == lift.count()


def test_values_of_several_programs_have_the_joint_form():
    lift = Boxing().lift(either.primitive)
    assert (1, 3, None) == lift.joined([None, 3, None], [1, 2, None])
    assert () == lift.joined([], [])
    other = program(lambda x: [value(7.0)])
    for i, wanted in enumerate([(1, 4.0, 6.0), (1, 7.0, 7.0)]):
        (out,) = Boxing().run(lambda x, i=i: either.primitive.bind(np.float64(i), x, jaxpr=TWICE, other=other), [ONE])
        assert wanted == shown(out)
    with pytest.raises(CorejaxNotImplementedError, match="carry_either: boxed: the index is in a box"):
        Boxing().run(lambda x: either.primitive.bind(x, x, jaxpr=TWICE, other=other), [ONE])


class Unjoined(Boxing):
    def join(self, one, other):
        return None


def test_forms_without_a_common_one_are_refused():
    with pytest.raises(CorejaxNotImplementedError, match=r"carry_repeat: boxed: values of the forms 1 and 2 have no"):
        Unjoined(sin=lambda args: Box(2, *args[0].parts)).run(
            lambda x: repeat.primitive.bind(x, jaxpr=program(lambda x: [sin(x)])), [ONE])


def test_forms_that_never_settle_are_the_fault_of_join():
    lifting = Boxing(sin=lambda args: Box(args[0].label + 1, *args[0].parts))
    with pytest.raises(RuleError, match=r"(?s)carry_repeat\.boxed \(.*keep growing.*`join`") as caught:
        lifting.run(lambda x: repeat.primitive.bind(x, jaxpr=program(lambda x: [sin(x)])), [ONE])
    assert ("carry_repeat", "boxed") == (caught.value.primitive, caught.value.hook)


# What rules return

def leaking():
    kept = []

    def keep(x):
        kept.append(x)
        return [sin(x)]
    stage(keep, [F64])
    return kept[0]


@pytest.mark.parametrize(("result", "message"), [
    (lambda x: None, "returned no array|didn't return an array|None"),
    (lambda x: "one", "'one'"),
    (lambda x: Box(1, value(1.0)), "wrong number of arrays in a box"),
    (lambda x: Box(1, *[value(1.0)] * 3), "wrong number of arrays in a box"),
    (lambda x: Box(1, value(1.0), None), "None"),
    (lambda x: Box(1, value(1.0), np.float32(1.0)), r"f32\[\], wanted f64\[\]"),
    (lambda x: Box(1, value(1.0), 1.0), r"~f64\[\], wanted f64\[\]"),
    (lambda x: np.float32(1.0), r"f32\[\], wanted f64\[\]"),
    (lambda x: Box(1, value(1.0), leaking()), "a transformation that has ended"),
    (lambda x: [Box(1, value(1.0), value(1.0))], r"\[.*Box"),
], ids=["None", "no array", "one of two", "three of two", "None inside", "another type", "a weak one",
        "plain, another type", "leaked", "a list"])
def test_a_rule_returns_boxes_or_values_of_the_right_types(result, message):
    lifting = Boxing(sin=lambda args: result(*args))
    within = program(lambda x: [sin(x)])
    for fun in (lambda x: [sin(x)], lambda x: called(within, x)):
        with pytest.raises(RuleError, match=rf"sin\.boxed \((?s:.*)({message})") as caught:
            lifting.run(fun, [ONE])
        assert ("sin", "boxed") == (caught.value.primitive, caught.value.hook)


class Careless(Call):
    """A primitive whose `carry` is what a test says."""

    name = "carry_careless"

    def __init__(self):
        self._does = None

    @hookimpl
    def carry(self, lift, args, *, jaxpr):
        return self._does(lift, args, jaxpr)


careless_plugin = Careless()
careless = define(careless_plugin)


@pytest.mark.parametrize(("does", "message"), [
    (lambda lift, args, jaxpr: None, "wrong number of outputs"),
    (lambda lift, args, jaxpr: [], "wrong number of outputs"),
    (lambda lift, args, jaxpr: [None], "None"),
    (lambda lift, args, jaxpr: [np.float32(1.0)], r"f32\[\], wanted f64\[\]"),
    (lambda lift, args, jaxpr: lift.results(lift.parts(args)[:1], [1]), r"carry .*boxes of 2 arrays from 1"),
    (lambda lift, args, jaxpr: lift.program(jaxpr, []), r"carry .*the forms of 0 inputs to a program of 1"),
    (lambda lift, args, jaxpr: lift.raised(args, [None]), "raises a value of the form 1 to None"),
], ids=["None", "no results", "None inside", "another type", "too few arrays", "too few forms", "no form"])
def test_what_carry_returns_is_checked(does, message):
    careless_plugin._does = does
    with pytest.raises(RuleError, match=rf"carry_careless\.(boxed \((?s:.*)|)({message})") as caught:
        Boxing().run(lambda x: careless.primitive.bind(x, jaxpr=TWICE), [ONE])
    assert "carry_careless" == caught.value.primitive


# What a transformation says

@pytest.mark.parametrize(("box", "message"), [
    (lambda x, form: x, "raises a value of the form None to None"),
    (lambda x, form: Box(form + 1, x, x), "raises a value of the form None to 2"),
    (lambda x, form: Box(form, x), "wrong number of arrays in a box"),
    (lambda x, form: Box(form, x, np.float32(1.0)), r"f32\[\], wanted f64\[\]"),
    (lambda x, form: Box(form, x, leaking()), "a transformation that has ended"),
], ids=["plain", "another form", "too few arrays", "another type", "leaked"])
def test_what_is_raised_has_the_form_and_the_types_asked_for(box, message):
    lifting = Boxing()
    lifting.raised = box
    swap = program(lambda x, y: [y, x], 2)
    with pytest.raises(RuleError, match=rf"carry_repeat\.boxed \((?s:.*){message}"):
        lifting.run(lambda x: repeat.primitive.bind(x, value(1.0), jaxpr=swap), [ONE])


def test_boxes_enter_with_arrays_of_the_types_that_they_have_in_programs():
    lifting = Boxing()
    for parts, weak in ((2.0, 3.0), True), ((2.0, np.float64(3.0)), False), ((np.float64(2.0), 3.0), False):
        (out,) = lifting.run(lambda x: [add(x, x)], [Box(1, *parts)])
        assert (1, 4.0, 6.0) == shown(out)
        assert [weak, weak] == [part.aval.weak_type for part in out.parts]
    for parts in ((2.0,), (2.0, np.ones(2)), (np.float64(2.0), np.float32(3.0))):
        with pytest.raises(CorejaxTypeError, match="boxed: the arrays in a box don't fit each other"):
            lifting.run(lambda x: [x], [Box(1, *parts)])


def test_a_primitive_without_a_rule_names_the_hook_that_would_do():
    class Alone:
        name = "carry_alone"

        @hookimpl
        def abstract_eval(self, avals):
            return avals[0]

        @hookimpl
        def impl(self, args):
            return args[0]

    with pytest.raises(CorejaxNotImplementedError, match=r"(?s)carry_alone .*has no boxed rule.*corejax.rules"):
        Boxing().run(lambda x: [define(Alone())(x)], [ONE])


def test_boxes_nest():
    inner, outer = Boxing(), Boxing()

    def fun(x):
        (out,) = inner.run(lambda y: called(TWICE, y), [Box(5, x, value(1.0))])
        return out.parts
    first, second = outer.run(fun, [ONE])
    assert (1, 4.0, 6.0) == shown(first)
    assert 2.0 == shown(second)
    assert aval_of(second) is F64
