"""Statements that call functions with derivatives of their own.

These are not the derivatives of the function, so that it shows which are used. Such functions close over constants
alone, as they must.
"""

from __future__ import annotations

from .making import Maker, kind
from .writing import Statement, Writer

#: How the rule of a custom_jvp gets from primals u, s and tangents u_dot, s_dot to a pair that a later line uses
#: nonlinearly: primal and tangent go together through something that carries a function.
TOGETHER = [
    "api.jvp({function}, ({u}, {s}), (u_dot, s_dot))",
    "api.jit(lambda *xs: api.jvp({function}, xs[:2], xs[2:]))({u}, {s}, u_dot, s_dot)",
    "api.checkpoint(lambda *xs: api.jvp({function}, xs[:2], xs[2:]))({u}, {s}, u_dot, s_dot)",
    "lax.cond({s} > 0.2, lambda *xs: api.jvp({function}, xs[:2], xs[2:]), lambda *xs: (xs[:2], xs[2:]), "
    "{u}, {s}, u_dot, s_dot)",
    "lax.scan(lambda c, _: (api.jvp({function}, *c), None), (({u}, {s}), (u_dot, s_dot)), None, 2)[0]",
    "lax.fori_loop(0, 2, lambda _, c: api.jvp({function}, *c), (({u}, {s}), (u_dot, s_dot)))",
    "api.jit(lambda *xs: ((lax.sin(xs[0]), xs[1]), (lax.cos(xs[0]) * xs[2], xs[3])))({u}, {s}, u_dot, s_dot)",
]


@kind(2, stops="")
def custom_jvp_of_jvp(make: Maker, depth: int) -> Statement:
    together, decorator = make.choice(TOGETHER), make.choice(["api.jit", "api.jit", "api.checkpoint", ""])

    def write(w: Writer, st: Statement) -> None:
        inner, outer = st.blocks
        function = w.helper(inner, ("u", "s"), ("u", "s"), decorator)
        name = w.define(outer, ("u", "s"), ("u", "s"), decorator="api.custom_jvp", closed=True)
        w.line(f"@{name}.defjvp")
        with w.function((), more="primals, tangents", stem="rule", closed=True):
            w.line(f"({w.rename('us')[1:-1]}), (u_dot, s_dot) = primals, tangents")
            primals = w.list("us")
            w.line(f"(p, q), (p_dot, q_dot) = {together.format(function=function, **w.scope)}")
            w.line(f"return {name}({primals}), (p_dot * lax.cos(p) + q_dot, q_dot * lax.sin(q) * 0.5)")
        w.assign(("u", "s"), f"{name}({w.list('us')})")
    return Statement("custom_jvp_of_jvp", write, (make.block(0), make.block(depth)))


#: Rules of a custom_jvp of u, s and n: what the tangents of its two results are, by the results of another block.
JVP_RULES = [
    "u_dot * lax.sin({v}) + s_dot, (u_dot * {v}).sum() - s_dot * 0.5",
    "u_dot * {s}, s_dot * {s} + u_dot[0]",
    "u_dot * {s}, 0.0",
    "lax.full((3,), 0.0), s_dot * lax.cos({s})",
    "u_dot / {u} + lax.log({s}) * s_dot, s_dot / {s} + (u_dot * lax.log({u})).sum()",
    "u_dot * {s} / {u}, lax.log({s}) * s_dot + u_dot[0] / {u}[0]",
]


@kind(2)
def custom_jvp(make: Maker, depth: int) -> Statement:
    rule = make.choice(JVP_RULES)

    def write(w: Writer, st: Statement) -> None:
        body, other = st.blocks
        name = w.define(body, ("u", "s", "n"), ("u", "s"), decorator="api.custom_jvp", closed=True)
        w.line(f"@{name}.defjvp")
        with w.function((), more="primals, tangents", stem="rule", closed=True):
            w.line(f"{w.rename('usn')[1:-1]} = primals")
            primals = w.list("usn")
            w.line("u_dot, s_dot, _ = tangents")
            w.block(other)
            w.line(f"return {name}({primals}), ({w.format(rule)})")
        w.assign(("u", "s"), f"{name}({w.list('usn')})")
    return Statement("custom_jvp", write, (make.block(depth), make.block(min(depth, 1))))


#: The same with one rule for each argument: of a tangent, the result and the primals.
RULES_BY_ARGUMENT = ["lambda t, ans, x, y: t * lax.cos(y) * ans", "lambda t, ans, x, y: t * y / x",
                     "lambda t, ans, x, y: lax.log(x) * t", "None"]


@kind(2)
def custom_jvp_of_two(make: Maker, depth: int) -> Statement:
    """Of two scalars, by `defjvps` or by one rule whose terms may be infinite where a tangent is zero."""
    fun = make.choice(["lax.log(x) * y", "lax.sin(x) + y", "x * y"])
    rules = [make.choice(RULES_BY_ARGUMENT) for _ in range(2)]
    term = make.choice(["t[0] * p[1] / p[0] + lax.log(p[0]) * t[1]", "lax.cos(p[0]) * t[0] + t[1] / p[1]",
                        "t[0] * 2.0 + t[1] * lax.sqrt(p[0])"])
    separate, over = make.chance(0.4), make.choice(["s", "u"])

    def write(w: Writer, st: Statement) -> None:
        name = w.fresh("f")
        w.line(f"{name} = api.custom_jvp(lambda x, y: {fun})")
        if separate:
            w.line(f"{name}.defjvps({', '.join(rules)})")
        else:
            w.line(f"{name}.defjvp(lambda p, t: ({name}(*p), {term}))")
        w.put(over, f"{name}({{s}}, {{u}}[0])" if over == "s" else f"{name}({{u}}, {{v}})")
    return Statement("custom_jvp_of_two", write)


#: What a custom_vjp keeps of u, s and n, how its backward pass unpacks that, and the cotangents that it returns.
RESIDUALS = [("({u}, {s})", "{u}, {s} = kept"), ("({u}, {{'s': {s}, 'n': {n}}})", "{u}, {s} = kept[0], kept[1]['s']"),
             ("({u}, 1.0)", "{u}, {s} = kept"), ("({u}, lax.full((), 1.0))", "{u}, {s} = kept")]
COTANGENTS = ["u_bar * {v} + s_bar, s_bar * {s} + u_bar.sum(), None", "u_bar * {s}, 1.0, None", "u_bar, {s}, None",
              "u_bar * {s}, 0.0, None", "u_bar * lax.sin({u}), lax.full((), 1.0), None", "None, s_bar * {s}, None"]


@kind(2, stops="forward")
def custom_vjp(make: Maker, depth: int) -> Statement:
    kept, unpacked = make.choice(RESIDUALS)
    cotangents = make.choice(COTANGENTS)

    def write(w: Writer, st: Statement) -> None:
        body, other = st.blocks
        name = w.define(body, ("u", "s", "n"), ("u", "s"), decorator="api.custom_vjp", closed=True)
        with w.function(("u", "s", "n"), stem="forward", closed=True) as forward:
            w.line(f"return {name}({w.list('usn')}), {w.format(kept)}")
        with w.function((), more="kept, cts", stem="backward", closed=True) as backward:
            w.rename("us")
            w.line(w.format(unpacked))
            w.line("u_bar, s_bar = cts")
            w.block(other)
            w.line(f"return {w.format(cotangents)}")
        w.line(f"{name}.defvjp({forward}, {backward})")
        w.assign(("u", "s"), f"{name}({w.list('usn')})")
    return Statement("custom_vjp", write, (make.block(depth), make.block(min(depth, 1))))


@kind(1, stops="forward")
def custom_vjp_by_vjp(make: Maker, depth: int) -> Statement:
    """The residual is a function that `vjp` returned."""
    called = make.choice(["kept(cts)", "api.jit(lambda f, ct: f(ct))(kept, cts)"])

    def write(w: Writer, st: Statement) -> None:
        function = w.helper(st.blocks[0], ("u", "s"), ("u", "s"), "")
        name = w.fresh("f")
        w.line(f"{name} = api.custom_vjp({function})")
        w.line(f"{name}.defvjp(lambda u, s: api.vjp({function}, u, s), lambda kept, cts: {called})")
        w.assign(("u", "s"), f"{name}({w.list('us')})")
    return Statement("custom_vjp_by_vjp", write, (make.block(depth),))
