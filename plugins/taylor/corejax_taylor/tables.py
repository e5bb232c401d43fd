"""Rules written by hand: where a derived one costs more, or divides by a value that may be zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corejax import lax
from corejax.core import Primitive, dtypes, is_concrete
from corejax.plugin import Zero, families
from corejax_taylor._coefficients import divided, minus, plus, times, total
from corejax_taylor._declarations import OnNodes, composition
from corejax_taylor._derived import by_jvp, composed, linear, product, recurrent
from corejax_taylor._local import LocalTrace
from corejax_taylor._nodes import Application, Constant, Node, Params, Series, WithValue

__all__: list[str] = []


def _quotient(k: int, out: Series, x: Series, y: Series) -> Any:
    """Of x = y q: what the known part of y q leaves over."""
    top = x[k]
    if not y.is_constant:
        top = minus(top, _sum_of_products(y, out, 1, k))
    return top if type(top) is Zero else lax.div(top, y[0])


def _sum_of_products(x: Series, y: Series, first: int, k: int) -> Any:
    """The sum of x_j y_{k-j} for j from `first` to k."""
    terms = []
    for j in range(first, k + 1):
        pair = x[j], y[k - j]
        if Zero not in map(type, pair):
            terms.append(lax.mul(*pair))
    return total(terms, y.aval.tangent)


def _root(k: int, out: Series, x: Series) -> Any:
    """Of x = y^2, where y_k y_0 is there twice."""
    inner = minus(x[k], _inner_square(out, k))
    return inner if type(inner) is Zero else lax.div(inner, times(out[0], 2))


def _inner_square(x: Series, k: int) -> Any:
    """The sum of x_j x_{k-j} without the terms with x_0."""
    def product(j: int) -> Any:
        pair = x[j], x[k - j]
        return Zero(x.aval.tangent) if Zero in map(type, pair) else lax.mul(*pair)
    twice = times(total(map(product, range(1, (k + 1) // 2)), x.aval.tangent), 2)
    return twice if k % 2 else plus(twice, product(k // 2))


def _power(args: Sequence[Any], *, y: int) -> Any:
    """Products, as many as the exponent has bits, which are right at 0 too."""
    (x,) = args
    one = families.weak_scalar(1, x.aval.dtype)
    if y == 0:
        return lax.full_like(x, 1)
    if y < 0:  # of the reciprocal, which neither overflows nor vanishes before the power does
        return _power([lax.div(one, x)], y=-y)
    power = None
    while True:
        if y & 1:
            power = x if power is None else lax.mul(power, x)
        y >>= 1
        if not y:
            return power
        x = lax.mul(x, x)


def _integer_power(local: LocalTrace, primitive: Primitive, operands: Sequence[Node], params: Params) -> Any:
    """Products for the coefficients; the value is the primitive's."""
    return WithValue(
        composed(_power)(local, primitive, operands, params),
        Application(primitive.infer((operands[0].aval,), params), primitive, operands, params))


def _powers(local: LocalTrace, primitive: Primitive, operands: Sequence[Node], params: Params) -> Any:
    """Of x^y with a constant exponent. The jvp rule leads to a power for each order, of which each costs much."""
    x, y = operands
    if type(y) is not Constant:
        return by_jvp(local, primitive, operands, params)
    whole = _whole(y.known[0])
    if whole is None:
        return recurrent(_real_power)(local, primitive, operands, params)
    return WithValue(
        composed(_power)(local, primitive, [x], {"y": whole}),
        Application(primitive.infer((x.aval, y.aval), params), primitive, operands, params))


def _whole(exponent: Any) -> int | None:
    """A known exponent as an integer, if it is a small one."""
    if not is_concrete(exponent) or exponent.aval.shape:
        return None
    number = complex(exponent)
    return int(number.real) if number.imag == 0 and number.real.is_integer() and abs(number.real) <= _MOST else None


def _real_power(k: int, out: Series, x: Series, y: Series) -> Any:
    """Of x y' = a y x', with the sums of x_j y_{k-j} and of j x_j y_{k-j}.

    At x = 0 that is 0 / 0: the coefficient is 0 below the exponent's order, and x_1^k if that is k.
    """
    aval, exponent = out.aval.tangent, y[0]
    plain: Any = Zero(aval)
    counted: Any = Zero(aval)
    for j in range(1, k + 1):
        if type(x[j]) is not Zero and type(out[k - j]) is not Zero:
            term = lax.mul(x[j], out[k - j])
            plain, counted = plus(plain, term), plus(counted, times(term, j))
    if type(plain) is Zero:
        return plain
    top = lax.sub(lax.mul(divided(counted, k), lax.add(exponent, families.weak_scalar(1, aval.dtype))), plain)
    if dtypes.is_complex(aval.dtype):
        return families.spread(lax.div(top, x[0]), out)
    zero, one, order = [families.weak_scalar(n, aval.dtype) for n in (0, 1, k)]
    is_zero = families.spread(lax.eq(x[0], zero), out)
    another = lax.bitwise_and(is_zero, families.spread(lax.ge(exponent, order), out))
    # nothing is divided by 0 where another value is taken: in reverse mode that would be NaN
    divisor = lax.select_n(another, families.spread(x[0], out), families.spread(one, out))
    found = lax.div(families.spread(top, out), divisor)
    limit = zero if type(x[1]) is Zero else lax.integer_pow(x[1], k)
    at_order = lax.bitwise_and(is_zero, families.spread(lax.eq(exponent, order), out))
    found = lax.select_n(another, found, families.spread(zero, out))
    return lax.select_n(at_order, found, families.spread(limit, out))


def _triangular(local: LocalTrace, primitive: Primitive, operands: Sequence[Node], params: Params) -> Any:
    """Of op(a) x = b, or x op(a) = b. The jvp rule solves again with what it has solved for."""
    def step(k: int, out: Series, a: Series, b: Series, **params: Any) -> Any:
        rest = b[k]
        for j in range(1, k + 1):
            if type(a[j]) is not Zero and type(out[k - j]) is not Zero:
                pair = _operated(a[j], **params), out[k - j]
                rest = minus(rest, _matrix_product(*(pair if params["left_side"] else pair[::-1])))
        return rest if type(rest) is Zero else primitive.bind(a[0], rest, **params)
    return recurrent(step)(local, primitive, operands, params)


def _matrix_product(x: Any, y: Any) -> Any:
    """Of matrices, or of as many in each operand."""
    batch = tuple(range(x.aval.ndim - 2))
    return lax.dot_general(x, y, (((x.aval.ndim - 1,), (y.aval.ndim - 2,)), (batch, batch)), precision="highest")


def _operated(a: Any, *, lower: bool, transpose_a: bool, conjugate_a: bool, unit_diagonal: bool, left_side: bool
              ) -> Any:
    """The triangle of a coefficient that is read, transposed and conjugated as params say."""
    shape = a.aval.shape
    rows, columns = [lax.broadcasted_iota("int32", shape, len(shape) - 2 + i) for i in range(2)]
    if not lower:
        rows, columns = columns, rows
    read = lax.gt(rows, columns) if unit_diagonal else lax.ge(rows, columns)
    a = lax.select_n(read, families.weak_scalar(0, a.aval.dtype), a)
    if transpose_a:
        a = lax.transpose(a, (*range(len(shape) - 2), len(shape) - 1, len(shape) - 2))
    return lax.conj(a) if conjugate_a and dtypes.is_complex(a.aval.dtype) else a


#: Exponents up to this size are products, which are right at 0 too.
_MOST = 64

BASIC = {
    "mul": OnNodes(product(frozenset((0, 1)), commutes=True)),
    "square": composition(lambda args: lax.mul(args[0], args[0])),
    "integer_pow": OnNodes(_integer_power),
    "div": OnNodes(recurrent(_quotient)),
    "sqrt": OnNodes(recurrent(_root)),
    "pow": OnNodes(_powers),
    "select_n": OnNodes(linear(None)),
    "convert_element_type": OnNodes(linear((0,))),
}

#: These have derivatives that aren't those of their programs: users say them, or the mathematics.
CONTROL_FLOW = dict.fromkeys(("custom_linear_solve", "custom_root", "linear_call"), OnNodes(by_jvp))

LINEAR_ALGEBRA = {"triangular_solve": OnNodes(_triangular)}

RULES = {"corejax-lax-basic/*:jet": BASIC, "corejax-control-flow/*:jet": CONTROL_FLOW,
         "corejax-linear-algebra/*:jet": LINEAR_ALGEBRA}
