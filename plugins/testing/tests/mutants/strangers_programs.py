"""Faults in rules of primitives that carry programs, planted by someone who had not seen the kit.

Many are modelled on bugs that were reported to array libraries and their compilers.
"""

from __future__ import annotations

from .mutant import mutants_of

COND, BRANCHES, SCAN, LOOPS, WHILE, CHECKPOINT, CUSTOM, MAPPED, SELECTED, EXPORTED = (
    f"corejax_control_flow.{name}" for name in (
        "conditional", "_branches", "_scan_primitive", "_scan_lowering", "looping", "checkpointing",
        "custom_derivatives", "_mapped_calls", "_selected_calls", "exporting"))
KIT = "corejax.interpreters.carrying"
SCAN_RULES, WHILE_RULES = "corejax_control_flow._scan_rules", "corejax_control_flow._while_rules"
WHILE_LOWERING = "corejax_control_flow._while_lowering"

MUTANTS = (
    *mutants_of("cond", BRANCHES, "evaluated", (
        ("evaluate", "weak type",
         "[x if aval_of(x).weak_type == aval.weak_type else roles.convert(x, aval.dtype, aval.weak_type)\n"
         "            for x, aval in zip(outs, out_avals_of(branches), strict=True)]", "list(outs)"),
    )),
    *mutants_of("cond", BRANCHES, "out_avals_of", (
        ("abstract_eval", "weak type", "[row[0] if", "[row[0].update(weak_type=not row[0].weak_type) if"),
    )),
    *mutants_of("cond", BRANCHES, "forward", (
        ("jvp", "missing case", "carrying.either(*[jvp_jaxpr(branch, nonzero)[1] for branch in branches])",
         "jvp_jaxpr(branches[0], nonzero)[1]"),
    )),
    *mutants_of("cond", BRANCHES, "backward", (
        ("transpose", "lost cotangent",
         "carrying.either(*[transpose_jaxpr(branch, linear, nonzero)[1] for branch in branches])",
         "transpose_jaxpr(branches[-1], linear, nonzero)[1]"),
    )),
    *mutants_of("cond", BRANCHES, "batched", (
        ("vmap", "missing case",
         "tuple([next((d for d in column if d is not None), None) for column in zip(*found, strict=True)])",
         "found[0]"),
    )),
    *mutants_of("cond", COND, "_Selection.run", (
        ("vmap", "missing case", "guarded = context.trace.may_differentiate", "guarded = False"),
    )),
    *mutants_of("cond", COND, "_Selection._where", (
        ("vmap", "swapped operands", "*(cases[::-1] if two and k == 0 else cases)]", "*cases]"),
        ("vmap", "comparison", "lax.lt(count, np.int32(self.axis.size))", "lax.eq(count, np.int32(0))"),
    )),
    *mutants_of("cond", BRANCHES, "split", (
        ("partial_eval", "missing case", "carrying.split_jaxpr(branch, unknown_in, unknown_out) for branch",
         "carrying.split_jaxpr(branch, unknown_in) for branch"),
    )),
    *mutants_of("cond", BRANCHES, "_shared_slots", (
        ("partial_eval", "swapped operands", "free.remove(i)", "pass"),
    )),
    *mutants_of("cond", BRANCHES, "without_dead_code", (
        ("dce", "missing case", "carrying.either(*[dce(branch, used_out)[1] for branch in branches])",
         "dce(branches[0], used_out)[1]"),
    )),
    *mutants_of("cond", COND, "_simpler", (
        ("jvp", "missing case", "elif type(atoms[0]) is Literal and len({*key}) == 1:",
         "elif type(atoms[0]) is Literal:"),
    )),

    *mutants_of("scan", SCAN_RULES, "jvp", (
        ("jvp", "missing case",
         "carry_dots = [instantiate(t) if nz else t for t, nz in zip(carry_dots, found.carry_nonzero, strict=True)]",
         "carry_dots = list(carry_dots)"),
    )),
    *mutants_of("scan", SCAN_RULES, "transpose", (
        ("transpose", "missing case",
         "*[instantiate(ct) for ct, nz in zip(ct_carry, found.carry_nonzero, strict=True) if nz],",
         "*carrying.without_zeros(ct_carry),"),
        ("transpose", "order", "*carrying.without_zeros(ct_ys), *[x for x in xs if type(x) is not Linear]]",
         "*[x for x in xs if type(x) is not Linear], *carrying.without_zeros(ct_ys)]"),
    )),
    *mutants_of("scan", SCAN_RULES, "batched", (
        ("vmap", "missing case", "if grown == carry == out:", "if grown == carry:"),
    )),
    *mutants_of("scan", SCAN, "_without_loop", (
        ("jvp", "weak type",
         "*[roles.convert(c, aval.dtype, aval.weak_type) for c, aval in zip(carry, carry_avals, strict=True)]",
         "*carry"),
    )),
    *mutants_of("scan", SCAN_RULES, "split_body", (
        ("partial_eval", "missing case", "return split, split.unknown_out[:body.num_carry]", "return split, carry"),
    )),
    *mutants_of("scan", "corejax_control_flow._scan_body", "Body.passes_on", (
        ("partial_eval", "wrong function",
         "return i < self.first_input and self.jaxpr.outvars[i - self.num_consts] is self.jaxpr.invars[i]",
         "return i < self.first_input"),
    )),
    *mutants_of("scan", SCAN_RULES, "shorter", (
        ("dce", "missing case",
         "[*[False] * num_consts, *carry, *[False] * (len(jaxpr.invars) - num_consts - num_carry)]", "False"),
    )),
    *mutants_of("scan", SCAN_RULES, "simplified", (
        ("jvp", "order", "found[out] = results[-1]", "found[out] = results[0]"),
    )),
    *mutants_of("scan", KIT, "hoist", (
        ("jvp", "missing case", "not all([x in invariant for x in found])", "not any([x in invariant for x in found])"),
    )),
    *mutants_of("scan", LOOPS, "lower_loop", (
        ("xla_translation", "missing case", "0 if loop.reverse else loop.length - rest", "loop.length - rest"),
    )),
    *mutants_of("scan", LOOPS, "_rounds", (
        ("xla_translation", "off by one", "integer(ctx, n - unroll, n)", "integer(ctx, n - 1, n)"),
    )),
    *mutants_of("scan", LOOPS, "Loop.steps", (
        ("xla_translation", "order", "        if self.reverse:\n            rows.reverse()\n", ""),
    )),

    *mutants_of("while_loop", WHILE_RULES, "batched", (
        ("vmap", "missing case", "vmap_jaxpr(body, size, name, (*body_dims, *carry), carry)",
         "vmap_jaxpr(body, size, name, (*body_dims, *carry))"),
        ("vmap", "axis", "at = len(cond.out_avals[0].shape)", "at = 0"),
    )),
    *mutants_of("while_loop", WHILE_LOWERING, "Lowering.masked", (
        ("xla_translation", "off by one", "return [self._cond(new), *new]", "return [self._cond(state), *new]"),
    )),
    *mutants_of("while_loop", WHILE_LOWERING, "Lowering._select", (
        ("xla_translation", "axis", "range(len(going.type.shape))",
         "range(len(shape) - len(going.type.shape), len(shape))"),
    )),
    *mutants_of("while_loop", WHILE_LOWERING, "Lowering._any", (
        ("xla_translation", "wrong function", '"stablehlo.or"', '"stablehlo.and"'),
    )),
    *mutants_of("while_loop", WHILE_RULES, "halves", (
        ("partial_eval", "missing case",
         "if any([u and r for u, r in zip([*cond_consts, *carry], reads, strict=True)]):",
         "if any(cond_consts):"),
    )),
    *mutants_of("while_loop", WHILE, "WhileLoop.partial_eval", (
        ("partial_eval", "missing case",
         "[v if unknown else Var(v.aval) for v, unknown in zip(eqn.outvars, found.unknown_out, strict=True)]",
         "list(eqn.outvars)"),
    )),

    *mutants_of("checkpoint_call", KIT, "check_operands", (
        ("abstract_eval", "refusal",
         "len(avals) != len(wanted) or not all([a.fits(w) for a, w in zip(avals, wanted, strict=True)])",
         "not all([a.fits(w) for a, w in zip(avals, wanted, strict=False)])"),
    )),
    *mutants_of("checkpoint_call", CHECKPOINT, "_whole_again", (
        ("partial_eval", "order", "select_outputs(jaxpr, waiting)", "select_outputs(jaxpr, waiting[::-1])"),
    )),
    *mutants_of("custom_call", CUSTOM, "CustomCall.partial_eval", (
        ("partial_eval", "missing case", "[_zero(x.aval) if unknown else x\n                                      "
         "for x, unknown in zip(eqn.invars, unknown_in, strict=True)]", "list(eqn.invars)"),
    )),
    *mutants_of("custom_call", SELECTED, "SelectedCall", (
        ("dce", "off by one", "return self._of(outs), self._of(dots)", "return self._of(outs), dots[: sum(self.used)]"),
    )),
    *mutants_of("custom_call", MAPPED, "MappedCall.jvp", (
        ("vmap", "order", "[*self.dims, *carrying.marked(self.dims, flows)]",
         "[*self.dims, *carrying.marked(self.dims, flows)[::-1]]"),
    )),
    *mutants_of("custom_pullback", MAPPED, "MappedPullback._of_argument", (
        ("vmap", "broadcast sum", "return ct if found is None else roles.sum_axes(ct, (found,))",
         "return ct if found is None else roles.index(roles.move_axis(ct, found, 0), 0)"),
    )),
    *mutants_of("custom_pullback", CUSTOM, "CustomPullback", (
        ("abstract_eval", "refusal",
         "if not all([t.fits(aval) for t, aval in zip(tangents, wanted, strict=True)]):",
         "if len(tangents) != len(wanted):"),
        ("decompose", "swapped operands", "_, out_dots = call.jvp(primals, dots)",
         "out_dots, _ = call.jvp(primals, dots)"),
    )),
    *mutants_of("exported_call", EXPORTED, "ExportedCall", (
        ("vmap", "axis", "roles.move_axis(x, d, 0) if d else x", "x"),
    )),
)
