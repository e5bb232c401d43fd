# Written by `python -m corejax stubs`: don't edit it.

"""`corejax.checkify`: checks that programs make while they run, as values that can be asked afterwards.

>>> from corejax import checkify
>>> def f(x):
...     checkify.check(x > 0, "x must be positive")
...     return x
>>> err, y = checkify.checkify(f)(-1.0)
>>> err.get()
'x must be positive (`check` failed)'
"""

from corejax.core import Array, ArrayLike
from corejax_checkify import BatchedError as BatchedError, CheckError as CheckError, DivisionByZeroError as DivisionByZeroError, Error as Error, ErrorCategory as ErrorCategory, FailedCheckError as FailedCheckError, JaxRuntimeError as JaxRuntimeError, NaNError as NaNError, OOBError as OOBError, all_checks as all_checks, automatic_checks as automatic_checks, check as check, check_error as check_error, checkify as checkify, debug_check as debug_check, div_checks as div_checks, float_checks as float_checks, index_checks as index_checks, init_error as init_error, nan_checks as nan_checks, user_checks as user_checks
from corejax_checkify._sites import Sites

def check_p(code: ArrayLike, /, *values: ArrayLike, sites: Sites, debug: bool = False) -> list[Array]:
    """`check(code, *values, sites=..., debug=False)`: `code` is 0, or the number of the site whose check has failed.

    `values` are what the sites report, in the order of their types. With `debug`, nothing happens where it isn't
    functionalized by `checkify`.

    >>> sample = next(check_p.primitive.samples(np.random.default_rng(0)))
    >>> check_p.primitive.bind(*sample.args, **sample.params)
    []
    """
