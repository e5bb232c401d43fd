"""Objects of other libraries that stand for an array: those with a method `__jax_array__`, which returns it.

Ordinary operands shall not pay for a search for them. So whoever asks for the type or the elements of one raises a
`StandIn`, and the entry to which it was passed calls itself again, with the array in its place. Thus a call asks each
object once, under the trace that is current where the user calls, and the array may be a traced one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from corejax.base.errors import CorejaxTypeError, kind_of
from corejax.base.source import here


class StandIn(CorejaxTypeError):
    """Raised where an array is needed and an object that stands for one is found. Users only see it if no entry got it.

    >>> class Half:
    ...     def __jax_array__(self):
    ...         return 0.5
    >>> x = Half()
    >>> replaced(StandIn(x), (1.0, [x, 2.0])), replaced(StandIn(x), (1.0,)), replaced(TypeError(), (x,))
    ((1.0, [0.5, 2.0]), None, None)
    """

    def __init__(self, value: object) -> None:
        super().__init__(f"{kind_of(value)} stands for an array, but isn't one", got=repr(value)[:80], where=here(),
                         wanted="an array", todo="pass what its method __jax_array__ returns")
        self.value = value


def stands_for_array(value: object) -> bool:
    """Whether an object has the method `__jax_array__`."""
    return callable(getattr(value, "__jax_array__", None)) and not isinstance(value, type)


def array_for(value: Any) -> Any:
    """The array or number that an object stands for, which may be a tracer, or an array of yet another library."""
    found = value.__jax_array__()
    if isinstance(found, (np.ndarray, np.generic, int, float, complex)) or (
            (hasattr(found, "aval") or hasattr(found, "__dlpack__")) and not stands_for_array(found)):
        return found
    raise CorejaxTypeError(f"the method __jax_array__ of {kind_of(value)} doesn't return an array",
                           got=f"{kind_of(found)}: {found!r:.80}", wanted="an array, or a number", where=here(),
                           todo="return the array that the object stands for")


def without_standins(values: Sequence[object]) -> list[Any]:
    """The values, with arrays in place of objects that stand for them."""
    return [array_for(x) if stands_for_array(x) else x for x in values]


def replaced(error: BaseException, given: Any) -> Any:
    """What was given to an entry, with an array in place of the object that `error` is about, if it is a `StandIn`.

    None if it is another error, or the object isn't among what was given, or in lists, tuples and dictionaries there.
    """
    if type(error) is not StandIn or not _holds(given, error.value):
        return None
    return _put(given, error.value, array_for(error.value))


def _holds(given: Any, value: object) -> bool:
    inner = given.values() if type(given) is dict else given if type(given) in (list, tuple) else ()
    return given is value or any([_holds(x, value) for x in inner])


def _put(given: Any, value: object, array: object) -> Any:
    if type(given) is dict:
        return {name: _put(x, value, array) for name, x in given.items()}
    if type(given) in (list, tuple):
        return type(given)([_put(x, value, array) for x in given])
    return array if given is value else given
