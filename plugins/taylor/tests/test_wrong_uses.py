"""Wrong uses of `jet` and `derivatives`: each is an error that says what was passed, and what to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from corejax import lax, taylor
from corejax.errors import CorejaxError

X = np.ones(3)
TREE = {"a": 1.0, "b": X}


def of_tree(d: Any) -> Any:
    return d["a"] * d["b"]


#: Each with words of the message.
WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "no function": (lambda: taylor.jet(3.0, (1.0,), ([1.0],)), "expected a function"),
    "a value in the function's place": (lambda: taylor.jet(lax.sin(1.0), (1.0,), ([1.0],)), "expected a function"),
    "one primal without a tuple": (lambda: taylor.jet(lax.sin, 1.0, ([1.0],)), "primals must be a sequence"),
    "an array of primals": (lambda: taylor.jet(lax.sin, X, ([X],)), "primals must be a sequence"),
    "a dict of primals": (lambda: taylor.jet(lax.sin, {"x": 1.0}, ([1.0],)), "primals must be a sequence"),
    "one series without a tuple": (lambda: taylor.jet(lax.sin, (1.0,), 1.0), "series must be a sequence"),
    "terms without a tuple": (lambda: taylor.jet(lax.sin, (1.0,), (1.0,)), "must be a list of terms"),
    "too few series": (lambda: taylor.jet(lax.add, (1.0, 2.0), ([1.0],)), "series must be a sequence"),
    "too many series": (lambda: taylor.jet(lax.sin, (1.0,), ([1.0], [1.0])), "series must be a sequence"),
    "series of different lengths": (
        lambda: taylor.jet(lax.add, (1.0, 2.0), ([1.0], [1.0, 0.0])), "different lengths"),
    "a term of another shape": (lambda: taylor.jet(lax.sin, (X,), ([np.ones(2)],)), "doesn't fit"),
    "a term of another dtype": (lambda: taylor.jet(lax.sin, (X,), ([X.astype(np.float32)],)), "doesn't fit"),
    "an array of integers for floats": (lambda: taylor.jet(lax.sin, (X,), ([np.ones(3, int)],)), "doesn't fit"),
    "a complex term of a real argument": (lambda: taylor.jet(lax.sin, (1.0,), ([1j],)), "doesn't fit"),
    "a term that is no array": (lambda: taylor.jet(lax.sin, (1.0,), (["one"],)), "not an array"),
    "a term None": (lambda: taylor.jet(lax.sin, (1.0,), ([None],)), "isn't structured like"),
    "a primal that is no array": (lambda: taylor.jet(lax.sin, ("one",), ([1.0],)), "not an array"),
    "an integer that varies": (lambda: taylor.jet(lax.abs, (1,), ([1],)), "is an integer or boolean"),
    "a boolean that varies": (lambda: taylor.jet(lambda x: x, (True,), ([1.0],)), "is an integer or boolean"),
    "integers that vary": (
        lambda: taylor.jet(lambda n: n * 2.0, (np.arange(3),), ([np.ones(3)],)), "is an integer or boolean"),
    "a term with another key": (
        lambda: taylor.jet(of_tree, (TREE,), ([{"a": 1.0, "c": X}],)), "isn't structured like"),
    "a term with too few": (lambda: taylor.jet(of_tree, (TREE,), ([{"a": 1.0}],)), "isn't structured like"),
    "a term that is a leaf": (lambda: taylor.jet(of_tree, (TREE,), ([1.0],)), "isn't structured like"),
    "a tree of terms": (
        lambda: taylor.jet(of_tree, (TREE,), ({"a": [1.0], "b": [X]},)), "must be a list of terms"),
    "a list for a tuple within": (
        lambda: taylor.jet(lambda p: p[0] * p[1], ((1.0, 2.0),), ([[1.0, 0.0]],)), "isn't structured like"),
    "a leaf of a tree that doesn't fit": (
        lambda: taylor.jet(of_tree, (TREE,), ([{"a": 1.0, "b": np.ones(4)}],)), "doesn't fit"),
    "too few arguments for the function": (lambda: taylor.jet(lax.add, (1.0,), ([1.0],)), "add|argument"),
    "a function that returns text": (lambda: taylor.jet(lambda x: "y", (1.0,), ([1.0],)), "not an array"),
    "a value given to NumPy": (
        lambda: taylor.jet(lambda x: np.linalg.det(np.asarray(x)), (np.eye(2),), ([np.eye(2)],)), "would lose"),
    "math of Python": (lambda: taylor.derivatives(lambda x: __import__("math").sin(x), 1.0, 2), "would lose"),
    "derivatives of no function": (lambda: taylor.derivatives(1.0, lax.sin, 2), "expected a function"),
    "a negative order": (lambda: taylor.derivatives(lax.sin, 1.0, -1), "can't be negative"),
    "an order that is a float": (lambda: taylor.derivatives(lax.sin, 1.0, 2.0), "order"),
    "an order that is text": (lambda: taylor.derivatives(lax.sin, 1.0, "2"), "order"),
    "derivatives at an integer": (lambda: taylor.derivatives(lambda x: x * 2.0, 1, 2), "integers have no"),
    "derivatives at text": (lambda: taylor.derivatives(lax.sin, "1", 2), "not an array"),
    "derivatives at a tree": (lambda: taylor.derivatives(lax.sin, {"x": 1.0}, 2), "not an array"),
    "derivatives at two arguments": (lambda: taylor.derivatives(lax.add, (1.0, 2.0), 2), "not an array"),
    "a direction of another shape": (
        lambda: taylor.derivatives(lax.sin, np.ones(2), 2, np.ones(3)), "the direction isn't like x"),
    "a direction of another dtype": (
        lambda: taylor.derivatives(lax.sin, np.ones(2), 2, np.ones(2, "float32")), "the direction isn't like x"),
    "a direction that is text": (lambda: taylor.derivatives(lax.sin, 1.0, 2, "up"), "not an array"),
    "a refusal": (lambda: taylor.derivatives(lambda a: lax.igamma(a, 2.0), 1.0, 3), "igamma_grad_a"),
    "an operand that a linear primitive isn't linear in": (
        lambda: taylor.derivatives(lambda x: lax.igamma_grad_a(x, 2.0), 1.0, 1), "not differentiable"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_use_says_what_was_passed_and_what_to_write(what: str) -> None:
    use, message = WRONG[what]
    with pytest.raises(CorejaxError, match=message) as caught:
        use()
    error: Any = caught.value
    assert None not in (error.got, error.wanted, error.where, error.todo)
