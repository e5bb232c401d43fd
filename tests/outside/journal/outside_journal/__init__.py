"""A journal: what programs compute is written down, in order."""

from corejax.plugin import Effect, Sample, define, hookimpl

WRITTEN = Effect("journal", ordered=True,
                 refused={"vmap": "the lines of a batch have no order; map with lax.map"})
_lines = []


def written():
    """The lines since the last call."""
    return [_lines.pop(0) for _ in range(len(_lines))]


class Journal:
    """journal(*xs, name="x"): write a line with these values."""

    name = "journal"
    multiple_results = True

    @hookimpl
    def abstract_eval(self, avals, *, name="x"):
        return []

    @hookimpl
    def effects(self, avals):
        return frozenset((WRITTEN,))

    @hookimpl
    def impl(self, args, *, name):
        _lines.append((name, *[x.tolist() for x in args]))
        return []

    @hookimpl
    def xla_translation(self, ctx, args, *, name):
        return ctx.callback(lambda *xs: self.impl(xs, name=name), args, [])

    @hookimpl
    def jvp(self, primals, tangents, *, name):
        return journal(*primals, name=name), []

    @hookimpl
    def samples(self, rng):
        yield Sample([rng.normal(size=2), 3], {"name": "a"}, happened=written)
        yield Sample([rng.normal()], {"name": "b"}, happened=written)


journal = define(Journal())
