"""Functions of integers that aren't primitives: what the rows of `elementwise` mean."""

# mypy: no-warn-return-any

from __future__ import annotations

from typing import Any

from corejax import lax
from corejax.core import dtypes
from corejax.plugin import operators, refused
from corejax_lax_basic import broadcast_shapes
from corejax_numpy._picking import pick
from corejax_numpy._values import spread_to

__all__ = ["bit_count", "greatest_divisor", "least_multiple", "remainder_of_dividend"]


def _integers(name: str, x: Any) -> None:
    if not dtypes.is_integer(x.aval.dtype):
        raise refused(name, "only integers are supported", got=str(x.aval), wanted="an integer dtype",
                      todo="convert with x.astype(int)")


def remainder_of_dividend(x: Any, y: Any) -> Any:
    """`fmod`: the remainder with the sign of x; 0 for integers and a divisor of 0."""
    return lax.rem(x, pick(y == 0, 1, y)) if dtypes.is_integer(x.aval.dtype) else lax.rem(x, y)



def _size(x: Any) -> Any:
    return x if dtypes.kind(x.aval.dtype) == "u" else lax.abs(x)


def bit_count(x: Any) -> Any:
    """How many bits of the absolute value are 1."""
    if x.aval.dtype == dtypes.bool_:
        return operators.astype(x, "uint8")
    _integers("bitwise_count", x)
    return operators.astype(lax.population_count(_size(x)), "uint8")


def greatest_divisor(x: Any, y: Any) -> Any:
    """The greatest common divisor, by Euclid's algorithm; 0 for two zeros."""
    _integers("gcd", x)
    shape = broadcast_shapes(x.aval.shape, y.aval.shape)
    x, y = spread_to(x, shape), spread_to(y, shape)

    def step(pair: tuple[Any, Any]) -> tuple[Any, Any]:
        a, b = pair
        return pick(b == 0, a, b), pick(b == 0, 0, lax.rem(a, pick(b == 0, 1, b)))
    start = tuple([operators.astype(_size(z), z.aval.dtype) for z in (x, y)])
    # The size of the smallest number is itself, a negative one: what divides it may come out negative.
    return _size(lax.while_loop(lambda pair: operators.any(pair[1] != 0), step, start)[0])


def least_multiple(x: Any, y: Any) -> Any:
    """The least common multiple; 0 if one of them is 0."""
    _integers("lcm", x)
    divisor = greatest_divisor(x, y)
    return _size(x) * pick(divisor == 0, 0, lax.div(_size(y), pick(divisor == 0, 1, divisor)))
