"""Faults in the kernel's families, seen through primitives that are rows of them."""

from __future__ import annotations

from .mutant import mutants_of

ELEMENTWISE, SPREADING = "corejax.packs.families.elementwise", "corejax.packs.families.spreading"
SCALARS = "corejax.packs.families.scalars"

MUTANTS = (
    *mutants_of("mul sin", ELEMENTWISE, "Elementwise._type", (
        ("abstract_eval", "weak type", "weak = all([aval.weak_type for aval in typed])", "weak = False"),
    )),
    *mutants_of("sub", ELEMENTWISE, "Elementwise._type", (
        ("abstract_eval", "weak type", "weak = all([", "weak = any(["),
        ("abstract_eval", "refusal", "if kind not in self._kinds and", "if False and"),
        ("abstract_eval", "shape", "common_shape(self.name, avals)", "avals[0].shape"),
    )),
    *mutants_of("eq", ELEMENTWISE, "comparison", (
        ("abstract_eval", "dtype", "result=lambda _: types.bool_", "result=lambda dtype: dtype"),
    )),
    *mutants_of("mul", ELEMENTWISE, "Elementwise._transpose", (
        ("transpose", "broadcast sum", "unspread(backward(cotangents, *args, **params), x)",
         "backward(cotangents, *args, **params)"),
        ("transpose", "order", "return found", "return found[::-1]"),
    )),
    *mutants_of("sub", ELEMENTWISE, "Elementwise._transpose", (
        ("transpose", "off by one", "backward = self._backward[i]", "backward = self._backward[0]"),
    )),
    *mutants_of("add clamp", ELEMENTWISE, "Elementwise.vmap", (
        ("vmap", "off by one", "self._bind(*args, **params), dim", "self._bind(*args, **params), 0"),
    )),
    *mutants_of("exp", ELEMENTWISE, "Elementwise.vmap", (
        ("vmap", "off by one", "self._bind(args[0], **params), dims[0]", "self._bind(args[0], **params), 0"),
    )),
    *mutants_of("integer_pow", ELEMENTWISE, "Elementwise.vmap", (
        ("vmap", "param", "self._bind(args[0], **params), dims[0]",
         "self._bind(args[0], **{name: 2 for name in params}), dims[0]"),
    )),
    *mutants_of("sub", ELEMENTWISE, "Elementwise.__init__", (
        ("impl", "swapped operands",
         '"impl": None if impl is None else per_operand(impl, arity, **self._settling(compiled_at)).__func__',
         '"impl": (lambda rule: (setattr(rule, "per_operand", rule.per_operand._replace('
         'function=lambda *operands: impl(*operands[::-1]))), rule)[1])('
         'per_operand(impl, arity, **self._settling(compiled_at)).__func__)'),
    )),
    *mutants_of("sub", ELEMENTWISE, "_spreading", (
        ("jvp", "broadcast sum", "spread(partial(tangent, out, *args, **params), out)",
         "partial(tangent, out, *args, **params)"),
    )),
    *mutants_of("atan2", ELEMENTWISE, "_lowering", (
        ("xla_translation", "broadcast sum", "ctx.op(name, spread_operands(ctx, args))", "ctx.op(name, args)"),
    )),
    *mutants_of("sub", SPREADING, "unspread", (
        ("transpose", "broadcast sum", "tuple(range(len(ct.aval.shape)))", "(0,)"),
        ("transpose", "missing case", "if operand.aval.shape or not ct.aval.shape:",
         "if operand.aval.shape or ct.aval.shape == (0,):"),
    )),
    *mutants_of("sub", SPREADING, "spread", (
        ("jvp", "axis", "roles.broadcast(x, shape, ())", "roles.broadcast(x, shape[:1], ())"),
    )),
    *mutants_of("div", SPREADING, "align", (
        ("vmap", "axis", "roles.move_axis(x, d, dim)", "x"),
        ("vmap", "axis", "roles.expand(x, size, dim) if s else x", "roles.expand(x, size, 0) if s else x"),
        ("vmap", "off by one", "roles.broadcast(x, full, (dim,))", "roles.broadcast(x, full, (len(full) - 1,))"),
        ("vmap", "missing case", "if len(s) - (d is not None) == rank:", "if len(s) == rank + 1:"),
        ("vmap", "off by one", "max([len(s) - (d is not None) for", "max([len(s) for"),
        ("vmap", "missing case", "full = full or (size, *s)", "full = full or s"),
    )),
    *mutants_of("clamp select_n", SPREADING, "align", (
        ("vmap", "axis", "roles.expand(x, size, dim) if s else x", "roles.expand(x, size, dim)"),
    )),
    *mutants_of("integer_pow", SPREADING, "constant_like", (
        ("xla_translation", "dtype", "astype(aval.dtype)", "astype(np.float64)"),
    )),
    *mutants_of("sub rem", SPREADING, "common_shape", (
        ("abstract_eval", "refusal", "            if shape:\n", "            if len(shape) > 1:\n"),
    )),
    *mutants_of("pow", SPREADING, "spread_operands", (
        ("xla_translation", "missing case", "if not atom.aval.shape:", "if i and not atom.aval.shape:"),
    )),
    *mutants_of("log1p", SCALARS, "matching", (
        ("jvp", "swapped operands", "return bind(x, y if scalar is None else scalar)", "return bind(x, x)"),
    )),
    *mutants_of("logistic", SCALARS, "matching", (
        ("jvp", "swapped operands", "bind(x if scalar is None else scalar, y)",
         "bind(y, x if scalar is None else scalar)"),
    )),
)
