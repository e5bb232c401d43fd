"""Plugin objects that break the contract, and hooks that raise."""

from __future__ import annotations

import textwrap

from .fault import Group, one, text

objects = Group("Plugin objects")
raising = Group("Hooks that raise")

TYPED = """
@hookimpl
def abstract_eval(self, avals):
    return avals[0]
"""
IMPL = """
@hookimpl
def impl(self, args):
    return np.multiply(args[0], 2.0)
"""


def module(name: str, *parts: str) -> str:
    """A module with a primitive whose plugin has these parts."""
    body = textwrap.indent("\n".join(text(part) for part in (f'name = "{name}"', *parts)), "    ")
    return ("from corejax.plugin import define, hookimpl\nimport numpy as np\n\n"
            f"class Plugin:\n{body}\n{name} = define(Plugin())\n").replace("    \n", "\n")


def refused(name: str, pack: str, parts: tuple[str, ...], *words: str, error: str = "PluginError") -> None:
    """A plugin object that is refused when it is first used."""
    objects.add(name, one(pack, module(pack, *parts)), f"lax.{pack}(1.0)", error, f"{pack.replace('_', '-')} 1.0",
                *words, explain=pack, left=(pack,))


refused("a hook with a wrong argument", "wrong_argument", (TYPED, IMPL, """
    @hookimpl
    def jvp(self, primals, tangent):
        return primals[0], tangent[0]
    """), "wrong_argument.jvp", "'tangent'", "'tangents'")
refused("a hook that takes operands one by one", "spread", (TYPED, """
    @hookimpl
    def impl(self, *args):
        return args[0]
    """), "spread.impl", "operands come as one sequence")
refused("a misspelled hook", "misspelled", (TYPED, IMPL, """
    @hookimpl
    def transpos(self, cotangents, args):
        return [cotangents]
    """), "'transpos' is not a hook", "did you mean 'transpose'?")
refused("a hook that is not marked", "unmarked", (TYPED, IMPL, """
    def jvp(self, primals, tangents):
        return primals[0], tangents[0]
    """), "unmarked.jvp", "it is not marked as a hook", "hookimpl")
refused("a misspelled declaration", "misdeclared", ("multiple_result = True", TYPED, IMPL),
        "'multiple_result' is neither a hook nor a declaration", "'multiple_results'")
refused("a version of the contract that is too new", "too_new", ("api_version = 2", TYPED, IMPL), "api_version = 2",
        "api_version = 1")
refused("a version of the contract that is too old", "too_old", ("api_version = 0", TYPED, IMPL), "api_version = 0",
        "api_version = 1")
refused("no rule that computes", "idle", (TYPED,), "nothing says how to compute it")
refused("no rule that types", "untyped", (IMPL,), "a required hook is missing")
refused("an attribute that raises", "prickly", (TYPED, IMPL, """
    @property
    def jvp(self):
        raise OSError("the tables are missing")
    """), "OSError: the tables are missing", error="PluginError")


# Hooks that raise

def raises(name: str, pack: str, hook: str, error: str, *words: str, use: str = "", again: str = "same",
           explained: bool = False) -> None:
    """A plugin one of whose hooks raises."""
    typed = "" if "def abstract_eval" in hook else TYPED
    impl = "" if "def impl" in hook else IMPL
    raising.add(name, one(pack, module(pack, *filter(None, (typed, impl, hook)))),
                (use or "lax.{0}(1.0)").format(pack), error, *words, again=again, left=(pack,))


def impl_that(code: str) -> str:
    """An `impl` with this body."""
    return "@hookimpl\ndef impl(self, args):\n" + textwrap.indent(text(code), "    ")


BUG = "This is a bug in {} 1.0, not in your code"
EXIT = "the code of {} 1.0 exits the process"
raises("impl, an exception", "impl_divides", impl_that("return args[0] * (1 / len([]))"), "ZeroDivisionError",
       "division by zero", BUG.format("impl-divides"))
raises("impl, an exception without a text", "impl_mute", impl_that("""
    class Mute(Exception):
        def __str__(self):
            raise ValueError
    raise Mute
    """), "Mute", BUG.format("impl-mute"))
raises("impl, sys.exit()", "impl_exits", impl_that("""
    import sys
    sys.exit(2)
    """), "CorejaxRuntimeError", EXIT.format("impl-exits"), "SystemExit: 2")
raises("impl, an exit by a tool that it uses", "impl_parses", impl_that("""
    import argparse
    argparse.ArgumentParser().exit(2)
    """), "CorejaxRuntimeError", EXIT.format("impl-parses"), "SystemExit: 2")
raises("impl in a compiled program, sys.exit()", "jit_exits", impl_that("""
    import sys
    sys.exit(2)
    """), "CorejaxRuntimeError", EXIT.format("jit-exits"), "SystemExit: 2", use="""
import warnings
warnings.simplefilter("ignore")
cj.jit(lax.{0})(1.0)""")
raises("impl in a compiled program, an exception", "jit_divides", impl_that("return args[0] * (1 / len([]))"),
       "ZeroDivisionError", "division by zero", use="""
import warnings
warnings.simplefilter("ignore")
cj.jit(lax.{0})(1.0)""")
raises("impl, KeyboardInterrupt", "impl_interrupted", impl_that("""
    if not hasattr(np, "second_call"):
        np.second_call = True
        raise KeyboardInterrupt
    return np.multiply(args[0], 2.0)
    """), "KeyboardInterrupt", again="2.0")
raises("impl, endless recursion", "impl_recurses", impl_that("return self.impl(args)"), "RecursionError",
       "maximum recursion depth exceeded")
raises("impl, MemoryError", "impl_full", impl_that('raise MemoryError("no room for the result")'), "MemoryError",
       "no room for the result")
raises("abstract_eval, an exception", "types_raise", """
    @hookimpl
    def abstract_eval(self, avals):
        return avals[0].shapes
    """, "AttributeError", "has no attribute 'shapes'", "raised by types_raise.abstract_eval (types-raise 1.0)")
raises("abstract_eval, an exit", "types_exit", """
    @hookimpl
    def abstract_eval(self, avals):
        raise SystemExit
    """, "CorejaxRuntimeError", EXIT.format("types-exit"))
raises("jvp, an exception", "jvp_raises", """
    @hookimpl
    def jvp(self, primals, tangents):
        return {}[0]
    """, "KeyError", "0", BUG.format("jvp-raises"), use="cj.grad(lax.{0})(1.0)")
raises("jvp, an exit", "jvp_exits", """
    @hookimpl
    def jvp(self, primals, tangents):
        raise SystemExit(4)
    """, "CorejaxRuntimeError", EXIT.format("jvp-exits"), "SystemExit: 4", use="cj.grad(lax.{0})(1.0)")
raises("vmap, an exit", "vmap_exits", """
    @hookimpl
    def vmap(self, axis, args, dims):
        raise SystemExit(5)
    """, "CorejaxRuntimeError", EXIT.format("vmap-exits"), "SystemExit: 5", use="cj.vmap(lax.{0})(np.ones(2))")
raises("xla_translation, an exit", "hlo_exits", """
    @hookimpl
    def xla_translation(self, ctx, args):
        raise SystemExit(6)
    """, "CorejaxRuntimeError", EXIT.format("hlo-exits"), "SystemExit: 6", use="cj.jit(lax.{0})(1.0)")

GROUPS = (objects, raising)
