"""Faults in the rules of primitives that carry programs."""

from __future__ import annotations

from .mutant import mutants_of

COND, SCAN, WHILE = (f"corejax_control_flow.{name}" for name in ("conditional", "scanning", "looping"))
SCAN_FORMS, WHILE_FORMS = "corejax_control_flow._scan_forms", "corejax_control_flow._while_forms"
SCAN_LOWERING, CALL = "corejax_control_flow._scan_lowering", "corejax_control_flow.call"

MUTANTS = (
    *mutants_of("cond", COND, "Cond", (
        ("evaluate", "off by one", "_nearest(int(args[0]), len(branches))",
         "_nearest(int(args[0]) + 1, len(branches))"),
        ("jvp", "lost cotangent", "else Zero(aval.tangent)", "else next(found, Zero(aval.tangent))",
         "where a tangent is zero there is nothing left to take, so it gives Zero as before"),
        ("jvp", "order", "outs = _cond(primals[0], [*primals[1:], *dots], dual)",
         "outs = _cond(primals[0], [*primals[1:], *dots[::-1]], dual)"),
        ("transpose", "order", "ct for ct in cotangents if type(ct) is not Zero]]",
         "ct for ct in cotangents[::-1] if type(ct) is not Zero]]"),
        ("transpose", "lost cotangent", "(next(outs) if next(flows) else Zero(x.aval)) if lin else None",
         "(next(outs) if next(flows) else None) if lin and not x.aval.ndim else None"),
        ("vmap", "missing case", "if dims[0] is not None:", "if dims[0]:"),
        ("vmap", "off by one", "return _cond(index, operands, mapped), out_dims",
         "return _cond(index, operands, mapped), [0] * len(out_dims)"),
        ("xla_translation", "order", "for region, branch in zip(case.regions, branches, strict=True)",
         "for region, branch in zip(case.regions, branches[::-1], strict=True)"),
        ("partial_eval", "missing case", "if unknown_in[0]:", "if all(unknown_in):"),
    )),
    *mutants_of("scan", SCAN, "Scan", (
        ("abstract_eval", "shape", "_stacked(aval, length) for aval in ys]]", "aval for aval in ys]]"),
        ("abstract_eval", "refusal", "_check(body, avals, length)", "pass"),
        ("jvp", "order", "reverse=reverse, unroll=unroll, hoisting=True))\n        carry_avals",
         "reverse=not reverse, unroll=unroll, hoisting=True))\n        carry_avals"),
        ("jvp", "swapped operands", "return [*carry, *ys], [*carry_dots, *y_dots]",
         "return [*carry, *ys], [*carry_dots[::-1], *y_dots]"),
        ("jvp", "lost cotangent", "operands += [*group, *[t for t in dots if type(t) is not Zero]]",
         "operands += [*group, *[roles.zeros(t.aval) for t in dots if type(t) is not Zero]]"),
        ("transpose", "order", "reverse=not reverse", "reverse=reverse"),
        ("transpose", "lost cotangent", "[next(ct_consts) if type(x) is Linear else None for x in consts]",
         "[None for x in consts]"),
        ("transpose", "order", "ct_init = [next(outs) if nz else None for nz in found.carry_nonzero]",
         "ct_init = [next(outs) if nz else None for nz in found.carry_nonzero][::-1]"),
        ("vmap", "axis", "to_dim(x, d, 1, axis.size) if d == 0", "to_dim(x, d, 1, axis.size) if d == 1"),
        ("vmap", "off by one", "None if d is None else d - 1 if d else 0 for d in x_dims",
         "None if d is None else d for d in x_dims"),
        ("vmap", "off by one", "d + 1 for d in found.ys", "d for d in found.ys"),
        ("vmap", "param", "found.body, length=length, reverse=reverse, unroll=unroll)\n        return outs, [*found",
         "found.body, length=length, reverse=False, unroll=unroll)\n        return outs, [*found"),
        ("vmap", "missing case", "x if wanted is None else to_dim(x, d, wanted, axis.size)",
         "x if wanted is None or d is None else to_dim(x, d, wanted, axis.size)"),
        ("xla_translation", "order", "Loop(ctx, jaxpr, length, reverse,", "Loop(ctx, jaxpr, length, not reverse,"),
        ("xla_translation", "param", "args, unroll)", "args, 1)",
         "unrolling changes how fast a loop is and nothing else"),
        ("partial_eval", "axis", "fresh = [Var(_stacked(aval, eqn.params[\"length\"])) for aval in found.fresh]",
         "fresh = [Var(aval) for aval in found.fresh]"),
        ("dce", "missing case", "return list(found.used_in), _with_body",
         "return [True] * len(eqn.invars), _with_body"),
    )),
    *mutants_of("scan", SCAN_FORMS, "_stage_forward", (
        ("jvp", "missing case", "grown = _either(carry, found[:num_carry])", "grown = carry"),
        ("jvp", "order", "select_outputs(reorder_invars(dual, [i for group in groups for i in group])",
         "select_outputs(dual"),
    )),
    *mutants_of("scan", SCAN_FORMS, "_summing", (
        ("transpose", "dropped term", "outs.append(out)", "outs.append(ct)"),
    )),
    *mutants_of("scan", SCAN_FORMS, "_stage_backward", (
        ("transpose", "missing case", "grown = _either(carry, nonzero[n_consts:n_consts + num_carry])",
         "grown = carry"),
    )),
    *mutants_of("scan", SCAN_FORMS, "_shorten", (
        ("dce", "missing case", "grown = _either(carry, body.operands(used)[1])", "grown = carry"),
    )),
    *mutants_of("scan", SCAN_FORMS, "_simplify", (
        ("evaluate", "wrong function", "found: dict[Any, Place] = {v: (\"repeat\", i) for i, v in enumerate(consts)}",
         "found: dict[Any, Place] = {v: (\"operand\", i) for i, v in enumerate(consts)}"),
    )),
    *mutants_of("while_loop", WHILE, "WhileLoop", (
        ("jvp", "order", "*carry, *carry_dots], found.loop)", "*carry, *carry_dots[::-1]], found.loop)"),
        ("jvp", "lost cotangent", "next(dots) if nz else Zero(aval.tangent)",
         "next(dots) if nz and aval.ndim else Zero(aval.tangent)"),
        ("vmap", "missing case", "x if wanted is None else to_dim(x, d, wanted, axis.size)",
         "x if wanted is None or d is None else to_dim(x, d, wanted, axis.size)"),
        ("vmap", "off by one", "found.loop), found.carry", "found.loop), [d and 0 for d in found.carry]",
         "the batch axis of a carry is in front, as the conditions of the samples are scalars"),
        ("dce", "missing case", "if True not in used_out and not eqn.effects:", "if not all(used_out):"),
        ("abstract_eval", "refusal", "_check(Loop(cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts), avals)",
         "pass"),
    )),
    *mutants_of("while_loop", WHILE_FORMS, "_stage_forward", (
        ("jvp", "missing case", "grown = _either(carry, found)", "grown = carry"),
    )),
    *mutants_of("while_loop", WHILE_FORMS, "_stage_batched", (
        ("vmap", "missing case", "at, grown = 0, [0] * len(carry)", "at, grown = 0, carry"),
    )),
    *mutants_of("while_loop", WHILE_FORMS, "_shorten", (
        ("dce", "missing case", "carry = _either(used_out, dce(cond, (True,))[1][cond_nconsts:])",
         "carry = list(used_out)"),
    )),
    *mutants_of("xla_call", CALL, "XlaCall", (
        ("partial_eval", "order", "operands = [*residuals, *[eqn.invars[i] for i in split.staged_operands]]",
         "operands = [*residuals[::-1], *[eqn.invars[i] for i in split.staged_operands]]"),
        ("vmap", "off by one", "return outs, out_dims", "return outs, [d and 0 for d in out_dims]"),
        ("dce", "missing case", "invars = [v for v, used in zip(eqn.invars, used_in, strict=True) if used]",
         "invars = eqn.invars[: used_in.count(True)]"),
    )),
)
