"""Statements of random programs that hold functions: loops, branches, calls, maps and derivatives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from random_scopes import Scope, Value


def scan(scope: Scope) -> None:
    init, writer = scope.float(), scope.writer
    varying = scope.target(init.varying)
    xs = scope.any("fi", 1, most=300)
    if xs.shape[0] > 6:
        return
    name, c, x = writer.fresh("step"), writer.fresh("c"), writer.fresh("x")
    carry, each = Value(c, init.shape, "f", varying), Value(x, xs.shape[1:], xs.kind, xs.varying)
    with writer.function(name, [c, x]):
        within = scope.inner([carry, each])
        within.statements(int(scope.rng.integers(1, 4)))
        y = within.any("fi", most=200)
        new = within.fitted(within.mixed(), init.shape, varying)
        writer.line(f"return {c} * 0.5 + lax.sin({new.name}), {y.name}")
    ys = Value(writer.fresh("v"), (xs.shape[0], *y.shape), y.kind, y.varying)
    done = Value(writer.fresh("v"), init.shape, "f", varying)
    reverse = ", reverse=True" if scope.rng.random() < 0.3 else ""
    writer.line(f"{done.name}, {ys.name} = lax.scan({name}, {scope.started(init, varying)}, {xs.name}{reverse})")
    scope.values += [ys, done]


def fori(scope: Scope) -> None:
    init, writer = scope.float(), scope.writer
    varying = scope.target(init.varying)
    name, c, i = writer.fresh("step"), writer.fresh("c"), writer.fresh("i")
    with writer.function(name, [i, c]):
        writer.line(f"{i} = lax.convert_element_type({i}, 'int32')")
        within = scope.inner([Value(i, (), "i", frozenset()), Value(c, init.shape, "f", varying)])
        within.statements(int(scope.rng.integers(1, 4)))
        new = within.fitted(within.mixed(), init.shape, varying)
        writer.line(f"return {c} * 0.5 + lax.sin({new.name})")
    scope.keep(f"lax.fori_loop(0, {scope.rng.integers(4)}, {name}, {scope.started(init, varying)})",
              init.shape, "f", varying)


def whiles(scope: Scope) -> None:
    if scope.rng.random() < 0.5:
        return
    init, n, writer = scope.float(), scope.any("i"), scope.writer
    if n.kind != "i" or n.shape:
        return
    apart = bool(n.varying)
    if apart:
        scope.part_ways()
        init = scope.float()
    varying = scope.target(init.varying, apart)
    name, c, i = writer.fresh("step"), writer.fresh("c"), writer.fresh("i")
    with writer.function(name, [f"{c}{i}"]):
        writer.line(f"{i}, {c} = {c}{i}")
        counter = Value(i, (), "i", varying)
        within = scope.inner([counter, Value(c, init.shape, "f", varying)], apart)
        within.statements(int(scope.rng.integers(1, 3)))
        new = within.fitted(within.mixed(), init.shape, varying)
        writer.line(f"return {i} + 1, {c} * 0.5 + lax.sin({new.name})")
    start = scope.keep("lax.full((), 0, 'int32')", (), "i", frozenset())
    scope.keep(f"lax.while_loop(lambda s: s[0] < lax.rem(abs({n.name}), np.int32(4)), {name}, "
              f"({scope.started(start, varying) if apart else start.name}, {scope.started(init, varying)}))[1]",
              init.shape, "f", varying)
    writer.forward_only = True


def cond(scope: Scope) -> None:
    steering, x, writer = scope.float(), scope.float(), scope.writer
    apart = bool(steering.varying)
    if apart:
        scope.part_ways()
        x = scope.values[-1]
    shape = x.shape if scope.rng.random() < 0.6 else ()
    varying = scope.target(x.varying | steering.varying, apart)
    names = []
    count = int(scope.rng.integers(2, 4))
    for _ in range(count):
        name, p = writer.fresh("branch"), writer.fresh("p")
        names.append(name)
        with writer.function(name, [p]):
            within = scope.inner([Value(p, x.shape, "f", x.varying)], apart)
            within.statements(int(scope.rng.integers(0, 3)))
            out = within.fitted(within.mixed(), shape, varying)
            writer.line(f"return {within.started(out, varying)}")
    if count == 2:
        text = f"lax.cond({steering.name}.sum() > 0.0, {names[0]}, {names[1]}, {x.name})"
    else:
        index = f"lax.convert_element_type(abs({steering.name}.sum()) * 4.0, 'int32')"
        text = f"lax.switch({index}, [{', '.join(names)}], {x.name})"
    scope.keep(text, shape, "f", varying)


def _nested(scope: Scope, params: list[Value], count: int, **changes: Any) -> tuple[str, Value]:
    """A function of fresh params like these: its name, and what it returns, a float."""
    writer = scope.writer
    name = writer.fresh("inner")
    own = [replace(p, name=writer.fresh("p")) for p in params]
    with writer.function(name, [p.name for p in own]):
        within = scope.inner(own, **changes)
        within.statements(count)
        out = within.mixed()
        writer.line(f"return {out.name}")
    return name, out


def call(scope: Scope) -> None:
    params = [scope.any("fi"), scope.float()]
    name, out = _nested(scope, params, int(scope.rng.integers(1, 4)))
    how = scope.rng.choice(["cj.jit", "cj.checkpoint", "cj.jit"])
    scope.keep(f"{how}({name})({params[0].name}, {params[1].name})", out.shape, "f", out.varying)


def custom_jvp(scope: Scope) -> None:
    x, y, name = scope.float(), scope.float(), scope.writer.fresh("custom")
    scope.writer.line(f"{name} = cj.custom_jvp(lambda p, q: lax.sin(p) * q.sum())")
    scope.writer.line(f"{name}.defjvp(lambda ps, ts: ({name}(*ps), lax.cos(ps[0]) * ps[1].sum() * ts[0] + "
                     "2.0 * lax.sin(ps[0]) * ts[1].sum()))")
    scope.keep(f"{name}({x.name}, {y.name}) * 0.5", x.shape, "f", x.varying | y.varying)


def custom_vjp(scope: Scope) -> None:
    if scope.forward:
        return
    x, y, name = scope.float(), scope.float(), scope.writer.fresh("custom")
    varying = x.varying | y.varying
    scope.writer.line(f"{name} = cj.custom_vjp(lambda p, q: lax.sin(p) * q.sum())")
    scope.writer.line(f"{name}.defvjp(lambda p, q: ({name}(p, q), (p, q)), lambda r, ct: (ct * lax.cos(r[0]) * "
                     f"r[1].sum() * 2.0, lax.full_like(r[1], 1.0) * (ct * lax.sin(r[0])).sum()))")
    scope.keep(f"{name}({scope.started(x, varying)}, {scope.started(y, varying)}) * 0.5", x.shape, "f", varying)


def vmap(scope: Scope) -> None:
    x = scope.float(1)
    axis = int(scope.rng.integers(len(x.shape)))
    size = x.shape[axis]
    if not size or size > 8:
        return
    y = scope.float()
    axis_name = scope.writer.fresh("m") if scope.rng.random() < 0.6 else None
    part = replace(x, shape=(*x.shape[:axis], *x.shape[axis + 1:]))
    mapped = (*scope.mapped, (axis_name, size)) if axis_name else scope.mapped
    name, out = _nested(scope, [part, y], int(scope.rng.integers(1, 4)), mapped=mapped)
    to = int(scope.rng.integers(len(out.shape) + 1))
    how = f", axis_name={axis_name!r}" if axis_name else ""
    scope.keep(f"cj.vmap({name}, in_axes=({axis}, None), out_axes={to}{how})({x.name}, {y.name})",
              (*out.shape[:to], size, *out.shape[to:]), "f", out.varying)


def gradient(scope: Scope) -> None:
    x, y = scope.float(), scope.float()
    if scope.apart and x.varying != frozenset(scope.manual):
        return
    name, out = _nested(scope, [x, y], int(scope.rng.integers(1, 4)))
    loss = scope.writer.fresh("loss")
    with scope.writer.function(loss, ["p", "q"]):
        scope.writer.line(f"return ({name}(p, q) * 0.5).sum()")
    varying = x.varying if scope.writer.tracked else frozenset(scope.manual)
    if scope.rng.random() < 0.3:
        scope.writer.line(f"pull{loss} = cj.vjp({loss}, {x.name}, {y.name})[1]")
        one = f"vary(lax.full((), 1.5), {scope.order(out.varying)!r})"
        scope.keep(f"pull{loss}({one})[0]", x.shape, "f", varying)
    else:
        scope.keep(f"cj.grad({loss})({x.name}, {y.name})", x.shape, "f", varying)


def pushforward(scope: Scope) -> None:
    x = scope.float()
    name, out = _nested(scope, [x], int(scope.rng.integers(1, 4)), forward=True)
    scope.keep(f"cj.jvp({name}, ({x.name},), (lax.cos({x.name}),))[1]", out.shape, "f", out.varying)


def inner_map(scope: Scope) -> None:
    """A shard_map along axes that are left."""
    left = [name for name in scope.writer.mesh if name not in scope.manual]
    if not left or scope.apart or scope.mapped or scope.depth > 1:
        return
    axis = str(scope.rng.choice(left))
    size = scope.writer.mesh[axis]
    x = scope.float(1)
    at = int(scope.rng.integers(len(x.shape)))
    x = scope.divisible(x, at, size)
    y = scope.float()
    part = replace(x, shape=(*x.shape[:at], x.shape[at] // size, *x.shape[at + 1:]), varying=x.varying | {axis})
    manual = (*scope.manual, axis)
    writer = scope.writer
    name, p, q = writer.fresh("inner"), writer.fresh("p"), writer.fresh("p")
    with writer.function(name, [p, q]):
        within = replace(scope.inner([], manual=manual), values=[replace(part, name=p), replace(y, name=q)])
        within.statements(int(scope.rng.integers(1, 4)))
        out = within.mixed()
        if axis in out.varying and not out.shape:
            out = within.reduced(out, frozenset([axis]))
        writer.line(f"return {out.name}")
    to = None
    shape = out.shape
    if axis in out.varying:
        to = int(scope.rng.integers(len(out.shape)))
        shape = (*shape[:to], shape[to] * size, *shape[to + 1:])
    spec = "P()" if to is None else f"P({'None, ' * to}{axis!r})"
    scope.keep(f"cj.shard_map({name}, in_specs=(P({'None, ' * at}{axis!r}), P()), out_specs={spec}, "
              f"axis_names={{{axis!r}}}, check_vma={scope.writer.tracked})({x.name}, {y.name})", shape, "f",
              out.varying - {axis})


NESTED = (scan, fori, whiles, cond, cond, call, call, custom_jvp, custom_vjp, vmap, gradient, gradient, pushforward,
          inner_map)
