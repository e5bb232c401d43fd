"""The journal has each line once and in order, whatever is made of the program; and the laws of the kit."""

import copy
import pickle

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxError, CorejaxNotImplementedError
from corejax.testing import pack_tests
from outside_journal import WRITTEN, journal, written

test_rules = pack_tests("outside-journal")


def steps(x):
    """A program with lines at every level: in calls, loops, branches, conditions, and functions with rules."""
    journal(x, name="begin")

    def step(carry, i):
        journal(carry, i, name="step")
        carry = lax.cond(i % 2 == 0, even, odd, carry)
        return lax.sin(carry), carry

    x, xs = lax.scan(step, x, np.arange(4))
    x = cj.jit(called)(x)
    x = lax.fori_loop(0, 2, lambda i, x: shown(x) * 1.5, x)
    journal(x, xs, name="end")
    return x


def even(x):
    journal(x, name="even")
    return 2.0 * x


def odd(x):
    journal(x, name="odd")
    return x + 1.0


def called(x):
    journal(x, name="called")
    return x * x


@cj.custom_jvp
def shown(x):
    journal(x, name="shown")
    return lax.exp(-x)


@shown.defjvp
def _(primals, tangents):
    out = shown(*primals)
    return out, -out * tangents[0]


def lines_of(run, *args):
    written()
    cj.block_until_ready(run(*args))
    return [(name, *np.round(values[0], 9).ravel().tolist()) for name, *values in written()]


WAYS = {
    "jit": cj.jit(steps),
    "jit of jit": cj.jit(lambda x: cj.jit(steps)(x)),
    "jvp": lambda x: cj.jvp(steps, (x,), (1.0,)),
    "grad": cj.grad(steps),
    "jit of grad": cj.jit(cj.grad(steps)),
    "grad of jit": cj.grad(cj.jit(steps)),
    "linearize": lambda x: cj.linearize(steps, x)[1](1.0),
    "a pullback, twice": lambda x: (lambda pull: (pull(1.0), pull(2.0)))(cj.vjp(steps, x)[1]),
    "checkpoint": cj.grad(cj.checkpoint(steps)),
    "jit of checkpoint": cj.jit(cj.grad(cj.checkpoint(steps))),
    "checkpoint in jit": cj.grad(cj.jit(cj.checkpoint(steps))),
    "grad of grad": cj.jit(cj.grad(cj.grad(steps))),
    "hessian": cj.jit(cj.hessian(steps)),
    "vmap of nothing": lambda x: cj.vmap(lambda y: (steps(x), y)[1])(np.ones(3)),
    "a branch": cj.jit(lambda x: lax.cond(x > 0.0, steps, lambda x: x, x)),
    "a loop of one": cj.jit(lambda x: lax.while_loop(lambda s: s[1] < 1, lambda s: (steps(s[0]), s[1] + 1), (x, 0))),
}


@pytest.mark.parametrize("way", WAYS)
def test_each_line_is_written_once_and_in_order(way):
    wanted = lines_of(steps, 0.5)
    assert 13 == len(wanted) and "begin" == wanted[0][0] and "end" == wanted[-1][0]
    for _ in range(3):
        assert wanted == lines_of(WAYS[way], 0.5)


def test_lines_of_eager_operations_and_programs_are_in_order():
    program = cj.jit(called)

    def mixed(x):
        for k in range(20):
            journal(x + k, name="eager")
            program(x + k)

    wanted = [(name, 0.5 + k) for k in range(20) for name in ("eager", "called")]
    assert wanted == lines_of(mixed, 0.5)


def test_a_condition_writes_before_each_step():
    def going(x):
        journal(x, name="condition")
        return x < 3.0

    def loop(x):
        return lax.while_loop(going, lambda x: (journal(x, name="step"), x + 1.0)[1], x)

    wanted = [("condition", 1.0), ("step", 1.0), ("condition", 2.0), ("step", 2.0), ("condition", 3.0)]
    for run in (loop, cj.jit(loop), lambda x: cj.jvp(cj.jit(loop), (x,), (1.0,))):
        assert wanted == lines_of(run, 1.0)


def test_a_pass_backward_writes_when_it_runs():
    @cj.custom_vjp
    def f(x):
        return x * x

    f.defvjp(lambda x: ((journal(x, name="forward"), x * x)[1], x),
             lambda x, g: ((journal(g, name="backward"), 2.0 * x * g)[1],))

    def twice(x):
        return f(f(x))

    wanted = [("forward", 3.0), ("forward", 9.0), ("backward", 1.0), ("backward", 18.0)]
    for run in (cj.grad(twice), cj.jit(cj.grad(twice)), cj.grad(cj.jit(twice))):
        assert wanted == lines_of(run, 3.0)


def test_what_depends_on_a_tangent_is_refused_backward_and_not_lost():
    @cj.custom_jvp
    def f(x):
        return x * x

    @f.defjvp
    def _(primals, tangents):
        journal(tangents[0], name="tangent")
        return f(*primals), 2.0 * primals[0] * tangents[0]

    assert [("tangent", 1.0)] == lines_of(lambda x: cj.jvp(f, (x,), (1.0,)), 3.0)
    pushed = lines_of(lambda x: [cj.linearize(f, x)[1](t) for t in (1.0, 2.0)], 3.0)
    assert [("tangent", 1.0), ("tangent", 2.0)] == pushed
    for run in (cj.grad(f), cj.jit(cj.grad(f)), cj.grad(lambda x: lax.fori_loop(0, 2, lambda i, x: f(x), x))):
        with pytest.raises(CorejaxNotImplementedError, match="journal .* has no transpose rule"):
            run(3.0)


@pytest.mark.parametrize("most", [8, 40, 1000])
def test_steps_that_reverse_mode_takes_again_write_once(most):
    def f(x):
        return lax.bounded_while_loop(lambda x: x < 5.0, lambda x: (journal(x, name="step"), x * x + x)[1], x,
                                      max_steps=most)

    def segments(x):
        return lax.scan(lambda x, _: ((journal(x, name="step"), lax.sin(x))[1], None), x, None, length=12,
                        checkpoint_every=4)[0]

    for g in (f, segments, cj.checkpoint(f), cj.checkpoint(segments)):
        wanted = lines_of(g, 1.0)
        assert 2 == len(wanted) or 12 == len(wanted)
        for run in (cj.grad(g), cj.jit(cj.grad(g)), cj.grad(cj.jit(g))):
            assert wanted == lines_of(run, 1.0)


def test_a_batch_is_refused_with_what_to_do():
    with pytest.raises(CorejaxNotImplementedError, match=r"(?s)the effect journal .* each element .*lax\.map"):
        cj.vmap(called)(np.arange(3.0))
    with pytest.raises(CorejaxNotImplementedError, match=r"lax\.map"):
        cj.vmap(lambda x: lax.cond(x > 1.0, even, odd, x))(np.arange(3.0))
    assert [("called", 0.0), ("called", 1.0)] == lines_of(lambda xs: lax.map(called, xs), np.arange(2.0))
    assert [("called", 0.0), ("called", 1.0)] == lines_of(cj.jit(lambda xs: lax.map(called, xs)), np.arange(2.0))


def test_programs_with_it_are_not_exported_and_pickle():
    with pytest.raises(CorejaxError, match="journal"):
        cj.export.export(cj.jit(called))(1.0)
    jaxpr = cj.make_jaxpr(steps)(1.0)
    assert {WRITTEN} == jaxpr.effects == pickle.loads(pickle.dumps(jaxpr)).effects == copy.deepcopy(jaxpr).effects
    assert "with {journal}" in str(jaxpr)
