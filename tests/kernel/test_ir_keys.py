"""The identity of programs and of params."""

from __future__ import annotations

import dataclasses
import enum
import gc
import time
import weakref
from collections import namedtuple
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from toys import IO, add, call, chain, emit, f64, free, mul, record, sin, vec, weak

from corejax.base.avals import ShapedArray
from corejax.core import stage
from corejax.errors import CorejaxTypeError
from corejax.ir import Jaxpr, JaxprEqn, Literal, Var, atom, close, compiled_key, param_key, structural_key
from corejax.plugin import define, hookimpl

NAN = float("nan")
PAYLOAD = np.frombuffer(b"\x01\0\0\0\0\0\xf8\x7f")[0].item()


def literal_program(value: Any, aval: ShapedArray) -> Jaxpr:
    return Jaxpr((), (), [Literal(value, aval)], [])


def test_programs_that_differ_in_variables_only_have_one_key_object() -> None:
    def fun(x: Any, y: Any) -> Any:
        inner = record(lambda z: mul.bind(z, 2.0), f64)
        return add.bind(sin.bind(x), y), *call.bind(y, jaxpr=inner)

    one, two = record(fun, vec, f64), record(fun, vec, f64)
    assert structural_key(one) is structural_key(two)
    assert structural_key(one) is structural_key(one.replace(name="another"))
    assert hash(structural_key(one)) == hash(structural_key(two))


@pytest.mark.parametrize(("one", "two"), [
    (lambda x, y: x, lambda x, y: y),
    (lambda x, y: (x, x), lambda x, y: (x, y)),
    (lambda x, y: add.bind(x, y), lambda x, y: add.bind(y, x)),
    (lambda x, y: add.bind(x, y), lambda x, y: mul.bind(x, y)),
    (lambda x, y: sin.bind(x), lambda x, y: sin.bind(y)),
    (lambda x, y: sin.bind(x), lambda x, y: [sin.bind(x), sin.bind(x)][0]),
    (lambda x, y: mul.bind(x, 0.0), lambda x, y: mul.bind(x, -0.0)),
    (lambda x, y: mul.bind(x, 1.0), lambda x, y: mul.bind(x, np.float64(1.0))),
    (lambda x, y: free.bind(x, n=1), lambda x, y: free.bind(x, n=True)),
    (lambda x, y: free.bind(x, n=1), lambda x, y: free.bind(x, n=1.0)),
    (lambda x, y: free.bind(x, n=1), lambda x, y: free.bind(x, m=1)),
    (lambda x, y: free.bind(x, n=NAN), lambda x, y: free.bind(x, n=PAYLOAD)),
    (lambda x, y: free.bind(x, f=lambda: 1), lambda x, y: free.bind(x, f=lambda: 1)),
    (lambda x, y: free.bind(x, y), lambda x, y: free.bind(x)),
    (lambda x, y: [emit.bind(x, tag="a"), x][1], lambda x, y: [emit.bind(x, tag="b"), x][1]),
])
def test_programs_that_differ_have_different_keys(one: Any, two: Any) -> None:
    assert structural_key(record(one, f64, f64)) != structural_key(record(two, f64, f64))


def test_types_of_variables_and_literals_count() -> None:
    keys = {structural_key(record(lambda x: x, aval)) for aval in (f64, weak, vec, ShapedArray((), "float32"))}
    assert 4 == len(keys)
    keys = {structural_key(literal_program(1, ShapedArray((), dtype, is_weak)))
            for dtype in ("int32", "int64", "uint32", "float32", "bool") for is_weak in (True, False)}
    assert 10 == len(keys)


def test_a_literal_counts_by_its_bits_not_by_its_python_type() -> None:
    keys = {structural_key(literal_program(x, f64)) for x in (1.0, np.float64(1), np.array(1.0), 1, np.float32(1))}
    assert 1 == len(keys)
    nans = [structural_key(literal_program(x, f64)) for x in (NAN, np.nan, np.float64("nan"), PAYLOAD)]
    assert nans[0] is nans[1] is nans[2] and nans[3] is not nans[0]


def test_constvars_and_invars_are_not_the_same() -> None:
    jaxpr = record(lambda x, y: add.bind(x, y), f64, f64)
    assert structural_key(jaxpr) is not structural_key(close(jaxpr, [1.0]).jaxpr)


def test_effects_count() -> None:
    x = Var(f64)
    silent = Jaxpr((), [x], [], [JaxprEqn(emit, [x], [], {"tag": "t"})])
    loud = Jaxpr((), [x], [], [JaxprEqn(emit, [x], [], {"tag": "t"}, frozenset([IO]))])
    assert structural_key(silent) is not structural_key(loud)


def test_keys_die_with_their_jaxprs_even_if_a_param_refers_to_the_jaxpr() -> None:
    def make() -> tuple[Any, Any]:
        holder: list[Jaxpr] = []
        holder.append(record(lambda x: free.bind(x, f=lambda: holder), f64))
        return weakref.ref(holder[0]), weakref.ref(structural_key(holder[0]))

    dead, key = make()
    gc.collect()
    assert dead() is None and key() is None


def test_a_callable_is_held_by_the_key() -> None:
    jaxpr = record(lambda x: free.bind(x, f=lambda: 1), f64)
    function = weakref.ref(jaxpr.eqns[0].params["f"])
    key = structural_key(jaxpr)
    del jaxpr
    gc.collect()
    assert function() is not None
    del key
    gc.collect()
    assert function() is None


class Color(enum.Enum):
    RED = 1


class Mode(enum.IntEnum):
    FAST = 1


class Slow(enum.IntEnum):
    FAST = 1


Pair = namedtuple("Pair", "a b")


@dataclasses.dataclass(frozen=True)
class Spec:
    scale: float
    note: str = dataclasses.field(default="", compare=False)


class Named:
    def __init__(self, name: Any) -> None:
        self.name = name

    def __corejax_key__(self) -> Any:
        return self.name


class Plain:
    pass


class Bound:
    def __init__(self) -> None:
        self.calls = 0

    def method(self) -> None:
        self.calls += 1


plain, bound = Plain(), Bound()


@pytest.mark.parametrize("make", [
    lambda: 1, lambda: -1.5, lambda: NAN, lambda: PAYLOAD, lambda: 1j, lambda: complex(NAN, -0.0), lambda: "x",
    lambda: None, lambda: True, lambda: b"x", lambda: (1, (2.0, NAN)), lambda: np.dtype("float32"), lambda: Color.RED,
    lambda: Mode.FAST, lambda: Pair(1, 2.0), lambda: Spec(NAN), lambda: Named((1, NAN)), lambda: plain, lambda: len,
    lambda: bound.method, lambda: np.float32(1.5), lambda: frozenset([1, 2.0]), lambda: record(lambda x: x, f64),
    lambda: range(3),
])
def test_atoms_of_equal_params_are_equal(make: Any) -> None:
    assert atom(make()) == atom(make())
    assert hash(atom(make())) == hash(atom(make()))


@pytest.mark.parametrize("values", [
    (1, True, 1.0, 1 + 0j, np.float64(1), np.int64(1), np.float32(1), "1", b"1", (1,), Mode.FAST, Slow.FAST, None),
    (0.0, -0.0, 0, False, 0j, -0j, complex(0.0, -0.0)),
    ((0.0,), (-0.0,), (0,), (False,)), (NAN, PAYLOAD, -NAN),
    (np.dtype("float64"), "float64", np.float64, float, np.dtype("float32")),
    ((1, 2), Pair(1, 2), ((1, 2),), (1, (2,)), frozenset([1, 2])),
    (Spec(0.0), Spec(-0.0), Spec(0), Named(0.0), Named(-0.0)),
    (Plain(), Plain(), lambda: 1, lambda: 1, Bound().method, Bound().method),
])
def test_atoms_of_params_that_differ_are_different(values: Any) -> None:
    atoms = [atom(value) for value in values]
    assert all(a != b for i, a in enumerate(atoms) for b in atoms[:i])
    assert len(values) == len(set(atoms))


def test_fields_that_do_not_compare_do_not_count() -> None:
    assert atom(Spec(1.0, "a")) == atom(Spec(1.0, "b"))


@pytest.mark.parametrize(("value", "message"), [
    ([1], r"add: param 'axes': a value of type list is unhashable\n  got:    list: \[1\](.|\n)*make it a tuple$"),
    ({"a": 1}, r"dict is unhashable(.|\n)*make it a tuple of \(name, value\) pairs$"),
    ({1}, r"set is unhashable(.|\n)*make it hashable, or give it __corejax_key__$"),
    ((1, ([],)), "add: param 'axes': a value of type list is unhashable"),
    (np.ones(2), r"add: param 'axes': an array can't be a param\n  got:    ndarray: \[1. 1.\](.|\n)*positional"),
])
def test_a_param_that_cannot_be_a_key_is_named(value: Any, message: str) -> None:
    for params in ({"axes": value}, {"axes": value, "n": 1}):
        with pytest.raises(CorejaxTypeError, match=message):
            param_key(params, "add")


def test_the_order_of_params_does_not_count() -> None:
    assert param_key({"a": 1, "b": 2}) == param_key({"b": 2, "a": 1})
    assert param_key({"a": 1, "b": 2}) != param_key({"a": 2, "b": 1})
    assert () == param_key({})


def test_an_unbound_variable_is_an_error() -> None:
    with pytest.raises(CorejaxTypeError, match="its list of outputs uses `a`, which is not bound"):
        structural_key(Jaxpr((), (), [Var(f64)], []))


@given(st.floats(), st.floats())
def test_floats_are_told_apart_by_their_bits(x: float, y: float) -> None:
    assert (np.float64(x).tobytes() == np.float64(y).tobytes()) == (atom(x) == atom(y))


def test_a_hundred_thousand_equations_have_a_key_in_linear_time() -> None:
    one, two = chain(100_000), chain(100_000)
    start = time.perf_counter()
    assert structural_key(one) is structural_key(two)
    assert time.perf_counter() - start < 10


def test_a_jaxpr_nested_deep_and_used_often_has_a_key() -> None:
    def nest(jaxpr: Jaxpr) -> Jaxpr:
        return record(lambda x: [*call.bind(x, jaxpr=jaxpr), *call.bind(x, jaxpr=jaxpr)], f64)

    def build() -> Jaxpr:
        jaxpr = record(lambda x: [sin.bind(x)], f64)
        for _ in range(40):
            jaxpr = nest(jaxpr.replace(outvars=jaxpr.outvars[:1]))
        return jaxpr

    assert structural_key(build()) is structural_key(build())


class Tagged:
    """The identity, with a param that no lowering reads and one that it does."""

    name = "tagged"

    @hookimpl
    def abstract_eval(self, avals: Any, *, tag: str, power: int) -> Any:
        return avals[0]

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, power: int) -> Any:
        return args[0]


def test_what_no_lowering_reads_is_not_part_of_a_compiled_program() -> None:
    tagged = define(Tagged()).primitive

    def program(tag: str, power: int) -> Jaxpr:
        inner = stage(lambda x: [tagged.bind(x, tag=tag, power=power)], [f64]).jaxpr
        return record(lambda x: call.bind(x, jaxpr=inner), f64)

    assert structural_key(program("a", 1)) is not structural_key(program("b", 1))
    assert compiled_key(program("a", 1)) is compiled_key(program("b", 1))
    assert compiled_key(program("a", 1)) is not compiled_key(program("a", 2))
