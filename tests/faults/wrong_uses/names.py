"""Names that aren't there, roles that nobody fills, settings, pytrees."""

from __future__ import annotations

from .case import Group

NO_PACKS = {"COREJAX_PACKS": "none"}

names = Group("Names and packs")
names.add("a misspelled function", "lax.sinn(1.0)", AttributeError, "sinn", "'sin'")
names.add("a function that no pack provides", "lax.bessel_k(1.0)", AttributeError, "bessel_k", "install the pack")
names.add("a misspelled transformation", "cj.grd(lambda x: x)", AttributeError, "grd", "grad")
names.add("a function of an excluded pack", "lax.sin(1.0)", AttributeError, "corejax-lax-basic",
          "COREJAX_DISABLE_PACKS", jax=None, environment={"COREJAX_DISABLE_PACKS": "corejax-lax-basic"})
names.add("no pack at all", "lax.sin(1.0)", AttributeError, "sin", jax=None, environment=NO_PACKS)
names.add("an operator without a pack", """
    x = cj.device_put(1.0)
    x + x
    """, NotImplementedError, "operators.add", "corejax", jax=None, environment=NO_PACKS)
names.add("jit without a pack", """
    cj.jit(lambda x: cj.jit(lambda y: y)(x))(1.0)
    """, NotImplementedError, "staged_call", "corejax", jax=None, environment=NO_PACKS)
names.add("a pack chosen that is not installed", "lax.sin(1.0)", ValueError, "corejax-lax-basc", "corejax-lax-basic",
          jax=None, environment={"COREJAX_PACKS": "corejax-lax-basc"})
names.add("a primitive that no pack provides", """
    from corejax.plugin import find
    find("sine")
    """, KeyError, "sine", "'sin'", jax=None)
names.add("a name that the plugin API doesn't have", """
    from corejax import plugin
    plugin.hookimp
    """, AttributeError, "hookimp", "hookimpl", jax=None)

settings = Group("Settings")
settings.add("an unknown setting", "cj.config.default_bit = 32", AttributeError, "default_bit", "'default_bits'",
             jax="cj.config.update('jax_enable_x65', True)")
settings.add("a value that a setting can't have", "cj.config.default_bits = 16", ValueError, "16", "64 or 32",
             jax="cj.config.update('jax_default_matmul_precision', 'exact')")
settings.add("an unknown setting for a block", """
    with cj.config(traceback_filter=False):  # <-
        pass
    """, AttributeError, "traceback_filter", "'traceback_filtering'", jax=None)
settings.add("a word that disables jit", """
    with cj.disable_jit('yes'):  # <-
        pass
    """, ValueError, "disable_jit", "'yes'", "True", jax=None)
settings.add("a setting deleted", "del cj.config.fallbacks", AttributeError, "fallbacks", jax=None)

trees = Group("Pytrees")
trees.add("keys that can't be sorted", "cj.tree.leaves({'layers': [{0: 1.0, 'a': 2.0}]})", TypeError,
          "['layers'][0]", "'a'")
trees.add("keys of an argument that can't be sorted",
          "cj.grad(lambda x, p: x, argnums=(0, 1))(2.0, {0: 1.0, 'a': 2.0})", TypeError, "args[1]", "'a'")
trees.add("keys of a result that can't be sorted", "cj.jit(lambda x: {'y': {0: x, 'a': x}})(1.0)", TypeError,
          "result['y']", "'a'")
trees.add("trees of different structure", "cj.tree.map(lambda x, y: x + y, {'a': 1, 'b': 2}, {'a': 1})", ValueError,
          "tree number 2", "'b'")
trees.add("trees of different type", "cj.tree.map(lambda x, y: x + y, (1, 2), [1, 2])", ValueError, "tuple", "list")
trees.add("too few leaves", "cj.tree.unflatten(cj.tree.structure((1, 2)), [1])", ValueError, "1", "2")
trees.add("a class registered twice", """
    class Point:
        pass
    cj.tree.register_static(Point)
    cj.tree.register_static(Point)
    """, ValueError, "Point", jax="""
    class Point:
        pass
    cj.tree_util.register_static(Point)
    cj.tree_util.register_static(Point)
    """)
trees.add("a reduction of no leaves", "cj.tree.reduce(lambda x, y: x + y, ())", TypeError, "initializer")

GROUPS = (names, settings, trees)
