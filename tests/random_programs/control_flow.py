"""Statements that branch and loop, over blocks that close over what was there before them."""

from __future__ import annotations

from .making import Maker, kind
from .writing import Statement, Writer


def predicate(make: Maker) -> str:
    return str(make.choice(["{b}", "{b}", "{s} > 0.2", "{n} % 2 == 0", "{u}[0] < {s}", "True", "{n}"]))


@kind(2)
def cond(make: Maker, depth: int) -> Statement:
    test, packed = predicate(make), make.chance(0.3)

    def write(w: Writer, st: Statement) -> None:
        branches = []
        for block in st.blocks:
            if packed:
                with w.function((), more="operands", stem="branch") as name:
                    w.assign(st.args, "operands")
                    w.block(block)
                    w.line(f"return {w.tuple(st.outs)}")
                branches.append(name)
            else:
                branches.append(w.define(block, st.args, st.outs, stem="branch"))
        operands = w.tuple(st.args) if packed else w.list(st.args)
        w.assign(st.outs, f"lax.cond({', '.join([w.format(test), *branches, *([operands] if operands else [])])})")
    blocks = make.block(depth), make.block(depth)
    return Statement("cond", write, blocks, make.typed(), make.results(blocks, least=1))


@kind()
def switch(make: Maker, depth: int) -> Statement:
    def write(w: Writer, st: Statement) -> None:
        branches = [w.define(block, st.args, st.outs, stem="branch") for block in st.blocks]
        operands = w.list(st.args)
        w.assign(st.outs, f"lax.switch({w.scope['n']}, [{', '.join(branches)}]{', ' * bool(operands)}{operands})")
    blocks = tuple([make.block(depth) for _ in range(make.choice([1, 2, 2, 3]))])
    return Statement("switch", write, blocks, make.typed(), make.results(blocks, least=1))


@kind(3)
def scan(make: Maker, depth: int) -> Statement:
    rows = make.choice([("u", "s"), ("v", "s"), ("u", "s"), None, None])
    length, collect = make.choice([3, 2, 1, 0, 0]), make.typed()
    more = f"{make.choice(['', '', ', reverse=True'])}{make.choice(['', '', ', unroll=2', ', unroll=True'])}"
    weak = make.chance(0.15)

    def write(w: Writer, st: Statement) -> None:
        with w.function((), more="carry, x", stem="body") as name:
            if st.outs:
                w.assign(st.outs, "carry")
            if rows:
                w.put("s", f"{{{rows[1]}}} * x")
            w.block(st.blocks[0])
            w.line(f"return {w.tuple(st.outs)}, {w.tuple(collect)}")
        init = dict.fromkeys("s", "0.5") if weak else {}
        carry = "".join([f"{init.get(key, w.scope[key])}, " for key in st.outs])
        value = f"lax.scan({name}, ({carry}), {w.scope[rows[0]] if rows else f'None, {length}'}{more})"
        carried = w.rename(st.outs) if st.outs else "_"
        w.line(f"{carried}, rows = {value}")
        for k, key in enumerate(collect):
            if key in ("u", "v", "w"):
                w.put(key, f"rows[{k}].sum(axis=0)")
            elif key in ("s", "z"):
                w.put(key, f"{{{key}}} + rows[{k}].sum() * 0.5")
    blocks = (make.block(depth),)
    return Statement("scan", write, blocks, outs=make.results(blocks))


@kind(3)
def fori(make: Maker, depth: int) -> Statement:
    lower, count = make.choice([0, 0, 1, -1]), make.choice([0, 1, 2, 3])
    return _fori(make, depth, f"{lower}, {lower + count}")


@kind(1, stops="reverse")
def computed_fori(make: Maker, depth: int) -> Statement:
    return _fori(make, depth, "0, {n} % 4")


def _fori(make: Maker, depth: int, bounds: str) -> Statement:
    counted = make.chance(0.4)

    def write(w: Writer, st: Statement) -> None:
        with w.function((), more="k, carry", stem="body") as name:
            w.assign(st.outs, "carry")
            if counted:
                w.put("n", "{n} + k")
            w.block(st.blocks[0])
            w.line(f"return {w.tuple(st.outs)}")
        w.assign(st.outs, f"lax.fori_loop({w.format(bounds)}, {name}, {w.tuple(st.outs)})")
    blocks = (make.block(depth),)
    return Statement("fori", write, blocks, outs=make.results(blocks, least=1))


@kind(2, stops="reverse")
def while_loop(make: Maker, depth: int) -> Statement:
    test = make.choice(["k < 2", "(k < 3) & ({s} < 0.8)", "(k < 1) | (({n} > 0) & (k < 3))", "k < 0"])

    def write(w: Writer, st: Statement) -> None:
        with w.function((), more="state", stem="test") as condition:
            w.line(f"k, {w.rename(st.outs)} = state")
            w.line(f"return {w.format(test)}")
        with w.function((), more="state", stem="body") as body:
            w.line(f"k, {w.rename(st.outs)} = state")
            w.block(st.blocks[0])
            w.line(f"return k + 1, {w.tuple(st.outs)}")
        init = f"(0, {w.tuple(st.outs)})"
        w.line(f"_, {w.rename(st.outs)} = lax.while_loop({condition}, {body}, {init})")
    blocks = (make.block(depth),)
    return Statement("while_loop", write, blocks, outs=make.results(blocks, least=1))


@kind()
def map(make: Maker, depth: int) -> Statement:
    over = make.choice(["u", "v", "o"]) if "o" in make.slots else make.choice("uv")

    def write(w: Writer, st: Statement) -> None:
        name = w.define(st.blocks[0], ("s",), st.outs, stem="each")
        w.line(f"rows = lax.map({name}, {w.scope[over]})")
        for k, key in enumerate(st.outs):
            if key in ("u", "v", "w", "z", "o"):
                w.put(key, f"rows[{k}].sum(axis=0)")
            elif key == "s":
                w.put("u", f"rows[{k}]" if over != "o" else f"{{u}} + rows[{k}].sum()")
    blocks = (make.block(depth),)
    return Statement("map", write, blocks, outs=make.results(blocks, least=1))


@kind(2)
def invariant(make: Maker, depth: int) -> Statement:
    """A loop that uses, nonlinearly, what a carrying primitive gives for values from outside of the loop."""
    decorator, count = make.choice(["api.jit", "api.jit", "api.checkpoint", ""]), make.choice([0, 0, 1, 2])
    used = make.choice(["lax.sin(r) * (p * p).sum()", "lax.sin(r) * (p * p).sum()", "lax.sqrt(lax.abs({outer}))",
                        "lax.log(lax.abs({outer}))", "1.0 / {outer}"])
    loop = make.choice(["lax.fori_loop(0, {count}, {body}, ({s},))",
                        "lax.scan(lambda c, _: ({body}(0, c), None), ({s},), None, {count})[0]",
                        "(lax.map(lambda t: {body}(0, (t,))[0], {u}).sum(),)"])

    def write(w: Writer, st: Statement) -> None:
        name = w.helper(st.blocks[0], ("u", "s"), ("u", "s"), decorator)
        given, outer = w.list("us"), w.scope["s"]
        with w.function((), more="k, carry", stem="body") as body:
            w.assign("s", "carry")
            w.line(f"p, r = {name}({given})")
            w.line(f"return ({w.scope['s']} * 0.5 + {used.format(outer=outer)},)")
        w.assign("s", loop.format(count=count, body=body, **w.scope))
    return Statement("invariant", write, (make.block(min(depth, 1)),), outs=("s",))
