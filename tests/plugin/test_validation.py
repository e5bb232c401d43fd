"""What a plugin may say: everything else is an error at first use that says what to write instead."""

from __future__ import annotations

import re
import types

import numpy as np
import pytest

import corejax as cj
from corejax.base.avals import ShapedArray
from corejax.errors import PluginError
from corejax.kernel.hookspecs import HOOKS
from corejax.plugin import (
    define,
    factors,
    hookimpl,
    linear,
    not_differentiable,
    not_linear,
    over,
    partials,
    per_operand,
)

F64 = ShapedArray((), "float64")


class Base:
    """A good plugin, to spoil."""

    name = "good"

    @hookimpl
    def impl(self, args, *, axis, keep):
        return args[0]

    @hookimpl
    def abstract_eval(self, avals, *, axis, keep):
        return avals[0]


def frozen(plugin):
    primitive = define(plugin).primitive
    primitive.params  # noqa: B018  touching a slot freezes
    return primitive


def refused(plugin, *fragments):
    with pytest.raises(PluginError) as caught:
        frozen(plugin)
    for fragment in fragments:
        assert fragment in str(caught.value)
    return caught.value


def test_a_good_plugin_has_all_its_slots_filled():
    primitive = frozen(Base())
    assert frozenset({"axis", "keep"}) == primitive.params
    assert all(callable(getattr(primitive, hook)) for hook in ("impl", "jvp", "transpose", "vmap", "xla_translation"))
    assert (False, None, None, "good") == (primitive.multiple_results, primitive.dce, primitive.linear, str(primitive))
    assert primitive.origin.startswith("defined in ")


def test_a_primitive_is_cheap_if_its_plugin_says_so():
    class Cheap(Base):
        cheap = True

    assert (False, True) == (frozen(Base()).cheap, frozen(Cheap()).cheap)


def test_an_impl_per_operand_is_a_rule_that_evaluation_calls_without_a_sequence():
    class Hypot:
        name = "hypot"
        impl = per_operand(np.hypot, 2)

        @hookimpl
        def abstract_eval(self, avals):
            return avals[0]

    function = define(Hypot())
    assert (None, np.hypot) == (function.primitive.of_one, function.primitive.of_two)
    assert 5.0 == function.primitive.impl([3.0, 4.0]) == function(3.0, 4.0).item()


def test_an_impl_per_operand_does_more_for_the_kinds_that_it_names():
    class Doubled:
        name = "doubled"
        impl = per_operand(np.negative, 1, beside="c", more=lambda out, args: 2 * out)

        @hookimpl
        def abstract_eval(self, avals):
            return avals[0]

    function = define(Doubled())
    for _ in range(2):  # types met before take a shorter way
        assert (-1.0, -2j) == (function(1.0).item(), function(1j).item())


def test_an_impl_per_operand_that_is_not_called_is_told_so():
    class Bad(Base):
        impl = per_operand

    refused(Bad(), "good.impl", "the declaration isn't called", "impl = per_operand(...)")


def test_a_plugin_is_told_its_primitive_before_its_function_is_made():
    class Attached(Base):
        def attached(self, primitive):
            self.mine = primitive

        def function(self, bind):
            return lambda x: (self.mine.name, x)

    plugin = Attached()
    function = define(plugin)
    assert ("good", 3) == function(3)
    assert function.primitive is plugin.mine


@pytest.mark.parametrize(("name", "value", "words"), [
    ("attached", 3, "attached must be a method"), ("not_linear_in", "x", "not_linear_in must name operands"),
    ("not_linear_in", (-1,), "not_linear_in must name operands")])
def test_declarations_of_the_wrong_kind_are_refused(name, value, words):
    refused(type("Bad", (Base,), {name: value})(), words)


def test_define_itself_validates_nothing():
    class Bad(Base):
        unknown = 1

    assert callable(define(Bad()))


def test_a_misspelled_hook_gets_a_suggestion():
    class Bad(Base):
        @hookimpl
        def xla_translaton(self, ctx, args):
            return None

    error = refused(Bad(), "'xla_translaton' is not a hook", "did you mean 'xla_translation'?")
    assert ("good", "xla_translaton") == (error.primitive, error.hook)


def test_a_hook_without_the_marker_is_an_error():
    class Bad(Base):
        def vmap(self, axis, args, dims):
            return args[0], dims[0]

    refused(Bad(), "good.vmap", "it is not marked as a hook", "@hookimpl def vmap(...)")


@pytest.mark.parametrize("attribute", ["helper", "multipleresults", "platform"])
def test_an_unknown_public_attribute_is_an_error(attribute):
    bad = Base()
    setattr(bad, attribute, 3)
    hint = ("did you mean 'multiple_results'?" if attribute == "multipleresults" else
            "start the names of helpers with an underscore")
    refused(bad, f"{attribute!r} is neither a hook nor a declaration", hint)


def test_private_attributes_are_the_plugins_own():
    good = Base()
    good._helper = 3
    frozen(good)


@pytest.mark.parametrize(("hook", "value"), [("vmap", None), ("jvp", not_linear()), ("transpose", partials(None)),
                                             ("transpose", linear(0)), ("impl", 3)])
def test_what_is_neither_rule_nor_declaration_is_an_error(hook, value):
    bad = Base()
    bad.__dict__[hook] = value
    refused(bad, f"good.{hook}", "it is neither a rule nor a declaration", "leave the attribute out")


@pytest.mark.parametrize("name", ["multiple_results", "symbolic_zeros", "cheap"])
def test_flags_are_booleans(name):
    bad = Base()
    setattr(bad, name, 1)
    refused(bad, f"{name} must be True or False")


@pytest.mark.parametrize("operands", [0, [0], ("x",), (-1,), (True,)])
def test_linear_is_a_tuple_of_operand_numbers(operands):
    bad = Base()
    bad.linear = operands
    refused(bad, "linear must name operands", "a tuple of operand numbers")


@pytest.mark.parametrize(("operands", "problem"), [((), "linear names no operand"),
                                                   ((0, 0), "linear names an operand twice")])
def test_linear_names_each_operand_once(operands, problem):
    for declared in ({"linear": operands}, {"jvp": linear(*operands)}):
        bad = Base()
        bad.__dict__.update(declared)
        refused(bad, problem)


def contradictory(*fragments, **declared):
    bad = Base()
    bad.__dict__.update(declared)
    refused(bad, *fragments)


def test_declarations_that_contradict_each_other_are_errors():
    one_of = "linear is the whole derivative, but there is another one"
    contradictory(one_of, "partials(...)", linear=(0,), jvp=partials(None))
    contradictory(one_of, "a jvp rule", linear=(0,), jvp=hookimpl(lambda primals, tangents: None))
    contradictory(one_of, "not_differentiable('why')", linear=(0,), jvp=not_differentiable("why"))
    contradictory("linearity is declared twice, differently", "(0,) and (1,)", linear=(1,), jvp=linear(0))
    contradictory("it is declared both linear and not linear", "write transpose", linear=(0,),
                  transpose=not_linear("why"))
    contradictory("it is declared not differentiable, but has a linearize rule", jvp=not_differentiable("why"),
                  linearize=hookimpl(lambda primals, nonzero: None))
    good = Base()
    good.__dict__.update(linear=(0,), jvp=linear(0))
    frozen(good)


@pytest.mark.parametrize(("hook", "value"), [("jvp", not_differentiable("")), ("jvp", not_differentiable("  ")),
                                             ("transpose", not_linear("")), ("jvp", not_differentiable(3))])
def test_what_is_declared_not_to_exist_says_why(hook, value):
    contradictory(f"good.{hook}", "it gives no reason", "give the reason", **{hook: value})


@pytest.mark.parametrize(("hook", "maker"), [("jvp", partials), ("jvp", factors), ("jvp", linear),
                                             ("jvp", not_differentiable), ("transpose", not_linear)])
def test_a_declaration_that_is_not_called_says_so(hook, maker):
    contradictory("the declaration isn't called", f"{hook} = {maker.__name__}(...)", **{hook: maker})
    bad = type("Bad", (Base,), {hook: maker})()
    refused(bad, "the declaration isn't called")


def test_partials_and_factors_take_what_they_are_called_with():
    contradictory("no operand's derivative is declared", jvp=partials())
    contradictory("the partial of operand 0 can't be called", "(tangent, out, x0, **params)", f"{__file__}:",
                  jvp=partials(lambda t, out: t))
    contradictory("the partial of operand 1 can't be called", "(tangent, out, x0, x1, **params)",
                  jvp=partials(None, lambda t, out, x: t))
    contradictory("the factor of operand 0 can't be called", "(out, x0, **params)", jvp=factors(lambda out, x, y: x))
    contradictory("the factor of operand 0 can't be called", jvp=factors(over(lambda out: out)))
    contradictory("the partial of operand 0 can't be called", "'x'", jvp=partials("x"))
    for good in (partials(lambda t, out, x, *, axis: t), partials(lambda t, *rest, **params: t), factors(1, -1, None),
                 factors(over(lambda out, x: out)), partials(lambda t, out, x, y=0: t), partials(max)):
        plugin = Base()
        plugin.__dict__["jvp"] = good
        frozen(plugin)


@pytest.mark.parametrize(("declared", "n", "problem"), [
    ({"jvp": partials(None)}, 2, r"got:    2 operands\n  wanted: 1, as in its partials or factors"),
    ({"jvp": factors(1, 1)}, 1, r"got:    1 operands\n  wanted: 2, as in its partials or factors"),
    ({"linear": (0, 2)}, 2, r"good.jvp .*: is declared linear in operand 2, which doesn't exist\n  got:    2 oper")])
def test_declarations_for_operands_that_do_not_exist_are_found_at_the_first_call(declared, n, problem):
    plugin = Base()
    plugin.__dict__.update(declared)
    function = define(plugin)
    for use in (lambda: function(*[1.0] * n, axis=0, keep=True), lambda: function(*[1.0] * n, axis=0, keep=True),
                lambda: cj.make_jaxpr(lambda x: function(*[x] * n, axis=0, keep=True))(1.0)):
        with pytest.raises(TypeError, match=problem):
            use()


def test_hooks_that_return_sequences_are_for_several_results():
    problem = "this hook is for primitives with several results"
    contradictory("good.evaluate", problem, evaluate=hookimpl(lambda args: args))
    contradictory("good.partial_eval", problem, partial_eval=hookimpl(lambda eqn, unknown_in: None))


def test_what_pluggy_refuses_is_an_error_of_the_plugin():
    class Bad(Base):
        @hookimpl(wrapper=True)
        def jvp(self, primals, tangents):
            return 3

    refused(Bad(), "good", "pluggy rejects it", "generator")


def test_wrong_argument_names_show_the_definition_wanted():
    class Bad(Base):
        @hookimpl
        def vmap(self, axis, operands, dims, *, keep):
            return None

    refused(Bad(), "good.vmap", "it takes an argument 'operands'", "def vmap(axis, operands, dims, *, keep)",
            "def vmap(self, axis, args, dims, *, ...)", f"{__file__}:")


def test_a_param_that_is_positional_is_an_error():
    class Bad(Base):
        @hookimpl
        def jvp(self, primals, tangents, axis=0):
            return None

    refused(Bad(), "it takes an argument 'axis'", "params are keyword-only, after a `*`")


def test_spread_operands_are_an_error():
    class Bad(Base):
        @hookimpl
        def impl(self, *args, axis, keep):
            return None

    refused(Bad(), "operands come as one sequence", "take `args`, not `*args`")


def test_a_param_that_the_primitive_does_not_have_is_an_error():
    class Bad(Base):
        @hookimpl
        def jvp(self, primals, tangents, *, axes):
            return None

    refused(Bad(), "good.jvp", "it reads a param 'axes' that the primitive doesn't have", "did you mean 'axis'?")


def test_dce_has_no_params():
    class Bad(Base):
        @hookimpl
        def dce(self, eqn, used_out, *, axis):
            return None

    refused(Bad(), "good.dce", "this hook is given no params", "eqn.params")


def test_old_style_wrappers_are_refused():
    class Bad(Base):
        @hookimpl(hookwrapper=True)
        def jvp(self, primals, tangents):
            yield

    refused(Bad(), "old-style wrappers are not supported")


def test_a_wrapper_around_nothing_is_an_error():
    class Bad(Base):
        @hookimpl(wrapper=True)
        def dce(self, eqn, used_out):
            return (yield)

    refused(Bad(), "it wraps a rule that doesn't exist")


def test_abstract_eval_or_decompose_is_required():
    class Bad:
        name = "bad"

        @hookimpl
        def impl(self, args):
            return args[0]

    refused(Bad(), "bad", "a required hook is missing", "abstract_eval(self, avals, *, ...)")


def test_something_has_to_compute_it():
    class Bad:
        name = "bad"

        @hookimpl
        def abstract_eval(self, avals):
            return avals[0]

    refused(Bad(), "nothing says how to compute it")


def test_another_api_version_is_refused():
    bad = Base()
    bad.api_version = 99
    refused(bad, "another version of the plugin contract", "api_version = 99", "api_version = 1")
    good = Base()
    good.api_version = 1
    frozen(good)


@pytest.mark.parametrize("plugin", [Base, object(), types.ModuleType("m"), types.SimpleNamespace(name="no identifier"),
                                    types.SimpleNamespace(name=3)])
def test_define_refuses_what_is_no_named_instance(plugin):
    with pytest.raises(PluginError, match="a plugin must be an object whose name is an identifier"):
        define(plugin)


def test_a_module_is_no_plugin():
    module = types.ModuleType("module")
    module.name = "module"
    refused(module, "a plugin must be an instance, not a module")


def test_an_error_while_freezing_leaves_nothing_behind_and_comes_again():
    bad = Base()
    bad.unknown = 1
    first, second = refused(bad), refused(bad)
    assert str(first) == str(second)
    del bad.unknown
    frozen(bad)


@pytest.mark.parametrize("declared", [
    {"jvp": partials(None)}, {"jvp": factors(lambda out, x: out)}, {"linear": (0,)}, {"jvp": linear(0)},
    {"jvp": not_differentiable("why")}, {"transpose": not_linear()}])
def test_declarations_stand_in_the_place_of_hooks(declared):
    good = Base()
    good.__dict__.update(declared)
    primitive = frozen(good)
    assert callable(primitive.jvp) and callable(primitive.transpose)
    has_linear = "linear" in declared or getattr(declared.get("jvp"), "operands", None) is not None
    assert has_linear == (primitive.linear is not None)
    assert ("factors" in vars(type(declared.get("jvp")))) == (primitive.factors is not None)


def test_every_hook_is_documented_with_its_signature():
    from corejax.kernel import hookspecs

    for hook, arguments in HOOKS.items():
        text = getattr(hookspecs, hook).__doc__
        assert re.search(rf"`{hook}\({', '.join(arguments)}", text), hook
        assert text.strip().endswith((".", "`")), hook


def test_samples_hold_what_they_are_given():
    from corejax.plugin import Sample

    sample = Sample([np.ones(2)], {"axis": 0}, error=TypeError, exempt={"vmap": "why"})
    assert ({"axis": 0}, TypeError, {"vmap": "why"}) == (sample.params, sample.error, sample.exempt)
    assert sample.domain is None
    assert isinstance(sample.args, tuple)
