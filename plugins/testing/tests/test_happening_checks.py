"""The laws of effects catch what authors get wrong: what isn't declared, is lost, doubled or out of order."""

from __future__ import annotations

import numpy as np
import pytest

from corejax.plugin import Effect, Sample, define, hookimpl
from corejax.testing import ConformanceError, check_primitive, happening
from corejax_testing.check import Check

CHECKS = [found.name for found in vars(happening).values() if isinstance(found, Check)]
WRITTEN = Effect("test_written", ordered=True)
NOTED = Effect("test_noted")


class Log:
    """log(x) = 2 x, and it writes x down. Faults are written over its methods."""

    name = "test_log"

    def __init__(self):
        self._lines = []
        self._self = define(self)

    def _take(self):
        lines, self._lines = self._lines, []
        return lines

    def _write(self, x):
        self._lines.append(np.asarray(x).tolist())
        return 2.0 * x

    @hookimpl
    def abstract_eval(self, avals):
        return avals[0]

    @hookimpl
    def impl(self, args):
        return self._write(args[0])

    @hookimpl
    def xla_translation(self, ctx, args):
        return ctx.callback(lambda x: [self._write(x)], args, ctx.avals_out)[0]

    @hookimpl
    def jvp(self, primals, tangents):
        return self._self(primals[0]), 2.0 * tangents[0]

    @hookimpl
    def vmap(self, axis, args, dims):
        return self._self(args[0]), dims[0]

    @hookimpl
    def effects(self, avals):
        return frozenset((WRITTEN,))

    @hookimpl
    def samples(self, rng):
        yield Sample([np.arange(1.0, 3.0)], happened=self._take)
        yield Sample([np.arange(5.0, 8.0)], happened=self._take)
        yield Sample([np.float64(4.0)], happened=self._take)


def problems(plugin):
    """The problems that the laws of effects find, by law."""
    try:
        check_primitive(plugin._self, checks=CHECKS)
    except ConformanceError as error:
        return {failure.check: failure.problem for failure in error.failures}
    return {}


def test_a_true_log_keeps_the_laws():
    assert {} == problems(Log())


class Undeclared(Log):
    @hookimpl
    def effects(self, avals):
        return frozenset()


class LostInPrograms(Log):
    @hookimpl
    def xla_translation(self, ctx, args):
        return ctx.lower(lambda x: 2.0 * x, args[0])


class LostInEvaluation(Log):
    @hookimpl
    def impl(self, args):
        return 2.0 * args[0]


class TwiceInPrograms(Log):
    @hookimpl
    def xla_translation(self, ctx, args):
        ctx.callback(lambda x: [self._write(x)], args, ctx.avals_out)
        return ctx.callback(lambda x: [self._write(x)], args, ctx.avals_out)[0]


class TwiceUnderJvp(Log):
    @hookimpl
    def jvp(self, primals, tangents):
        return self._self(primals[0]), self._self(tangents[0])


class LostUnderJvp(Log):
    @hookimpl
    def jvp(self, primals, tangents):
        return 2.0 * primals[0], 2.0 * tangents[0]


class Backwards(Log):
    """It writes what was written last at the front."""

    @hookimpl
    def xla_translation(self, ctx, args):
        def write(x):
            out = self._write(x)
            self._lines.insert(0, self._lines.pop())
            return [out]
        return ctx.callback(write, args, ctx.avals_out)[0]


class SomethingElse(Log):
    @hookimpl
    def xla_translation(self, ctx, args):
        return ctx.callback(lambda x: [self._write(x + 1.0) - 2.0], args, ctx.avals_out)[0]


class Unseen(Log):
    @hookimpl
    def samples(self, rng):
        yield Sample([np.arange(1.0, 3.0)])


@pytest.mark.parametrize(("kind", "law", "problem"), [
    (Undeclared, "effects are declared", "something happens that isn't declared"),
    (LostInPrograms, "effects happen once and in order", "compiled: an effect is lost"),
    (LostInEvaluation, "effects happen once and in order", "nothing happens"),
    (TwiceInPrograms, "effects happen once and in order", "compiled: an effect happens twice"),
    (TwiceUnderJvp, "effects happen once under derivatives", "under jvp: an effect happens twice"),
    (LostUnderJvp, "effects happen once under derivatives", "under jvp: an effect is lost"),
    (Backwards, "effects happen once and in order", "compiled: ordered effects happen in another order"),
    (SomethingElse, "effects happen once and in order", "compiled: an effect differs"),
    (Unseen, "effects are declared", "it has effects, and nothing says how to see them"),
])
def test_faults_are_caught(kind, law, problem):
    assert problem == problems(kind())[law]


def test_the_order_of_what_is_not_ordered_is_free():
    class AnyOrder(Backwards):
        @hookimpl
        def effects(self, avals):
            return frozenset((NOTED,))

    assert {} == problems(AnyOrder())
