"""What authors of primitives do wrong: definitions, missing rules, rules that return the wrong thing."""

from __future__ import annotations

import textwrap

from .case import Group

definitions = Group("Defining a primitive")
missing = Group("Rules that a primitive doesn't have")
outputs = Group("What rules return")

TYPED = """
@hookimpl
def abstract_eval(self, avals):
    return avals[0]
"""
IMPL = """
@hookimpl
def impl(self, args):
    return args[0] * 2.0
"""
JVP = """
@hookimpl
def jvp(self, primals, tangents):
    return twice(*primals), twice(*tangents)
"""


def plugin(*hooks: str, declared: str = "", use: str = "twice(1.0)", at_class: bool = False) -> str:
    """A plugin `twice` with these hooks, and a line that uses it; `at_class` if the error points to its class."""
    body = "\n".join(hook.strip() for hook in hooks)
    head = "\n".join(filter(None, ('name = "twice"', declared)))
    indented = textwrap.indent("\n".join(filter(None, (head, body))), "    ")
    return "\n".join(("class Twice:" + "  # <-" * at_class, indented, "twice = define(Twice())", use))


def primitive(*rules: str, use: str = "twice(1.0)") -> str:
    """The same for jax: a primitive `twice` with these registrations."""
    return "\n".join(("twice_p = Primitive('twice')",
                      "twice = lambda *args, **params: twice_p.bind(*args, **params)", *rules, use))


JAX_TYPED = "twice_p.def_abstract_eval(lambda x: x)"
JAX_IMPL = "twice_p.def_impl(lambda x: jnp.asarray(x) * 2.0)"

define = definitions.add
define("a class instead of an object", """
    class Twice:
        name = "twice"
    twice = define(Twice)
    """, TypeError, "Twice", "instance", jax=None)
define("no name", """
    class Twice:
        pass
    twice = define(Twice())
    """, TypeError, "name", jax=None)
define("a name that isn't an identifier", """
    class Twice:
        name = "two times"
    twice = define(Twice())
    """, TypeError, "two times", "identifier", jax=None)
define("a misspelled hook", plugin(
    TYPED, IMPL, "@hookimpl  # <-\ndef transpos(self, cotangents, args):\n    return cotangents"),
       TypeError, "transpos", "'transpose'", jax=None)
define("a hook that is not marked", plugin(TYPED, IMPL, "def jvp(self, primals, tangents):  # <-\n    pass"),
       TypeError,
       "twice.jvp", "hookimpl", jax=None)
define("a misspelled declaration", plugin(TYPED, IMPL, declared="multiple_result = True", at_class=True), TypeError,
       "multiple_result", "'multiple_results'", jax=None)
define("a hook with another argument", plugin(TYPED, "@hookimpl  # <-\ndef impl(self, x):\n    return x"), TypeError,
       "twice.impl", "'x'", "args", jax=None)
define("a hook with starred operands", plugin(TYPED, "@hookimpl  # <-\ndef impl(self, *args):\n    return args[0]"),
       TypeError, "twice.impl", "*args", jax=None)
define("a hook that reads a param that doesn't exist",
       plugin(TYPED, "@hookimpl  # <-\ndef impl(self, args, *, by):\n    return args[0]"), TypeError, "twice.impl",
       "by", jax=None)
define("no types", plugin(IMPL, at_class=True), TypeError, "abstract_eval", "decompose",
       jax=primitive(JAX_IMPL, use="cj.jit(twice)(1.0)"))
define("nothing that computes", plugin(TYPED, at_class=True), TypeError, "impl", "xla_translation", "decompose",
       jax=primitive(JAX_TYPED))
define("linear operands that aren't a tuple", plugin(TYPED, IMPL, declared="linear = 0", at_class=True), TypeError,
       "linear", "(0,)", jax=None)
define("a flag that isn't a boolean", plugin(TYPED, IMPL, declared="multiple_results = 1", at_class=True), TypeError,
       "multiple_results", jax=None)
define("another version of the contract", plugin(TYPED, IMPL, declared="api_version = 99", at_class=True), TypeError,
       "99", "1", jax=None)
define("a declaration in the wrong place", plugin(TYPED, IMPL, declared='vmap = not_linear("never")', at_class=True),
       TypeError, "twice.vmap", jax=None)
define("a param that the primitive doesn't have", plugin(TYPED, IMPL, use="twice(1.0, by=2)"), TypeError, "by",
       jax=primitive(JAX_TYPED, JAX_IMPL, use="twice(1.0, by=2)"))
define("a param left out", plugin("@hookimpl\ndef abstract_eval(self, avals, *, by):\n    return avals[0]", IMPL),
       TypeError, "by", jax=primitive("twice_p.def_abstract_eval(lambda x, *, by: x)", JAX_IMPL))
define("a param without hash", plugin("@hookimpl\ndef abstract_eval(self, avals, *, by):\n    return avals[0]", IMPL,
                                      use="twice(1.0, by=[2])"), TypeError, "by", "list",
       jax=primitive("twice_p.def_abstract_eval(lambda x, *, by: x)", "twice_p.def_impl(lambda x, *, by: x)",
                     "mlir.register_lowering(twice_p, lambda ctx, x, *, by: [x])",
                     use="cj.jit(lambda x: twice(x, by=[2]))(1.0)"))
define("an operand too many for its declaration", plugin(
    TYPED, IMPL, declared="jvp = partials(lambda t, out, x: twice(t))",
    use="cj.jvp(twice, (1.0, 2.0), (1.0, 1.0))"), TypeError, "twice.jvp", "2", "1", jax=None)

lack = missing.add
lack("no jvp", plugin(TYPED, IMPL, use="cj.jvp(twice, (1.0,), (1.0,))"), NotImplementedError, "twice", "jvp",
     jax=primitive(JAX_TYPED, JAX_IMPL, use="cj.jvp(twice, (1.0,), (1.0,))"))
lack("no transpose", plugin(TYPED, IMPL, JVP, use="cj.grad(twice)(1.0)"), NotImplementedError, "twice", "transpose",
     jax=primitive(JAX_TYPED, JAX_IMPL, "ad.primitive_jvps[twice_p] = lambda p, t: (twice(*p), twice(*t))",
                   use="cj.grad(twice)(1.0)"))
lack("no vmap where substitutes are refused", plugin(TYPED, IMPL, use="""
with cj.config(fallbacks="error"):
    cj.vmap(twice)(np.ones(3))  # <-
""".strip()), NotImplementedError, "twice", "vmap",
     jax=primitive(JAX_TYPED, JAX_IMPL, use="cj.vmap(twice)(np.ones(3))"))
lack("no lowering where substitutes are refused", plugin(TYPED, IMPL, use="""
with cj.config(fallbacks="error"):
    cj.jit(twice)(1.0)  # <-
""".strip()), NotImplementedError, "twice", "xla_translation",
     jax=primitive(JAX_TYPED, JAX_IMPL, use="cj.jit(twice)(1.0)"))
lack("declared not differentiable", plugin(
    TYPED, IMPL, declared='jvp = not_differentiable("it counts")', use="cj.grad(twice)(1.0)"), NotImplementedError,
    "twice", "it counts", "stop_gradient", jax=None)
lack("declared not linear", plugin(
    TYPED, IMPL, JVP, declared='transpose = not_linear("it saturates")', use="cj.grad(twice)(1.0)"),
    NotImplementedError, "twice", "it saturates", jax=None)
lack("a derivative in an operand that is not linear", plugin(
    TYPED, "@hookimpl\ndef impl(self, args):\n    return args[0] * args[1]", declared="linear = (0,)",
    use="cj.jvp(twice, (1.0, 2.0), (1.0, 1.0))"), NotImplementedError, "twice", "operand 1", jax=None)


def returns(hook: str, result: str, *others: str, arguments: str = "", use: str, declared: str = "") -> str:
    """A plugin whose hook returns this."""
    return plugin(*others, f"@hookimpl\ndef {hook}(self, {arguments}):\n    return {result}", use=use,
                  declared=declared)


wrong = outputs.add
wrong("abstract_eval: None", returns("abstract_eval", "None", IMPL, arguments="avals", use="twice(1.0)"), TypeError,
      "twice.abstract_eval", "None", "ShapedArray",
      jax=primitive("twice_p.def_abstract_eval(lambda x: None)", JAX_IMPL, use="cj.jit(twice)(1.0)"))
wrong("abstract_eval: several types", returns("abstract_eval", "avals", IMPL, arguments="avals", use="twice(1.0)"),
      TypeError, "twice.abstract_eval", "multiple_results",
      jax=primitive("twice_p.def_abstract_eval(lambda x: [x])", JAX_IMPL, use="cj.jit(twice)(1.0)"))
wrong("abstract_eval: one type for several results", returns(
    "abstract_eval", "avals[0]", IMPL, arguments="avals", use="twice(1.0)", declared="multiple_results = True"),
    TypeError, "twice.abstract_eval", "sequence",
    jax=primitive("twice_p.multiple_results = True", JAX_TYPED, JAX_IMPL, use="cj.jit(twice)(1.0)"))
wrong("impl: another shape", returns("impl", "np.ones(3)", TYPED, arguments="args", use="twice(1.0)"), TypeError,
      "twice.impl", "f64[3]", "f64[]",
      jax=primitive(JAX_TYPED, "twice_p.def_impl(lambda x: np.ones(3))"))
wrong("impl: another dtype", returns("impl", "args[0].astype(np.float32)", TYPED, arguments="args",
                                     use="twice(np.ones(3))"), TypeError, "twice.impl", "f32[3]", "f64[3]",
      jax=primitive(JAX_TYPED, "twice_p.def_impl(lambda x: x.astype(np.float32))", use="twice(np.ones(3))"))
wrong("impl: None", returns("impl", "None", TYPED, arguments="args", use="twice(1.0)"), TypeError, "twice.impl",
      "None", jax=primitive(JAX_TYPED, "twice_p.def_impl(lambda x: None)"))
wrong("impl: too few results", returns(
    "impl", "[args[0]]", "@hookimpl\ndef abstract_eval(self, avals):\n    return [avals[0], avals[0]]",
    arguments="args", use="twice(1.0)", declared="multiple_results = True"), TypeError, "twice.impl", "2",
    jax=primitive("twice_p.multiple_results = True", "twice_p.def_abstract_eval(lambda x: [x, x])",
                  "twice_p.def_impl(lambda x: [x])"))

JVP_USE = "cj.jvp(twice, (np.ones(3),), (np.ones(3),))"


def jvp_returns(result: str) -> str:
    return returns("jvp", result, TYPED, IMPL, arguments="primals, tangents", use=JVP_USE)


def jax_jvp(result: str, use: str = JVP_USE) -> str:
    return primitive(JAX_TYPED, JAX_IMPL, f"ad.primitive_jvps[twice_p] = lambda primals, tangents: {result}", use=use)


for _name, _result, _words in (
        ("jvp: no pair", "twice(*primals)", ("(output, output tangent)",)),
        ("jvp: a tangent of another shape", "(twice(*primals), np.ones(4))", ("f64[4]", "f64[3]")),
        ("jvp: a tangent of another dtype", "(twice(*primals), np.ones(3, np.float32))", ("f32[3]", "f64[3]")),
        ("jvp: None for the tangent", "(twice(*primals), None)", ("None",)),
        ("jvp: an output of another type", "(np.ones(4), twice(*tangents))", ("f64[4]", "f64[3]"))):
    wrong(_name, jvp_returns(_result), TypeError, "twice.jvp", *_words, jax=jax_jvp(_result))

GRAD_USE = "cj.grad(lambda x: twice(x).sum())(np.ones(3))"


def transpose_returns(result: str) -> str:
    return returns("transpose", result, TYPED, IMPL, declared="linear = (0,)", arguments="cotangents, args",
                   use=GRAD_USE)


def jax_transpose(result: str) -> str:
    return primitive(JAX_TYPED, JAX_IMPL, "mlir.register_lowering(twice_p, lambda ctx, x: [x])",
                     f"ad.deflinear2(twice_p, lambda cotangents, *args: {result})", use=GRAD_USE)


for _name, _result, _words in (
        ("transpose: no sequence", "cotangents", ("f64[3]", "sequence")),
        ("transpose: too many cotangents", "[cotangents, cotangents]", ("sequence of 1",)),
        ("transpose: a cotangent of another shape", "[np.ones(4)]", ("f64[4]", "f64[3]", "operand 0")),
        ("transpose: a cotangent of another dtype", "[np.ones(3, np.float32)]", ("f32[3]", "f64[3]", "operand 0")),
        ("transpose: a cotangent that isn't an array", "['ct']", ("str", "f64[3]"))):
    wrong(_name, transpose_returns(_result), TypeError, "twice.transpose", *_words, jax=jax_transpose(_result))

VMAP_USE = "cj.vmap(twice)(np.ones((3, 2)))"


def vmap_returns(result: str) -> str:
    return returns("vmap", result, TYPED, IMPL, arguments="axis, args, dims", use=VMAP_USE)


def jax_vmap(result: str) -> str:
    return primitive(JAX_TYPED, JAX_IMPL, f"batching.primitive_batchers[twice_p] = lambda args, dims: {result}",
                     use=VMAP_USE)


for _name, _result, _words in (
        ("vmap: no pair", "twice(*args)", ("(output, dim)",)),
        ("vmap: an axis that doesn't exist", "(twice(*args), 2)", ("2",)),
        ("vmap: an axis that isn't an integer", "(twice(*args), 'front')", ("'front'",)),
        ("vmap: the wrong axis", "(twice(*args), 1)", ("f64[3,2]", "f64[2,3]")),
        ("vmap: None for a batched result", "(twice(*args), None)", ("f64[3,2]", "f64[2]")),
        ("vmap: a result of another size", "(np.ones((4, 2)), 0)", ("f64[4,2]", "f64[3,2]"))):
    wrong(_name, vmap_returns(_result), TypeError, "twice.vmap", *_words, jax=jax_vmap(_result))

LOWER_USE = "cj.jit(twice)(np.ones(3))"


def jax_lowering(result: str) -> str:
    return primitive(JAX_TYPED, JAX_IMPL, f"mlir.register_lowering(twice_p, lambda ctx, *args: {result})",
                     use=LOWER_USE)


wrong("xla_translation: None", returns("xla_translation", "None", TYPED, arguments="ctx, args", use=LOWER_USE),
      TypeError, "twice.xla_translation", "None", jax=jax_lowering("None"))
wrong("xla_translation: another type", returns("xla_translation", "ctx.constant(np.ones(4))", TYPED,
                                               arguments="ctx, args", use=LOWER_USE), TypeError,
      "twice.xla_translation", "4", "f64[3]", jax=jax_lowering("[mlir.ir_constant(np.ones(4))]"))
wrong("xla_translation: too many values", returns("xla_translation", "[args[0], args[0]]", TYPED,
                                                  arguments="ctx, args", use=LOWER_USE), TypeError,
      "twice.xla_translation", "a list", "f64[3]", jax=jax_lowering("[args[0], args[0]]"))
wrong("decompose: another type than announced", returns(
    "decompose", "lax.reshape(args[0], (3, 1))", TYPED, arguments="args", use=LOWER_USE), TypeError, "twice",
    "f64[3,1]", "f64[3]", jax=None)
wrong("decompose: no array", returns("decompose", "None", arguments="args", use="twice(np.ones(3))"), TypeError,
      "twice.decompose", "None", jax=None)
wrong("decompose: one result for several", returns(
    "decompose", "args[0]", arguments="args", use="twice(1.0)", declared="multiple_results = True"), TypeError,
    "twice.decompose", "f64[]", "sequence", jax=None)
wrong("effects: no set", returns("effects", "['print']", TYPED, IMPL, arguments="avals",
                                 use="cj.jit(twice)(1.0)"), TypeError, "twice.effects", "frozenset", jax=None)
SEVERAL = "@hookimpl\ndef abstract_eval(self, avals):\n    return avals"
wrong("dce: no pair", returns(
    "dce", "None", SEVERAL, IMPL,
    "@hookimpl\ndef jvp(self, primals, tangents):\n    return twice(*primals), twice(*tangents)",
    declared="multiple_results = True", arguments="eqn, used_out", use="""
f = cj.jit(lambda x: x * twice(x)[0])
cj.linearize(f, 1.0)
""".strip()), TypeError, "twice.dce", "(used_in, equation or None)", jax=None)
wrong("partial_eval: nothing", returns(
    "partial_eval", "None", SEVERAL, IMPL, declared="multiple_results = True", arguments="eqn, unknown_in",
    use="cj.linear_transpose(lambda x: twice(x)[0], 1.0)"), TypeError, "twice.partial_eval", "None", jax=None)
wrong("linearize: no triple", returns("linearize", "twice(*primals)", TYPED, IMPL, declared="linear = (0,)",
                                      arguments="primals, nonzero", use="cj.linearize(twice, 1.0)"), TypeError,
      "twice.linearize", jax=None)
wrong("evaluate: nothing", returns(
    "evaluate", "None", "@hookimpl\ndef abstract_eval(self, avals):\n    return avals",
    "@hookimpl\ndef xla_translation(self, ctx, args):\n    return args", declared="multiple_results = True",
    arguments="args", use="twice(1.0)"), TypeError, "twice.evaluate", "None", jax=None)

GROUPS = (definitions, missing, outputs)
