"""Statements of random programs: each makes a value of those that are there."""

from __future__ import annotations

from math import prod

import numpy as np
from random_scopes import Names, Scope, Value

UNARY = ("lax.sin({})", "lax.cos({})", "lax.tanh({})", "-{}", "{} * 0.5", "lax.exp(lax.sin({}))", "abs({})",
         "lax.sqrt({0} * {0} + 1.0)", "lax.integer_pow(lax.sin({}), 3)", "lax.logistic({})", "lax.stop_gradient({})")


def unary(scope: Scope) -> None:
    v = scope.float()
    scope.keep(scope.rng.choice(UNARY).format(v.name), v.shape, "f", v.varying)


def binary(scope: Scope) -> None:
    x, y = scope.float(), scope.float()
    try:
        shape = np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        y = scope.fitted(y, x.shape if scope.rng.random() < 0.5 else (), y.varying)
        shape = x.shape
    text = scope.rng.choice(["{} * lax.sin({})", "{} + {}", "{} - {}", "{} / ({} ** 2 + 1.0)"])
    if x.shape == y.shape and scope.rng.random() < 0.3:
        text = scope.rng.choice(["lax.max({}, {})", "lax.atan2({}, lax.exp(lax.cos({})))"])
    scope.keep(text.format(x.name, y.name), shape, "f", x.varying | y.varying)


def reduction(scope: Scope) -> None:
    v = scope.float(1)
    axis = int(scope.rng.integers(len(v.shape)))
    rest = (*v.shape[:axis], *v.shape[axis + 1:])
    how = scope.rng.integers(5)
    if how == 0:
        scope.keep(f"{v.name}.sum() * 0.3", (), "f", v.varying)
    elif how == 1:
        scope.keep(f"{v.name}.sum(axis={axis}) * 0.5", rest, "f", v.varying)
    elif how == 2 and v.shape[axis]:
        scope.keep(f"{v.name}.max(axis={axis})", rest, "f", v.varying)
    elif how == 3:
        scope.keep(f"lax.cumsum({v.name}, {axis}) * 0.5", v.shape, "f", v.varying)
    else:
        scope.keep(f"lax.sort({v.name}, dimension={axis})", v.shape, "f", v.varying)


def product(scope: Scope) -> None:
    x = scope.float(1)
    partners = [v for v in scope.values if v.kind == "f" and len(v.shape) in (1, 2) and v.shape[0] == x.shape[-1]]
    y = partners[scope.rng.integers(len(partners))] if partners else scope.fitted(scope.float(), (x.shape[-1], 2),
                                                                              frozenset(scope.manual))
    dims = f"((({len(x.shape) - 1},), (0,)), ((), ()))"
    scope.keep(f"lax.dot_general({x.name}, {y.name}, {dims}) * 0.5", (*x.shape[:-1], *y.shape[1:]), "f",
              x.varying | y.varying)


def shaping(scope: Scope) -> None:
    v = scope.any()
    how = scope.rng.integers(5)
    if how == 0:
        scope.keep(f"{v.name}.reshape({prod(v.shape)})", (prod(v.shape),), v.kind, v.varying)
    elif how == 1:
        scope.keep(f"{v.name}.T", v.shape[::-1], v.kind, v.varying)
    elif how == 2 and len(v.shape) < 3:
        scope.keep(f"{v.name}[..., None]", (*v.shape, 1), v.kind, v.varying)
    elif how == 3 and len(v.shape) < 3:
        scope.keep(f"lax.broadcast_in_dim({v.name}, {(2, *v.shape)}, {tuple(range(1, len(v.shape) + 1))})",
                  (2, *v.shape), v.kind, v.varying)
    elif v.shape and v.shape[0] <= 4:
        scope.keep(f"lax.concatenate([{v.name}, {v.name}], 0)", (2 * v.shape[0], *v.shape[1:]), v.kind, v.varying)


def indexing(scope: Scope) -> None:
    v = scope.any(ndim=1)
    if not v.shape[0]:
        return
    i = scope.any("i")
    how = scope.rng.integers(4)
    if how == 0:
        scope.keep(f"{v.name}[{scope.rng.integers(v.shape[0])}]", v.shape[1:], v.kind, v.varying)
    elif how == 1 and i.kind == "i" and not i.shape:
        scope.keep(f"lax.dynamic_index_in_dim({v.name}, {i.name}, 0, False)", v.shape[1:], v.kind,
                  v.varying | i.varying)
    elif how == 2 and i.kind == "i":
        scope.keep(f"{v.name}[lax.rem(abs({i.name}), np.int32({v.shape[0]}))]", (*i.shape, *v.shape[1:]), v.kind,
                  v.varying | i.varying)
    else:
        scope.keep(f"{v.name}[::-1]", v.shape, v.kind, v.varying)


def choosing(scope: Scope) -> None:
    x = scope.float()
    y = scope.fitted(scope.float(), x.shape, frozenset(scope.manual))
    scope.keep(f"lax.select({x.name} > 0.1, {x.name}, lax.sin({y.name}))", x.shape, "f", x.varying | y.varying)


def integers(scope: Scope) -> None:
    v = scope.any()
    if v.kind == "i":
        scope.keep(f"{v.name} * 3 - 1", v.shape, "i", v.varying)
    elif v.kind == "f":
        scope.keep(f"lax.convert_element_type(lax.sin({v.name}) * 3.0, 'int32')", v.shape, "i", v.varying)


def whole(scope: Scope) -> None:
    """A constant array."""
    n = int(scope.rng.integers(1, 5))
    text = scope.rng.choice(["lax.iota('float64', {}) * 0.3", "np.linspace(-1.0, 1.0, {}) * lax.sin(1.0)"])
    scope.keep(text.format(n), (n,), "f", frozenset())


# Collectives

def among(scope: Scope) -> tuple[Names, int]:
    """Some of the named axes, and how many positions they have."""
    sizes = {name: scope.writer.mesh[name] for name in scope.manual}
    if scope.mapped and scope.rng.random() < 0.5:
        sizes = dict(scope.mapped) | (sizes if scope.rng.random() < 0.1 else {})
    chosen = [name for name in sizes if scope.rng.random() < 0.6] or [str(scope.rng.choice(list(sizes)))]
    names = scope.order(chosen)
    return names, prod([sizes[name] for name in names])


def shown(scope: Scope, names: Names) -> str:
    return repr(names[0]) if len(names) == 1 and scope.rng.random() < 0.7 else repr(names)


def of(scope: Scope, v: Value, names: Names) -> str:
    """The first two arguments of a collective."""
    return f"{scope.given(v, names)}, {shown(scope, names)}"


def summing(scope: Scope) -> None:
    names, _ = among(scope)
    v = scope.any("fi")
    how = scope.rng.choice(["psum", "pmean", "pmax", "pmin"], p=[0.5, 0.4, 0.05, 0.05])
    v = scope.float() if how == "pmean" else v
    scope.keep(f"lax.{how}({of(scope, v, names)})" + " * 0.5" * (v.kind == "f"), v.shape, v.kind,
              v.varying - set(names))


def gathering(scope: Scope) -> None:
    names, size = among(scope)
    v = scope.any("fi", most=300)
    tiled = bool(v.shape and scope.rng.random() < 0.5)
    axis = int(scope.rng.integers(len(v.shape) + (not tiled)))
    shape = list(v.shape)
    if tiled:
        shape[axis] *= size
    else:
        shape.insert(axis, size)
    scope.keep(f"lax.all_gather({of(scope, v, names)}, axis={axis}, tiled={tiled})", shape, v.kind,
              v.varying | scope.of_mesh(names))


def scattering(scope: Scope) -> None:
    names, size = among(scope)
    v = scope.any("fi", 1, most=300)
    axis = int(scope.rng.integers(len(v.shape)))
    v = scope.divisible(v, axis, size)
    tiled = bool(v.shape[axis] != size or scope.rng.random() < 0.5)
    shape = list(v.shape)
    shape[axis] //= size
    if not tiled:
        del shape[axis]
    scope.keep(f"lax.psum_scatter({of(scope, v, names)}, scatter_dimension={axis}, tiled={tiled})", shape,
              v.kind, v.varying | scope.of_mesh(names))


def exchanging(scope: Scope) -> None:
    names, size = among(scope)
    v = scope.any("fi", 1, most=300)
    split, concat = int(scope.rng.integers(len(v.shape))), int(scope.rng.integers(len(v.shape)))
    v = scope.divisible(v, split, size)
    varying = v.varying | scope.of_mesh(names)
    if v.shape[split] == size and scope.rng.random() < 0.5:
        if scope.rng.random() < 0.4:
            scope.keep(f"lax.pswapaxes({of(scope, v, names)}, {split})", v.shape, v.kind, varying)
            return
        shape = [*v.shape[:split], *v.shape[split + 1:]]
        shape.insert(concat, size)
        scope.keep(f"lax.all_to_all({of(scope, v, names)}, {split}, {concat})", shape, v.kind, varying)
        return
    shape = list(v.shape)
    shape[split] //= size
    shape[concat] *= size
    scope.keep(f"lax.all_to_all({of(scope, v, names)}, {split}, {concat}, tiled=True)", shape, v.kind, varying)


def permuting(scope: Scope) -> None:
    names, size = among(scope)
    names = tuple([name for name in (*scope.writer.mesh, *names) if name in names][:len(names)])  # jax's order
    v = scope.any("fi")
    order = [int(i) for i in scope.rng.permutation(size)]
    if scope.rng.random() < 0.3:
        text = f"lax.pshuffle({of(scope, v, names)}, {order})"
    else:
        pairs = [(i, j) for i, j in enumerate(order) if scope.rng.random() < 0.8]
        text = f"lax.ppermute({of(scope, v, names)}, {pairs})"
    scope.keep(text, v.shape, v.kind, v.varying | scope.of_mesh(names))


def position(scope: Scope) -> None:
    names, size = among(scope)
    i = scope.keep(f"lax.axis_index({shown(scope, names)})", (), "i", scope.of_mesh(names))
    if scope.rng.random() < 0.3:
        scope.keep(f"lax.rem({i.name}, np.int32(2)) * lax.axis_size({shown(scope, names)})", (), "i", i.varying)


def casting(scope: Scope) -> None:
    v = scope.any()
    axes = frozenset([name for name in scope.manual if scope.rng.random() < 0.6])
    scope.keep(f"vary({v.name}, {scope.order(axes)!r})", v.shape, v.kind, v.varying | axes)


def groups(scope: Scope) -> None:
    names, size = among(scope)
    if scope.writer.tracked or size % 2 or len(names) > 1:
        return
    v = scope.any("f", most=300)
    order = [int(i) for i in scope.rng.permutation(size)]
    groups = [order[:size // 2], order[size // 2:]]
    how = scope.rng.choice(["psum", "pmax", "all_gather", "pmean"])
    shape = (size // 2, *v.shape) if how == "all_gather" else v.shape
    scope.keep(f"lax.{how}({v.name}, {names[0]!r}, axis_index_groups={groups})", shape, v.kind,
              v.varying | scope.of_mesh(names))


PLAIN = (unary, binary, binary, reduction, product, shaping, indexing, choosing, integers, whole)
TOGETHER = (summing, gathering, scattering, exchanging, permuting, position, casting, groups)
