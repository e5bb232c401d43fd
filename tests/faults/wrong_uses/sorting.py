"""Sorting, and the largest elements."""

from __future__ import annotations

from .case import Group

sorts = Group("Sorting")
sorts.add("an axis that doesn't exist", "lax.sort(np.ones((2, 3)), dimension=2)", IndexError, "2", "-2 to 1")
sorts.add("a scalar", "lax.sort(1.0)", IndexError, "scalar", jax="lax.sort(np.float64(1.0))")
sorts.add("no array", "lax.sort(())", TypeError, "at least one array")
sorts.add("more keys than arrays", "lax.sort((np.ones(3), np.ones(3)), num_keys=3)", ValueError, "num_keys=3", "2")
sorts.add("no key", "lax.sort((np.ones(3), np.ones(3)), num_keys=0)", ValueError, "num_keys=0", "from 1 to 2")
sorts.add("several keys of a single array", "lax.sort(np.ones(3), num_keys=2)", ValueError, "num_keys=2",
          "a single array")
sorts.add("a number of keys that isn't an integer", "lax.sort((np.ones(3), np.ones(3)), num_keys=1.5)", TypeError,
          "num_keys", "1.5")
sorts.add("arrays of different shapes", "lax.sort((np.ones(3), np.ones(4)))", TypeError, "f64[3]", "f64[4]")
sorts.add("a list of numbers", "lax.sort([3.0, 1.0])", IndexError, "a list of 2", "one array")
sorts.add("an axis that isn't an integer", "lax.sort(np.ones(3), dimension=0.0)", TypeError, "0.0", "integer")
sorts.add("strings", "lax.sort(np.array(['b', 'a']))", TypeError, "<U1")
sorts.add("text for a flag", "lax.sort(np.ones(3), is_stable='no')", TypeError, "is_stable", "'no'",
          "True or False")
sorts.add("a traced flag", "cj.jit(lambda b: lax.sort(np.ones(3), is_stable=b))(True)", TypeError, "is_stable",
          "bool[]", "True or False")
sorts.add("a traced axis", "cj.jit(lambda d: lax.sort(np.ones((2, 3)), dimension=d))(0)", TypeError, "i64[]")

pairs = Group("Sorting keys and values")
pairs.add("values of another shape", "lax.sort_key_val(np.arange(3), np.ones((3, 1)))", TypeError, "i64[3]",
          "f64[3,1]")
pairs.add("a scalar beside keys", "lax.sort_key_val(np.arange(3), 1.0)", TypeError, "i64[3]", "~f64[]")
pairs.add("an axis that doesn't exist", "lax.sort_key_val(np.arange(3), np.ones(3), 1)", IndexError, "1", "-1 to 0")
pairs.add("scalars", "lax.sort_key_val(1, 2)", IndexError, "~i64[]",
          jax="lax.sort_key_val(np.int64(1), np.int64(2))")
pairs.add("None for values", "lax.sort_key_val(np.arange(3), None)", TypeError, "None")
pairs.add("a list for keys", "lax.sort_key_val([2, 1], np.arange(2))", TypeError, "list")

top = Group("The largest elements")
top.add("more than there are", "lax.top_k(np.ones((2, 3)), 4)", ValueError, "k=4", "from 0 to 3")
top.add("a negative number of them", "lax.top_k(np.ones(3), -1)", ValueError, "k=-1", "from 0 to 3")
top.add("a number of them that isn't an integer", "lax.top_k(np.ones(3), 1.5)", TypeError, "k must be an integer",
        "1.5")
top.add("a number of them that is traced", "cj.jit(lambda x, k: lax.top_k(x, k))(np.ones(3), 2)", TypeError, "i64[]")
top.add("complex numbers", "lax.top_k(np.ones(3, complex), 1)", ValueError, "c128", "real numbers")
top.add("an axis that doesn't exist", "lax.top_k(np.ones(3), 1, axis=1)", IndexError, "1", "-1 to 0")
top.add("of a scalar", "lax.top_k(1.0, 1)", IndexError, "scalar")
top.add("a list for an array", "lax.top_k([1.0, 2.0], 1)", TypeError, "list")

approximate = Group("Approximately the largest elements")
for function in ("approx_max_k", "approx_min_k"):
    name = function.replace("_", " ")
    approximate.add(f"{name} of integers", f"lax.{function}(np.arange(3), 1)", ValueError, "i64[3]", "float", "top_k")
    approximate.add(f"{name}, none of them", f"lax.{function}(np.ones(3), 0)", ValueError, "k=0", "from 1")
    approximate.add(f"{name}, more than there are", f"lax.{function}(np.ones(3), 4)", ValueError, "k=4", "f64[3]")
    approximate.add(f"{name}, more recall than all", f"lax.{function}(np.ones(3), 1, recall_target=1.5)", ValueError,
                    "recall_target=1.5", "at most 1")
    approximate.add(f"{name}, no recall", f"lax.{function}(np.ones(3), 1, recall_target=0.0)", ValueError,
                    "recall_target=0.0", "above 0")
    approximate.add(f"{name} of a part larger than the whole",
                    f"lax.{function}(np.ones(3), 1, reduction_input_size_override=2)", ValueError, "=2", "at least 3")
    approximate.add(f"{name} along an axis that doesn't exist",
                    f"lax.{function}(np.ones(3), 1, reduction_dimension=1)", IndexError, "1", "-1 to 0")

methods = Group("Methods that sort")
methods.add("a way to sort that doesn't exist", "cj.device_put(np.ones(3)).sort(kind='bubble')", TypeError, "'bubble'",
            jax="import jax; jax.numpy.sort(np.ones(3), kind='bubble')")
methods.add("an axis that doesn't exist", "cj.device_put(np.ones(3)).argsort(axis=1)", IndexError, "1",
            jax="import jax; jax.numpy.argsort(np.ones(3), axis=1)")

GROUPS: tuple[Group, ...] = (sorts, pairs, top, approximate, methods)
