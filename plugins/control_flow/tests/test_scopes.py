"""Scopes of equations: names that users give, and those by which rules say how often something happens."""

from __future__ import annotations

import pickle

import numpy as np

import corejax as cj
from corejax import lax
from corejax.core import Again, Alternative, EachTurn, subjaxprs


def equations(jaxpr, scopes=()):
    """Each equation of a program and of those within it, by name, with all scopes around it."""
    for eqn in jaxpr.eqns:
        inner = (*scopes, *eqn.scope)
        yield eqn.primitive.name, inner
        for sub in subjaxprs(eqn.params):
            yield from equations(sub, inner)


def scopes_of(name, function, *args):
    return [scopes for found, scopes in equations(cj.make_jaxpr(function)(*args).jaxpr) if found == name]


def named(x):
    with cj.named_scope("outer"):
        y = lax.sin(x)
        with cj.named_scope("inner"):
            return lax.tanh(y)


def test_names_outlive_transformations():
    x = np.arange(3.0)
    for function in (named, cj.jit(named), cj.vmap(named), cj.vmap(cj.jit(named)), cj.jit(cj.vmap(cj.jit(named))),
                     cj.checkpoint(named), lambda x: cj.jvp(cj.jit(named), (x,), (x,))):
        assert ("outer",) in scopes_of("sin", function, x)
        assert ("outer", "inner") in scopes_of("tanh", function, x)
        assert "outer" in cj.jit(function).lower(x).as_text(debug_info=True)


def chosen(x):
    return lax.cond(x > 1.0, lax.sin, lax.tan, x)


def test_a_conditional_whose_branches_all_run_says_which_each_equation_is_of():
    x = np.arange(3.0)
    for function in (cj.vmap(chosen), cj.jit(cj.vmap(chosen)), cj.vmap(cj.vmap(chosen), None, axis_size=2),
                     cj.vmap(cj.jit(chosen)), lambda x: cj.jvp(cj.jit(cj.vmap(chosen)), (x,), (x,))):
        found = dict(reversed([*equations(cj.make_jaxpr(function)(x).jaxpr)]))
        sin, tan = found["sin"][-1], found["tan"][-1]
        assert type(sin) is type(tan) is Alternative
        assert ("branch_1", "branch_0") == (sin, tan)
        assert sin.of == tan.of
    two = scopes_of("sin", lambda x: cj.vmap(chosen)(x) + cj.vmap(chosen)(x), x)
    assert two[0][-1].of != two[1][-1].of
    assert [()] == scopes_of("sin", lambda x: chosen(x[0]), x)


def test_what_is_computed_before_a_loop_says_that_it_belongs_into_it():
    def looped(x, w):
        return lax.fori_loop(0, 3, lambda i, x: x * lax.sin(w), x)

    (scopes,) = scopes_of("sin", cj.grad(looped), 1.0, 2.0)
    assert type(scopes[-1]) is EachTurn
    assert [()] == scopes_of("sin", looped, 1.0, 2.0)


def test_what_is_computed_again_says_so():
    checkpointed = cj.checkpoint(lambda x: lax.sin(lax.tanh(x)))
    found = scopes_of("tanh", cj.grad(cj.grad(checkpointed)), 1.0)
    assert () == found[0]
    assert Again in {type(scopes[-1]) for scopes in found if scopes}
    assert {()} == {*scopes_of("tanh", cj.vmap(checkpointed), np.arange(2.0))}


def test_scopes_can_be_pickled():
    for scope in (Alternative("branch_1"), EachTurn("each_turn"), Again("again")):
        copy = pickle.loads(pickle.dumps(scope))
        assert (type(scope), scope, scope.of) == (type(copy), copy, copy.of)
