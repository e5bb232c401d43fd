"""Primitives: params, types, adapters, wrappers, identity."""

from __future__ import annotations

import copy
import inspect
import pickle
import threading

import numpy as np
import pytest

import corejax as cj
from corejax.base import caches
from corejax.base.avals import ShapedArray
from corejax.errors import CorejaxAttributeError, CorejaxRuntimeError, CorejaxTypeError, PluginError, RuleError
from corejax.packs.define import _primitive_at
from corejax.packs.hook_signatures import Signature, adapt, adapt_partial, chain, wrapped
from corejax.plugin import Primitive, define, hookimpl, operators, partials, per_operand, provide, roles

F64 = ShapedArray((), "float64")


class Scale:
    """Multiply by a number."""

    name = "scale"
    _calls = 0

    @hookimpl
    def impl(self, args, *, by, places=(0,)):
        return np.multiply(args[0], by)

    @hookimpl
    def abstract_eval(self, avals, *, by, places=(0,)):
        self._calls += 1
        return avals[0]

    @hookimpl
    def vmap(self, axis, args, dims, *, by):
        return scale(args[0], by=by), dims[0]

    @hookimpl
    def transpose(self, cotangents, args):
        return [cotangents]


scale = define(Scale())


class Plain:
    """No params."""

    name = "plain"

    @hookimpl
    def impl(self, args):
        return args[0]

    @hookimpl
    def abstract_eval(self, avals):
        return avals[0]


plain = define(Plain())


def test_the_public_function_is_named_documented_and_fills_in_defaults():
    assert ("scale", "Multiply by a number.", __name__) == (scale.__name__, scale.__doc__, scale.__module__)
    assert "(*args: 'ArrayLike', by, places=(0,)) -> 'Array'" == str(inspect.signature(scale))
    assert 6.0 == float(scale(3.0, by=2.0))


def test_operands_are_shown_by_name_where_a_declaration_names_or_counts_them():
    class Named(Plain):
        name, operands = "named", ("base", "*others")

        @hookimpl
        def abstract_eval(self, avals, *, x: int = 0):
            return avals[0]

    class Counted(Plain):
        name, impl = "counted", per_operand(np.hypot, 2)

        @hookimpl
        def abstract_eval(self, avals, *, x: int = 0):
            return avals[0]

    assert "(base: 'ArrayLike', /, *others: 'ArrayLike', x: 'int' = 0) -> 'Array'" == str(
        inspect.signature(define(Named())))
    assert "(y: 'ArrayLike', z: 'ArrayLike', /, *, x: 'int' = 0) -> 'Array'" == str(
        inspect.signature(define(Counted())))


@pytest.mark.parametrize("operands", [(), "x", ("x", "x"), ("x y",), ("*x", "y"), (1,)])
def test_names_of_operands_that_are_no_names_are_refused(operands):
    class Misnamed(Plain):
        name = "misnamed"

    Misnamed.operands = operands
    misnamed = define(Misnamed())
    assert "(*args: 'ArrayLike') -> 'Array'" == str(inspect.signature(misnamed))
    with pytest.raises(PluginError, match="operands must name the operands"):
        misnamed(1.0)


def test_a_plugin_can_make_its_own_public_function():
    class Own(Plain):
        name = "own"

        def function(self, bind):
            def own(x, *, times=1):
                for _ in range(times):
                    x = bind(x)
                return x
            return own

    own = define(Own())
    assert ("own", __name__, "(x, *, times=1)") == (own.__qualname__, own.__module__, str(inspect.signature(own)))
    assert 2.0 == float(own(2.0, times=3))


def test_one_plugin_object_is_one_primitive():
    plugin = Plain()
    assert define(plugin) is define(plugin)
    assert define(Plain()).primitive is not define(plugin).primitive


def test_a_function_may_be_found_elsewhere_than_where_it_is_defined():
    other = define(Plain(), name="other", module="somewhere.else")
    assert ("other", "other", "somewhere.else") == (other.__name__, other.__qualname__, other.__module__)
    assert ("plain", "defined in somewhere.else") == (other.primitive.name, other.primitive.origin)


def test_pickling_and_copying_keep_the_identity_of_a_local_primitive():
    assert scale is pickle.loads(pickle.dumps(scale))
    assert scale.primitive is pickle.loads(pickle.dumps(scale.primitive))
    assert scale.primitive is copy.deepcopy(scale.primitive) is copy.copy(scale.primitive)


class Bare(Plain):
    name = "bare"


named_otherwise = define(Bare())
only_the_plugin = Bare()
define(only_the_plugin)


class Holder:
    held = define(Bare(), name="Holder.held")


def test_a_primitive_is_pickled_by_whatever_leads_to_it_or_refused():
    for primitive in (named_otherwise.primitive, define(only_the_plugin).primitive, Holder.held.primitive):
        assert primitive is pickle.loads(pickle.dumps(primitive))
        assert primitive is pickle.loads(pickle.dumps(cj.make_jaxpr(primitive.function)(1.0))).eqns[0].primitive
    for local, found in ((define(Bare()), "nothing there"), (define(Plain()), "another primitive, plain")):
        with pytest.raises(CorejaxTypeError, match=rf"{local.primitive.name} .* can't be pickled(.|\n)*{found}"):
            pickle.dumps(cj.make_jaxpr(local)(1.0))
    with pytest.raises(CorejaxAttributeError, match=r"no primitive at corejax\.nothing\.below(.|\n)*to do:  unpickle"):
        _primitive_at("corejax", "nothing.below")


@pytest.mark.parametrize(("params", "message"), [
    ({}, r"scale .* needs the param 'by'"), ({"by": 1.0}, r"scale .* needs the param 'places'"),
    ({"bye": 1.0, "places": ()}, r"scale .* has no param 'bye'[^~]*did you mean 'by'"),
    ({"by": 1.0, "places": (), "z": 1}, r"scale .* has no param 'z'")])
def test_bind_names_params_that_are_missing_or_unknown(params, message):
    with pytest.raises(CorejaxTypeError, match=message):
        scale.primitive.bind(1.0, **params)
    with pytest.raises(CorejaxTypeError, match=message):
        scale.primitive.infer((F64,), params)


def test_a_primitive_without_params_refuses_one():
    with pytest.raises(CorejaxTypeError, match="plain .* has no param 'axis'"):
        plain(1.0, axis=0)


@pytest.mark.parametrize("value", [[1], {}, {1}, ([1],), bytearray(b"x")])
def test_an_unhashable_param_is_named(value):
    with pytest.raises(CorejaxTypeError, match="scale .*param 'places'.*hash"):
        scale(1.0, by=1.0, places=value)


@pytest.mark.parametrize(("one", "other"), [
    (1, True), (0, False), (0.0, -0.0), (1, 1.0), ((1,), (True,)), ((0.0,), (-0.0,)), (1.0, 1.0 + 0j),
    (np.float64(1), np.float32(1)), (np.int64(1), 1), (np.dtype("f4"), np.dtype("f8")), (("a",), "a"),
    ((1, (2,)), (1, 2))])
def test_types_are_remembered_for_params_that_are_the_same_in_type_and_bits(one, other):
    plugin = Scale()
    primitive = define(plugin).primitive
    for value in (one, other, one, other):
        primitive.infer((F64,), {"by": value, "places": ()})
    assert 2 == plugin._calls


@pytest.mark.parametrize("value", [float("nan"), 1.5, "x", None, (1, "x"), np.float32(2), 3j, len, frozenset({1})])
def test_equal_params_hit(value):
    plugin = Scale()
    primitive = define(plugin).primitive
    for order in (("by", "places"), ("by", "places")):
        primitive.infer((F64,), {name: copy.copy(value) for name in order})
    assert 1 == plugin._calls


def test_params_are_told_apart_by_name_in_any_order():
    plugin = Scale()
    primitive = define(plugin).primitive
    primitive.infer((F64,), {"by": 1, "places": 2})
    primitive.infer((F64,), {"places": 1, "by": 2})
    assert 2 == plugin._calls


def test_types_are_computed_anew_after_caches_are_cleared():
    plugin = Scale()
    primitive = define(plugin).primitive
    for _ in range(2):
        primitive.infer((F64,), {"by": 1, "places": ()})
        caches.clear_all()
    assert 2 == plugin._calls


def test_the_memory_of_types_is_bounded():
    primitive = define(Scale()).primitive
    for i in range(6000):
        primitive.infer((F64,), {"by": i, "places": ()})
    assert len(primitive._cache) <= 4096


def test_an_abstract_eval_that_returns_no_type_is_an_error_by_name():
    class Bad(Plain):
        @hookimpl
        def abstract_eval(self, avals):
            return "f64"

    with pytest.raises(RuleError, match="plain.abstract_eval"):
        define(Bad())(1.0)


def test_what_abstract_eval_raises_passes_with_a_note():
    class Bad(Plain):
        @hookimpl
        def abstract_eval(self, avals):
            raise ZeroDivisionError("by design")

    with pytest.raises(ZeroDivisionError, match="by design") as caught:
        define(Bad())(1.0)
    assert "raised by plain.abstract_eval (defined in" in caught.value.__notes__[0]


def test_a_primitive_has_no_other_attributes():
    with pytest.raises(AttributeError, match="vmpa"):
        _ = plain.primitive.vmpa
    assert not hasattr(plain.primitive, "__len__")


def test_hooks_may_name_a_subset_of_the_params():
    primitive = scale.primitive
    assert 6.0 == float(primitive.vmap(None, [3.0], [0], by=2.0, places=(0,))[0])
    assert [5.0] == primitive.transpose(5.0, [None], by=2.0, places=(0,))


def test_a_hook_that_names_all_is_used_as_it_is():
    assert scale.primitive.impl == scale.primitive.plugin.impl
    assert inspect.ismethod(scale.primitive.impl)


def test_functions_of_partials_may_name_a_subset_too():
    seen = []

    class Marked(Scale):
        name = "marked"
        jvp = partials(lambda t, out, x, *, by: seen.append(by) or t)

    marked = define(Marked())
    out, out_dot = marked.primitive.jvp([3.0], [np.float64(1.0)], by=2.0, places=(0,))
    assert (6.0, 1.0, [2.0]) == (float(out), float(out_dot), seen)


def test_adapters_pass_what_a_function_takes():
    full = Signature((), ("a", "b"), False, False)
    few = Signature(("dims",), ("b",), False, False)
    rule = adapt(lambda dims, *, b: (dims, b), few, ("axis", "args", "dims"), full)
    assert (3, "b") == rule(1, 2, 3, a="a", b="b")
    assert 3 == adapt(lambda x, y: y, Signature(("x", "y"), (), False, False), ("x", "y"), full)(1, 3, a=0, b=0)
    assert {"a": 1, "b": 2} == adapt_partial(lambda t, **params: params, full)(0, a=1, b=2)
    assert 2 == adapt_partial(lambda t, b: b, full)(0, a=1, b=2)
    assert max is adapt_partial(max, Signature((), (), False, False))


def test_a_chain_gives_the_first_result():
    assert 2 == chain([lambda: None, lambda: 2, lambda: 3])()
    assert chain([lambda: None])() is None


def test_wrappers_see_results_and_exceptions():
    def doubling(x):
        try:
            return 2 * (yield)
        except ZeroDivisionError:
            return "caught"

    def twice(x):
        yield
        yield

    assert 10 == wrapped(doubling, lambda x: 5)(1)
    assert "caught" == wrapped(doubling, lambda x: 1 // x)(0)
    with pytest.raises(KeyError):
        wrapped(doubling, {}.__getitem__)(0)
    with pytest.raises(CorejaxRuntimeError, match="yields more than once"):
        wrapped(twice, lambda x: 5)(1)


def test_a_plugin_can_wrap_its_own_derived_rule():
    class Wrapping(Plain):
        name = "wrapping"
        linear = (0,)

        @hookimpl(wrapper=True)
        def jvp(self, primals, tangents):
            out, _ = yield
            return out, "tangent"

    primitive = define(Wrapping()).primitive
    assert "tangent" == primitive.jvp([1.0], [1.0])[1]
    assert primitive.linear is None
    assert primitive.providers["jvp"].endswith(f", wrapped by defined in {__name__}")


def test_threads_that_freeze_together_see_one_result():
    primitive = define(Scale()).primitive
    barrier = threading.Barrier(8)
    seen = []

    def freeze():
        barrier.wait()
        seen.append((primitive.jvp, primitive.params, primitive.vmap))

    threads = [threading.Thread(target=freeze) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 8 == len(seen) and 1 == len({id(jvp) for jvp, _, _ in seen}) == len({id(vmap) for _, _, vmap in seen})


def test_roles_can_be_provided_for_a_block():
    with provide({"operators.add": "plus"}, accumulate="sum"):
        with provide(accumulate="other"):
            assert "other" == roles.accumulate
        assert ("sum", "plus") == (roles.accumulate, operators.add)
    assert "add" not in vars(operators) or operators.add != "plus"


def test_primitives_are_equal_only_to_themselves():
    assert isinstance(scale.primitive, Primitive)
    assert scale.primitive != plain.primitive
    assert 2 == len({scale.primitive, plain.primitive})
