"""Mistakes in primitives that carry programs, or whose `decompose` applies such: the error names the primitive."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.core import (
    ShapedArray,
    eval_jaxpr,
    flatten,
    jvp_jaxpr,
    namer,
    stage,
    stage_function,
    transpose_jaxpr,
    values,
    vmap_jaxpr,
)
from corejax.errors import CorejaxNotImplementedError, CorejaxValueError, RuleError
from corejax.ir import dce
from corejax.plugin import carrying, define, hookimpl

X = np.arange(1.0, 4.0)


def outlined(types):
    """A call whose abstract_eval says `types(the true ones)`."""
    class Outlined:
        name = "miscounted"
        multiple_results = True
        symbolic_zeros = True

        def function(self, bind):
            def function(f, *args):
                leaves, in_tree = flatten(args)
                xs = values(leaves, "miscounted", namer("args", args))
                staged = stage_function(f, [x.aval for x in xs], in_tree, "miscounted")
                return staged.out_tree.unflatten(bind(*staged.consts, *xs, jaxpr=staged.jaxpr))
            return function

        @hookimpl
        def abstract_eval(self, avals, *, jaxpr):
            return types(jaxpr.out_avals)

        @hookimpl
        def evaluate(self, args, *, jaxpr):
            return eval_jaxpr(jaxpr, (), *args)

        @hookimpl
        def jvp(self, primals, tangents, *, jaxpr):
            return carrying.jvp(primals, tangents, partial(jvp_jaxpr, jaxpr), self._bind)

        @hookimpl
        def transpose(self, cotangents, args, *, jaxpr):
            return carrying.transpose(cotangents, args, partial(transpose_jaxpr, jaxpr), self._bind)

        @hookimpl
        def vmap(self, axis, args, dims, *, jaxpr):
            mapped, out_dims = vmap_jaxpr(jaxpr, axis.size, axis.name, dims)
            return self._bind(mapped, args), out_dims

        @hookimpl
        def xla_translation(self, ctx, args, *, jaxpr):
            return ctx.call(jaxpr, args)

        @hookimpl
        def partial_eval(self, eqn, unknown_in):
            split = carrying.split_jaxpr(eqn.params["jaxpr"], unknown_in)
            return carrying.divide(eqn, split, partial(carrying.with_jaxpr, eqn))

        @hookimpl
        def dce(self, eqn, used_out):
            shorter = carrying.without_dead_code(eqn.params["jaxpr"], used_out)
            return carrying.shorten(eqn, used_out, shorter, partial(carrying.with_jaxpr, eqn))

        def _bind(self, jaxpr, operands):
            return call.primitive.bind(*operands, jaxpr=jaxpr)
    call = define(Outlined())
    return call


def pair(x):
    return lax.sin(x) * 2.0, x * x


def bound(call, *avals):
    jaxpr = stage(lambda x: [x * 2.0, x], avals or [ShapedArray((3,), "float64")]).jaxpr
    return lambda x: call.primitive.bind(x, jaxpr=jaxpr)


USES = {
    "eager": lambda call: call(pair, X),
    "jit": lambda call: cj.jit(lambda x: call(pair, x))(X),
    "make_jaxpr": lambda call: cj.make_jaxpr(lambda x: call(pair, x))(X),
    "jvp": lambda call: cj.jvp(lambda x: call(pair, x), (X,), (X,)),
    "staged jvp": lambda call: cj.make_jaxpr(lambda x: cj.jvp(lambda x: bound(call)(x)[0], (x,), (x,)))(X),
    "grad": lambda call: cj.grad(lambda x: call(pair, x)[0].sum())(X),
    "staged grad": lambda call: cj.jit(cj.grad(lambda x: bound(call)(x)[0].sum()))(X),
    "linearize": lambda call: cj.linearize(lambda x: call(pair, x), X)[1](X),
    "vmap": lambda call: cj.vmap(lambda x: call(pair, x))(X),
    "staged vmap": lambda call: cj.make_jaxpr(cj.vmap(bound(call, ShapedArray((), "float64"))))(X),
    "hessian": lambda call: cj.hessian(lambda x: call(pair, x)[0].sum())(X),
    "transpose": lambda call: transpose_jaxpr(cj.make_jaxpr(lambda x: bound(call)(x)[0])(X).jaxpr, [True], [True]),
}


@pytest.mark.parametrize("types", [lambda avals: avals[:1], lambda avals: [*avals, avals[0]]], ids=["fewer", "more"])
@pytest.mark.parametrize("use", USES)
def test_another_number_of_types_than_results_is_an_error_that_names_the_primitive(use, types):
    with pytest.raises(RuleError, match=r"miscounted\.\w+ \(defined in .*test_carrying_mistakes\)") as caught:
        USES[use](outlined(types))
    error = caught.value
    assert "miscounted" == error.primitive and "test_carrying_mistakes" in error.pack
    assert error.hook in ("abstract_eval", "evaluate", "vmap")
    assert None not in (error.got, error.wanted, error.where, error.todo)


def without_dead_code(call):
    return dce(cj.make_jaxpr(lambda x: bound(call)(x)[0])(X).jaxpr, [True])


@pytest.mark.parametrize("types", [lambda avals: avals[:1], lambda avals: [*avals, avals[0]]], ids=["fewer", "more"])
def test_so_it_is_where_dead_code_is_left_out(types):
    with pytest.raises(CorejaxValueError, match="one flag for each output") as caught:
        without_dead_code(outlined(types))
    assert "raised by miscounted.dce (defined in " in caught.value.__notes__[0]


def test_the_right_number_of_types_passes():
    call = outlined(lambda avals: avals)
    for use in (*USES.values(), without_dead_code):
        use(call)


def test_a_function_that_fills_no_other_structure_keeps_its_own_errors():
    class Faulty:
        name = "faulty_function"

        def function(self, bind):
            def function(f, x):
                return f(bind(x))
            return function

        @hookimpl
        def decompose(self, args):
            return args[0] + args[0]
    tree = flatten((1, 2))[1]
    with pytest.raises(ValueError, match="Too few leaves") as caught:  # the user's, not the primitive's
        define(Faulty())(lambda x: tree.unflatten([x]), 1.0)
    assert type(caught.value) is ValueError


# Loops in decompositions

def halving():
    class Halved:
        """x, halved until no element is above 1."""
        name = "halved_until"

        @hookimpl
        def decompose(self, args):
            return lax.while_loop(lambda x: (x > 1.0).any(), lambda x: x * 0.5, args[0])
    return define(Halved())


def linear_halving():
    class Halved:
        name = "halved_until"
        linear = (0,)

        @hookimpl
        def decompose(self, args):
            return lax.while_loop(lambda ix: ix[0] < 3, lambda ix: (ix[0] + 1, ix[1] * 0.5), (0, args[0]))[1]
    return define(Halved())


REVERSE = {
    "grad": lambda f: cj.grad(lambda x: f(x).sum())(X),
    "grad under jit": lambda f: cj.jit(cj.grad(lambda x: f(x).sum()))(X),
    "grad of jit": lambda f: cj.grad(cj.jit(lambda x: f(x).sum()))(X),
    "vmap of grad": lambda f: cj.vmap(cj.grad(f))(X),
    "grad of vmap": lambda f: cj.grad(lambda x: cj.vmap(f)(x).sum())(X),
    "grad of scan": lambda f: cj.grad(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0].sum())(X),
    "grad of checkpoint": lambda f: cj.grad(lambda x: cj.checkpoint(f)(x).sum())(X),
}


@pytest.mark.parametrize("use", REVERSE)
@pytest.mark.parametrize("make", [halving, linear_halving])
def test_a_loop_without_reverse_mode_names_the_primitive_whose_decompose_has_it(make, use):
    with pytest.raises(CorejaxNotImplementedError, match="while_loop has no reverse mode") as caught:
        REVERSE[use](make())
    assert "in the decompose of halved_until (defined in " in caught.value.message
    assert "give halved_until a jvp or a transpose of its own" in caught.value.todo


def test_a_loop_of_the_users_own_names_no_other_primitive():
    with pytest.raises(CorejaxNotImplementedError, match="while_loop has no reverse mode") as caught:
        cj.grad(lambda x: halving()(x) + lax.while_loop(lambda x: x < 9.0, lambda x: x * 2.0, x))(1.0)
    assert "decompose" not in str(caught.value)


def test_forward_mode_goes_through_such_a_loop():
    assert 0.25 == cj.jvp(halving(), (3.0,), (1.0,))[1]
    assert [0.25, 0.25, 0.25] == cj.jit(lambda x: cj.jvp(halving(), (x,), (np.ones(3),))[1])(X).tolist()
