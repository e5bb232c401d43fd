"""Effects: how they are declared, which rules have them, and where they can't happen."""

from __future__ import annotations

import textwrap

from .case import Group

declaring = Group("Declaring an effect")
having = Group("Effects of a primitive")

#: What snippets begin with: an ordered effect, and a primitive that has it.
HEAD = """
from corejax.plugin import Effect
WRITTEN = Effect("written", ordered=True{options})
class Write:
    name = "write"
    {declared}
    @hookimpl
    def abstract_eval(self, avals):
        return avals[0]
    @hookimpl
    def effects(self, avals):
        return {effects}
    @hookimpl
    def impl(self, args):
        return args[0]
{rules}
write = define(Write())
"""

RULES = """
@hookimpl
def xla_translation(self, ctx, args):
    return ctx.callback(lambda x: [x], args, ctx.avals_out)[0]
@hookimpl
def jvp(self, primals, tangents):
    return write(*primals), tangents[0]
"""


def writing(use: str, refused: str = "", effects: str = "frozenset((WRITTEN,))", rules: str = RULES,
            declared: str = "multiple_results = False") -> str:
    """A primitive `write`, and what is done with it."""
    options = f", refused={{{refused}}}" if refused else ""
    return HEAD.format(options=options, effects=effects, declared=declared,
                       rules=textwrap.indent(rules.strip(), "    ")) + textwrap.dedent(use).strip() + "\n"


declare = declaring.add
for name, code, error, *words in (
        ("a name that is a number", "Effect(3)", TypeError, "its name must be a word", "3"),
        ("a name of two words", "Effect('two words')", TypeError, "'two words'"),
        ("ordered as a word", "Effect('written', ordered='yes')", TypeError, "a bool", "a str"),
        ("a list of what it refuses", "Effect('written', refused=['vmap'])", TypeError, "a mapping", "a list"),
        ("a situation that isn't one", "Effect('written', refused={'vmpa': 'why'})", TypeError, "'vmpa'",
         "did you mean 'vmap'?"),
        ("a refusal without a reason", "Effect('written', refused={'vmap': ''})", TypeError, "say why", "'vmap'")):
    declare(name, f"from corejax.plugin import Effect\n{code}", error, *words, jax=None)

have = having.add
have("a name instead of an effect", writing("write(1.0)", effects="frozenset(('written',))"), TypeError,
     "write.effects", "'written'", "Effect('mypack.log')", jax=None)
have("an effect instead of a set of them", writing("write(1.0)", effects="WRITTEN"), TypeError, "write.effects",
     "frozenset", jax=None)
have("a linear primitive with effects", """
    from corejax.plugin import Effect
    class Write:
        name = "write"
        linear = (0,)
        @hookimpl  # <-
        def effects(self, avals):
            return frozenset((Effect("written"),))
        @hookimpl
        def decompose(self, args):
            return args[0]
    define(Write())(1.0)
    """, TypeError, "write.effects", "twice", jax=None)
have("a program within it whose effects it doesn't declare", writing("""
    class Quiet:
        name = "quiet"
        @hookimpl
        def decompose(self, args):
            return write(args[0])
    quiet = define(Quiet())
    cj.jit(quiet)(1.0)
    """), TypeError, "quiet.xla_translation", "written", "doesn't declare", jax=None)
have("a lowering of its own whose effects it doesn't declare", writing("""
    class Quiet:
        name = "quiet"
        @hookimpl
        def abstract_eval(self, avals):
            return avals[0]
        @hookimpl
        def xla_translation(self, ctx, args):
            return ctx.lower(write, args[0])
    quiet = define(Quiet())
    cj.jit(quiet)(1.0)
    """), TypeError, "quiet.xla_translation", "written", "doesn't declare", jax=None)
have("a region that passes no token on", writing("""
    class Once:
        name = "once"
        multiple_results = True
        @hookimpl
        def abstract_eval(self, avals, *, jaxpr):
            return jaxpr.out_avals
        @hookimpl
        def effects(self, avals, *, jaxpr):
            return jaxpr.effects
        @hookimpl
        def xla_translation(self, ctx, args, *, jaxpr):
            index = ctx.constant(np.int32(0))
            case = ctx.op("stablehlo.case", [index], None, None, 1)
            with ctx.ir.InsertionPoint(ctx.regions[0].blocks.append()):
                ctx.op("stablehlo.return", ctx.call(jaxpr, args), None, [])
            return [case]
    once = define(Once())
    program = cj.make_jaxpr(write)(1.0).jaxpr
    cj.jit(lambda x: once(x, jaxpr=program))(1.0)
    """), TypeError, "once.xla_translation", "the effect written", "ctx.inside", jax=None)
have("a carrier that says wrongly how it runs its programs", """
    class Write:  # <-
        name = "write"
        holds = "often"
        @hookimpl
        def decompose(self, args):
            return args[0]
    define(Write())(1.0)
    """, TypeError, "holds must say", "'loop'", jax=None)
for situation, use in (
        ("branch", "cj.jit(lambda x: lax.cond(x > 0.0, write, lambda x: x, x))(1.0)"),
        ("loop", "lax.fori_loop(0, 3, lambda i, x: write(x), 1.0)"),
        ("recomputed", "cj.grad(cj.checkpoint(write))(1.0)"),
        ("rule", """
        f = cj.custom_jvp(lambda x: write(x))
        f.defjvp(lambda primals, tangents: (primals[0], tangents[0]))
        cj.jit(f)(1.0)
        """),
        ("vmap", "cj.vmap(write)(np.arange(3.0))"),
        ("derivative", "cj.grad(write)(1.0)")):
    have(f"refused: {situation}", writing(use, refused=f'"{situation}": "it is only for the brave; be brave"'),
         NotImplementedError, "the effect written", "it is only for the brave", "be brave", jax=None)
have("ordered effects of a batch that takes different branches", writing("""
    cj.vmap(lambda x: lax.cond(x > 1.0, write, lambda x: x, x))(np.arange(3.0))
    """, refused='"vmap": "lines of a batch have no order; map with lax.map"'), NotImplementedError,
     "the effect written", "map with lax.map", jax=None)
have("ordered effects on several devices", writing("""
    mesh = cj.make_mesh((2,), ("x",))
    x = cj.device_put(np.arange(4.0), cj.NamedSharding(mesh, cj.P("x")))
    cj.jit(write)(x)
    """), NotImplementedError, "the ordered effect written", "several devices", jax=None,
     environment={"COREJAX_NUM_CPU_DEVICES": "2"})
have("an exported program", writing("cj.export.export(cj.jit(write))(1.0)"), ValueError, "written", "effects", jax=None)

GROUPS = (declaring, having)
