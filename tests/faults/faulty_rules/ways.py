"""Ways for a value to be wrong where an array is due: each an expression of the right value `v`."""

from __future__ import annotations

#: Values that are no arrays, or arrays of another type.
VALUES: dict[str, str] = {
    "another shape": "np.ones(4)",
    "another rank": "np.ones((3, 1))",
    "another dtype": "np.ones(v.shape, np.float32)",
    "an integer dtype": "np.ones(v.shape, np.int64)",
    "a complex dtype": "np.ones(v.shape, complex)",
    "a Python number": "2.0",
    "None": "None",
    "a list": "[v]",
    "a tuple": "(v,)",
    "a ragged list": "[[1.0], [2.0, 3.0]]",
    "a string": "'v'",
    "an array of objects": "np.array([None, None, None])",
    "an array of strings": "np.array(['nan', 'nan', 'nan'])",
    "an array of dates": "np.array(['NaT'] * 3, 'M8[s]')",
    "a structured array": "np.zeros(3, [('a', 'f8')])",
    "an array of float0": "np.zeros(v.shape, dtypes.float0)",
    "a masked array": "np.ma.masked_array(np.ones(v.shape), True)",
    "a type": "ShapedArray(v.shape, v.dtype)",
    "a generator": "(y for y in [v])",
    "a function": "lambda: v",
    "a dictionary": "{'out': v}",
    "an Ellipsis": "...",
}

#: Values that only look like arrays.
PLACEHOLDERS: dict[str, str] = {
    "a symbolic zero": "Zero(ShapedArray(v.shape, v.dtype))",
    "a Linear": "Linear(ShapedArray(v.shape, v.dtype))",
    "an object with an aval": "Box(ShapedArray(v.shape, v.dtype))",
}

#: Values of the right shape and dtype that Python numbers gave their dtype.
WEAK: dict[str, str] = {"a weak type": "roles.convert(v, v.dtype, True)"}

#: Traced values from elsewhere.
LEAKED: dict[str, str] = {"a stale tracer": "leaked(v)"}

BOX = """\
class Box:
    def __init__(self, aval):
        self.aval, self.shape, self.dtype = aval, aval.shape, aval.dtype
"""

#: Exceptions, each with the class that must arrive.
RAISED: dict[str, tuple[str, str]] = {
    "ValueError": ("raise ValueError('no')", "ValueError"),
    "TypeError": ("raise TypeError('no')", "TypeError"),
    "IndexError": ("[][0]", "IndexError"),
    "KeyError": ("{}['no']", "KeyError"),
    "AttributeError": ("None.no", "AttributeError"),
    "AssertionError": ("assert False", "AssertionError"),
    "RuntimeError": ("raise RuntimeError('cannot enter context')", "RuntimeError"),
    "ZeroDivisionError": ("1 / 0", "ZeroDivisionError"),
    "NotImplementedError": ("raise NotImplementedError('no')", "NotImplementedError"),
    "StopIteration": ("next(iter(()))", "StopIteration"),
    "UnicodeDecodeError": (r"b'\xff'.decode()", "UnicodeDecodeError"),
    "an exception of its own": ("class Mine(Exception): pass\nraise Mine('no')", "Mine"),
    "an error of another primitive": ("lax.add(np.ones(3), np.ones(4))", "CorejaxTypeError"),
}
