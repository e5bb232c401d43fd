"""Element types with toy primitives: the kernel moves and refuses elements without knowing any primitive."""

from __future__ import annotations

import numpy as np
import pytest

import corejax as cj
from corejax.arrays.array import as_array
from corejax.base.avals import ShapedArray
from corejax.base.dtypes import from_short_name, promote, short_name
from corejax.errors import CorejaxTypeError
from corejax.interpreters.staging import stage
from corejax.ir.parsing import parse_jaxpr
from corejax.kernel.jaxpr import ClosedJaxpr
from corejax.plugin import ElementType, define, elements, hookimpl
from corejax.xla.cache.compile import compile_jaxpr

CLOCK = ElementType("toy_clock", np.uint8, (2,), show=lambda time: f"{time[0]:02}:{time[1]:02}")
clock, hands = define(elements.Wrap("toy_clock_of", CLOCK)), define(elements.Unwrap("toy_hands", CLOCK))
TIMES = np.array([[[1, 30], [2, 0]], [[3, 15], [23, 59]], [[0, 0], [12, 1]]], np.uint8)


class Flip:
    """Reverses an axis, whatever is along it."""

    name = "toy_flip"
    structural = True

    @hookimpl
    def abstract_eval(self, avals, *, along):
        return avals[0]

    @hookimpl
    def impl(self, args, *, along):
        return np.flip(args[0], along)

    @hookimpl
    def vmap(self, axis, args, dims, *, along):
        return flip(args[0], along=along + (dims[0] <= along)), dims[0]

    @hookimpl
    def xla_translation(self, ctx, args, *, along):
        return ctx.op("stablehlo.reverse", args, {"dimensions": ctx.ir.DenseI64ArrayAttr.get([along])})


class Negative:
    """Knows numbers only."""

    name = "toy_negative"

    @hookimpl
    def abstract_eval(self, avals):
        return avals[0]

    @hookimpl
    def impl(self, args):
        return np.negative(args[0])


class Later:
    """A rule for elements of this type: it gets what is stored, in NumPy and in a program."""

    name = "toy_later"
    element_types = ("toy_clock",)

    @hookimpl
    def abstract_eval(self, avals):
        return avals[0]

    @hookimpl
    def impl(self, args):
        assert args[0].dtype == np.uint8
        return (args[0] + np.array([1, 0], np.uint8)) % np.array([24, 60], np.uint8)

    @hookimpl
    def xla_translation(self, ctx, args):
        hour = np.zeros(args[0].type.shape, np.uint8)
        hour[..., 0] = 1
        wrap = np.full_like(hour, 60)
        wrap[..., 0] = 24
        return ctx.op("stablehlo.remainder", [ctx.op("stablehlo.add", [*args, ctx.constant(hour)]), ctx.constant(wrap)])


flip, negative, later = define(Flip()), define(Negative()), define(Later())
X = clock(TIMES)


def compiled(function, *args):
    """What the compiled program gives, with the operands on the device."""
    jaxpr = stage(lambda *xs: [function(*xs)], [x.aval for x in args], "f")
    closed = jaxpr if isinstance(jaxpr, ClosedJaxpr) else ClosedJaxpr(jaxpr, ())
    (out,) = compile_jaxpr(closed)([cj.device_put(x) for x in args])
    return out


RUNS = [lambda f, *args: f(*args), compiled, lambda f, *args: f(*map(cj.device_put, args))]


@pytest.mark.parametrize("run", RUNS, ids=["host", "compiled", "device"])
@pytest.mark.parametrize("along", [0, 1])
def test_what_is_structural_moves_elements(run, along):
    out = run(lambda x: flip(x, along=along), X)
    assert out.aval is X.aval
    np.testing.assert_array_equal(hands(out), np.flip(TIMES, along))


@pytest.mark.parametrize("run", RUNS, ids=["host", "compiled", "device"])
def test_rules_for_a_type_get_what_is_stored(run):
    wanted = TIMES.copy()
    wanted[..., 0] = (wanted[..., 0] + 1) % 24
    np.testing.assert_array_equal(hands(run(later, X)), wanted)


def test_all_others_refuse_them_by_name():
    for x in (X, cj.device_put(X)):
        with pytest.raises(CorejaxTypeError, match="toy_negative .* doesn't take elements of type toy_clock"):
            negative(x)
    with pytest.raises(CorejaxTypeError, match="toy_negative"):
        cj.make_jaxpr(negative)(X)


class Broken(Later):
    name = "toy_broken"

    @hookimpl
    def impl(self, args):
        return args[0][..., 0]


class Made:
    name = "toy_made"

    @hookimpl
    def abstract_eval(self, avals):
        return ShapedArray(avals[0].shape, CLOCK)

    @hookimpl
    def impl(self, args):
        return args[0]


def test_wrong_rules_are_told():
    with pytest.raises(cj.errors.RuleError, match=r"returned u8\[3,2\], wanted u8\[3,2,2\]"):
        define(Broken())(X)
    with pytest.raises(CorejaxTypeError, match="toy_made .* doesn't make elements of type toy_clock"):
        define(Made())(np.zeros(3))


@pytest.mark.parametrize("name, value, problem", [
    ("structural", 1, "must be True or False"), ("element_types", "toy_clock", "must name element types"),
    ("element_types", ["toy_clock"], "must name element types"),
    ("element_types", (CLOCK,), "must name element types")])
def test_wrong_declarations_are_told(name, value, problem):
    plugin = type("Wrong", (Negative,), {"name": "toy_wrong", name: value})()
    with pytest.raises(cj.errors.PluginError, match=problem):
        define(plugin)(np.zeros(3))


def test_types():
    assert str(X.aval) == "toy_clock[3,2]" and X.aval.stored == ShapedArray((3, 2, 2), "uint8")
    assert X.aval.tangent == ShapedArray((3, 2), cj.float0) and not X.weak_type
    plain = ShapedArray((3,), "float32")
    assert plain.stored is plain and ShapedArray((3,), cj.float0).stored == ShapedArray((3,), bool)
    assert short_name(CLOCK.dtype) == "toy_clock" and from_short_name("toy_clock") is CLOCK.dtype
    assert promote((CLOCK.dtype, False), (CLOCK.dtype, False)) == (CLOCK.dtype, False)
    with pytest.raises(CorejaxTypeError, match="elements of type toy_clock aren't numbers"):
        promote((CLOCK.dtype, False), (np.dtype("uint8"), False))


def test_arrays():
    assert "Array([[01:30, 02:00],\n       [03:15, 23:59],\n       [00:00, 12:01]], dtype=toy_clock)" == repr(X)
    rows = ["[01:30 02:00]", "[03:15 23:59]", "[00:00 12:01]"]
    assert rows == [str(x) for x in X] == [str(x) for x in cj.device_put(X)]
    assert repr(as_array(CLOCK.of(TIMES[:, ::-1]), copy=True)) == repr(flip(X, along=1))  # not contiguous
    assert len(X) == 3 and X.nbytes == 12 and X.size == 6
    for wrong in (lambda: np.asarray(X), lambda: X.tolist(), lambda: bool(X), lambda: X.__dlpack__()):
        with pytest.raises(cj.CorejaxError):
            wrong()


def test_programs_print_and_parse_back():
    closed = cj.make_jaxpr(lambda x: later(flip(x, along=0)))(X)
    assert ["lambda ; a:toy_clock[3,2]. let", "b:toy_clock[3,2] = toy_flip[along=0] a",
            "c:toy_clock[3,2] = toy_later b", "in (c,)"] == [line.strip("{ }") for line in str(closed).splitlines()]
    assert str(parse_jaxpr(str(closed))) == str(closed)
