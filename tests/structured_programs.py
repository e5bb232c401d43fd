"""Programs with control flow, each in two forms: by the library's primitives, and unrolled in plain Python.

A program maps a vector of three to a scalar. The structured form takes `(api, lax, x)`, so that jax can run it too; the
unrolled one takes `(math, x)` and decides on values, so it runs eagerly or in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Structured:
    """A program in both forms; `modes` are the derivatives that go through it."""

    name: str
    structured: Callable[[Any, Any, Any], Any]
    unrolled: Callable[[Any, Any], Any]
    modes: tuple[str, ...] = ("jvp", "linearize", "grad")

    def allows(self, transformations: Sequence[str]) -> bool:
        """Can it be transformed so, outermost first? The innermost derivative meets the program itself."""
        derivatives = [name for name in transformations if name in ("jvp", "linearize", "grad")]
        if "grad" not in self.modes:
            return "grad" not in derivatives  # a reverse pass outside meets the loop again
        return not derivatives or derivatives[-1] in self.modes

    def __str__(self) -> str:
        return self.name


PROGRAMS: list[Structured] = []


def program(unrolled: Callable[[Any, Any], Any], modes: tuple[str, ...] = ("jvp", "linearize", "grad")
            ) -> Callable[[Callable[..., Any]], None]:
    def enter(structured: Callable[[Any, Any, Any], Any]) -> None:
        PROGRAMS.append(Structured(structured.__name__.rstrip("_"), structured, unrolled, modes))
    return enter


# One primitive each

@program(lambda m, x: (m.sin(x) * x[1] if x[0] > 0.2 else x * x).sum())
def cond(api, lax, x):
    return lax.cond(x[0] > 0.2, lambda x: lax.sin(x) * x[1], lambda x: x * x, x).sum()


@program(lambda m, x: [lambda: m.sin(x), lambda: x * x * x, lambda: m.cos(x[0]) * x][
    int(np.clip(int(x[0] * 4.0), 0, 2))]().sum())
def switch(api, lax, x):
    index = lax.convert_element_type(x[0] * 4.0, np.int32)
    return lax.switch(index, [lambda: lax.sin(x), lambda: x * x * x, lambda: lax.cos(x[0]) * x]).sum()


def _recurrence(m, x):
    carry, total = x[0], 0.0
    for i in range(3):
        carry = m.tanh(carry * x[i] + x[1])
        total = total + carry * x[i]
    return total + carry


@program(_recurrence)
def scan(api, lax, x):
    def body(carry, element):
        carry = lax.tanh(carry * element + x[1])
        return carry, carry * element

    carry, outs = lax.scan(body, x[0], x)
    return outs.sum() + carry


def _backward_recurrence(m, x):
    a, b, total = x[1], x[2] * 0.5, 0.0
    for i in (2, 1, 0):
        a, b = b * x[i], m.sin(a)
        total = total + a * b
    return total


@program(_backward_recurrence)
def scan_reversed(api, lax, x):
    def body(carry, element):
        a, b = carry["a"] * 1.0, carry["b"]
        a, b = b * element, lax.sin(a)
        return {"a": a, "b": b}, (a * b, None)

    _, (products, _) = lax.scan(body, {"a": x[1], "b": x[2] * 0.5}, x, reverse=True)
    return products.sum()


@program(lambda m, x: sum((m.sin(x[i]) * x[0] for i in range(3)), 0.0))
def map_(api, lax, x):
    return lax.map(lambda element: lax.sin(element) * x[0], x).sum()


def _fixed_loop(m, x):
    y = x
    for i in range(4):
        y = m.sin(y) * x[0] + y * (0.1 * i)
    return y.sum()


@program(_fixed_loop)
def fori(api, lax, x):
    return lax.fori_loop(0, 4, lambda i, y: lax.sin(y) * x[0] + y * (0.1 * i), x).sum()


def _growth(m, x):
    y = x
    while (y * y).sum() < 20.0:
        y = y * 1.5 + m.sin(y)
    return y.sum()


@program(_growth, modes=("jvp", "linearize"))
def while_(api, lax, x):
    return lax.while_loop(lambda y: (y * y).sum() < 20.0, lambda y: y * 1.5 + lax.sin(y), x).sum()


@program(lambda m, x: (m.sin(m.sin(x) * x[1]) * x).sum())
def checkpoint(api, lax, x):
    return (api.checkpoint(lambda y: lax.sin(lax.sin(y) * x[1]))(x) * x).sum()


@program(lambda m, x: m.log1p(m.exp(x)).sum() * x[0])
def custom_jvp(api, lax, x):
    @api.custom_jvp
    def softplus(x):
        return lax.log1p(lax.exp(x))

    @softplus.defjvp
    def rule(primals, tangents):
        (x,), (x_dot,) = primals, tangents
        return softplus(x), x_dot * lax.logistic(x)

    return softplus(x).sum() * x[0]


@program(lambda m, x: (m.sin(x) * x[0]).sum(), modes=("grad",))
def custom_vjp(api, lax, x):
    @api.custom_vjp
    def product(x, y):
        return lax.sin(x) * y

    product.defvjp(lambda x, y: (lax.sin(x) * y, (x, y)),
                   lambda kept, ct: (ct * lax.cos(kept[0]) * kept[1], (ct * lax.sin(kept[0])).sum()))
    return product(x, x[0]).sum()


# Nested in each other

def _scan_in_cond(m, x):
    if not x[0] > 0.2:
        return (x * x[1]).sum()
    carry = x[1]
    for i in range(3):
        carry = m.sin(carry) * x[i]
    return carry


@program(_scan_in_cond)
def scan_in_cond(api, lax, x):
    def loop(x):
        return lax.scan(lambda carry, element: (lax.sin(carry) * element, None), x[1], x)[0]

    return lax.cond(x[0] > 0.2, loop, lambda x: (x * x[1]).sum(), x)


def _cond_in_scan(m, x):
    carry, total = x[2], 0.0
    for i in range(3):
        carry = m.sin(carry * x[i]) if carry > 0.1 else x[i] * x[i] + carry
        total = total + carry
    return total * carry


@program(_cond_in_scan)
def cond_in_scan(api, lax, x):
    def body(carry, element):
        carry = lax.cond(carry > 0.1, lambda c: lax.sin(c * element), lambda c: element * element + c, carry)
        return carry, carry

    carry, outs = lax.scan(body, x[2], x)
    return outs.sum() * carry


def _scan_in_cond_in_while(m, x):
    y, count = x, 0
    while (y * y).sum() < 30.0:
        if y[0] > 0.5:
            carry = y[1]
            for i in range(3):
                carry = m.sin(carry) + y[i]
            y = y + carry
        else:
            y = y * 2.0 + 0.25
        count += 1
    return (y * m.sin(y)).sum() + count


@program(_scan_in_cond_in_while, modes=("jvp", "linearize"))
def scan_in_cond_in_while(api, lax, x):
    def grown(y):
        return y + lax.scan(lambda carry, element: (lax.sin(carry) + element, None), y[1], y)[0]

    def body(state):
        y, count = state
        return lax.cond(y[0] > 0.5, grown, lambda y: y * 2.0 + 0.25, y), count + 1

    y, count = lax.while_loop(lambda state: (state[0] * state[0]).sum() < 30.0, body, (x, 0))
    return (y * lax.sin(y)).sum() + count


def _while_that_counts(m, x):
    count, y = 0, x[0]
    while y < 3.0:
        count, y = count + 1, y * 1.5 + 0.5
    return (m.sin(x) * count).sum()


@program(_while_that_counts)
def while_that_counts(api, lax, x):
    start = lax.stop_gradient(x[0])
    count, _ = lax.while_loop(lambda s: s[1] < 3.0, lambda s: (s[0] + 1, s[1] * 1.5 + 0.5), (0, start))
    return (lax.sin(x) * count).sum()


def _checkpointed_scan(m, x):
    carry = x
    for i in range(3):
        carry = m.sin(carry * x[i]) + x
    return (carry * x[0]).sum()


@program(_checkpointed_scan)
def checkpointed_scan(api, lax, x):
    @api.checkpoint
    def step(carry, element):
        return lax.sin(carry * element) + x, None

    return (api.checkpoint(lambda y: lax.scan(step, y, y)[0])(x) * x[0]).sum()


@program(lambda m, x: _scan_of_scans(m, x))
def scan_of_scans(api, lax, x):
    def outer(carry, element):
        inner, outs = lax.scan(lambda c, e: (c * lax.cos(e), c), carry * element, x)
        return inner + element, outs

    carry, outs = lax.scan(outer, x[0], x)
    return carry + (outs * outs).sum()


def _scan_of_scans(m, x):
    carry, total = x[0], 0.0
    for i in range(3):
        inner = carry * x[i]
        for j in range(3):
            total = total + inner * inner
            inner = inner * m.cos(x[j])
        carry = inner + x[i]
    return carry + total


def _custom_in_scan(m, x):
    carry = x[0]
    for i in range(3):
        carry = m.sin(carry) * x[i] if x[i] > 0.0 else m.sin(carry) + x[i]
    return carry


@program(_custom_in_scan)
def custom_in_cond_in_scan(api, lax, x):
    @api.custom_jvp
    def sine(x):
        return lax.sin(x)

    sine.defjvp(lambda primals, tangents: (sine(primals[0]), lax.cos(primals[0]) * tangents[0]))

    def body(carry, element):
        return lax.cond(element > 0.0, lambda c: sine(c) * element, lambda c: sine(c) + element, carry), None

    return api.jit(lambda x: lax.scan(body, x[0], x)[0])(x)
