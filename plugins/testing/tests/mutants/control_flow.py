"""Faults in the rules of primitives that carry programs; in the kit of such rules, where they leave the work to it."""

from __future__ import annotations

from .mutant import mutants_of

COND, SCAN, WHILE, CALL = (f"corejax_control_flow.{name}" for name in (
    "conditional", "_scan_primitive", "looping", "call"))
KIT = "corejax.interpreters.carrying"
SCAN_RULES, WHILE_RULES = "corejax_control_flow._scan_rules", "corejax_control_flow._while_rules"

MUTANTS = (
    *mutants_of("cond", COND, "Cond", (
        ("evaluate", "off by one", "_nearest(int(args[0]), len(branches))",
         "_nearest(int(args[0]) + 1, len(branches))"),
    )),
    *mutants_of("cond", KIT, "part_tangents", (
        ("jvp", "lost cotangent", "else Zero(aval_of(x).tangent)", "else next(tangents, Zero(aval_of(x).tangent))"),
    )),
    *mutants_of("cond", KIT, "with_tangents", (
        ("jvp", "order", "operands += without_zeros(dots)", "operands += without_zeros(dots)[::-1]"),
    )),
    *mutants_of("cond", KIT, "transpose", (
        ("transpose", "order", "*without_zeros(cotangents)]", "*without_zeros(cotangents)[::-1]]"),
        ("transpose", "lost cotangent", "next(back) if type(x) is Linear else None for x in args",
         "next(back) if type(x) is Linear and not x.aval.ndim else None for x in args"),
    )),
    *mutants_of("cond", COND, "Cond", (
        ("vmap", "missing case", "if dims[0] is not None:", "if dims[0]:"),
        ("vmap", "off by one", "return _cond(index, mapped, operands), out_dims",
         "return _cond(index, mapped, operands), [0] * len(out_dims)"),
        ("xla_translation", "order", "for region, branch in zip(made.regions, branches, strict=True)",
         "for region, branch in zip(made.regions, branches[::-1], strict=True)"),
    )),
    *mutants_of("cond", COND, "Cond.partial_eval", (
        ("partial_eval", "missing case", "if unknown_in[0]:", "if all(unknown_in):"),
    )),
    *mutants_of("cond", COND, "Cond.recompute", (
        ("recompute", "order", "invars = [invars[n], *invars[:n], *invars[n + 1:]]", "pass"),
    )),
    *mutants_of("cond", "corejax_control_flow._branch_saving", "saving", (
        ("recompute", "swapped operands", "slot_vars = [binders.get(i) or Var(aval) for i, aval in enumerate(fresh)]",
         "slot_vars = [binders.get(i) or Var(aval) for i, aval in enumerate(fresh)][::-1]"),
        ("recompute", "missing case", "kept = [outs[i] for i, unknown in enumerate(unknown_out) if not unknown]",
         "kept = [*outs.values()]"),
    )),
    *mutants_of("scan", "corejax_control_flow._scan_saving", "saving_scan", (
        ("recompute", "missing case", 'if where == "result" and i < body.num_carry:',
         'if where == "result" and i < 0:'),
        ("recompute", "order", "invars=[*found.staged.invars[n:], *found.staged.invars[:n]]",
         "invars=[*found.staged.invars]"),
        ("recompute", "missing case", "return found, found.unknown_out[:body.num_carry]", "return found, carry"),
    )),
    *mutants_of("bounded_while_loop", "corejax_control_flow.bounded_loops", "BoundedWhileLoop.recompute", (
        ("recompute", "off by one", "(where, i + (where == \"result\"))", "(where, i)"),
        ("recompute", "order", "[count, *own, *rows]", "[count, *rows, *own]"),
        ("recompute", "missing case", "if known_cond is None:", "if False:"),
    )),
    *mutants_of("counted_scan", "corejax_control_flow.counted_scanning", "CountedScan.recompute", (
        ("recompute", "missing case", "if unknown_in[0]:", "if all(unknown_in):"),
    )),
    *mutants_of("scan", SCAN, "Scan", (
        ("abstract_eval", "shape", "stacked(aval, length) for aval in ys]]", "aval for aval in ys]]"),
        ("abstract_eval", "refusal", "_check(body, avals, length, unroll)", "pass"),
        ("jvp", "order", "run_scan, hoisting=True, **params",
         "run_scan, hoisting=True, **{**params, 'reverse': not params['reverse']}"),
    )),
    *mutants_of("scan", KIT, "part_tangents", (
        ("jvp", "swapped operands", "for x, nz in zip(group, flags, strict=True)]",
         "for x, nz in zip(group, flags, strict=True)][::-1]"),
    )),
    *mutants_of("scan", KIT, "with_tangents", (
        ("jvp", "lost cotangent", "operands += without_zeros(dots)",
         "operands += [roles.zeros(t.aval) for t in without_zeros(dots)]"),
    )),
    *mutants_of("scan", SCAN, "Scan", (
        ("transpose", "order", "reverse=not reverse", "reverse=reverse"),
    )),
    *mutants_of("scan", SCAN_RULES, "", (
        ("transpose", "lost cotangent", "[next(ct_consts) if type(x) is Linear else None for x in consts]",
         "[None for x in consts]"),
        ("transpose", "order", "ct_init = [next(outs) if nz else None for nz in found.carry_nonzero]",
         "ct_init = [next(outs) if nz else None for nz in found.carry_nonzero][::-1]"),
        ("vmap", "axis", "to_dim(x, d, 1, size) if d == 0", "to_dim(x, d, 1, size) if d == 1"),
        ("vmap", "off by one", "None if d is None else d - 1 if d else 0 for d in dims",
         "None if d is None else d for d in dims"),
        ("vmap", "off by one", "d + 1 for d in found.ys", "d for d in found.ys"),
    )),
    *mutants_of("scan", SCAN, "Scan.vmap", (
        ("vmap", "param", "partial(run_scan, **params)", "partial(run_scan, **{**params, 'reverse': False})"),
    )),
    *mutants_of("scan", SCAN_RULES, "vmap", (
        ("vmap", "missing case", "x if wanted is None else to_dim(x, d, wanted, axis.size)",
         "x if wanted is None or d is None else to_dim(x, d, wanted, axis.size)"),
    )),
    *mutants_of("scan", SCAN, "Scan", (
        ("xla_translation", "order", "Loop(ctx, jaxpr, length, reverse,", "Loop(ctx, jaxpr, length, not reverse,"),
        ("xla_translation", "param", "args, unroll)", "args, 1)",
         "unrolling changes how fast a loop is and nothing else"),
        ("partial_eval", "axis", "fresh = [stacked(aval, eqn.params[\"length\"]) for aval in split.fresh_avals]",
         "fresh = split.fresh_avals"),
    )),
    *mutants_of("scan", KIT, "shorten", (
        ("dce", "missing case", "return list(used_in), remake(", "return [True] * len(eqn.invars), remake("),
    )),
    *mutants_of("scan", SCAN_RULES, "forward", (
        ("jvp", "missing case", "return (dual, found), found[:body.num_carry]", "return (dual, found), carry"),
    )),
    *mutants_of("scan", KIT, "in_groups", (
        ("jvp", "order", "select_outputs(reorder_invars(dual, _places(operands))", "select_outputs(dual"),
    )),
    *mutants_of("scan", SCAN_RULES, "_summing", (
        ("transpose", "dropped term", "outs.append(out)", "outs.append(ct)"),
    )),
    *mutants_of("scan", SCAN_RULES, "backward", (
        ("transpose", "missing case", "return (back, nonzero), nonzero[n_consts:n_consts + num_carry]",
         "return (back, nonzero), carry"),
    )),
    *mutants_of("scan", SCAN_RULES, "shorter", (
        ("dce", "missing case", "return (smaller, used), body.operands(used)[1]", "return (smaller, used), carry"),
    )),
    *mutants_of("scan", SCAN_RULES, "simplified", (
        ("evaluate", "wrong function", "= {v: (\"repeat\", i) for i, v in enumerate(consts)}",
         "= {v: (\"operand\", i) for i, v in enumerate(consts)}"),
    )),
    *mutants_of("while_loop", WHILE, "WhileLoop", (
        ("jvp", "order", "([], const_dots, carry_dots)", "([], const_dots, carry_dots[::-1])"),
    )),
    *mutants_of("while_loop", KIT, "part_tangents", (
        ("jvp", "lost cotangent", "next(tangents) if nz else", "next(tangents) if nz and aval_of(x).ndim else"),
    )),
    *mutants_of("while_loop", WHILE, "WhileLoop", (
        ("vmap", "missing case", "x if wanted is None else to_dim(x, d, wanted, axis.size)",
         "x if wanted is None or d is None else to_dim(x, d, wanted, axis.size)"),
        ("vmap", "off by one", "*carry]), found.carry", "*carry]), [d and 0 for d in found.carry]"),
    )),
    *mutants_of("while_loop", KIT, "shorten", (
        ("dce", "missing case", "if True not in used_out and not eqn.effects:", "if not all(used_out):"),
    )),
    *mutants_of("while_loop", WHILE, "WhileLoop", (
        ("abstract_eval", "refusal", "_check(loop, avals)",
         "pass"),
    )),
    *mutants_of("while_loop", WHILE_RULES, "forward", (
        ("jvp", "missing case", "return jvp_jaxpr(loop.body, [*consts, *carry], carry)",
         "return jvp_jaxpr(loop.body, [*consts, *carry], carry)[0], carry"),
    )),
    *mutants_of("while_loop", WHILE_RULES, "batched", (
        ("vmap", "missing case", "at, grown = 0, [0] * len(carry)", "at, grown = 0, carry"),
    )),
    *mutants_of("while_loop", WHILE_RULES, "shorter", (
        ("dce", "missing case", "needed = carrying.either(used_out, dce(loop.cond, (True,))[1][loop.cond_nconsts:])",
         "needed = used_out"),
    )),
    *mutants_of("xla_call", KIT, "divide", (
        ("partial_eval", "order", "for where, i in split.places]",
         "for where, i in [*split.residuals[::-1], *split.places[len(split.residuals):]]]"),
    )),
    *mutants_of("xla_call", CALL, "XlaCall", (
        ("vmap", "off by one", "return _bind(mapped, args, **params), out_dims",
         "return _bind(mapped, args, **params), [d and 0 for d in out_dims]"),
    )),
    *mutants_of("xla_call", KIT, "shorten", (
        ("dce", "missing case", "remake(program, marked(eqn.invars, used_in)",
         "remake(program, eqn.invars[: list(used_in).count(True)]"),
    )),
)
