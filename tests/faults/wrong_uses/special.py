"""Special functions of operands that they don't take: six wrong uses of each."""

from __future__ import annotations

from corejax.errors import CorejaxNotImplementedError

from .case import Group

#: Functions of one number.
UNARY = ("erf", "erfc", "erf_inv", "lgamma", "digamma", "bessel_i0e", "bessel_i1e")

special = Group("Special functions")
for name in UNARY:
    special.add(f"{name} of integers", f"lax.{name}(np.arange(3))", TypeError, name, "i64[3]", "floats", "astype")
    special.add(f"{name} of a Python integer", f"lax.{name}(1)", TypeError, name, "i64[]", "floats")
    special.add(f"{name} of complex numbers", f"lax.{name}(np.array([0.5j]))", TypeError, name, "c128[1]", "floats")
    special.add(f"{name} of a list", f"lax.{name}([0.5, 0.25])", TypeError, name, "list", "array")
    special.add(f"{name} of text", f'lax.{name}("0.5")', TypeError, name, "str")
    special.add(f"{name} of nothing", f"lax.{name}(None)", TypeError, name, "NoneType")

#: Functions of two numbers, a first operand, and whether they have no derivative by that.
BINARY = (("zeta", "2.0", True), ("polygamma", "1.0", True), ("igamma", "2.0", False), ("igammac", "2.0", False),
          ("igamma_grad_a", "2.0", True), ("random_gamma_grad", "2.0", True))
for name, first, refused in BINARY:
    special.add(f"{name} with an integer first", f"lax.{name}(np.array([1, 2]), np.ones(2))", TypeError, name, "i64[2]",
                "f64[2]", "astype")
    special.add(f"{name} of two precisions", f"lax.{name}(np.ones(2, np.float32), np.ones(2))", TypeError, name,
                "f32[2]", "f64[2]")
    special.add(f"{name} of different shapes", f"lax.{name}(np.ones(2), np.ones(3))", TypeError, name, "f64[2]",
                "f64[3]", "broadcast")
    special.add(f"{name} of nothing", f"lax.{name}({first}, None)", TypeError, "NoneType")
    special.add(f"{name} of complex numbers", f"lax.{name}({first}, np.array([0.5j]))", TypeError, name, "c128[1]")
    if refused:
        special.add(f"the derivative of {name} by its first operand", f"cj.grad(lax.{name})({first}, 3.0)",
                    CorejaxNotImplementedError, name, "not differentiable", jax=f"jax.grad(lax.{name})({first}, 3.0)")
    else:
        special.add(f"the second derivative of {name} by its first operand",
                    f"cj.grad(cj.grad(lax.{name}))({first}, 3.0)", CorejaxNotImplementedError, "igamma_grad_a",
                    "not differentiable", jax=f"jax.grad(jax.grad(lax.{name}))({first}, 3.0)")
special.add("betainc of integers", "lax.betainc(np.ones(2, int), np.ones(2, int), np.ones(2, int))", TypeError,
            "regularized_incomplete_beta", "i64[2]", "floats", "astype")
special.add("betainc of two precisions", "lax.betainc(np.ones(2), np.ones(2), np.ones(2, np.float32))", TypeError,
            "f64[2]", "f32[2]")
special.add("betainc of different shapes", "lax.betainc(np.ones(2), np.ones(3), np.ones(2))", TypeError, "f64[2]",
            "f64[3]", "broadcast")
special.add("betainc of nothing", "lax.betainc(2.0, None, 0.5)", TypeError, "NoneType")
special.add("betainc of complex numbers", "lax.betainc(2.0, 3.0, np.array([0.5j]))", TypeError, "c128[1]")
for place, operand in enumerate("ab"):
    special.add(f"the derivative of betainc by {operand}", f"cj.grad(lax.betainc, {place})(2.0, 3.0, 0.5)",
                CorejaxNotImplementedError, "regularized_incomplete_beta", "not differentiable", f"operand {place}",
                jax=f"jax.grad(lax.betainc, {place})(2.0, 3.0, 0.5)")

GROUPS = (special,)
