"""What types the results of a program have: asked in all ways in which no value is needed, of corejax and of jax.

A question is a function of a program in one library; its answer is types, or values where it makes some of types.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import corejax as cj

from .comparing import Outcome, Refused, difference, outcome, types
from .oracles import Difference, Jax, Oracle
from .programs import Program


class Types(list[Any]):
    """The types that a jaxpr says, which aren't a tree."""


class Asking:
    """A program in one library, with the types of its inputs."""

    def __init__(self, program: Program, api: Any) -> None:
        self.program, self.api, self.jnp = program, api, api.numpy
        self.fun = program.transformed(api, api.lax)
        self.given = [program.inputs[key] for key in program.slots]
        self.structs = [self.struct(x) for x in self.given]

    def struct(self, x: Any) -> Any:
        """The type of an input; weak for a number of Python."""
        weak = not hasattr(x, "dtype")
        dtype = self.program.types[{int: "n", float: "s"}[type(x)]].dtype if weak else x.dtype
        # A pack's dtype, its name, or NumPy's scalar type, which mean the same.
        form = [dtype, dtype.name, dtype.type][self.program.seed % 3]
        return self.api.ShapeDtypeStruct(np.shape(x), form, weak_type=weak)

    @property
    def some(self) -> list[Any]:
        """Every second type, and the other arguments themselves."""
        return [struct if k % 2 == self.program.seed % 2 else x
                for k, (struct, x) in enumerate(zip(self.structs, self.given, strict=True))]

    # Ways to ask for the types of the results

    def eval_shape(self) -> Any:
        return self.api.eval_shape(self.fun, *self.structs)

    def eval_shape_of_a_tree(self) -> Any:
        first, second, *others = self.structs
        tree = {"pair": (first, [second]), "others": others}

        def fun(tree: Any, *, nothing: Any) -> Any:
            (first, (second,)), others = tree["pair"], tree["others"]
            return {"results": [self.fun(first, second, *others)], "nothing": nothing}
        return self.api.eval_shape(fun, tree, nothing=None)["results"]

    def eval_shape_by_name(self) -> Any:
        def fun(first: Any, **others: Any) -> Any:
            return self.fun(first, *[others[key] for key in self.program.slots[1:]])
        return self.api.eval_shape(fun, self.structs[0], **dict(zip(self.program.slots[1:], self.structs[1:])))

    def eval_shape_of_some(self) -> Any:
        return self.api.eval_shape(self.fun, *self.some)

    def eval_shape_of_jit(self) -> Any:
        return self.api.jit(self.fun).eval_shape(*self.structs)

    def eval_shape_of_results(self) -> Any:
        """The types of results are arguments again."""
        api = self.api

        def again(tree: Any) -> Any:
            return api.tree.map(lambda x: x[None] if self.dtype(x).names is None else x, tree)
        return api.tree.map(self.first, api.eval_shape(again, api.eval_shape(self.fun, *self.structs)))

    def first(self, struct: Any) -> Any:
        """The type of an element of a batch."""
        if self.dtype(struct).names is not None:
            return struct
        return self.api.ShapeDtypeStruct(struct.shape[1:], struct.dtype, weak_type=struct.weak_type)

    def make_jaxpr(self) -> Any:
        closed, shape = self.api.make_jaxpr(self.fun, return_shape=True)(*self.structs)
        return Types(closed.out_avals) if self.program.seed % 2 else shape

    def make_jaxpr_of_some(self) -> Any:
        return Types(self.api.make_jaxpr(self.fun)(*self.some).out_avals)

    def lower(self) -> Any:
        return self.api.jit(self.fun).lower(*self.structs).out_info

    def trace(self) -> Any:
        return self.api.jit(self.fun).trace(*self.structs).out_info

    # Other questions

    def arguments(self) -> Any:
        closed = self.api.make_jaxpr(self.fun)(*self.structs)
        lowered = self.api.jit(self.fun).lower(*self.structs)
        return Types([*closed.in_avals, *self.api.tree.leaves(lowered.in_avals)])

    def dtype(self, x: Any) -> np.dtype[Any]:
        return np.dtype(x.dtype)

    def result_types(self) -> Any:
        """Of types, alone and with others, with numbers and with dtypes."""
        jnp, structs = self.jnp, self.structs
        pairs = [(x, y) for k, x in enumerate(structs) for y in structs[:k]]
        found = [jnp.result_type(x) for x in structs] + [jnp.result_type(*pair) for pair in pairs]
        found += [jnp.result_type(x, other) for x in structs for other in (1, 2.5, 1j, True, np.float32, "int8")]
        found += [jnp.result_type(*structs)] + [jnp.promote_types(x.dtype, y.dtype) for x, y in pairs]
        return [np.zeros((), dtype) for dtype in found]

    def likes(self) -> Any:
        """Values of types."""
        jnp, lax = self.jnp, self.api.lax
        return [make(x) for x in self.structs for make in (
            jnp.zeros_like, jnp.ones_like, jnp.empty_like, lambda x: jnp.full_like(x, 1), lambda x: lax.full_like(x, 1),
            lambda x: jnp.zeros_like(x, shape=(2,)), lambda x: jnp.ones_like(x, dtype=np.float32),
            lambda x: jnp.zeros(x.shape, x.dtype), lambda x: lax.full_like(x, 0, np.int8, (1, 2)))]

    def likes_within(self) -> Any:
        """Values of types that a traced function closes over."""
        jnp = self.jnp
        structs = [x for x in self.structs if self.dtype(x).kind != "b"]
        return self.api.eval_shape(lambda y: [jnp.zeros_like(x) + y for x in structs], self.structs[0])

    def shapes(self) -> Any:
        jnp = self.jnp
        return [np.array([*jnp.shape(x), jnp.ndim(x), jnp.size(x), x.ndim, x.size]) for x in self.structs]

    def predicates(self) -> Any:
        jnp = self.jnp
        return [np.array([jnp.issubdtype(x.dtype, np.inexact), bool(jnp.iscomplexobj(x)), x == self.struct(y),
                          jnp.isdtype(x.dtype, "numeric"), hash(x) == hash(self.struct(y))])
                for x, y in zip(self.structs, self.given, strict=True)]


#: Questions whose answers are those of `eval_shape`, except where some arguments aren't types but values.
ALIKE = ("eval_shape_of_a_tree", "eval_shape_by_name", "eval_shape_of_jit", "eval_shape_of_results", "make_jaxpr",
         "lower", "trace")
QUESTIONS = (*ALIKE, "eval_shape_of_some", "make_jaxpr_of_some", "arguments", "likes_within")
#: Those whose answers are values.
VALUES = ("result_types", "likes", "shapes", "predicates")

#: How many of the questions a program is asked, and of how many programs one is run and compiled, too.
ASKED, RUN_ONE_OF = 5, 12


class Consistent(Oracle):
    """corejax, asked in other ways; and what it gives when the program runs."""

    name = "itself"

    def subject(self, program: Program) -> Outcome:
        return answer(program, cj, "eval_shape")

    def difference(self, program: Program, got: Outcome) -> Difference | None:
        for question in questions(program):
            found = self.to(program, question, answer(program, cj, question), got)
            if found:
                return found[0], f"{question}: {found[1]}"
        return None if isinstance(got, Refused) or program.seed % RUN_ONE_OF else ran(program, got)

    def to(self, program: Program, question: str, mine: Outcome, got: Outcome) -> Difference | None:
        """How this answer to a question differs from what is right, given what `eval_shape` says."""
        return difference(mine, got, exactly) if question in ALIKE else None


class Asked(Jax, Consistent):
    """jax, asked the same, too."""

    def subject(self, program: Program) -> Outcome:
        return Consistent.subject(self, program)

    def difference(self, program: Program, got: Outcome) -> Difference | None:
        wanted = answer(program, self.jax, "eval_shape")
        return difference(got, wanted, exactly) or Consistent.difference(self, program, got)

    def to(self, program: Program, question: str, mine: Outcome, got: Outcome) -> Difference | None:
        wanted = answer(program, self.jax, question)
        return difference(mine, wanted, exactly) or Consistent.to(self, program, question, mine, got)


def questions(program: Program) -> list[str]:
    """Those that a program is asked, beside `eval_shape`."""
    first = program.seed * ASKED
    return [*[QUESTIONS[k % len(QUESTIONS)] for k in range(first, first + ASKED)], VALUES[program.seed % len(VALUES)]]


def answer(program: Program, api: Any, question: str) -> Outcome:
    def ask() -> Any:
        return getattr(Asking(program, api), question)()

    def leaves(tree: Any) -> list[Any]:
        return tree if type(tree) is Types else api.tree.leaves(tree)  # type: ignore[no-any-return]
    return outcome(ask, leaves) if question in VALUES else types(ask, leaves)


def ran(program: Program, got: Outcome) -> Difference | None:
    """Does it have these types when it runs, whether it is compiled for types or for values?"""
    asking = Asking(program, cj)
    ways = (lambda: asking.fun, lambda: cj.jit(asking.fun).lower(*asking.structs).compile())
    for way in ways:
        found = difference(types(partial(results, way, asking.given), cj.tree.leaves), got, exactly)
        if found:
            return found[0], f"run: {found[1]}"
    return None


def results(way: Callable[[], Callable[..., Any]], given: list[Any]) -> Any:
    """Arrays, also of numbers of Python that a program only handed through."""
    return cj.tree.map(lambda x: x if hasattr(x, "dtype") else cj.lax.copy(x), way()(*given))


def exactly(leaf: int) -> float:
    return 0.0
