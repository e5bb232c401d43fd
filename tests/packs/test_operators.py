"""Python's operators and array methods: NumPy's results, on arrays and on tracers, in both directions."""

from __future__ import annotations

import copy
import enum
import operator
from collections import namedtuple

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.core import aval_of, stage

X = np.array([[1.5, -2.0, 3.25], [-0.5, 4.0, 0.75]])
Y = np.array([0.5, -1.5, 2.0])
I = np.array([[7, -7, 3], [-1, 0, 5]])  # noqa: E741
J = np.array([2, 3, -2])
B = np.array([True, False, True])

ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod]
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
BITWISE = [operator.and_, operator.or_, operator.xor]


def arr(x):
    """The value as an array of corejax."""
    return lax.full((), x) if not np.shape(x) else lax.copy(x)


def same(wanted, got, dtype=True):
    wanted, got = np.asarray(wanted), np.asarray(got)
    assert wanted.shape == got.shape
    if dtype:
        assert wanted.dtype == got.dtype
    np.testing.assert_allclose(got, wanted, rtol=1e-12)


def by_name(function):
    return function.__name__


@pytest.mark.parametrize("op", ARITHMETIC + COMPARISONS, ids=by_name)
@pytest.mark.parametrize(
    ("x", "y"), [(X, X + 1), (X, Y), (Y, X), (X, np.float64(1.5)), (I, J), (X, J), (I, Y), (X[:, :1], Y)],
    ids=["equal", "rows", "rows_reflected", "scalar", "integers", "float_int", "int_float", "columns"])
def test_operators_compute_what_numpys_do(op, x, y):
    with np.errstate(all="ignore"):
        wanted = op(x, y)
    same(wanted, op(arr(x), arr(y)))
    same(wanted, op(arr(x), y))
    same(wanted, op(x, arr(y)))
    same(wanted, cj.jit(op)(x, y))


@pytest.mark.parametrize("op", ARITHMETIC, ids=by_name)
@pytest.mark.parametrize("scalar", [2, 2.5, -3], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "bfloat16"])
def test_python_scalars_keep_the_arrays_dtype_unless_their_kind_is_beyond_it(op, scalar, dtype):
    x = lax.convert_element_type(np.array([1, 5, -3]), dtype)
    got, reflected = op(x, scalar), op(scalar, x)
    inexact = "float64" if isinstance(scalar, float) else "float32" if op is operator.truediv else dtype
    wanted = inexact if dtype == "int32" else dtype
    assert wanted == got.dtype.name == reflected.dtype.name
    tolerance = {"float32": 1e-6, "bfloat16": 0.01}.get(wanted, 1e-12)
    host = np.array([1, 5, -3], "int32" if dtype == "int32" else "float64")
    np.testing.assert_allclose(np.asarray(got).astype(float), op(host, scalar), rtol=tolerance)
    np.testing.assert_allclose(np.asarray(reflected).astype(float), op(scalar, host), rtol=tolerance)


@pytest.mark.parametrize("op", BITWISE, ids=by_name)
def test_bitwise_operators(op):
    same(op(I, J), op(arr(I), arr(J)))
    same(op(B, ~B), op(arr(B), arr(~B)))
    same(op(B, True), op(arr(B), True))
    same(op(I, 3), op(arr(I), 3))
    same(op(3, I), op(3, arr(I)))


def test_shifts():
    same(I << np.array([1, 2, 3]), arr(I) << np.array([1, 2, 3]))
    same(I >> 1, arr(I) >> 1)
    same(np.array([200], np.uint8) >> np.uint8(1), arr(np.array([200], np.uint8)) >> 1)
    same(1 << np.array([1, 2]), 1 << arr(np.array([1, 2])))


def test_unary_operators():
    x, i, b = arr(X), arr(I), arr(B)
    same(-X, -x), same(X, +x), same(np.abs(X), abs(x)), same(np.abs(I), abs(i)), same(~I, ~i), same(~B, ~b)
    same(np.array([3], np.uint8), abs(arr(np.array([3], np.uint8))))


def test_booleans_add_as_or_and_multiply_as_and():
    same(B | ~B, arr(B) + arr(~B))
    same(B & ~B, arr(B) * arr(~B))
    same(B + 1, arr(B) + 1)
    same(B * 2.5, arr(B) * 2.5)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, -1, -2, 0.5, 2.5])
def test_powers(exponent):
    same(np.abs(X) ** exponent, arr(np.abs(X)) ** exponent)


def test_a_static_integer_exponent_is_a_param():
    jaxpr = cj.make_jaxpr(lambda x: x ** 3)(2.0)
    assert ["integer_pow"] == [eqn.primitive.name for eqn in jaxpr.eqns]
    assert {"y": 3} == dict(jaxpr.eqns[0].params)


def test_powers_of_integers_and_reflected_ones():
    same(np.array([9, 1, -8]), arr(np.array([3, 1, -2])) ** np.array([2, 5, 3]))
    same(np.array([9, 1, -8]), cj.jit(operator.pow)(np.array([3, 1, -2]), np.array([2, 5, 3])))
    same(2 ** np.array([1, 2, 10]), 2 ** arr(np.array([1, 2, 10])))
    same(2.0 ** Y, 2.0 ** arr(Y))
    same(np.abs(X) ** Y, arr(np.abs(X)) ** arr(Y))
    same(np.abs(X) ** J, arr(np.abs(X)) ** arr(J))
    with pytest.raises(TypeError, match="integers can't be raised to the power -1"):
        arr(I) ** -1


def test_divmod():
    for x, y in ((X, 1.5), (I, 2), (I, J)):
        for wanted, got in zip(divmod(x, y), divmod(arr(x), y), strict=True):
            same(wanted, got)
    same(divmod(7, np.array([2, -3]))[1], divmod(7, arr(np.array([2, -3])))[1])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "float32", "float64"])
def test_floor_division_and_modulo_round_towards_the_divisors_sign(dtype):
    values = np.array([-7, -6, -1, 0, 1, 6, 7], "int8")
    x = np.abs(values).astype(dtype) if dtype == "uint8" else values.astype(dtype)
    for divisor in (3, 2) if dtype == "uint8" else (3, -3, 2, -2):
        y = np.asarray(divisor, dtype)
        same(x // y, arr(x) // arr(y))
        same(x % y, arr(x) % arr(y))


@pytest.mark.parametrize("operation", [operator.floordiv, operator.mod])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_quotients_and_remainders_are_numpys_with_the_signs_of_zeros(operation, dtype):
    values = np.array([0, 1, 0.5, 2, 3, 7.5, 0.1, 6e4, 1e-4, np.inf, np.nan], dtype)
    values = np.concatenate([values, -values])
    x, y = np.repeat(values, len(values)), np.tile(values, len(values))
    with np.errstate(all="ignore"):
        wanted = operation(x, y)
    compute = [operation, operation, cj.jit(operation), cj.vmap(operation)]  # from the second call on NumPy's own
    for got in [np.asarray(f(arr(x), arr(y))) for f in compute]:
        np.testing.assert_array_equal(wanted, got)
        np.testing.assert_array_equal(np.signbit(wanted[wanted == 0]), np.signbit(got[wanted == 0]))


def test_remainders_have_derivatives_on_either_side_and_at_multiples():
    for x, y, quotient in ((7.5, 2.0, 3.0), (-7.5, 2.0, -4.0), (7.5, -2.0, -4.0), (6.0, 2.0, 3.0), (-6.0, -2.0, 3.0)):
        for transform in (lambda f: f, cj.jit):
            assert (1.0, -quotient) == transform(cj.grad(operator.mod, argnums=(0, 1)))(x, y)
            assert (0.0, 0.0) == transform(cj.grad(operator.floordiv, argnums=(0, 1)))(x, y)


def test_division_by_zero_of_floats_is_infinite():
    with np.errstate(all="ignore"):
        same(np.array([1.0, -1.0, 0.0]) // 0.0, arr(np.array([1.0, -1.0, 0.0])) // 0.0)
    same(np.array([0, 0]), arr(np.array([3, -3])) % 0)


@pytest.mark.parametrize(("x", "y"), [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((2, 3), (3, 4)),
                                      ((5, 2, 3), (3, 4)), ((4, 1, 2, 3), (5, 3, 2))])
def test_matrix_products(x, y):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal(x), rng.standard_normal(y)
    same(a @ b, arr(a) @ arr(b))
    same(a @ b, a @ arr(b))
    same(np.ones(x, int) @ b, arr(np.ones(x, int)) @ arr(b))


def test_unknown_operands_are_left_to_the_other_type():
    class Other:
        def __radd__(self, other):
            return "other"

        def __eq__(self, other):
            return "equal"

    assert "other" == arr(X) + Other()
    assert "equal" == (arr(X) == Other())
    with pytest.raises(TypeError, match="can't be combined"):
        arr(X) + [1.0]
    assert (arr(X) == None) is False  # noqa: E711


def test_shapes_that_do_not_broadcast_are_refused():
    with pytest.raises(TypeError, match=r"(?s)don't fit together.*f64\[2,3\] and f64\[2\]"):
        arr(X) + arr(np.ones(2))


def test_a_wrong_dtype_pair_names_both():
    with pytest.raises(TypeError, match="f16 and bf16|bf16 and f16|f8"):
        arr(np.ones(2, "float8_e4m3fn")) + arr(np.ones(2, "float8_e5m2"))


def test_an_integer_out_of_range_is_refused():
    with pytest.raises(OverflowError, match="300"):
        arr(np.ones(2, np.int8)) + 300


def test_numpy_scalars_are_strong():
    assert "float64" == (arr(np.ones(2, np.float32)) * np.float64(2.0)).dtype.name
    assert "float32" == (arr(np.ones(2, np.float32)) * 2.0).dtype.name


def test_weak_types_stay_weak_only_among_themselves():
    jaxpr = cj.make_jaxpr(lambda x: (x * 2.0, x * np.float64(2.0), x + 1))(1.5)
    assert ["~f64[]", "f64[]", "~f64[]"] == [str(aval) for aval in jaxpr.out_avals]
    assert "~f64[2]" == str((arr(np.ones(2, np.int32)) + 2.5).aval)
    assert "f32[2]" == str((arr(np.ones(2, np.int32)) / 2).aval)


def test_one_equation_for_operands_of_one_type():
    closed = stage(lambda x, y: [x + y], [aval_of(X), aval_of(X)])
    assert 1 == len(closed.eqns)


def test_rounding():
    x = np.array([0.5, 1.5, 2.345, -2.5])
    same(np.round(x), round(arr(x)))
    same(np.round(x, 2), round(arr(x), 2))
    same(np.round(x * 100, -2), round(arr(x * 100), -2))
    same(np.round(np.array([15, 25, 151]), -1), round(arr(np.array([15, 25, 151])), -1))
    same(x, arr(x).round(5))


def test_methods_that_rearrange():
    x = arr(X)
    same(X.T, x.T), same(X.reshape(3, 2), x.reshape(3, 2)), same(X.reshape(-1, 2), x.reshape((-1, 2)))
    same(X.ravel(), x.ravel()), same(X.flatten(), x.flatten()), same(X.transpose(1, 0), x.transpose(1, 0))
    same(X.transpose(), x.transpose()), same(X[None].squeeze(), x[None].squeeze())
    same(X[None].squeeze(0), x[None].squeeze(0))
    same(X.swapaxes(0, 1), x.swapaxes(0, 1))
    cube = np.arange(24.0).reshape(2, 3, 4)
    same(cube.transpose(2, 0, 1), arr(cube).transpose((2, 0, 1))), same(cube.swapaxes(-1, -2), arr(cube).mT)
    same(np.zeros((0, 3)), arr(np.zeros((0, 3))).reshape(-1, 3))


def test_methods_that_compute():
    x, z = arr(X), arr(X + 2j)
    same(X.astype("float32"), x.astype("float32")), same(X.astype(int), x.astype(int))
    same(X.clip(-1, 1), x.clip(-1, 1)), same(X.clip(min=0), x.clip(min=0)), same(X.clip(max=Y), x.clip(max=Y))
    same((X + 2j).real, z.real), same((X + 2j).imag, z.imag), same((X + 2j).conj(), z.conj()), same(X, x.real)
    same(np.zeros_like(X), x.imag), same(X, x.conjugate()), same(X, x.copy())
    same(X.dot(Y), x.dot(Y)), same(np.dot(X, X.T), x.dot(x.T)), same(X * 2, x.dot(2.0))


def test_astype_makes_a_strong_type():
    assert "f64[]" == str(cj.make_jaxpr(lambda x: x.astype(float))(1.0).out_avals[0])


def test_an_array_wins_over_an_ndarray_in_operators():
    assert type(arr(X)) is type(X + arr(X)) is type(X * arr(X))


def test_derivatives_of_operators():
    def f(x, y):
        return (x / y - 2.0 * x ** 2 + y % 1.5 - abs(y) + 3.0 ** y).sum()

    x, y, step = np.array([1.1, 2.3]), np.array([0.7, 1.9]), 1e-6
    for argument, got in enumerate(cj.grad(f, argnums=(0, 1))(x, y)):
        for i in range(2):
            shift = np.eye(2)[i] * step
            up, down = ((x + shift, y), (x - shift, y)) if argument == 0 else ((x, y + shift), (x, y - shift))
            wanted = (float(f(*map(arr, up))) - float(f(*map(arr, down)))) / (2 * step)
            np.testing.assert_allclose(np.asarray(got)[i], wanted, rtol=1e-6)


def test_operators_under_vmap_broadcast_within_each_example():
    x, y = np.arange(6.0).reshape(2, 3), np.arange(2.0)
    same(x * y[:, None], cj.vmap(lambda x, y: x * y)(x, y))
    same(x[:, :, None] + x[:, None, :], cj.vmap(lambda x: x[:, None] + x)(x))


# What is no operand

CONTAINERS = [[1, 2, 3], (1, 2, 3), [], {"a": 1}, [np.ones(2), np.ones(2)], namedtuple("Pair", "x y")(1.0, 2.0)]
INFIX = [*ARITHMETIC, *COMPARISONS, *BITWISE, operator.pow, operator.matmul, divmod, operator.lshift, operator.rshift,
         operator.iadd, operator.imul]


@pytest.mark.parametrize("op", INFIX, ids=by_name)
@pytest.mark.parametrize("y", CONTAINERS, ids=lambda y: f"{type(y).__name__} of {len(y)}")
def test_lists_tuples_and_dictionaries_are_no_operands(op, y):
    x = arr(I) if op in BITWISE else arr(X)
    before = copy.copy(y)
    for left, right in ((x, y), (y, x)):
        with pytest.raises(TypeError, match="can't be combined"):
            op(left, right)
        with pytest.raises(TypeError, match="can't be combined"):
            cj.jit(lambda x, y=y, left=left: op(x, y) if left is not y else op(y, x))(x)
    assert len(before) == len(y)


def test_a_refused_list_is_to_be_converted():
    with pytest.raises(TypeError, match=r"(?s)eq: .* combined with a list.*f64\[3\] and \[1, 2, 3\].*np.asarray"):
        arr(Y) == [1, 2, 3]  # noqa: B015
    with pytest.raises(TypeError, match="to repeat its items use int"):
        [0] * arr(3)


@pytest.mark.parametrize("y", [None, "text", object(), b"1", range(3), {1}], ids=lambda y: type(y).__name__)
def test_what_is_no_array_and_holds_none_is_unequal_and_has_no_arithmetic(y):
    assert (False, True, False) == (arr(Y) == y, arr(Y) != y, y in arr(Y))
    for op in (operator.sub, operator.lt):
        with pytest.raises(TypeError, match="not supported|unsupported"):
            op(arr(Y), y)


def test_a_container_that_computes_with_arrays_is_asked():
    class Vector(tuple):
        def __eq__(self, other):
            return "equal"

        def __radd__(self, other):
            return "added"

        __hash__ = tuple.__hash__

    x, y = arr(Y), Vector([1.0])
    assert ("equal", "added") == (x == y, x + y)
    with pytest.raises(TypeError, match="can't be combined"):
        x * y


def test_containment_compares_elements():
    assert 2.0 in arr(Y) and 3.0 not in arr(Y) and None not in arr(Y)


# Numbers of classes that derive from Python's

class Level(enum.IntEnum):
    HIGH = 2


class Metres(float):
    pass


class Rate(float, enum.Enum):
    LOW = 0.5


@pytest.mark.sample(5)
@pytest.mark.parametrize("y", [Level.HIGH, Metres(1.5), Rate.LOW, type("Count", (int,), {})(3),
                               type("Phase", (complex,), {})(1j)], ids=lambda y: type(y).__name__)
@pytest.mark.parametrize("dtype", ["float32", "int8", "complex64"])
def test_numbers_of_derived_classes_are_pythons_numbers(y, dtype):
    x, plain = lax.convert_element_type(np.array([1, 2, 3]), dtype), complex(y) if isinstance(y, complex) else y + 0
    assert type(plain) in (int, float, complex)
    ops = [operator.add, operator.sub, operator.mul, operator.truediv, operator.pow, operator.eq, operator.ne]
    for op in ops if not isinstance(y, complex) else ops[:4]:
        for wanted, got in ((op(x, plain), op(x, y)), (op(plain, x), op(y, x)),
                            (op(x, plain), cj.jit(op)(x, y)), (op(x, plain), cj.jit(lambda x, op=op: op(x, y))(x))):
            assert wanted.aval is got.aval
            np.testing.assert_allclose(np.asarray(wanted), np.asarray(got), rtol=1e-6)


def test_members_of_an_enumeration_are_data_and_not_part_of_the_program():
    class Step(enum.IntEnum):
        ONE, TWO = 1, 2

    traced = []
    f = cj.jit(lambda x, n: traced.append(n.aval) or x * n)
    assert [3.0, 6.0, 3.0] == [float(f(3.0, n)) for n in (Step.ONE, Step.TWO, 1)]
    assert ["~i64[]"] == [str(aval) for aval in traced]
    assert (True, 12.0) == (cj.grad(lambda x: x**3)(Metres(2.0)).weak_type, cj.grad(lambda x: x**3)(Metres(2.0)))
    assert divmod(arr(7), Step.TWO) == (3, 1) and lax.full((1,), Step.TWO).weak_type
    assert not (arr(1.0) * np.float64(2.0)).weak_type


@pytest.mark.parametrize("op", COMPARISONS, ids=by_name)
@pytest.mark.parametrize("number", [-1, 0, 255, 256, 300, -2 ** 70, 2 ** 70])
def test_comparisons_with_integers_out_of_range_have_answers(op, number):
    x = np.array([0, 2, 255], np.uint8)
    wanted, reflected = [op(int(n), number) for n in x], [op(number, int(n)) for n in x]
    for wrapped in (lambda f: f, cj.jit, cj.vmap):
        assert wanted == wrapped(lambda x: op(x, number))(arr(x)).tolist()
        assert reflected == wrapped(lambda x: op(number, x))(arr(x)).tolist()


def test_a_bound_that_nothing_can_be_beyond_clips_nothing():
    x = arr(np.array([0, 2, 255], np.uint8))
    assert ([0, 2, 2], [1, 2, 255]) == (x.clip(-1, 2).tolist(), cj.jit(lambda x: x.clip(1, 300))(x).tolist())
    with pytest.raises(OverflowError, match="300 doesn't fit"):
        x.clip(300)


def test_a_full_array_of_booleans_is_strong():
    assert ["bool[2]", "~i64[2]"] == [str(lax.full((2,), value).aval) for value in (True, 1)]


def test_the_conjugate_of_a_real_number_is_complex():
    assert ("c64[]", 2 + 0j) == (str(lax.conj(np.float32(2)).aval), lax.conj(np.float32(2)))
    assert 3.0 == cj.grad(lambda x: lax.real(lax.conj(x)) * 3)(2.0)


@pytest.mark.parametrize("name", ["max", "min"])
def test_extremes_of_complex_numbers_are_numpys(name):
    points = [complex(x, y) for x in (0.0, -0.0, 1.0, -1.0, np.nan, np.inf) for y in (0.0, -0.0, 2.0, np.nan, -np.inf)]
    x, y = np.repeat(points, len(points)), np.tile(points, len(points))
    wanted = getattr(np, f"{name}imum")(x, y)
    for function in (getattr(lax, name), cj.jit(getattr(lax, name))):
        np.testing.assert_array_equal(wanted.view(float), np.asarray(function(x, y)).view(float))


@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge])
def test_complex_numbers_are_ordered_by_the_real_parts_and_then_by_the_imaginary_ones(compare) -> None:
    x = np.array([1.0, 1.0 + 1.0j, 2.0 - 1.0j, np.nan, 1.0 + 2.0j])
    for y in (1.0 + 1.0j, 1.0, 1, x[::-1].copy()):
        for call in (compare, cj.jit(compare)):
            np.testing.assert_array_equal(np.asarray(call(lax.add(x, 0.0), y)), compare(x, y))
