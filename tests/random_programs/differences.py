"""Where a program may give something else than jax gives, on purpose, and why."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np

import corejax as cj
from corejax.core import Zero, instantiate
from corejax.errors import CorejaxError
from corejax_control_flow import custom_derivatives

from .comparing import Failure, Refused
from .plain import Uncompiled


@dataclass(frozen=True)
class Known:
    """Failures of this kind beside this oracle that are recognized here are not failures.

    Unless corejax, run without compiling and step by step, gives something else: then it contradicts itself.
    """

    reason: str
    oracle: str
    kinds: tuple[str, ...]
    recognized: Callable[[Failure], bool]


def nan_of_a_zero_tangent(failure: Failure) -> bool:
    """Only jax has a nan, and there is a rule of a user's."""
    got, wanted = failure.what.split("\n  wanted ")
    return "custom_jvp" in failure.program.text and "nan" in wanted and wanted.count("nan") > got.count("nan")


def nan_of_a_zero_tangent_in_a_program(failure: Failure) -> bool:
    """The same, where only the compiled program has a nan."""
    got, wanted = failure.what.split("\n  wanted ")
    return "custom_jvp" in failure.program.text and got.count("nan") > wanted.count("nan")


def product_with_a_boolean(failure: Failure) -> bool:
    """A number that was a boolean, times an infinity or a nan, is zero in a compiled program."""
    got, wanted = failure.what.split("\n  wanted ")
    converts = re.search(r"convert_element_type\([bm]", failure.program.text)
    return converts is not None and wanted.count("nan") > got.count("nan")


def at_an_infinity(failure: Failure) -> bool:
    """A derivative where an operand is infinite, of functions whose formulas have infinities in them there."""
    named = re.search(r"logaddexp2?\(|cumlogsumexp\(|digamma\(", failure.program.text)
    return named is not None and any([np.isinf(np.asarray(x)).any() for x in failure.program.inputs.values()
                                      if np.asarray(x).dtype.kind in "fc"])


def index_of_searchsorted(failure: Failure) -> bool:
    return "searchsorted(" in failure.program.text and re.search(
        r"got int64.*\n.*wanted int32", failure.what, re.DOTALL) is not None


def too_large_for_jax(failure: Failure) -> bool:
    return "OverflowError: An overflow was encountered while parsing an argument to a jitted" in failure.what


CONSTANT_COTANGENT = re.compile(r"(1\.0|1\.0\)|s[0-9]+), None$", re.MULTILINE)
DERIVATIVE = re.compile(r"api\.(grad|value_and_grad|jvp|vjp|linearize)\(|custom_jvp|custom_vjp")


def constant_cotangent(failure: Failure) -> bool:
    return CONSTANT_COTANGENT.search(failure.program.text) is not None


def weak_by_the_rule(failure: Failure) -> bool:
    """Are the results of the outermost derivative weak where the argument, or the output, is?"""
    program, got = failure.program, failure.got
    outermost = next((name for name in program.transformations if name != "jit"), None)
    inner = program.transformations[1:] or DERIVATIVE.search(program.text)
    if isinstance(got, Refused) or outermost in (None, "vmap"):
        return bool(inner)
    weak = [leaf.weak for leaf in got]
    arguments = [type(program.inputs[program.slots[k]]) is float for k in program.argnums]
    if outermost in ("grad", "vjp"):
        return weak[-len(arguments):] == arguments
    return weak[:len(weak) // 2] == weak[len(weak) // 2:]


def singular_twice(failure: Failure) -> bool:
    """Derivatives of derivatives, and something infinite or nan."""
    names = [*failure.program.transformations, *DERIVATIVE.findall(failure.program.text)]
    derivatives = [name for name in names if name not in ("jit", "vmap")]
    return not failure.program.ordinary and len(derivatives) > 1 and ("nan" in failure.what or "inf" in failure.what)


REFUSAL = "is differentiated with respect to a value that it closes over"
results_that_depend = custom_derivatives._depend  # as it is before tests plant faults


def depends_on_a_closed_over_value(failure: Failure) -> bool:
    """Refused for a derivative that no rule gives: if that is nan, are there more nans than if it is zero?"""
    return REFUSAL in failure.what and nans(failure, np.nan) > nans(failure, 0.0)


def depends_where_nothing_uses_it(failure: Failure) -> bool:
    """Refused, without compiling, for a derivative that no rule gives, though what is returned doesn't depend on it."""
    return REFUSAL in failure.what and nans(failure, np.nan) == nans(failure, 0.0)


def depends_on_one_in_another_branch(failure: Failure) -> bool:
    """Refused for such a derivative where the program is staged alone, so in a branch that isn't taken."""
    if REFUSAL not in failure.what or not re.search(r"lax\.(cond|switch|while_loop|fori_loop)\(", failure.program.text):
        return False
    try:
        failure.program.run(Uncompiled(), cj.lax, cj.lax.copy)
    except CorejaxError:
        return False
    return True


def nans(failure: Failure, derivative: float) -> int:
    """How many results are nan if functions have this derivative by each value that they close over."""
    def with_derivative(dots: Any, primals: Any, tangents: Any, closed: Any, call: Any, jaxpr: Any) -> list[Any]:
        flags = (*closed, *[False] * (len(primals) - len(closed)))
        lost = [cj.lax.real(t) if t.dtype.kind == "c" else t for t in tangents[:len(closed)] if type(t) is not Zero]
        total = sum([cj.lax.convert_element_type(t, float).sum() for t in lost]) * derivative
        return [instantiate(dot) + cj.lax.full(dot.aval.shape, 1, dot.aval.dtype) * cj.lax.convert_element_type(
            total, dot.aval.dtype) if depends else dot for dot, depends in zip(
            dots, results_that_depend(call, jaxpr, primals, flags), strict=True)]

    inputs = {key: finite(x) for key, x in failure.program.inputs.items()}
    with mock.patch.object(custom_derivatives, "_without_rule", with_derivative):
        cj.clear_caches()
        try:
            return sum([int(np.isnan(np.asarray(x)).sum()) for x in cj.tree.leaves(
                failure.program.run(cj, cj.lax, cj.lax.copy, inputs)) if x.dtype.kind in "fc" and x.dtype != cj.float0])
        finally:
            cj.clear_caches()


class WithoutRules:
    """A library whose custom_jvp leaves functions as they are."""

    def __init__(self, api: Any) -> None:
        self.api = api

    def __getattr__(self, name: str) -> Any:
        return getattr(self.api, name)

    @staticmethod
    def custom_jvp(fun: Callable[..., Any]) -> Callable[..., Any]:
        def plain(*args: Any) -> Any:
            return fun(*args)
        plain.defjvp = plain.defjvps = lambda *rules: None  # type: ignore[attr-defined]
        return plain


def rule_of_another_function(failure: Failure) -> bool:
    """A rule that isn't the function's derivative, differentiated: without such rules, both give the same."""
    names = [*failure.program.transformations, *DERIVATIVE.findall(failure.program.text)]
    if "custom_jvp" not in failure.program.text or len([name for name in names if name not in ("jit", "vmap")]) < 3:
        return False
    import jax
    ours, theirs = [[np.asarray(x) for x in leaves(failure.program.run(WithoutRules(api), api.lax, put))]
                    for api, put, leaves in ((cj, cj.lax.copy, cj.tree.leaves), (jax, jax.device_put, jax.tree.leaves))]
    return all([x.dtype == y.dtype and (x.dtype.kind not in "fc" or np.allclose(x, y, 1e-5, 1e-8, equal_nan=True))
                for x, y in zip(ours, theirs, strict=True)])


def finite(x: Any) -> Any:
    """An input of the same type without infinities and nans."""
    if type(x) in (int, float):
        return x if type(x) is int or np.isfinite(x) else 0.5
    return np.where(np.isfinite(x), x, np.asarray(0.5, x.dtype)) if x.dtype.kind in "fc" else x


def part_of_an_infinity(failure: Failure) -> bool:
    """Of a complex number at an infinity or nan, jax knows less."""
    got, wanted = failure.what.split("\n  wanted ")
    return not failure.program.ordinary and "complex" in got and wanted.count("nan") > got.count("nan")


KNOWN: list[Known] = [
    Known("A tangent that is zero because nothing depends on it takes no part in a custom_jvp's rule. jax makes an"
          " array of zeros of it, and that times an infinity is a nan.", "jax", ("value",), nan_of_a_zero_tangent),
    Known("A result of a custom_vjp that vmap doesn't map: jax counts its cotangent once for each element.", "jax",
          ("value",), lambda failure: "custom_vjp" in failure.program.text and failure.maps),
    Known("A cotangent of a user's rule that is a constant isn't linear: how often vmap counts it isn't defined.",
          "jax", ("value",), lambda failure: failure.maps and constant_cotangent(failure)),
    Known("Cotangents are weak where the argument is, tangents where the output is; in jax the path decides.", "jax",
          ("weak",), weak_by_the_rule),
    Known("Second derivatives where the first is infinite: the order of multiplications decides on inf or nan.", "jax",
          ("value",), singular_twice),
    Known("A rule of a custom_jvp returns a tangent that isn't mapped for a result that is: jax fails.", "jax",
          ("accepted", "shape"), lambda failure: "custom_jvp" in failure.program.text and failure.maps),
    Known("prevent_cse may be a flag for each argument; jax fails where a call with such flags is split or is"
          " differentiated twice.", "jax", ("accepted",), lambda failure: ", prevent_cse=(" in failure.program.text),
    Known("A result of vmap that no operand is mapped in keeps its weak type, as under jit; jax loses it.", "jax",
          ("weak",), lambda failure: failure.maps and "got ~" in failure.what),
    Known("A function whose two rules are both None has tangents of zero; jax fails on the zeros that it makes.", "jax",
          ("accepted",), lambda failure: "defjvps(None, None)" in failure.program.text and "Zero[" in failure.what),
    Known("A rule may close over a traced value; where nothing uses its tangent, jax can't compile what it accepted.",
          "jax", ("accepted",), lambda failure: "No constant handler for type" in failure.what),
    Known("A rule that closes over what is differentiated is refused where a result depends on that; by jax always.",
          "jax", ("accepted",), lambda failure: "custom_vjp function with respect to a closed-over" in failure.what),
    Known("A rule may read values of any level around it; jax loses some of them on the way.", "jax", ("accepted",),
          lambda failure: "custom_" in failure.program.text and "UnexpectedTracerError" in failure.what),
    Known("A derivative by a value that a function closes over isn't known; jax takes it for zero.", "jax", ("error",),
          depends_on_a_closed_over_value),
    Known("The same in a branch that isn't taken, which is known only where nothing is staged.", "jax", ("error",),
          depends_on_one_in_another_branch),
    Known("The same beside itself without jit.", "itself", ("error",), depends_on_one_in_another_branch),
    Known("A result that nothing uses isn't in a program; without jit it is computed, and refused for what it depends"
          " on.", "itself", ("accepted",), depends_where_nothing_uses_it),
    Known("A rule that isn't its function's derivative: in the derivative of that, jax may take the function's own.",
          "jax", ("value",), rule_of_another_function),
    Known("uint32 and int32 have int64 in common, as in NumPy, where nothing is narrowed; jax without 64 bits, int32.",
          "jax", ("dtype",), lambda failure: re.search(r"got int64.*\n.*wanted int32", failure.what, re.DOTALL)
          is not None and "uint32" in str(failure.program)),
    Known("Complex functions keep what is known of a part at infinities, as C99 says; jax makes it nan.", "jax",
          ("value",), part_of_an_infinity),
    Known("A ShapeDtypeStruct that is weak stays so; jax forgets it in types of what is lowered and in lax.full_like.",
          "jax", ("weak",), lambda failure: failure.what.startswith(("lower: ", "likes: "))),
    Known("Beside other types, too, as in a program; jax's result_type counts it as strong.", "jax", ("dtype",),
          lambda failure: failure.what.startswith("result_types: ") and any(
              [type(x) in (int, float) for x in failure.program.inputs.values()])),
    Known("searchsorted gives the default integer, as NumPy does; jax, the smallest integers that hold the indices.",
          "jax", ("dtype",), index_of_searchsorted),
    Known("The derivative at an infinity is the limit there; jax gives what its formula makes of it.", "jax",
          ("value",), at_an_infinity),
    Known("A value that a rule closes over is an ndarray; jax fails on constants that it didn't make.", "jax",
          ("accepted",), lambda failure: "non-canonical constant" in failure.what),
    Known("A Python integer that is too large for the default integer has the type of the words that it meets; jax"
          " looks at it before, where a function of jnp is compiled.", "jax", ("accepted",), too_large_for_jax),
    Known("What a rule makes of zero tangents is part of a compiled program, where zero times an infinity is a nan, as"
          " in jax; uncompiled, linearize leaves it out.", "itself", ("value",), nan_of_a_zero_tangent_in_a_program),
    Known("XLA makes a selection of a product with a converted boolean: zero times an infinity is zero.", "itself",
          ("value",), product_with_a_boolean),
]


#: What is wrong and is not mended yet. To be empty.
OPEN: list[Known] = []


def known(failure: Failure, oracle: str) -> list[Known]:
    """The rows that may explain it."""
    rows = [row for row in (*KNOWN, *OPEN) if row.oracle == oracle and failure.kind in row.kinds]
    return [row for row in rows if row.recognized(failure)]
