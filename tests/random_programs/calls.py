"""Statements that call functions: compiled, mapped, differentiated, or from the top of the program."""

from __future__ import annotations

from .making import Maker, kind
from .slots import SLOTS
from .writing import Statement, Writer, differentiable


@kind(2)
def jit(make: Maker, depth: int) -> Statement:
    return called(make, depth, "api.jit")


@kind(1)
def checkpoint(make: Maker, depth: int) -> Statement:
    return called(make, depth, "api.checkpoint")


def called(make: Maker, depth: int, decorator: str) -> Statement:
    def write(w: Writer, st: Statement) -> None:
        name = w.define(st.blocks[0], st.args, st.outs, decorator=decorator)
        w.assign(st.outs, f"{name}({w.list(st.args)})")
    blocks = (make.block(depth),)
    return Statement(decorator, write, blocks, make.some(make.slots), make.results(blocks, make.slots, 1))


@kind(2)
def helper(make: Maker, depth: int) -> Statement:
    """A call of a function from the top of the program; often of one that was called before."""
    if make.helpers and make.chance(0.5):
        return make.helpers[int(make.rng.integers(len(make.helpers)))]()
    decorator = make.choice(["api.jit", "api.jit", "api.checkpoint", ""])
    block, args = make.block(min(depth, 1)), make.typed(1)
    outs = make.results([block], least=1)

    def write(w: Writer, st: Statement) -> None:
        w.assign(st.outs, f"{w.helper(st.blocks[0], st.args, st.outs, decorator)}({w.list(st.args)})")
    make.helpers.append(lambda: Statement("helper", write, (block,), args, outs))
    return make.helpers[-1]()


@kind(1)
def vmap(make: Maker, depth: int) -> Statement:
    more = make.choice(["", "", ", axis_name='i'"])

    def write(w: Writer, st: Statement) -> None:
        name = w.define(st.blocks[0], ("s", "u"), ("s", "v"), stem="each")
        columns = w.format("lax.broadcast_in_dim({v}, (3, 2), (0,)) * np.array([1.0, 0.5])")
        w.line(f"rows = api.vmap({name}, (0, -1), (0, 1){more})({w.scope['u']}[:2], {columns})")
        w.put("s", "rows[0].sum()")
        w.put("v", "rows[1].sum(axis=1)")
    return Statement("vmap", write, (make.block(depth),))


@kind(1)
def vmap_of_flags(make: Maker, depth: int) -> Statement:
    def write(w: Writer, st: Statement) -> None:
        name = w.define(st.blocks[0], ("n", "b"), ("s", "u", "n"), stem="each")
        w.line(f"rows = api.vmap({name}, 0, (0, -1, 0))({w.scope['n']} + np.arange(2), np.array([True, False]))")
        w.put("s", "rows[0].sum()")
        w.put("u", "rows[1][:, 0] - 0.5 * rows[1][:, 1]")
        w.put("n", "rows[2].max()")
    return Statement("vmap_of_flags", write, (make.block(depth),))


# Derivatives inside of a program. Each is squashed, so that programs stay near one.

def squash(w: Writer, key: str, value: str) -> None:
    """The slot becomes a bounded function of a value of its type."""
    w.put(key, f"lax.tanh({value})" if key != "h" else value)


@kind(2)
def jvp(make: Maker, depth: int) -> Statement:
    def write(w: Writer, st: Statement) -> None:
        name = w.define(st.blocks[0], st.args, st.outs)
        outs = [f"{w.fresh(key)}_out" for key in st.outs]
        w.line(f"({', '.join(outs)},), dots = api.jvp({name}, {w.tuple(st.args)}, {tangents(w, st.args)})")
        for k, key in enumerate(st.outs):
            squash(w, key, f"{outs[k]} + dots[{k}]")
    blocks = (make.block(depth, needs="forward"),)
    return Statement("jvp", write, blocks, make.floats(), make.results(blocks, differentiable(make.slots), 1))


@kind(2)
def grad(make: Maker, depth: int) -> Statement:
    kept = make.chance(0.3)

    def write(w: Writer, st: Statement) -> None:
        with w.function(st.args) as name:
            w.block(st.blocks[0])
            w.line(f"return {w.scope['s']}")
        call = f"({name}, {tuple(range(len(st.args)))})({w.list(st.args)})"
        if kept:
            w.line(f"value, grads = api.value_and_grad{call}")
        else:
            w.line(f"grads = api.grad{call}")
        for k, key in enumerate(st.args):
            squash(w, key, f"grads[{k}]")
        if kept:
            w.put("s", "{s} + lax.tanh(value)")
    args = tuple([key for key in make.floats() if SLOTS[key].dtype.kind != "c"]) or ("s",)
    return Statement("grad", write, (make.block(depth, needs="reverse"),), args)


#: Ways in which a function of a linear map goes through a primitive: what it is called with, and how.
PASSAGES = [
    "{name}({given})", "api.jit(lambda f, *xs: f(*xs))({name}, {given})", "api.jit({name})({given})",
    "api.jit(lambda f: f)({name})({given})", "api.checkpoint(lambda f, *xs: f(*xs))({name}, {given})",
    "lax.cond({b}, lambda f, *xs: f(*xs), lambda f, *xs: f(*xs), {name}, {given})",
    "lax.scan(lambda f, _: (f, None), {name}, None, 2)[0]({given})",
    "lax.scan(lambda c, _: (c, {name}({given})), 0.0, None, 1, unroll=True)[1]",
]


@kind(1)
def linearize(make: Maker, depth: int) -> Statement:
    return passed(make, depth, "linearize")


@kind(1)
def vjp(make: Maker, depth: int) -> Statement:
    return passed(make, depth, "vjp")


def passed(make: Maker, depth: int, which: str) -> Statement:
    """A function from `linearize` or `vjp`, called after it went through something."""
    passage = make.choice(PASSAGES)
    made = make.choice(["api.{which}({name}, {args})", "api.jit(lambda *xs: api.{which}({name}, *xs))({args})"])

    def write(w: Writer, st: Statement) -> None:
        name = w.define(st.blocks[0], st.args, st.outs)
        line = made.format(which=which, name=name, args=w.list(st.args))
        w.line(f"outs, linear = {line}")
        given = tangents(w, st.outs if which == "vjp" else st.args)
        given = given if which == "vjp" else given[1:-1].rstrip(",")
        w.line(f"found = {passage.format(name='linear', given=given, **w.scope)}")
        rows = "[0]" if "scan(lambda c" in passage else ""
        for k, key in enumerate(st.args if which == "vjp" else st.outs):
            squash(w, key, f"found[{k}]{rows}")
        w.put("s", "{s} + lax.tanh(lax.real(outs[0]).sum())" if SLOTS[st.outs[0]].dtype.kind == "c" else
              "{s} + lax.tanh(lax.convert_element_type(outs[0], np.float64).sum())")
    blocks = (make.block(depth, needs={"linearize": "forward", "vjp": "reverse"}[which]),)
    return Statement(which, write, blocks, make.floats(), make.results(blocks, differentiable(make.slots), 1))


def tangents(w: Writer, keys: tuple[str, ...]) -> str:
    """A tuple of tangents, or cotangents, of these slots' types."""
    forms = ["lax.full_like({0}, 0.75)", "lax.full_like({0}, 0.5) * {0}"]  # NumPy makes bfloat16 * 0.5 float32
    values = [forms[k % 2].format(w.scope[key]) for k, key in enumerate(keys)]
    return f"({', '.join(values)}{',' if len(values) == 1 else ''})"
