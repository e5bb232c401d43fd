"""`vmap`: axes in and out, as pytree prefixes, and what does not fit."""

from __future__ import annotations

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxIndexError, CorejaxTypeError, CorejaxValueError

A = np.arange(6.0).reshape(2, 3)
B = np.arange(3.0)


def test_axes_may_be_anywhere():
    f = cj.vmap(lambda x: x.sum())
    np.testing.assert_array_equal(A.sum(1), f(A))
    np.testing.assert_array_equal(A.sum(0), cj.vmap(lambda x: x.sum(), in_axes=1)(A))
    np.testing.assert_array_equal(A.sum(0), cj.vmap(lambda x: x.sum(), in_axes=-1)(A))
    np.testing.assert_array_equal(A.T, cj.vmap(lambda x: x, out_axes=1)(A))
    np.testing.assert_array_equal(A.T, cj.vmap(lambda x: x, in_axes=-1)(A))
    np.testing.assert_array_equal(A, cj.vmap(lambda x: x, in_axes=1, out_axes=-1)(A))
    np.testing.assert_array_equal(A, cj.vmap(lambda x: x, in_axes=np.int64(0))(A))


def test_some_arguments_are_the_same_for_all():
    np.testing.assert_array_equal(A * B, cj.vmap(lambda x, y: x * y, in_axes=(0, None))(A, B))
    np.testing.assert_array_equal(A * B, cj.vmap(lambda x, y: x * y, in_axes=[1, 0], out_axes=1)(A, B))
    np.testing.assert_array_equal(A + 1, cj.vmap(lambda x, text: x + len(text), in_axes=(0, None))(A, "1"))


def test_axes_are_prefixes_of_pytrees():
    def f(d, pair):
        return {"s": d["a"] + d["b"][0], "t": (pair[0], pair[1].sum())}

    args = {"a": A, "b": (A[0], None)}, (np.ones((4, 2)), 2.0 * A)
    result = cj.vmap(f, in_axes=({"a": 0, "b": None}, (1, 0)), out_axes={"s": 1, "t": (0, -1)})(*args)
    np.testing.assert_array_equal((A + A[0]).T, result["s"])
    assert (2, 4) == result["t"][0].shape
    np.testing.assert_array_equal(2 * A.sum(1), result["t"][1])
    added = cj.vmap(lambda d: d["a"] + d["b"], in_axes=({"a": 0, "b": 0},))({"a": A, "b": A})
    np.testing.assert_array_equal(A + A, added)


def test_keyword_arguments_are_mapped_along_axis_0():
    np.testing.assert_array_equal(A + B[:2, None], cj.vmap(lambda x, *, y: x + y, in_axes=0)(A, y=B[:2]))


def test_results_that_do_not_depend_on_the_axis_are_repeated():
    result = cj.vmap(lambda x: (2.0, lax.full((2,), 1.0), x), out_axes=(0, 1, 0))(B)
    assert ((3,), (2, 3), (3,)) == tuple(x.shape for x in result)
    one, two = cj.vmap(lambda x: (2.0, x), out_axes=(None, 0))(B)
    assert () == one.shape
    np.testing.assert_array_equal(B, two)


def test_axis_size_makes_a_batch_of_nothing():
    np.testing.assert_array_equal(np.ones(4), cj.vmap(lambda: 1.0, axis_size=4)())
    np.testing.assert_array_equal(np.full(4, 2.0), cj.vmap(lambda x: x, in_axes=None, axis_size=4)(2.0))
    np.testing.assert_array_equal(A, cj.vmap(lambda x: x, axis_size=2)(A))


def test_results_do_not_share_memory_with_arguments():
    x = A.copy()
    y = cj.vmap(lambda x: x)(x)
    x[:] = 0.0
    np.testing.assert_array_equal(A, y)


def test_vmap_nests_and_composes():
    outer = cj.vmap(cj.vmap(lambda x, y: x * y, in_axes=(None, 0)), in_axes=(0, None))
    np.testing.assert_array_equal(np.outer(B, B), outer(B, B))
    np.testing.assert_array_equal(np.outer(B, B), cj.jit(outer)(B, B))
    np.testing.assert_array_equal(2 * B, cj.vmap(cj.grad(lambda x: x * x))(B))
    np.testing.assert_array_equal(2 * B, cj.grad(lambda x: cj.vmap(lambda x: x * x)(x).sum())(B))


# What does not fit

def test_sizes_that_differ_are_listed():
    with pytest.raises(CorejaxValueError, match="the mapped axes differ in size") as caught:
        cj.vmap(lambda x, d: x)(A, {"k": B})
    assert "args[0]: f64[2,3] has size 2 at axis 0; args[1]['k']: f64[3] has size 3 at axis 0" == caught.value.got
    assert "test_api_vmap.py" in caught.value.where
    with pytest.raises(CorejaxValueError, match="axis_size=5"):
        cj.vmap(lambda x: x, axis_size=5)(A)


def test_scalars_have_no_axis():
    with pytest.raises(CorejaxValueError, match=r"vmap: args\[1\] is a scalar.*\n(.*\n)*.*in_axes=None"):
        cj.vmap(lambda x, y: x)(A, 1.0)
    with pytest.raises(ValueError, match=r"kwargs\['y'\] is a scalar"):
        cj.vmap(lambda x, y: x)(A, y=1.0)


def test_axes_out_of_range():
    with pytest.raises(CorejaxIndexError, match=r"args\[0\] has no axis 2") as caught:
        cj.vmap(lambda x: x, in_axes=2)(A)
    assert "f64[2,3]" == caught.value.got
    with pytest.raises(CorejaxIndexError, match=r"out_axes puts the mapped axis of result\['y'\] at 2"):
        cj.vmap(lambda x: {"y": x}, out_axes=2)(B)


def test_what_is_no_array_can_not_be_mapped():
    with pytest.raises(CorejaxTypeError, match=r"vmap: args\[0\]\[1\] is a str, not an array"):
        cj.vmap(lambda x: x)((A, "text"))
    with pytest.raises(CorejaxTypeError, match="vmap: result is a str, not an array"):
        cj.vmap(lambda x: "text")(A)


@pytest.mark.parametrize(("in_axes", "match"), [
    ("0", "in_axes must be an axis"), (1.5, "in_axes must be an axis"), ((0, "x"), r"in_axes\[1\] must be an axis"),
    ({"a": 0}, "in_axes must have one entry for each positional argument"), (True, "in_axes must be an axis"),
])
def test_in_axes_are_ints_and_none(in_axes, match):
    with pytest.raises(CorejaxTypeError, match=match):
        cj.vmap(lambda x, y: x, in_axes=in_axes)


def test_in_axes_must_fit_the_arguments():
    with pytest.raises(CorejaxValueError, match="in_axes must have one entry") as caught:
        cj.vmap(lambda x, y: x, in_axes=(0, 0))(A)
    assert "2 entries in in_axes, 1 positional arguments" == caught.value.got
    with pytest.raises(CorejaxValueError, match=r"in_axes doesn't fit args, at args\[0\]\['b'\]"):
        cj.vmap(lambda d: d, in_axes=({"a": 0, "b": (0, 0)},))({"a": A, "b": [A, A]})


def test_out_axes_must_fit_the_result():
    with pytest.raises(CorejaxValueError, match=r"out_axes doesn't fit result, at result\[1\]"):
        cj.vmap(lambda x: (x, [x]), out_axes=(0, (0,)))(A)
    with pytest.raises(CorejaxValueError, match=r"out_axes is None for result\[0\]"):
        cj.vmap(lambda x: (x, 1.0), out_axes=None)(A)
    with pytest.raises(CorejaxTypeError, match="out_axes must be an axis"):
        cj.vmap(lambda x: x, out_axes="x")


def test_nothing_mapped_needs_a_size():
    with pytest.raises(CorejaxValueError, match="no argument is mapped"):
        cj.vmap(lambda x: x, in_axes=None)(A)
    with pytest.raises(CorejaxValueError, match="no argument is mapped"):
        cj.vmap(lambda: 1.0)()
