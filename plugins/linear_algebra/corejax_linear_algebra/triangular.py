"""Systems of equations with triangular matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from corejax import lax
from corejax.core import Array, ArrayLike, ShapedArray, aval_of, dtypes, to_dim
from corejax.plugin import Sample, define, hookimpl, itself, partials, shaping
from corejax_linear_algebra import _lapack
from corejax_linear_algebra._matrices import (
    INEXACT,
    all_weak,
    batched_first,
    check_square,
    conjugate,
    is_complex,
    lower_part,
    matrices,
    mismatch,
    product,
    swapped,
    typed,
    upper_part,
)

__all__ = ["triangular_solve"]

#: The types that are computed with: those of LAPACK, and narrow ones, which the compiler itself solves for.
_ACCEPTED = (*INEXACT, np.dtype(np.float16), dtypes.bfloat16)


class TriangularSolve:
    """`triangular_solve(a, b, *, left_side=False, lower=False, ...)`: x with op(a) x = b, or x op(a) = b.

    The equation is op(a) x = b if `left_side`. Of `a`, the triangle that `lower` says is read; with `unit_diagonal`,
    its diagonal counts as ones. op transposes if `transpose_a`, and conjugates if `conjugate_a`. `b` may be a vector.

    >>> a = np.array([[2.0, 0.0], [1.0, 4.0]])
    >>> lax.linalg.triangular_solve(a, np.array([2.0, 9.0]), left_side=True, lower=True).tolist()
    [1.0, 2.0]
    """

    name = "triangular_solve"
    operands = ("a", "b")
    not_linear_in = (0,)

    def function(self, bind: Callable[..., Any]) -> Any:
        def triangular_solve(a: ArrayLike, b: ArrayLike, *, left_side: bool = False, lower: bool = False,
                             transpose_a: bool = False, conjugate_a: bool = False,
                             unit_diagonal: bool = False) -> Array:
            flags = {"left_side": left_side, "lower": lower, "transpose_a": transpose_a, "conjugate_a": conjugate_a,
                     "unit_diagonal": unit_diagonal}
            for name, flag in flags.items():
                if flag is not True and flag is not False:
                    flags[name] = shaping.as_flag("triangular_solve", name, flag)
            a_aval, b_aval = aval_of(a), aval_of(b)
            flags["conjugate_a"] = flags["conjugate_a"] and is_complex(a_aval)
            if b_aval.ndim != a_aval.ndim - 1:
                return bind(a, b, **flags)  # type: ignore[no-any-return]
            along = b_aval.ndim if flags["left_side"] else b_aval.ndim - 1
            out = bind(a, lax.expand_dims(b, (along,)), **flags)
            return lax.squeeze(out, (along,))  # type: ignore[no-any-return]
        return triangular_solve

    @hookimpl
    def abstract_eval(self, avals: Any, *, left_side: bool = False, lower: bool = False, transpose_a: bool = False,
                      conjugate_a: bool = False, unit_diagonal: bool = False) -> ShapedArray:
        a, b = avals
        matrices(self.name, avals, (2, 2), _ACCEPTED)
        check_square(self.name, a, "the first operand")
        common = -2 if left_side else -1
        if a.shape[-1] != b.shape[common]:
            equation, what = ("op(a) x = b", "rows") if left_side else ("x op(a) = b", "columns")
            raise mismatch(self.name, f"the operands don't fit together in {equation}", [a, b],
                           f"as many {what} of b as a has: {a.shape[-1]}",
                           "a vector b is taken as it is; left_side says which of the two equations is solved")
        return typed(b, b.shape, b.dtype, all_weak(avals))

    jvp = partials(lambda a_dot, out, a, b, **params: _by_matrix(a_dot, out, a, b, **params), itself)

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, transpose_a: bool, **others: bool) -> Any:
        return [None, triangular_solve.primitive.bind(args[0], cotangents, transpose_a=not transpose_a, **others)]

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, **params: bool) -> Any:
        if dims[0] is not None:
            return triangular_solve.primitive.bind(*batched_first(axis, args, dims), **params), 0
        # one matrix: the batch becomes further columns of b, or further rows
        at = aval_of(args[1]).ndim - (1 if params["left_side"] else 2)
        b = to_dim(args[1], dims[1], at, axis.size)
        merged = (*b.shape[:at - 1], b.shape[at - 1] * b.shape[at], *b.shape[at + 1:])
        out = triangular_solve.primitive.bind(args[0], lax.reshape(b, merged), **params)
        return lax.reshape(out, b.shape), at

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, left_side: bool, lower: bool, transpose_a: bool,
                        conjugate_a: bool, unit_diagonal: bool) -> Any:
        (a, b), (a_aval, b_aval) = args, ctx.avals_in
        if conjugate_a and not transpose_a:
            a, conjugate_a = ctx.lower(conjugate, a), False
        if ctx.platform == "cpu" and a_aval.dtype in INEXACT:
            choices = {"side": "L" if left_side else "R", "uplo": "L" if lower else "U",
                       "trans_x": ("C" if conjugate_a else "T") if transpose_a else "N",
                       "diag": "U" if unit_diagonal else "N"}
            return _lapack.call(ctx, "trsm", [a, b], [a_aval, b_aval], [b_aval], {1: 0},
                                **{name: _lapack.letter(choice) for name, choice in choices.items()})[0]
        op = ("ADJOINT" if conjugate_a else "TRANSPOSE") if transpose_a else "NO_TRANSPOSE"
        flags = {"left_side": left_side, "lower": lower, "unit_diagonal": unit_diagonal}
        return ctx.op("stablehlo.triangular_solve", [a, b], {
            "transpose_a": ctx.attribute(f"#stablehlo<transpose {op}>"),
            **{name: ctx.attribute("true" if flag else "false") for name, flag in flags.items()}})

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        names = ("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal")

        def params(word: str) -> dict[str, bool]:
            return {name: mark == "1" for name, mark in zip(names, word, strict=True)}

        def operands(*shapes: tuple[int, ...], imaginary: bool = False) -> list[Any]:
            found = [rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if imaginary else 0.0)
                     for shape in shapes]
            return [found[0] + 3.0 * np.eye(shapes[0][-1]), *found[1:]]

        apart: dict[str, Any] = {"ulps": 1e3, "atol": 1e-7, "exempt": {
            "extreme numbers agree": "products of large numbers cancel to what rounding left of them",
            "nans and infinities agree": "blocks of a matrix are multiplied, so that a NaN reaches more than its rows",
            "rows of a map do not touch each other": "blocks are multiplied"}}
        a, b = operands((3, 3), (3, 2))
        yield Sample([a, b], params("11000"), results=np.linalg.solve(np.tril(a), b), **apart)
        for word, shapes in [("00100", ((2, 2), (3, 2))), ("10001", ((2, 2, 2), (2, 2, 3))),
                             ("11010", ((2, 2), (2, 1)))]:
            yield Sample(operands(*shapes), params(word), **apart)
        for word in ("01111", "10010"):
            yield Sample(operands((2, 2), (2, 2), imaginary=True), params(word), **apart)
        yield Sample([np.ones((0, 0)), np.ones((0, 2))], params("11000"))
        yield Sample([np.ones((2, 3)), np.ones((2, 3))], params("11000"), error=ValueError)
        yield Sample([np.ones((3, 3)), np.ones((2, 2))], params("11000"), error=ValueError)
        yield Sample([np.ones((2, 2), int), np.ones((2, 2), int)], params("11000"), error=TypeError)
        yield Sample([np.ones((3, 2, 2)), np.ones((2, 2))], params("11000"), error=TypeError)


def _by_matrix(a_dot: Any, out: Any, a: Any, b: Any, *, left_side: bool, lower: bool, transpose_a: bool,
               conjugate_a: bool, unit_diagonal: bool) -> Any:
    """-op(a)^-1 op(a_dot) x, or -x op(a_dot) op(a)^-1: the smaller product first."""
    a_dot = lower_part(a_dot, -int(unit_diagonal)) if lower else upper_part(a_dot, int(unit_diagonal))
    a_dot = -(swapped(a_dot) if transpose_a else a_dot)
    a_dot = conjugate(a_dot) if conjugate_a else a_dot

    def solved(right: Any) -> Any:
        return triangular_solve.primitive.bind(a, right, left_side=left_side, lower=lower, transpose_a=transpose_a,
                                               conjugate_a=conjugate_a, unit_diagonal=unit_diagonal)
    rows, columns = out.shape[-2:]
    if left_side:
        return solved(product(a_dot, out)) if rows > columns else product(solved(a_dot), out)
    return solved(product(out, a_dot)) if rows < columns else product(out, solved(a_dot))


triangular_solve: Any = define(TriangularSolve())
