"""`ufunc`: functions of elements as objects, which can also reduce, accumulate and be applied in places.

`frompyfunc` makes one of a function of scalars. Those that NumPy has are rows of `elementwise`.
"""

# mypy: no-warn-return-any
# What users' functions return has no type that a checker knows.

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from typing import Any

from corejax.core import Array, ArrayLike, DTypeLike, check_callable, name_of
from corejax.errors import CorejaxTypeError, CorejaxValueError
from corejax.plugin import public, refused, shaping
from corejax_numpy import _ufunc_methods as methods
from corejax_numpy._arrays import no_out
from corejax_numpy._mapping import over_elements

__all__ = ["frompyfunc", "ufunc"]

Function = Callable[..., Any]


class ufunc:
    """A function of elements: arrays broadcast against each other, and it is applied to their elements.

    `nin` and `nout` are the numbers of its operands and results; `identity` is what it leaves operands unchanged by.
    `call` computes it for whole arrays; without it, `func` is mapped over the elements. `reduce`, `accumulate`, `at`
    and `reduceat` compute the methods of the same names faster than by repeated calls.

    >>> jnp.add.nin, jnp.add.identity, jnp.add.reduce(jnp.arange(4.0)).item()
    (2, 0, 6.0)
    """

    def __init__(self, func: Function, /, nin: int, nout: int, *, name: str | None = None, nargs: int | None = None,
                 identity: Any = None, call: Function | None = None, reduce: Function | None = None,
                 accumulate: Function | None = None, at: Function | None = None,
                 reduceat: Function | None = None) -> None:
        check_callable(func, "ufunc")
        self.nin, self.nout = shaping.as_int("ufunc", "nin", nin), shaping.as_int("ufunc", "nout", nout)
        if self.nin < 1 or self.nout < 1:
            raise refused("ufunc", "a function of elements has operands and results", got=f"nin={nin}, nout={nout}",
                          wanted="at least 1 of each", todo="pass the numbers of operands and results",
                          kind=CorejaxValueError)
        self.nargs = self.nin if nargs is None else nargs
        self.identity = identity
        self._given = func, nin, nout, name, nargs, identity, call, reduce, accumulate, at, reduceat
        self._func, self._call = func, call
        self._reduce, self._accumulate, self._at, self._reduceat = reduce, accumulate, at, reduceat
        self._is_public = False
        self.__name__ = self.__qualname__ = name or name_of(func)
        if call is None:
            self.__doc__ = func.__doc__
        self.__signature__ = _signature(self.nin, self.nout)

    @public
    def __call__(self, *args: ArrayLike, out: None = None, where: None = None) -> Any:
        check_options(self.__name__, out, where)
        if len(args) != self.nin:
            raise refused(self.__name__, f"it takes {self.nin} operand{'s' * (self.nin != 1)}", got=len(args),
                          wanted=self.nin, todo="pass one array for each operand")
        if self._call is not None:
            return self._call(*args)
        return over_elements(self.__name__, self._func, args, self.nout)

    @public
    def reduce(self, a: ArrayLike, axis: int | Sequence[int] | None = 0, dtype: DTypeLike | None = None,
               out: None = None, keepdims: bool = False, initial: ArrayLike | None = None,
               where: ArrayLike | None = None) -> Array:
        """Combine the elements along axes, from the first to the last."""
        self._check_method("reduce", out)
        return methods.reduce(self, self._reduce, a, axis, dtype, keepdims, initial, where)

    @public
    def accumulate(self, a: ArrayLike, axis: int = 0, dtype: DTypeLike | None = None, out: None = None) -> Array:
        """Combine the elements along an axis, and keep all results on the way."""
        self._check_method("accumulate", out)
        return methods.accumulate(self, self._accumulate, a, axis, dtype)

    @public
    def reduceat(self, a: ArrayLike, indices: Any, axis: int = 0, dtype: DTypeLike | None = None,
                 out: None = None) -> Array:
        """Combine the elements from each index up to the next one; that at the index if the next one isn't larger."""
        self._check_method("reduceat", out)
        return methods.reduceat(self, self._reduceat, a, indices, axis, dtype)

    @public
    def at(self, a: ArrayLike, indices: Any, b: ArrayLike | None = None, /, *, inplace: bool = True) -> Array:
        """The array with the function applied to the elements at the indices, and to b; as often as they appear."""
        name = f"{self.__name__}.at"
        if inplace:
            raise refused(name, "arrays are immutable, so it can't change one", got="inplace=True",
                          wanted="inplace=False", todo="pass inplace=False and use the returned array")
        if self.nin > 2 or (b is None) != (self.nin == 1) or self.nout != 1:
            raise refused(name, f"it takes {self.nin} operand{'s' * (self.nin != 1)} and has {self.nout} result"
                          f"{'s' * (self.nout != 1)}", got=f"{2 - (b is None)} arrays", wanted="an array, indices, and "
                          "a second operand if there is one; one result", todo="pass one array for each operand")
        return methods.at(self, self._at, a, indices, b)

    @public
    def outer(self, A: ArrayLike, B: ArrayLike, /) -> Any:
        """The function of each element of A with each of B."""
        if self.nin != 2:
            raise self._needs_two("outer")
        return methods.outer(self, A, B)

    def _check_method(self, method: str, out: object) -> None:
        no_out(f"{self.__name__}.{method}", out)
        if self.nin != 2 or self.nout != 1:
            raise self._needs_two(method)

    def _needs_two(self, method: str) -> Exception:
        return refused(f"{self.__name__}.{method}", "only functions of two operands with one result have it",
                       got=f"{self.nin} operands, {self.nout} results", wanted="two operands, one result",
                       todo="call the function itself", kind=CorejaxValueError)

    def __repr__(self) -> str:
        return f"<ufunc '{self.__name__}'>"

    def __reduce__(self) -> Any:
        """Pickled by name; those that aren't functions of this package by what they were made of."""
        return self.__name__ if self._is_public else (_again, self._given)


def _again(func: Function, nin: int, nout: int, name: str | None, nargs: int | None, identity: Any,
           *ways: Function | None) -> ufunc:
    call, reduce, accumulate, at, reduceat = ways
    return ufunc(func, nin, nout, name=name, nargs=nargs, identity=identity, call=call, reduce=reduce,
                 accumulate=accumulate, at=at, reduceat=reduceat)


@public
def frompyfunc(func: Function, /, nin: int, nout: int, *, identity: Any = None) -> ufunc:
    """A `ufunc` of a function of scalars, which must be one that can be transformed.

    >>> halfway = jnp.frompyfunc(lambda x, y: x + (y - x) / 2, 2, 1)
    >>> halfway(jnp.array([0.0, 1.0]), 4.0).tolist(), halfway.reduce(jnp.array([0.0, 2.0, 4.0])).item()
    ([2.0, 2.5], 2.5)
    """
    return ufunc(func, nin, nout, identity=identity)


def check_options(name: str, out: object, where: object) -> None:
    """Refuse the options of NumPy's ufuncs that arrays which can't be written to don't have."""
    no_out(name, out)
    if where is not None and where is not True:
        raise refused(name, "elements can't be left out of the result", got="where=...", wanted="where=None",
                      todo="choose afterwards: jnp.where(condition, result, x)", kind=CorejaxTypeError)


def _signature(nin: int, nout: int) -> Signature:
    names = ["x"] if nin == 1 else [f"x{i}" for i in range(1, nin + 1)]
    operands = [Parameter(name, Parameter.POSITIONAL_ONLY, annotation="ArrayLike") for name in names]
    options = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation="None")
               for name in ("out", "where")]
    return Signature([*operands, *options], return_annotation="Array" if nout == 1 else "tuple[Array, ...]")
