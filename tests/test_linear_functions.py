"""What `vjp`, `linearize` and `linear_transpose` return is a pytree, and so is `tree.Partial`."""

from __future__ import annotations

import copy
import functools

import numpy as np
import pytest
from numpy.testing import assert_allclose

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxTypeError

X = np.array([0.5, 1.5, 2.5])


def f(x):
    return lax.sin(x) * x / (1.0 + x * x) + 2.0 * x * 3.0


def slope(x):
    d = 1.0 + x * x
    return (np.cos(x) * x + np.sin(x)) / d - np.sin(x) * x * 2.0 * x / d ** 2 + 6.0


def pullback_at(x):
    return cj.vjp(f, x)[1]


# In and out of transformations

def test_a_pullback_is_returned_from_jit_and_passed_to_it():
    pullback = cj.jit(pullback_at)(X)
    assert_allclose(slope(X), pullback(np.ones(3))[0])
    assert_allclose(slope(X), cj.jit(lambda pull, ct: pull(ct))(pullback, np.ones(3))[0])


def test_a_linearized_function_and_a_transpose_are_returned_from_jit():
    _, f_lin = cj.jit(lambda x: cj.linearize(f, x))(X)
    assert_allclose(slope(X), f_lin(np.ones(3)))
    transpose = cj.jit(lambda y: cj.linear_transpose(lambda x: y * x, 1.0))(3.0)
    assert (6.0,) == transpose(2.0)


def test_a_jitted_function_is_traced_once_for_all_pullbacks_of_a_function():
    traced = []

    @cj.jit
    def pull(pullback, ct):
        traced.append(ct)
        return pullback(ct)[0]

    for x in (0.5, 1.5, 2.5):
        assert_allclose(slope(x), pull(pullback_at(x), 1.0))
        assert_allclose(slope(x), pull(cj.jit(pullback_at)(x), 1.0))
    assert 1 == len(traced)


def test_pullbacks_come_out_of_vmap_stacked_and_go_into_it():
    pullbacks = cj.vmap(pullback_at)(X)
    assert_allclose(slope(X), cj.vmap(lambda pull: pull(1.0)[0])(pullbacks))
    with pytest.raises(CorejaxTypeError, match=r"residual 0 doesn't have the type(.|\n)*f64\[3\](.|\n)*under vmap"):
        pullbacks(1.0)


def test_pullbacks_are_stacked_results_and_carries_of_a_scan():
    _, pullbacks = lax.scan(lambda c, x: (c, pullback_at(x)), None, X)
    assert_allclose(slope(X), cj.vmap(lambda pull: pull(1.0)[0])(pullbacks))
    assert_allclose(slope(X), lax.scan(lambda c, pull: (c, pull(1.0)[0]), None, pullbacks)[1])
    last, slopes = lax.scan(lambda pull, x: (pullback_at(x), pull(1.0)[0]), pullback_at(X[2]), X)
    assert_allclose(slope(X[[2, 0, 1]]), slopes)
    assert_allclose(slope(X[2]), last(1.0)[0])


@pytest.mark.parametrize("transform", [lambda f: f, cj.jit], ids=["eagerly", "under jit"])
def test_branches_of_a_cond_return_pullbacks_of_one_function(transform):
    choose = transform(lambda p, x: lax.cond(p, pullback_at, lambda x: pullback_at(2.0 * x), x)(1.0)[0])
    assert_allclose(slope(X[0]), choose(True, X[0]))
    assert_allclose(slope(2 * X[0]), choose(False, X[0]))


def test_a_pullback_out_of_a_checkpoint_is_differentiated():
    pulled = cj.grad(lambda x: cj.checkpoint(pullback_at)(x)(1.0)[0])
    assert_allclose(cj.grad(cj.grad(f))(1.5), pulled(1.5))


def test_a_pullback_is_differentiated_by_its_residuals():
    gradient = cj.grad(lambda pull: pull(2.0)[0])(cj.vjp(lax.sin, 1.0)[1])
    assert [2.0] == cj.tree.leaves(gradient)


@pytest.fixture
def sine():
    """A sine whose derivative is a pullback kept as residual."""
    sine = cj.custom_vjp(lax.sin)
    sine.defvjp(lambda x: cj.vjp(lax.sin, x), lambda pull, ct: pull(ct))
    return sine


@pytest.mark.parametrize(("wanted", "transform"), [
    (np.cos(X), lambda sine: [cj.grad(sine)(x) for x in X]),
    (np.cos(X), lambda sine: cj.vmap(cj.jit(cj.grad(sine)))(X)),
    (np.cos(X), lambda sine: cj.jit(cj.grad(lambda x: cj.vmap(sine)(x).sum()))(X)),
    (-np.sin(X), lambda sine: cj.vmap(cj.grad(cj.grad(sine)))(X)),
    (-np.sin(X), lambda sine: cj.jit(cj.vmap(cj.grad(cj.jit(cj.grad(sine)))))(X)),
    (np.cos(np.sin(1.0)) * np.cos(1.0),
     lambda sine: cj.jit(cj.grad(lambda x: lax.fori_loop(0, 2, lambda i, c: sine(c), x)))(1.0)),
], ids=["grad", "vmap of jit of grad", "jit of grad of vmap", "vmap of grad of grad", "all of them", "loop"])
def test_a_pullback_is_the_residual_of_a_custom_vjp(sine, wanted, transform):
    assert_allclose(wanted, transform(sine))


def test_pullbacks_of_functions_that_carry_programs_have_one_structure(sine):
    half = cj.custom_jvp(lambda x: x / 2.0)
    half.defjvp(lambda primals, tangents: (half(*primals), tangents[0] * 0.5))
    for function in (sine, half, cj.jit(f), cj.checkpoint(f), lambda x: lax.fori_loop(0, 2, lambda i, c: f(c), x),
                     lambda x: lax.cond(x > 0.0, f, lax.cos, x), lambda x: cj.vmap(sine)(x * np.ones(2)).sum()):
        at = [cj.tree.structure(cj.vjp(function, x)[1]) for x in X]
        assert at[0] == at[1] == at[2]


# As a tree

def test_the_leaves_of_a_pullback_are_its_residuals():
    assert [5.0, 3.0] == cj.tree.leaves(cj.vjp(lambda x, y: x * y, 3.0, 5.0)[1])
    assert [] == cj.tree.leaves(cj.vjp(lambda x: x + x, 3.0)[1])


def test_the_structure_of_a_pullback_tells_programs_apart():
    structures = [cj.tree.structure(linear) for linear in (
        cj.vjp(lax.sin, 1.0)[1], cj.vjp(lax.sin, np.float32(1.0))[1], cj.vjp(lax.sin, X)[1],
        cj.linearize(lax.sin, 1.0)[1], cj.vjp(lambda x: [lax.sin(x)], 1.0)[1],
        cj.vjp(lambda x: lax.sin(x[0]), (1.0,))[1], cj.vjp(lambda x: -lax.sin(x), 1.0)[1],
        cj.vjp(lambda x: lax.sin(x).sum(), X)[1], cj.vjp(lambda x: lax.sin(x).sum(axis=0), X[None])[1])]
    assert len(structures) == len(set(structures))
    assert structures[0] == cj.tree.structure(cj.vjp(lambda x: 1.0 / x, 2.0)[1])  # a residual times the cotangent, too


def test_a_flattened_pullback_is_built_up_again_with_any_leaves():
    pullback = pullback_at(1.5)
    leaves, treedef = cj.tree.flatten(pullback)
    assert treedef == cj.tree.structure(pullback) == cj.tree.structure(treedef.unflatten(leaves))
    assert_allclose(slope(1.5), treedef.unflatten(map(np.asarray, leaves))(1.0)[0])
    odd = cj.tree.map(lambda x: "text", pullback)
    assert ["text"] * len(leaves) == cj.tree.leaves(odd)
    with pytest.raises(CorejaxTypeError, match="the function that vjp returned: residual 0 is a str, not an array"):
        odd(1.0)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_pullback_is_copied(copied):
    pullback = copied(pullback_at(X))
    assert_allclose(slope(X), pullback(np.ones(3))[0])


def test_aux_and_integers_stay_out_of_a_pullback():
    _, pullback, aux = cj.jit(lambda n, x: cj.vjp(lambda n, x: (n * x, {"x": x}), n, x, has_aux=True))(3, 2.0)
    n_bar, x_bar = pullback(1.0)
    assert (cj.float0, 3.0, 2.0) == (n_bar.dtype, x_bar, aux["x"])


def test_a_pullback_takes_one_cotangent():
    with pytest.raises(CorejaxTypeError, match=r"vjp: the pullback takes one cotangent(.|\n)*2 arguments"):
        cj.vjp(lambda x: (x, x), 1.0)[1](1.0, 1.0)


def test_a_pullback_says_what_it_maps():
    assert "<pullback of (f64[3]) -> (f64[3])>" == repr(pullback_at(X))
    assert "<f_lin of (~f64[]) -> (~f64[])>" == repr(cj.linearize(f, 1.0)[1])


# Partial

def affine(w, x, b=0.0):
    return w * x + b


def test_a_partial_is_a_container_of_its_arguments():
    partial = cj.tree.Partial(affine, 2.0, b=3.0)
    assert [".args[0]", ".keywords['b']"] == [cj.tree.keystr(path) for path, _ in cj.tree.leaves_with_path(partial)]
    assert 11.0 == partial(4.0) == cj.jit(lambda p, x: p(x))(partial, 4.0)
    assert [4.0, 1.0] == cj.tree.leaves(cj.grad(lambda p: p(4.0))(partial))
    assert_allclose(X, cj.vmap(lambda p: p(1.0))(cj.vmap(lambda w: cj.tree.Partial(affine, w))(X)))


def test_a_partial_of_a_partial_holds_the_arguments_of_both():
    assert [1.0, 2.0] == cj.tree.leaves(cj.tree.Partial(cj.tree.Partial(affine, 1.0), 2.0))


def test_a_partial_leaves_the_arguments_of_a_functools_partial_alone():
    inner = functools.partial(affine, 5.0)
    partial = cj.tree.Partial(inner, 2.0)
    assert ([2.0], 10.0) == (cj.tree.leaves(partial), cj.tree.map(lambda x: x, partial)())
    assert cj.tree.structure(partial) == cj.tree.structure(cj.tree.Partial(inner, 7.0))


def test_a_partial_of_what_is_no_function_is_refused():
    with pytest.raises(CorejaxTypeError, match="tree.Partial: expected a function"):
        cj.tree.Partial(3.0)
