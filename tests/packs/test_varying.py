"""Values that vary along axes of a mesh, in all that packs bring: derivatives are those of the unmapped program."""

from __future__ import annotations

import numpy as np
import pytest
from random_devices import Program, diverging_sums

import corejax as cj
from corejax import lax
from corejax.core import subjaxprs
from corejax.errors import CorejaxTypeError, RuleError
from devices import SIZES, check, erased, on_devices, staged, typed

W, X = typed((2,)), typed((2,), "x")


def total(x):
    return lax.psum(x, "x")


def with_jvp(fun):
    made = cj.custom_jvp(fun)
    made.defjvp(lambda xs, dots: cj.jvp(fun, xs, dots))
    return made


def with_vjp(fun):
    made = cj.custom_vjp(fun)
    made.defvjp(lambda *xs: (fun(*xs), xs), lambda xs, ct: cj.vjp(fun, *xs)[1](ct))
    return made


def solved(matrix, b, **more):
    return lax.custom_linear_solve(lambda z: z * matrix, b, lambda f, y: y / matrix, **more)


def doubled(c, _):
    return (c[1], c[0] * c[0], c[2] * 0.0), None


PROGRAMS = {
    "products": lambda w, x: [w * x, x * 2.0 + w * 3.0, lax.exp(w)],
    "sums over devices": lambda w, x: [total(w * x), lax.sin(w) * total(x) * w, x * total(lax.sin(w * x)) + w, w],
    "a sum of what is the same": lambda w, x: [total(w) * x, total(w * total(x * w))],
    "casts": lambda w, x: [lax.pcast(w, "x", to="varying") * 2.0, w * 3.0 + lax.pcast(w, "x", to="varying")],
    "zeros": lambda w, x: [lax.floor(x) * w, lax.select(x > 0.5, w, x), lax.concatenate([w, x], 0)],
    "jit": lambda w, x: [*cj.jit(lambda w, x: (w * x, total(w * x)))(w, x), cj.jit(lambda x: total(x * w))(x) * w],
    "checkpoint": lambda w, x: [cj.checkpoint(lambda w, x: lax.sin(w * x) * total(x * w))(w, x)],
    "composite": lambda w, x: [lax.composite(lambda w, x: w * total(x * w), "a.b")(w, x)],
    "platforms": lambda w, x: [lax.platform_dependent(w, x, cpu=lambda w, x: w, default=lambda w, x: x * w)],
    "a carry that comes to vary": lambda w, x: [lax.scan(lambda c, _: (c * w + x, c * w), w, None, length=3)[0]],
    "a carry that stays the same": lambda w, x: [*lax.scan(lambda c, _: (lax.sin(c * w), c * x), w, None, length=3)],
    "sums in a loop": lambda w, x: [*lax.scan(lambda c, a: (lax.sin(c * w) + a, total(a * c)), w, x)],
    "carries that change places": lambda w, x: [lax.scan(doubled, (w, x, x), None, length=3)[0][0]],
    "fori": lambda w, x: [lax.fori_loop(0, 3, lambda i, c: lax.sin(c) * w + total(c * x), w)],
    "map": lambda w, x: [lax.map(lambda a: lax.sin(a * w), x).sum(0)],
    "a condition that is the same": lambda w, x: [
        *lax.cond(w.sum() > 0, lambda w: (w, total(x * w)), lambda w: (w * x, w), w)],
    "a condition that varies": lambda w, x: [
        lax.cond(x.sum() > 1.5, lambda w, x: w * x, lambda w, x: lax.sin(w), w, x)],
    "branches of constants": lambda w, x: [lax.cond(x.sum() > 1.5, lambda: w * 2.0, lambda: lax.sin(lax.sin(w))),
                                           lax.cond(x.sum() > 1.5, lambda w: np.ones(2), lax.sin, w)],
    "switch": lambda w, x: [
        lax.switch((x.sum() * 2).astype("int32"), [lambda w: w * 2.0, lambda w: x * w, lax.sin], w)],
    "cond in scan": lambda w, x: [
        lax.scan(lambda c, a: (lax.cond(a > 0.7, lambda c: c * w, lax.sin, c), c.sum()), w, x)[0]],
    "vmap": lambda w, x: [cj.vmap(lambda a: a * w)(x), cj.vmap(lambda a: total(a * x))(w),
                          cj.vmap(lambda a, b: lax.cond(b > 0.7, lambda a: a * w, lambda a: lax.sin(a) + w, a))(w, x)],
    "grad": lambda w, x: [cj.grad(lambda w: total(lax.sin(w * x).sum()))(w),
                          cj.grad(lambda x: total(lax.sin(w * x).sum()))(x)],
    "reduce": lambda w, x: [lax.reduce((x, w), (0.0, 0.0), lambda a, b: (a[0] + b[0], a[1] + b[1]), (0,))[0] * w],
    "linear systems": lambda w, x: [solved(x, w, transpose_solve=lambda f, y: y / x), solved(w, x, symmetric=True),
                                    solved(w, total(x), symmetric=True)],
    "roots": lambda w, x: [lax.custom_root(lambda z: z * z - x * w, w, lambda f, z: lax.sqrt(x * w),
                                           lambda g, y: y / g(np.ones(2)))],
    "custom_jvp": lambda w, x: [
        with_jvp(lambda a, b: total(a * b))(w, x), with_jvp(lambda a, b: total(a) * b)(w, w) * x],
    "custom_jvp in a loop": lambda w, x: [
        lax.scan(lambda c, _: (with_jvp(lambda a, b: total(a) * b)(w, c), c), x, None, length=2)[0]],
    "linearize": lambda w, x: [cj.linearize(lambda x: total(x) * w, x)[1](np.ones(2)) * x],
    "jvp": lambda w, x: [cj.jvp(lambda x: total(total(x)) * w, (x,), (np.ones(2),))[1] * w],
}


@pytest.mark.sample(10)
@pytest.mark.parametrize("name", PROGRAMS)
def test_derivatives_are_those_of_the_unmapped_program(name):
    check(PROGRAMS[name], [W, X])


@pytest.mark.parametrize("name", ["sums over devices", "a carry that comes to vary", "a condition that varies"])
def test_second_derivatives_are_those_of_the_unmapped_program(name):
    check(PROGRAMS[name], [W, X], order=2)


@pytest.mark.parametrize("fun", [
    lambda f, w, x: [f(w, x), f(w, w) * x],
    lambda f, w, x: [lax.scan(lambda c, _: (f(c, w), f(w, x)), w, None, length=3)[0]],
    lambda f, w, x: [lax.cond(x.sum() > 1.5, lambda w: f(w, w), lambda w: w, w), cj.vmap(lambda s: f(w, x * s))(x)],
])
def test_a_bwd_rule_may_return_what_varies(fun):
    def program(w, x):
        return fun(with_vjp(lambda a, b: lax.sin(a) * b), w, x)
    program.backward_only = True
    check(program, [W, X])


def test_a_function_with_a_sum_and_a_bwd_rule():
    made = cj.custom_vjp(lambda w, x: total(w * x))
    made.defvjp(lambda w, x: (total(w * x), (w, x)), lambda kept, ct: (ct * kept[1], ct * kept[0]))
    program = staged(lambda w, x, ct: cj.vjp(made, w, x)[1](ct), [W, X, W])
    plain = staged(lambda w, x, ct: cj.vjp(lambda w, x: total(w * x), w, x)[1](ct), [W, X, W])
    assert [W, X] == program.out_avals == plain.out_avals
    assert ["mul", "psum_invariant"] == [eqn.primitive.name for eqn in program.eqns][-3:-1]


def test_a_while_loop_that_devices_leave_at_different_steps():
    def program(w, x):
        return [*lax.while_loop(lambda c: c[0].sum() < x.sum(), lambda c: (c[0] + 0.3, c[1] * w), (w * 0.0, w)),
                lax.fori_loop(0, (x.sum() * 2.0).astype("int64"), lambda i, c: c * w, w)]
    program.forward_only = True
    assert [X, X, X] == check(program, [W, X]).out_avals


@pytest.mark.parametrize("seed", [1, 4, 7, 9, 10])
def test_derivatives_of_random_programs(seed):
    program = Program(seed, ("x", "y") if seed % 2 else ("x",), forward_only=seed == 10)
    primal = check(program, program.types, program.axes, seed)
    assert not diverging_sums(primal.jaxpr)


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(1000, 1200))
def test_derivatives_of_many_random_programs(seed):
    program = Program(seed, ("x", "y") if seed % 2 else ("x",), forward_only=seed % 10 == 0)
    assert not diverging_sums(check(program, program.types, program.axes, seed, 1 + (seed % 20 == 1)).jaxpr)


def test_devices_that_take_different_branches_sum_nothing_in_them():
    def loss(w, x):
        return total(lax.cond(x.sum() > 1.5, lambda w: (w * x).sum(), lambda w: lax.sin(w).sum(), w))
    program = staged(lambda w, x: cj.grad(loss, (0, 1))(w, x), [W, X])
    assert [W, X] == program.out_avals and not diverging_sums(program.jaxpr)


@pytest.mark.parametrize("fun", [lambda w, x: w + x, lambda w, x: cj.jit(lambda w: w + x)(w),
                                 lambda w, x: lax.scan(lambda c, _: (c + x, None), w, None, length=1)[0],
                                 lambda w, x: lax.cond(w[0] > 0, lambda w: w + x, lambda w: w - x, w)])
def test_a_cotangent_that_is_the_same_counts_once_for_each_device(fun):
    program = staged(lambda w, x: cj.vjp(fun, w, x)[1](np.ones(2)), [W, X])
    for_w, for_x = on_devices(program)(np.ones(2), np.ones((3, 2)))
    assert [3.0, 3.0] == for_w.tolist() and [[1.0, 1.0]] * 3 == for_x.tolist()


def test_a_cotangent_is_summed_once():
    program = staged(lambda w, x: [cj.grad(lambda w: total((w * x).sum()))(w)], [W, X])
    assert 2 == [eqn.primitive.name for eqn in program.eqns].count("psum_invariant"), "one for the loss itself"


def test_values_of_one_type_need_no_collectives():
    program = staged(lambda w, x: [*cj.vjp(lambda a, b: lax.sin(a * b), x, x)[1](x),
                                   cj.grad(lambda w: (w * w).sum())(w)], [W, X])
    assert {"pcast", "psum_invariant"}.isdisjoint([eqn.primitive.name for eqn in program.eqns])


def test_a_tangent_that_varies_more_than_its_primal_names_the_axes():
    with pytest.raises(CorejaxTypeError, match="a tangent varies along x, but its primal is the same there"):
        staged(lambda w, x: cj.jvp(lax.sin, (w,), (x,)), [W, X])


def test_a_jvp_rule_whose_tangent_varies_more_than_its_output_is_named():
    made = cj.custom_jvp(lambda w, x: w * 2.0)
    made.defjvp(lambda xs, dots: (xs[0] * 2.0, dots[0] * xs[1]))
    with pytest.raises(RuleError, match="the jvp rule of .*it varies along x"):
        staged(lambda w, x: cj.jvp(made, (w, x), (w, x)), [W, X])


def test_operands_that_vary_more_than_a_program_expects_are_refused():
    inner = staged(lambda w: [w * 2.0], [W]).jaxpr
    with pytest.raises(CorejaxTypeError, match="the operands don't fit the called jaxpr"):
        staged(lambda x: lax.xla_call(x, jaxpr=inner), [X])


def test_a_program_of_several_axes():
    def program(w, a, b):
        return [lax.psum(w * a * b, "x"), lax.psum(a * b, ("x", "y")) * w, a + lax.psum(b, "y")]
    primal = check(program, [typed((2,)), typed((2,), "x"), typed((2,), "y")], ("x", "y"), order=2)
    assert [typed((2,), "y"), typed((2,)), typed((2,), "x")] == primal.out_avals
    assert (3, 2) == (SIZES["x"], SIZES["y"])


def test_a_map_inside_leaves_the_axes_of_the_types():
    program = staged(lambda w, x: [cj.vmap(lambda s: s * x)(w), cj.vmap(lambda s: s * w)(w)], [W, X])
    assert [typed((2, 2), "x"), typed((2, 2))] == program.out_avals


def test_no_inner_program_is_left_with_other_types():
    program = staged(lambda w, x: [lax.scan(lambda c, _: (c * x, None), w, None, length=2)[0]], [W, X])
    (eqn,) = [eqn for eqn in program.eqns if eqn.primitive.name == "scan"]
    (body,) = subjaxprs(eqn.params)
    assert [X] == body.out_avals and X in body.in_avals
    assert [W] == erased(body).out_avals
