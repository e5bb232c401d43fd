"""Statements of functions that are checkpointed with a policy, around and within whatever else there is."""

from __future__ import annotations

from .making import Kind, Maker, kind
from .writing import Statement, Writer

#: Kinds of the mode "memory".
SAVING: dict[str, Kind] = {}

POLICIES = [
    "None", "api.checkpoint_policies.everything_saveable", "api.checkpoint_policies.nothing_saveable",
    "api.checkpoint_policies.dots_saveable", "api.checkpoint_policies.save_only_these_names('a')",
    "api.checkpoint_policies.save_any_names_but_these('a')",
    "api.checkpoint_policies.save_anything_except_these_names('b')",
    "api.checkpoint_policies.save_from_both_policies(api.checkpoint_policies.save_only_these_names('b'), "
    "api.checkpoint_policies.dots_saveable)",
    "(lambda primitive, *avals, **params: len(primitive.name) % 2 == 0)",
    "(lambda primitive, *avals, **params: sum([aval.size for aval in avals]) % 2 == 0)",
    "(lambda primitive, *avals, **params: primitive.name in ('sin', 'tanh', 'exp'))",
]

#: Values with names.
NAMED = {
    "u": ["api.ad_checkpoint.checkpoint_name(lax.sin({u}), 'a')", "api.ad_checkpoint.checkpoint_name({u} * {s}, 'b')",
          "lax.sin(api.ad_checkpoint.checkpoint_name(lax.tanh({u}), 'a'))"],
    "v": ["api.ad_checkpoint.checkpoint_name(lax.cos({v}), 'b')", "api.ad_checkpoint.checkpoint_name({u} + {v}, 'a')"],
    "s": ["api.ad_checkpoint.checkpoint_name(lax.sin({s}), 'a')",
          "lax.tanh(api.ad_checkpoint.checkpoint_name(({u} * {v}).sum(), 'b'))"],
}


@kind(10, among=SAVING)
def saving(make: Maker, depth: int) -> Statement:
    policy, cse = make.choice(POLICIES), make.choice(["", "", ", prevent_cse=False"])
    blocks = (make.block(depth),)
    args, outs = make.some(make.slots), make.results(blocks, make.slots, 1)

    def write(w: Writer, st: Statement) -> None:
        name = w.define(st.blocks[0], st.args, st.outs)
        w.assign(st.outs, f"api.checkpoint({name}, policy={policy}{cse})({w.list(st.args)})")
    return Statement("saving", write, blocks, args, outs)


@kind(4, among=SAVING)
def saving_by_flags(make: Maker, depth: int) -> Statement:
    """With a flag for each argument."""
    policy, flags = make.choice(POLICIES), make.choice(["(True, False)", "(False, True)", "(False, False)"])
    blocks = (make.block(depth),)
    outs = make.results(blocks, make.slots, 1)

    def write(w: Writer, st: Statement) -> None:
        name = w.define(st.blocks[0], ("u", "s"), st.outs)
        w.assign(st.outs, f"api.checkpoint({name}, policy={policy}, prevent_cse={flags})({w.list('us')})")
    return Statement("saving_by_flags", write, blocks, outs=outs)


@kind(6, among=SAVING)
def bounded(make: Maker, depth: int) -> Statement:
    """A loop of at most so many steps, whose step may be checkpointed."""
    most, policy = make.choice([1, 3, 7, 40]), make.choice([*POLICIES, "", "", ""])
    going = make.choice(["c[0] < 3", "c[2] < 2.5", "(c[0] < 5) & (c[1].sum() < 4.0)", "c[0] < {n} % 4", "c[2] > 0.0",
                         "c[0] < 0"])
    blocks = (make.block(depth),)

    def write(w: Writer, st: Statement) -> None:
        name = w.define(st.blocks[0], ("u", "s"), ("u", "s"), stem="step")
        step = f"api.checkpoint({name}, policy={policy})" if policy else name
        loop = (f"bounded(lambda c: {w.format(going)}, lambda c: (c[0] + 1, *{step}(c[1], c[2])), "
                f"(0, {w.list('us')}), max_steps={most})[1:]")
        w.assign("us", loop)
    return Statement("bounded", write, blocks, outs=("u", "s"))
