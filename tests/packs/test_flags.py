"""Flags of functions: what counts as one, and what doesn't."""

import numpy as np
import pytest

import corejax as cj
from corejax import lax

X, ROWS = lax.sin(np.arange(3.0)), np.array([[0], [1]])
GATHER = lax.GatherDimensionNumbers((), (0,), (0,))
SCATTER = lax.ScatterDimensionNumbers((), (0,), (0,))

USES = {
    "sort: is_stable": lambda flag: lax.sort(X, is_stable=flag),
    "cumsum: reverse": lambda flag: lax.cumsum(X, reverse=flag),
    "linear_recurrence: reverse": lambda flag: lax.linear_recurrence(X, X, reverse=flag),
    "scan: reverse": lambda flag: lax.scan(lambda c, x: (c, x), 0.0, X, reverse=flag)[1],
    "associative_scan: reverse": lambda flag: lax.associative_scan(lax.add, X, reverse=flag),
    "gather: unique_indices": lambda flag: lax.gather(X, ROWS, GATHER, (1,), unique_indices=flag),
    "gather: indices_are_sorted": lambda flag: lax.gather(X, ROWS, GATHER, (1,), indices_are_sorted=flag),
    "scatter_add: unique_indices": lambda flag: lax.scatter_add(X, ROWS, np.ones(2), SCATTER, unique_indices=flag),
    "scatter_apply: unique_indices": lambda flag: lax.scatter_apply(
        X, ROWS, lax.sin, SCATTER, update_shape=(2,), unique_indices=flag),
    "x.at\\[...\\]: unique_indices": lambda flag: X.at[np.array([0, 1])].get(unique_indices=flag),
    "x.at\\[...\\]: indices_are_sorted": lambda flag: X.at[np.array([0, 1])].set(1.0, indices_are_sorted=flag),
    "x.at\\[...\\]: wrap_negative_indices": lambda flag: X.at[np.array([0, 1])].add(1.0, wrap_negative_indices=flag),
    "sum: keepdims": lambda flag: X.sum(keepdims=flag),
    "max: keepdims": lambda flag: X.max(keepdims=flag),
    "mean: keepdims": lambda flag: X.mean(keepdims=flag),
    "var: keepdims": lambda flag: X.var(keepdims=flag),
    "any: keepdims": lambda flag: X.any(keepdims=flag),
    "argmax: keepdims": lambda flag: X.argmax(keepdims=flag),
    "median: keepdims": lambda flag: cj.jit(lambda x: np.median(x, keepdims=flag))(X),
    "norm: keepdims": lambda flag: cj.jit(lambda x: np.linalg.norm(x, keepdims=flag))(X),
    "index_in_dim: keepdims": lambda flag: lax.index_in_dim(X, 0, keepdims=flag),
    "dynamic_index_in_dim: keepdims": lambda flag: lax.dynamic_index_in_dim(X, 0, keepdims=flag),
    "dynamic_slice: allow_negative_indices": lambda flag: lax.dynamic_slice(
        X, (-1,), (1,), allow_negative_indices=flag),
    "approx_max_k: aggregate_to_topk": lambda flag: lax.approx_max_k(X, 1, aggregate_to_topk=flag)[0],
    "custom_linear_solve: symmetric": lambda flag: lax.custom_linear_solve(
        lambda x: 2.0 * x, X, lambda f, b: b / 2.0, symmetric=flag),
    "custom_linear_solve: has_aux": lambda flag: lax.custom_linear_solve(
        lambda x: 2.0 * x, X, lambda f, b: (b / 2.0, 1) if flag else b / 2.0, has_aux=flag),
}


@pytest.mark.parametrize("name", USES)
def test_numpys_flags_and_the_numbers_0_and_1_are_flags(name):
    for flag in (True, False):
        expected = cj.tree.leaves(USES[name](flag))
        for same in (np.bool_(flag), int(flag), np.int32(flag)):
            for x, y in zip(cj.tree.leaves(USES[name](same)), expected, strict=True):
                np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("name", USES)
def test_anything_else_is_no_flag(name):
    for value in ("no", None, 2, 1.0, np.ones(2)):
        with pytest.raises(TypeError, match=f"{name} must be a flag"):
            USES[name](value)
    with pytest.raises(TypeError, match=f"{name} must be a flag(.|\n)*Tracer<~bool"):
        cj.jit(USES[name])(True)


@pytest.mark.parametrize("use", [
    lambda flag: lax.dce_sink(X, prevent_mlir_dce=flag),
    lambda flag: cj.custom_jvp(lambda x: x).defjvp(lambda p, t: (p[0], t[0]), symbolic_zeros=flag),
    lambda flag: cj.custom_vjp(lambda x: x).defvjp(lambda x: (x, None), lambda _, ct: (ct,), symbolic_zeros=flag)])
def test_flags_of_functions_without_results(use):
    use(np.bool_(True))
    with pytest.raises(TypeError, match="must be a flag"):
        use("no")
