"""Indexing."""

from __future__ import annotations

from .case import Group

X = "x = cj.device_put(np.ones((2, 3)))\n"

indexing = Group("Indexing")


def add(name: str, code: str, error: type[Exception], *words: str, jax: str | None = "") -> None:
    indexing.add(name, X + code, error, *words, jax=jax and X + jax)


add("too many indices", "x[0, 0, 0]", IndexError, "3", "2")
add("a float as index", "x[0.5]", TypeError, "float", "0.5")
add("an array of floats as index", "x[np.array([0.0, 1.0])]", TypeError, "f64[2]")
add("text as index", "x['a']", TypeError, "str")
add("a static index past the end", "x[2]", IndexError, "2", "axis 0")
add("a static index past the end of an inner axis", "x[0, -4]", IndexError, "-4", "axis 1")
add("an index array with an entry past the end", "x[np.array([0, 5])]", IndexError, "5", "axis 0")
add("two ellipses", "x[..., 0, ...]", IndexError, "2")
add("a mask of another shape", "x[np.array([True, False, True])]", IndexError, "(3,)", "(2,)")
add("index arrays that don't broadcast", "x[np.array([0, 1]), np.array([0, 1, 2])]", IndexError, "(2,)", "(3,)")
add("a slice with a step of zero", "x[::0]", ValueError, "step")
add("a slice with a float bound", "x[0.5:]", TypeError, "0.5")
add("an update that doesn't broadcast", "x.at[0].set(np.ones(4))", TypeError, "f64[4]", "(3,)")
add("an update past the end", "x.at[7].set(0.0)", IndexError, "7")
add("an update by an unknown method", "x.at[0].sett(0.0)", AttributeError, "sett", "set")
add("an update without an index", "x.at.set(0.0)", AttributeError, "x.at[")
add("assigning to an indexed part", "x.at[0] = 1.0", TypeError, ".set(value)")
add("an unknown option of an update", "x.at[0].set(0.0, uniq_indices=True)", TypeError, "uniq_indices",
    "'unique_indices'")
add("a list of lists that isn't an array", "x[[[0], [1, 2]]]", TypeError, "list")
add("a computed index into an empty axis", "cj.jit(lambda i: x[:0][i])(1)", IndexError, "empty", "fill", jax=None)
add("a negative index where none wraps", "x.at[-1].get(wrap_negative_indices=False)", IndexError, "-1", "0 to 1",
    jax=None)
add("text for a flag", "x.at[0].set(0.0, unique_indices='yes')", TypeError, "unique_indices", "'yes'", "True or False")
add("an unknown mode", "x.at[0].set(0.0, mode='wrap around')", ValueError, "wrap around")

GROUPS = (indexing,)
