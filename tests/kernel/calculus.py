"""A toy pack for the kernel's own tests: seven primitives and the roles, without entry points.

Each primitive is written in another style on purpose: factors, partials, linearity, rules by hand, decompose.
"""

from __future__ import annotations

import numpy as np

from corejax.core import Linear, ShapedArray
from corejax.plugin import define, factors, hookimpl, partials, provide


def _same_type(avals):
    x, *rest = avals
    assert all(x.matches(y) for y in rest)
    return ShapedArray(x.shape, x.dtype, all(a.weak_type for a in avals))


def _align(axis, args, dims):
    """All operands with the batch axis first; unbatched ones are repeated by NumPy-free means: the role `expand`."""
    from corejax.core import to_dim
    return [to_dim(x, d, 0, axis.size) for x, d in zip(args, dims, strict=True)], 0


class Elementwise:
    """Shared hooks of an elementwise toy."""

    def __init__(self, name, function, hlo):
        self.name, self._function, self._hlo = name, function, hlo

    @hookimpl
    def impl(self, args):
        return self._function(*args)

    @hookimpl
    def abstract_eval(self, avals):
        return _same_type(avals)

    @hookimpl
    def vmap(self, axis, args, dims):
        args, dim = _align(axis, args, dims)
        return HANDLES[self.name](*args), dim

    @hookimpl
    def xla_translation(self, ctx, args):
        return ctx.op(self._hlo, args)


class Sin(Elementwise):
    jvp = factors(lambda out, x: cos(x))


class Cos(Elementwise):
    jvp = partials(lambda x_dot, out, x: neg(mul(x_dot, sin(x))))


class Neg(Elementwise):
    linear = (0,)

    @hookimpl
    def transpose(self, cotangents, args):
        return [neg(cotangents)]


class Mul(Elementwise):
    jvp = factors(lambda out, x, y: y, lambda out, x, y: x)

    @hookimpl
    def transpose(self, cotangents, args):
        x, y = args
        return [mul(cotangents, y), None] if isinstance(x, Linear) else [None, mul(x, cotangents)]


class Add(Elementwise):
    @hookimpl
    def jvp(self, primals, tangents):
        return add(*primals), add(*tangents)

    @hookimpl
    def transpose(self, cotangents, args):
        return [cotangents if isinstance(x, Linear) else None for x in args]


class Sum:
    """sum(x, axis): along one axis."""

    name = "sum"
    linear = (0,)

    @hookimpl
    def impl(self, args, *, axis):
        return args[0].sum(axis)

    @hookimpl
    def abstract_eval(self, avals, *, axis):
        shape = avals[0].shape
        return ShapedArray((*shape[:axis], *shape[axis + 1:]), avals[0].dtype)

    @hookimpl
    def transpose(self, cotangents, args, *, axis):
        return [expand(cotangents, size=args[0].shape[axis], axis=axis)]


class Expand:
    """expand(x, size, axis): repeated along a new axis."""

    name = "expand"
    linear = (0,)

    @hookimpl
    def impl(self, args, *, size, axis):
        return np.repeat(np.expand_dims(args[0], axis), size, axis)

    @hookimpl
    def abstract_eval(self, avals, *, size, axis):
        shape = avals[0].shape
        return ShapedArray((*shape[:axis], size, *shape[axis:]), avals[0].dtype)

    @hookimpl
    def transpose(self, cotangents, args, *, axis):
        return [total(cotangents, axis=axis)]


class Square:
    """square(x) = x * x, by decompose alone."""

    name = "square"

    @hookimpl
    def decompose(self, args):
        return mul(args[0], args[0])


sin = define(Sin("sin", np.sin, "stablehlo.sine"))
cos = define(Cos("cos", np.cos, "stablehlo.cosine"))
neg = define(Neg("neg", np.negative, "stablehlo.negate"))
mul = define(Mul("mul", np.multiply, "stablehlo.multiply"))
add = define(Add("add", np.add, "stablehlo.add"))
total = define(Sum())
expand = define(Expand())
square = define(Square())

HANDLES = {"sin": sin, "cos": cos, "neg": neg, "mul": mul, "add": add}


def _full(aval, value):
    from corejax.core import Array
    return Array.from_host(np.full(aval.shape, value, aval.dtype), aval)


def _move_axis(x, src, dst):
    raise AssertionError("the toys keep batch axes in front")


def calculus():
    """A context in which the kernel's roles are filled by the toys."""
    return provide({
        "accumulate": add, "multiply": mul, "zeros": lambda aval: _full(aval, 0),
        "expand": lambda x, size, axis: expand(x, size=size, axis=axis), "move_axis": _move_axis,
        "operators.add": add, "operators.radd": lambda x, y: add(y, x), "operators.mul": mul,
        "operators.rmul": lambda x, y: mul(y, x), "operators.neg": neg,
    })
