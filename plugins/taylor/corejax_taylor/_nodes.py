"""Series that compute themselves: a value along a curve, each of whose coefficients is computed when it is asked for.

The value is x_0 + x_1 t + x_2 t^2 + ...; x_0 is its primal. A coefficient may need lower ones of the same series: that
of exp(x) is (1/k) sum_j j x_j y_{k-j}. So nodes refer to each other in circles. Coefficients are computed in order,
under the trace that is current then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.core import Primitive, ShapedArray, context
from corejax.plugin import Zero
from corejax_taylor._coefficients import as_array, divided, minus, plus, settled, times, total

__all__: list[str] = []

Params = dict[str, Any]


class Node:
    """A series. `aval` is the type of its primal; that of the other coefficients is `aval.tangent`."""

    __slots__ = ("aval", "known")
    aval: ShapedArray
    integrates = False
    """Whether `integral` is exact and costs no more than `coefficient`."""

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval
        self.known: list[Any] = []

    def coefficient(self, k: int) -> Any:
        """The coefficient of t^k; `Zero` if it is known to be zero."""
        known = self.known
        count = len(known)
        while count <= k:
            found = self.compute(count)
            if len(known) == count:  # else it was needed, and so computed, on the way
                known.append(found)
            count = len(known)
        return known[k]

    def compute(self, k: int) -> Any:
        """The coefficient of t^k, while those before it are known."""
        raise NotImplementedError

    def integral(self, k: int) -> Any:
        """The coefficient of t^k, for k > 0, in the integral of the series from 0 to t."""
        return divided(self.coefficient(k - 1), k)

    @property
    def primal(self) -> Any:
        """The coefficient of t^0, as an array."""
        return as_array(self.coefficient(0))


class Given(Node):
    """A series whose coefficients are known."""

    __slots__ = ()

    def __init__(self, aval: ShapedArray, known: Sequence[Any]) -> None:
        self.aval = aval
        self.known = list(known)

    def compute(self, k: int) -> Any:
        raise AssertionError(f"the coefficient of t^{k} isn't known")


class Constant(Node):
    """A value that is the same all along the curve."""

    __slots__ = ()
    integrates = True

    def __init__(self, value: Any) -> None:
        self.aval = value.aval
        self.known = [value]

    def compute(self, k: int) -> Any:
        return Zero(self.aval.tangent)

    def integral(self, k: int) -> Any:
        return self.coefficient(k - 1)


class Vanishing(Node):
    """A series that is zero."""

    __slots__ = ()
    integrates = True

    def compute(self, k: int) -> Any:
        return Zero(self.aval)

    def integral(self, k: int) -> Any:
        return Zero(self.aval)


class Derivative(Node):
    """The derivative of a series by t."""

    __slots__ = ("base",)
    integrates = True

    def __init__(self, base: Node) -> None:
        super().__init__(base.aval.tangent)
        self.base = base

    def compute(self, k: int) -> Any:
        return times(self.base.coefficient(k + 1), k + 1)

    def integral(self, k: int) -> Any:
        return self.base.coefficient(k)


class Component(Node):
    """One of the results of a primitive that has several, which is a node whose coefficients are sequences."""

    __slots__ = ("all", "index")

    def __init__(self, aval: ShapedArray, results: Application, index: int) -> None:
        super().__init__(aval)
        self.all = results
        self.index = index

    @property
    def integrates(self) -> bool:  # type: ignore[override]
        return self.all.integrates

    def compute(self, k: int) -> Any:
        return self.all.coefficient(k)[self.index]

    def integral(self, k: int) -> Any:
        return self.all.integral(k)[self.index] if self.integrates else super().integral(k)


class Application(Node):
    """A primitive applied to series. If it has several results, `aval` is a tuple, and coefficients are sequences."""

    __slots__ = ("operands", "params", "primitive")
    aval: Any

    def __init__(self, aval: Any, primitive: Primitive, operands: Sequence[Node], params: Params) -> None:
        super().__init__(aval)
        self.primitive, self.operands, self.params = primitive, operands, params

    def integral(self, k: int) -> Any:
        coefficient = self.coefficient(k - 1)
        if not self.primitive.multiple_results:
            return divided(coefficient, k)
        return [divided(c, k) for c in coefficient]

    def bind(self, operands: Sequence[Any]) -> Any:
        """The primitive applied to values."""
        trace = context.trace
        if not self.params:  # shorter ways
            if len(operands) == 2:
                return trace.process_two(self.primitive, *operands)
            if len(operands) == 1:
                return trace.process_one(self.primitive, operands[0])
        return trace.process(self.primitive, operands, self.params)

    def value(self) -> Any:
        """The primitive applied to the primals."""
        return self.bind([x.primal for x in self.operands])

    def zero(self) -> Any:
        """A coefficient that is zero."""
        if self.primitive.multiple_results:
            return [Zero(aval.tangent) for aval in self.aval]
        return Zero(self.aval.tangent)


class Linear(Application):
    """A primitive that is linear in operands, jointly, while the others are constant: it acts on each coefficient."""

    __slots__ = ("positions",)

    def __init__(self, aval: Any, primitive: Primitive, operands: Sequence[Node], params: Params,
                 positions: Sequence[int]) -> None:
        super().__init__(aval, primitive, operands, params)
        self.positions = positions

    @property
    def integrates(self) -> bool:  # type: ignore[override]
        return all([self.operands[i].integrates for i in self.positions])

    def compute(self, k: int) -> Any:
        return self._of([self.operands[i].coefficient(k) for i in self.positions])

    def integral(self, k: int) -> Any:
        if not self.integrates:
            return super().integral(k)
        return self._of([self.operands[i].integral(k) for i in self.positions])

    def _of(self, coefficients: Sequence[Any]) -> Any:
        if all([type(c) is Zero for c in coefficients]):
            return self.zero()
        operands: list[Any] = [x.known[0] if type(x) is Constant else x for x in self.operands]
        for i, c in zip(self.positions, coefficients, strict=True):
            operands[i] = as_array(c)
        return self.bind(operands)


class Sum(Application):
    """A primitive that adds operands, or subtracts them: those with the sign 0 don't count."""

    __slots__ = ("signs",)

    def __init__(self, aval: Any, primitive: Primitive, operands: Sequence[Node], params: Params, signs: Sequence[int]
                 ) -> None:
        super().__init__(aval, primitive, operands, params)
        self.signs = signs

    @property
    def integrates(self) -> bool:  # type: ignore[override]
        return all([x.integrates for x in self.operands])

    def compute(self, k: int) -> Any:
        return self._of([x.coefficient(k) for x in self.operands]) if k else self.value()

    def integral(self, k: int) -> Any:
        return self._of([x.integral(k) for x in self.operands]) if self.integrates else super().integral(k)

    def _of(self, coefficients: Sequence[Any]) -> Any:
        found: Any = Zero(self.aval.tangent)
        for c, sign in zip(coefficients, self.signs, strict=True):
            if sign:
                found = plus(found, c) if sign > 0 else minus(found, c)
        return settled(found, self.aval.tangent)


class Product(Application):
    """A primitive that is linear in each of some operands while the others are fixed: a convolution of series.

    `factors` are those of these operands that aren't constant. `commutes`: it has two operands, in any order.
    """

    __slots__ = ("commutes", "factors")

    def __init__(self, aval: Any, primitive: Primitive, operands: Sequence[Node], params: Params,
                 factors: Sequence[int], commutes: bool = False) -> None:
        super().__init__(aval, primitive, operands, params)
        self.factors, self.commutes = factors, commutes

    @property
    def integrates(self) -> bool:  # type: ignore[override]
        return len(self.factors) == 1 and self.operands[self.factors[0]].integrates

    def compute(self, k: int) -> Any:
        values = [x.coefficient(0) for x in self.operands]
        if k == 0:
            return Zero(self.aval.tangent) if Zero in map(type, values) else self.bind(values)
        if self.commutes and self.operands[0] is self.operands[1]:
            return squared(self.operands[0], k, self.bind, self.aval.tangent)
        terms = self._pairs(values, k) if len(self.factors) == 2 else self._terms(values, self.factors, k)
        return total(terms, self.aval.tangent)

    def integral(self, k: int) -> Any:
        if not self.integrates:
            return super().integral(k)
        (place,) = self.factors
        operands = [x.coefficient(0) for x in self.operands]
        operands[place] = self.operands[place].integral(k)
        return Zero(self.aval.tangent) if type(operands[place]) is Zero else self.bind(operands)

    def _pairs(self, values: list[Any], k: int) -> list[Any]:
        """The products whose orders add up to k, of two factors; the others are in `values`."""
        first, second = self.factors
        x, y = self.operands[first], self.operands[second]
        found = []
        for j in range(k + 1):
            c, d = x.coefficient(j), y.coefficient(k - j)
            if type(c) is not Zero and type(d) is not Zero:
                values[first], values[second] = c, d
                found.append(self.bind(values))
        return found

    def _terms(self, values: Sequence[Any], factors: Sequence[int], k: int) -> list[Any]:
        """The same over the factors at these places, of which there may be any number."""
        place, *others = factors
        found: list[Any] = []
        for j in range(k + 1) if others else (k,):
            c = self.operands[place].coefficient(j)
            if type(c) is Zero:
                continue
            chosen = [*values[:place], c, *values[place + 1:]]
            found += self._terms(chosen, others, k - j) if others else [] if Zero in map(type, chosen) else [
                self.bind(chosen)]
        return found


def squared(x: Any, k: int, multiply: Callable[[Sequence[Any]], Any], aval: ShapedArray) -> Any:
    """The coefficient of the square of a series: twice those products that are there twice."""
    def product(i: int) -> Any:
        pair = [x.coefficient(i), x.coefficient(k - i)]
        return Zero(aval) if Zero in map(type, pair) else multiply(pair)
    twice = times(total([product(i) for i in range((k + 1) // 2)], aval), 2)
    return twice if k % 2 else plus(twice, product(k // 2))


class Recurrence(Application):
    """A primitive with a recurrence `f(k, out, *operands, **params)`, of series that are indexed by order."""

    __slots__ = ("step",)

    def __init__(self, aval: Any, primitive: Primitive, operands: Sequence[Node], params: Params,
                 step: Callable[..., Any]) -> None:
        super().__init__(aval, primitive, operands, params)
        self.step = step

    def compute(self, k: int) -> Any:
        if k == 0:
            return self.value()
        return settled(self.step(k, Series(self), *map(Series, self.operands), **self.params), self.aval.tangent)


class WithValue(Node):
    """A series whose primal is computed by a primitive, and the rest in another way."""

    __slots__ = ("rest", "source")

    def __init__(self, rest: Node, source: Application) -> None:
        super().__init__(source.aval)
        self.rest, self.source = rest, source

    def compute(self, k: int) -> Any:
        return settled(self.rest.coefficient(k), self.aval.tangent) if k else self.source.value()


class Series:
    """A node as recurrences see it: `x[j]` is the coefficient of t^j."""

    __slots__ = ("node",)

    def __init__(self, node: Node) -> None:
        self.node = node

    def __getitem__(self, j: int) -> Any:
        return self.node.coefficient(j)

    @property
    def aval(self) -> ShapedArray:
        """The type of the primal."""
        return self.node.aval

    @property
    def is_constant(self) -> bool:
        """Whether all coefficients but the first are known to be zero."""
        return type(self.node) is Constant

