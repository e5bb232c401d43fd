"""Programs that do the same in one process and in several: what each device has in the end is the same, too.

Started as a script, it runs those of the table whose names begin with one of the arguments; or all, or the quick ones.
"""

from __future__ import annotations

import copy
import os
import pickle
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import corejax as cj
from corejax import NamedSharding, P, lax, numpy as jnp
from corejax.core import flatten
from corejax.errors import CorejaxError
from corejax.sharding import Mesh

PROCESSES = int(os.environ.get("TOGETHER_PROCESSES", "1"))

#: How many processes there are on the other side.
SPLIT = int(os.environ.get("SPLIT", PROCESSES))

#: By their names; those whose sums come in another order than in one process; and those that take long.
TABLE: dict[str, Callable[[], Any]] = {}
ROUNDED: set[str] = set()
THOROUGH: set[str] = set()


class Fact(NamedTuple):
    """What a process knows of an array: the parts are by the positions of its devices among all."""

    dtype: str
    shape: tuple[int, ...]
    weak: bool
    sharding: str
    parts: dict[int, tuple[Any, np.ndarray]]


def program(function: Callable[[], Any]) -> Callable[[], Any]:
    """Add a program, whose results must be the same bits."""
    assert function.__name__ not in TABLE
    TABLE[function.__name__] = function
    return function


def rounded(function: Callable[[], Any]) -> Callable[[], Any]:
    """Add one that sums over devices: processes add up sums of their own devices, in another order than one does."""
    ROUNDED.add(function.__name__)
    return program(function)


def thorough(function: Callable[[], Any]) -> Callable[[], Any]:
    """Leave it out of what every change must pass."""
    THOROUGH.add(function.__name__)
    return function


def facts(x: Any) -> Any:
    """A result as something to compare with that of another process."""
    if isinstance(x, cj.Array):
        positions = {device: i for i, device in enumerate(cj.devices())}
        data = cj.random.key_data if cj.dtypes.issubdtype(x.dtype, cj.dtypes.prng_key) else lambda part: part
        parts = {positions[shard.device]: ((shard.index, shard.replica_id), np.asarray(data(shard.data)))
                 for shard in x.addressable_shards}
        sharding: Any = x.sharding
        text = (f"{dict(sharding.mesh.shape)} {[positions[d] for d in sharding.mesh.flat_devices]} {sharding.spec}"
                if isinstance(sharding, NamedSharding) else f"device {[positions[d] for d in sharding.device_set]}")
        return Fact(str(x.dtype), x.shape, x.weak_type, text, parts)
    return x


def outcome(function: Callable[[], Any]) -> Any:
    """The facts of a program's results, or its error."""
    try:
        return [facts(x) for x in flatten(function())[0]]
    except Exception:
        return traceback.format_exc()


def main(names: list[str]) -> None:
    from together import keep
    if PROCESSES > 1:
        cj.distributed.initialize(heartbeat_timeout_seconds=20)
    if names in (["quick"], ["thorough"]):
        chosen = {name: function for name, function in TABLE.items() if (name in THOROUGH) == (names == ["thorough"])}
    else:
        chosen = {name: function for name, function in TABLE.items()
                  if not names or any(name.startswith(each) for each in names)}
    found = {}
    for name, function in chosen.items():
        start = time.perf_counter()
        found[name] = outcome(function)
        print(f"{time.perf_counter() - start:.3f} {name}", flush=True)
    keep(found)


# Devices and arrays

def size() -> int:
    return cj.device_count()


def line(reverse: bool = False) -> Mesh:
    """All devices in a row."""
    return Mesh(np.array(cj.devices()[::-1] if reverse else cj.devices(), object), ("x",))


def grid(transposed: bool = False) -> Mesh:
    """All devices in a grid: the rows are halves of them, or else the columns."""
    devices = np.array(cj.devices(), object).reshape(2, -1)
    return Mesh(devices.T.reshape(2, -1) if transposed else devices, ("a", "b"))


def ends() -> Mesh:
    """The first and the last device."""
    return Mesh(np.array([cj.devices()[0], cj.devices()[-1]], object), ("x",))


def numbers(*shape: int, dtype: Any = np.float64, seed: int = 0) -> np.ndarray:
    """The same in all processes."""
    found = np.random.default_rng(seed).standard_normal(shape) * 3
    return (found + 1j * found[..., ::-1] if np.dtype(dtype).kind == "c" else found).astype(dtype)


def whole_numbers(*shape: int, seed: int = 0) -> np.ndarray:
    """Doubles whose sums have no rounding, in any order."""
    return np.random.default_rng(seed).integers(-50, 50, shape).astype(np.float64)


def divided(x: Any, spec: Any = None, mesh: Mesh | None = None) -> Any:
    return cj.device_put(x, NamedSharding(mesh or line(), P("x") if spec is None else spec))


def refusal(function: Callable[[], Any]) -> str:
    """The first line of the error, which must be clear."""
    try:
        found = function()
    except CorejaxError as error:
        assert error.todo, error
        return f"{type(error).__name__}: {error.message}"
    raise AssertionError(f"not refused: {found!r:.200}")


def each_way() -> Iterator[tuple[Mesh, Any]]:
    """Meshes and specs to divide a matrix by."""
    for mesh in (line(), line(reverse=True)):
        for spec in (P(), P("x"), P(None, "x")):
            yield mesh, spec
    for mesh in (grid(), grid(transposed=True)):
        for spec in (P(), P("a"), P("b"), P("a", "b"), P("b", "a"), P(("a", "b")), P(None, ("b", "a")), P(None, "a")):
            yield mesh, spec


def side() -> int:
    return 2 * size()


# Putting arrays on devices

@program
@thorough
def put_in_every_way() -> Any:
    x = numbers(side(), side())
    return [divided(x, spec, mesh) for mesh, spec in each_way()]


@program
@thorough
def put_types() -> Any:
    n = side()
    dtypes = ["float16", "bfloat16", "float32", "complex64", "complex128", "int8", "uint16", "int64", "bool"]
    return [divided(jnp.asarray(np.arange(n) % 7).astype(dtype)) for dtype in dtypes]


@program
def put_small_integers() -> Any:
    return [divided(jnp.arange(side()).astype("int4"))]


@program
def put_scalars_and_nothing() -> Any:
    return [divided(2.5, P()), divided(np.zeros((0, 3)), P()), divided(np.zeros((0, side())), P(None, "x")),
            divided(np.zeros((side(), 0))), divided(True, P()), divided(3, P()), divided(1j, P())]


@program
@thorough
def put_from_one_sharding_to_another() -> Any:
    x = divided(numbers(side(), side()))
    out = []
    for mesh, spec in each_way():
        if tuple(mesh.flat_devices) == tuple(line().flat_devices):
            out.append(cj.device_put(x, NamedSharding(mesh, spec)))
    return out


@program
def put_to_another_order() -> Any:
    x = divided(numbers(side(), side()))
    return [cj.device_put(x, NamedSharding(mesh, spec)) for mesh, spec in
            [(line(reverse=True), P("x")), (line(reverse=True), P()), (grid(transposed=True), P("b", "a"))]]


@program
def put_copies_to_fewer_devices() -> Any:
    return cj.device_put(divided(numbers(4, 4), P()), NamedSharding(ends(), P("x")))


@program
def put_parts_to_fewer_devices() -> Any:
    x = divided(numbers(side(), side()))
    few = Mesh(np.array(cj.devices()[:size() // SPLIT], object), ("x",))
    y = cj.device_put(x, NamedSharding(ends(), P("x")))
    return [y, cj.device_put(x, NamedSharding(few, P(None, "x"))), cj.device_put(y, NamedSharding(few, P()))
            if cj.process_index() in (0, PROCESSES - 1) else divided(numbers(side(), side()), P(), few)]


@program
def put_pytrees() -> Any:
    return cj.device_put({"w": numbers(side()), "b": numbers(3)},
                         {"w": NamedSharding(line(), P("x")), "b": NamedSharding(line(), P())})


# jit

@program
@thorough
def jit_in_every_way() -> Any:
    x = numbers(side(), side())
    out = []
    for mesh, spec in each_way():
        out.append(cj.jit(lambda x: lax.sin(x) * 2 + x.T)(divided(x, spec, mesh)))
    return out


@program
@thorough
def jit_out_shardings() -> Any:
    x = numbers(side(), side())
    return [cj.jit(lambda x: x + 1, out_shardings=NamedSharding(grid(), spec))(divided(x, P("a", "b"), grid()))
            for spec in (P(), P("a"), P("b", "a"), P(("a", "b")))]


@program
def jit_in_shardings() -> Any:
    x = numbers(side(), side())
    f = cj.jit(lambda x, y: x @ y.T, in_shardings=(NamedSharding(grid(), P("a")), NamedSharding(grid(), P("b"))),
               out_shardings=NamedSharding(grid(), P("a", "b")))
    return f(divided(x, P("a"), grid()), divided(x + 1, P("b"), grid()))


@rounded
@thorough
def jit_products() -> Any:
    x, y = numbers(side(), side()), numbers(side(), side(), seed=1)
    f = cj.jit(lambda x, y: x @ y)
    return [f(divided(x, P("a", "b"), mesh), divided(y, P("b", "a"), mesh)) for mesh in (grid(), grid(True))]


@rounded
@thorough
def jit_sums() -> Any:
    x = divided(numbers(side(), side()), P("a", "b"), grid())
    return cj.jit(lambda x: (x.sum(), x.sum(0), x.sum(1), x.mean(), x.std()))(x)


@program
@thorough
def jit_sums_without_rounding() -> Any:
    x = divided(whole_numbers(side(), side()), P("a", "b"), grid())
    return cj.jit(lambda x: (x.sum(), x.sum(0), x.sum(1), x.max(), x.argmax(0), x.min(1), (x > 0).all(),
                             x.astype(int).sum(), lax.cumsum(x, 0), jnp.sort(x, 0)))(x)


@program
def jit_on_fewer_devices() -> Any:
    return cj.jit(lambda x: x * 2 + x.sum())(divided(whole_numbers(4), P("x"), ends()))


@program
def jit_on_one_process_devices() -> Any:
    """Others run it, too: there is nothing to do for them."""
    out = []
    for count in {1, size() // SPLIT}:
        mesh = Mesh(np.array(cj.devices()[-count:], object), ("x",))
        x = divided(whole_numbers(2 * count), P("x"), mesh)
        y = cj.jit(lambda x: x * 2 + x.sum())(x)
        out += [x, y, x + 1, y.sum(), cj.jit(cj.shard_map(lambda x: lax.psum(x, "x"), mesh=mesh, in_specs=P("x"),
                                                      out_specs=P()))(x), lax.scan(lambda c, _: (c * 2, c), y, None, 2)]
        where = NamedSharding(mesh, P("x"))
        out += [cj.jit(lambda x: x * 2 + x.sum(), in_shardings=where)(x),
                cj.jit(partial(jnp.arange, 2.0 * count), out_shardings=where)(),
                cj.shard_map(lambda x: lax.psum(x, "x"), mesh=mesh, in_specs=P("x"), out_specs=P())(np.ones(2 * count))]
    return out


@program
def jit_closes_over_arrays() -> Any:
    w = divided(numbers(10 * side(), side()), P("x"))  # smaller ones are constants of the program, in one process
    return cj.jit(lambda x: w * x + w.sum(0) * 0)(divided(numbers(side(), seed=2), P()))


@program
@thorough
def jit_closes_over_little() -> Any:
    w = divided(numbers(side()))
    x = divided(numbers(side(), side(), seed=2))
    f = cj.jit(lambda x: (x * w[:, None], lax.scan(lambda c, row: (c + w, None), w, x)[0],
                          lax.cond(x[0, 0] > 0, lambda x: x + w, lambda x: x - w, x)),
               out_shardings=NamedSharding(line(), P("x")))
    return [f(x), cj.jit(cj.grad(lambda x: (cj.checkpoint(lambda x: lax.sin(x) * w)(x)).sum()))(x)]


@program
def shard_map_closes_over_copies() -> Any:
    w = divided(numbers(3), P())
    return mapped(lambda x: x * w)(numbers(side(), 3))


@program
def jit_big_constant() -> Any:
    w = numbers(64, side())
    return cj.jit(lambda x: x * w)(divided(numbers(64, side(), seed=1), P(None, "x")))


@program
def jit_donates() -> Any:
    x = divided(numbers(side()))
    y = cj.jit(lambda x: x * 2, donate_argnums=0)(x)
    return [y, x.is_deleted(), refusal(lambda: x + 1)]


@program
@thorough
def jit_nests() -> Any:
    inner = cj.jit(lambda x: lax.cos(x) - 1)
    return cj.jit(lambda x: inner(x) * inner(x + 1).sum())(divided(whole_numbers(side()) * 0))


@program
def jit_host_arguments() -> Any:
    return cj.jit(lambda x, y, z: x + y * z)(divided(numbers(side())), np.float64(2), 3)


@program
@thorough
def jit_weak_types() -> Any:
    x = divided(numbers(side(), dtype=np.float32))
    return [x * 2.0, cj.jit(lambda x: x * 2.0)(x), divided(2.0, P()) * x, x.sum() * 0 + 1]


@program
def jit_without_arguments() -> Any:
    make = cj.jit(lambda: jnp.arange(side() * 1.0), out_shardings=NamedSharding(line(), P("x")))
    return make()


@program
def jit_constraints() -> Any:
    x = divided(numbers(side(), side()), P("a"), grid())
    return cj.jit(lambda x: lax.with_sharding_constraint(x * 2, NamedSharding(grid(), P(None, "b"))) + 1)(x)


# Transformations

@program
@thorough
def grad_of_divided() -> Any:
    x = divided(numbers(side(), side()), P("a", "b"), grid())
    return [cj.grad(lambda x: (lax.sin(x) ** 2).sum())(x), cj.jit(cj.grad(lambda x: (lax.sin(x) ** 2).sum()))(x)]


@rounded
def grad_of_a_network() -> Any:
    w, x = divided(numbers(side(), 4), P("x")), divided(numbers(8, side(), seed=1), P(None, "x"))
    return cj.jit(cj.value_and_grad(lambda w, x: (lax.tanh(x @ w) ** 2).mean(), argnums=(0, 1)))(w, x)


@program
@thorough
def jvp_and_linearize() -> Any:
    x = divided(numbers(side()))
    y, linear = cj.linearize(lambda x: lax.sin(x) * x, x)
    return [cj.jvp(lambda x: lax.sin(x) * x, (x,), (x,)), y, linear(x), cj.linear_transpose(lambda x: x * 3, x)(x)]


@program
def vjp_of_divided() -> Any:
    x = divided(numbers(side()))
    y, back = cj.vjp(lambda x: lax.exp(lax.sin(x)), x)
    return [y, back(y)]


@program
@thorough
def vmap_of_divided() -> Any:
    x = divided(numbers(side(), side()), P("a", "b"), grid())
    return [cj.vmap(lambda row: lax.sin(row) - row[0])(x), cj.jit(cj.vmap(lambda row: jnp.sort(row)))(x),
            cj.vmap(lambda a, b: a * b, in_axes=(0, None))(x, 2.0)]


@program
@thorough
def jacobians() -> Any:
    x = divided(numbers(size()))
    return [cj.jit(cj.jacfwd(lambda x: x * x))(x), cj.jit(cj.jacrev(lambda x: lax.sin(x)))(x)]


@rounded
@thorough
def hessian_of_divided() -> Any:
    return cj.jit(cj.hessian(lambda x: (lax.sin(x) * x.sum()).sum()))(divided(numbers(size())))


@program
@thorough
def policies() -> Any:
    w, x = divided(numbers(side(), side()) / 10, P(None, "x")), divided(whole_numbers(side()), P())
    out = []
    for policy in (cj.checkpoint_policies.nothing_saveable, cj.checkpoint_policies.dots_saveable,
                   cj.checkpoint_policies.everything_saveable, None):
        f = cj.checkpoint(lambda w: lax.sin(lax.cos(x @ w)).sum(), policy=policy)
        out.append(cj.jit(cj.grad(f))(w))
    return out


@program
@thorough
def custom_rules() -> Any:
    @cj.custom_vjp
    def f(x: Any) -> Any:
        return lax.sin(x)
    f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * 5 + x,))
    return cj.jit(cj.grad(lambda x: f(x).sum()))(divided(numbers(side())))


# Control flow

@program
def scans() -> Any:
    x = divided(numbers(6, side()), P(None, "x"))
    def step(c: Any, row: Any) -> Any:
        return c * 0.5 + row, lax.sin(c)
    return [lax.scan(step, x[0], x), cj.jit(lambda x: lax.scan(step, x[0], x))(x)]


@program
@thorough
def scans_along_the_division() -> Any:
    x = divided(numbers(side(), 3))
    return cj.jit(lambda x: lax.scan(lambda c, row: (c + row, c), jnp.zeros(3), x))(x)


@program
@thorough
def loops() -> Any:
    x = divided(whole_numbers(side()))
    f = cj.jit(lambda x: lax.while_loop(lambda c: abs(c).sum() < 10000, lambda c: c * 2 + 1, x))
    return [f(x), lax.while_loop(lambda c: abs(c).sum() < 10000, lambda c: c * 2 + 1, x),
            cj.jit(lambda x: lax.fori_loop(0, 5, lambda i, c: c + i, x))(x)]


@program
@thorough
def conditions() -> Any:
    x = divided(whole_numbers(side()))
    f = lambda x: lax.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - x.sum(), x)
    return [f(x), cj.jit(f)(x), cj.jit(f)(-x), cj.jit(cj.grad(lambda x: f(x).sum()))(x),
            cj.jit(lambda x: lax.switch(1, [lax.sin, lax.cos], x))(x)]


@program
@thorough
def python_conditions() -> Any:
    x = divided(whole_numbers(side()))
    total = x.sum()
    return [bool(total > 0), float(total), int(total), total.item(), f"{total:.2f}", np.asarray(total), len(x),
            total.tolist(), x.shape, x.ndim, x.size, x.nbytes, str(x.dtype)]


# shard_map

ALONG = P("x")


def mapped(f: Callable[..., Any], in_specs: Any = ALONG, out_specs: Any = ALONG, mesh: Any = None) -> Any:
    return cj.jit(cj.shard_map(f, mesh=mesh or line(), in_specs=in_specs, out_specs=out_specs, check_vma=False))


@rounded
def shard_map_sums() -> Any:
    x = numbers(side(), 3)
    return [mapped(lambda x: lax.psum(x, "x"))(x), mapped(lambda x: lax.pmean(x, "x"))(x),
            mapped(lambda x: lax.psum_scatter(x, "x", scatter_dimension=1, tiled=True), P(None, None))(
                numbers(2, side())),
            mapped(lambda x: lax.psum(x, "x"), out_specs=P(), mesh=line(True))(x)]


@program
def shard_map_sums_without_rounding() -> Any:
    x = whole_numbers(side(), 3)
    return [mapped(lambda x: lax.psum(x, "x"))(x), mapped(lambda x: lax.psum(x, "x"), mesh=line(True))(x),
            mapped(lambda x: lax.psum_scatter(x, "x", scatter_dimension=0, tiled=True), P(None))(whole_numbers(side())),
            mapped(lambda x: lax.psum(x, ("a", "b")), P("a", "b"), P("a", "b"), grid())(whole_numbers(4, side())),
            mapped(lambda x: lax.psum(x, "a"), P("a", "b"), P(None, "b"), grid())(whole_numbers(4, side())),
            mapped(lambda x: lax.psum(x, "b"), P("a", "b"), P("a"), grid(True))(whole_numbers(4, side()))]


@program
def shard_map_moves() -> Any:
    n, x = size(), numbers(side(), 3)
    turn = [(i, (i + 1) % n) for i in range(n)]
    return [mapped(lambda x: lax.pmax(x, "x"))(x), mapped(lambda x: lax.pmin(x, "x"), out_specs=P())(x),
            mapped(lambda x: lax.all_gather(x, "x"), out_specs=P(None))(x),
            mapped(lambda x: lax.all_gather(x, "x", axis=1, tiled=True))(x),
            mapped(lambda x: lax.ppermute(x, "x", turn))(x), mapped(lambda x: lax.ppermute(x, "x", [(0, n - 1)]))(x),
            mapped(lambda x: lax.pshuffle(x, "x", [n - 1 - i for i in range(n)]))(x),
            mapped(lambda x: lax.all_to_all(x, "x", 1, 0, tiled=True), P(None, None))(numbers(2, side())),
            mapped(lambda x: lax.pswapaxes(x, "x", 0), P(None), P("x"))(numbers(n, 2)),
            mapped(lambda x: lax.axis_index("x") + 0 * x.astype(int))(x),
            mapped(lambda x: x * lax.axis_size("x"))(x),
            mapped(lambda x: lax.pbroadcast(x, "x", n - 1))(x)]


@program
def shard_map_groups() -> Any:
    n, x = size(), whole_numbers(side(), 3)
    halves = [list(range(n // 2)), list(range(n // 2, n))]
    out = [mapped(lambda x: lax.psum(x, "x", axis_index_groups=halves))(x),
           mapped(lambda x: lax.all_gather(x, "x", axis_index_groups=halves))(x)]
    odd = [list(range(0, n, 2)), list(range(1, n, 2))]
    return [*out, mapped(lambda x: lax.pmax(x, "x", axis_index_groups=odd))(x)]


@program
@thorough
def shard_map_grid() -> Any:
    x = whole_numbers(side(), side())
    out = []
    for mesh in (grid(), grid(True)):
        out += [mapped(lambda x: lax.psum(x, "a"), P("a", "b"), P(None, "b"), mesh)(x),
                mapped(lambda x: lax.all_gather(x, ("b", "a"), tiled=True), P(("a", "b")), P(None), mesh)(x),
                mapped(lambda x: lax.ppermute(x, "a", [(0, 1), (1, 0)]), P("a", "b"), P("a", "b"), mesh)(x),
                mapped(lambda x: x + lax.axis_index("a") * 10 + lax.axis_index("b"), P("a", "b"), P("a", "b"), mesh)(x)]
    return out


@program
def shard_map_partly() -> Any:
    f = cj.shard_map(lambda x: lax.psum(x, "a"), mesh=grid(), in_specs=P("a"), out_specs=P(), axis_names={"a"})
    return cj.jit(f)(divided(whole_numbers(4, side()), P("a", "b"), grid()))


@program
def shard_map_checked() -> Any:
    f = cj.shard_map(lambda x: lax.psum(x, "x") + lax.pmax(x, "x"), mesh=line(), in_specs=P("x"), out_specs=P())
    x = whole_numbers(side())
    return [f(x), cj.jit(f)(x), cj.grad(lambda x: f(x).sum())(x), cj.jit(cj.vmap(f))(np.stack([x, x + 1]))]


@program
@thorough
def shard_map_types() -> Any:
    n = side()
    return [mapped(lambda x: (lax.psum(x, "x"), lax.all_gather(x, "x"), lax.ppermute(x, "x", [(0, 1)])))(
        jnp.asarray(np.arange(n) % 3).astype(dtype))
            for dtype in ("int8", "int32", "uint8", "float32", "bfloat16", "float16", "complex64", "complex128")]


@program
def shard_map_bools() -> Any:
    return mapped(lambda x: (lax.all_gather(x, "x", tiled=True), lax.ppermute(x, "x", [(0, 1)])))(
        np.arange(side()) % 3 == 0)


@program
@thorough
def shard_map_nothing() -> Any:
    return [mapped(lambda x: lax.psum(x, "x"), P(None, "x"), P())(np.zeros((0, side()))),
            mapped(lambda x: lax.all_gather(x, "x", tiled=True), P("x"), P(None))(np.zeros((side(), 0)))]


@program
@thorough
def shard_map_loops() -> Any:
    def f(x: Any) -> Any:
        return lax.fori_loop(0, 3, lambda i, c: lax.ppermute(c, "x", [(j, (j + 1) % size()) for j in range(size())])
                             + lax.psum(c, "x"), x)
    return [mapped(f)(whole_numbers(side())),
            mapped(lambda x: lax.cond(lax.psum(x.sum(), "x") > 0, lambda x: x, lambda x: -x, x))(whole_numbers(side()))]


@program
def shard_map_grads() -> Any:
    f = cj.shard_map(lambda x, w: lax.psum((x * w) ** 2, "x"), mesh=line(), in_specs=(P("x"), P()), out_specs=P())
    x = whole_numbers(side())
    return [cj.jit(cj.grad(lambda x, w: f(x, w).sum(), argnums=(0, 1)))(x, np.float64(3)),
            cj.jvp(lambda x: f(x, 2.0), (x,), (x,))]


@program
def shard_map_evaluated_at_once() -> Any:
    return cj.shard_map(lambda x: lax.psum(x, "x") + x, mesh=line(), in_specs=P("x"), out_specs=P("x"))(
        whole_numbers(side()))


@program
def shard_map_on_fewer_devices() -> Any:
    return mapped(lambda x: lax.psum(x, "x") + lax.axis_index("x"), mesh=ends())(whole_numbers(4))


# Operations that are evaluated at once

@program
@thorough
def operations() -> Any:
    x = divided(numbers(side(), side()), P("a", "b"), grid())
    y = divided(numbers(side(), side(), seed=1), P("a", "b"), grid())
    return [x + y, x * 2, 2 - x, -x, x > y, lax.sin(x), x.T, abs(x), x ** 2, x / y, jnp.where(x > 0, x, y),
            x.astype("f4"), jnp.maximum(x, y), x.reshape(-1), x.reshape(side() // 2, -1), jnp.concatenate([x, y]),
            jnp.stack([x, y]), x.real, jnp.exp(x), x.round(), x == y]


@program
@thorough
def operations_of_different_divisions() -> Any:
    x = divided(numbers(side(), side()), P("a"), grid())
    return [x + divided(numbers(side(), side(), seed=1), P(None, "b"), grid()), x + numbers(side()), x * np.float32(2)]


@program
@thorough
def indexing() -> Any:
    x = divided(numbers(side(), side()), P("a", "b"), grid())
    n = side()
    return [x[0], x[-1], x[1:3], x[::2], x[::-1], x[:, 0], x[..., None], x[n - 1, n - 1], x[np.array([0, n - 1])],
            x[jnp.array([1, 0]), jnp.array([0, 1])], jnp.take(x, np.array([0, 1]), 1)]


@program
@thorough
def updates() -> Any:
    x = divided(numbers(side(), side()), P("a", "b"), grid())
    return [x.at[0].set(1.0), x.at[:, 1].add(2.0), x.at[np.array([0, side() - 1])].multiply(3.0), x.at[0, 0].get(),
            x.at[1:3].min(0.0), cj.jit(lambda x: x.at[0].set(x[1]))(x)]


@program
def iteration() -> Any:
    x = divided(numbers(size(), 2))
    return [list(x), [row.sum() for row in x], len(x)]


@program
@thorough
def complex_numbers() -> Any:
    x = divided(numbers(side(), dtype=np.complex128))
    return [x * 1j, x.conj(), x.real, abs(x), cj.jit(lambda x: lax.exp(x) * x)(x)]


@program
@thorough
def integers_and_bools() -> Any:
    x = divided(np.arange(side()) - 3)
    return [x // 2, x % 3, x & 1, x << 1, x > 0, (x > 0) & (x < 3), ~x, x.sum(), (x > 0).any(), jnp.cumsum(x),
            jnp.bincount(abs(x), length=5), jnp.argsort(-x)]


@program
@thorough
def transforms_and_algebra() -> Any:
    x = numbers(8, side())
    return [cj.jit(jnp.linalg.qr)(divided(x @ x.T, P(), line())), jnp.linalg.inv(divided(x @ x.T + 9 * np.eye(8), P()))]


# Random numbers

@program
@thorough
def random_numbers() -> Any:
    where = NamedSharding(line(), P("x"))
    make = cj.jit(lambda key: cj.random.normal(key, (side(), 3)), out_shardings=where)
    return [make(cj.random.key(1)), cj.jit(lambda key: cj.random.uniform(key, (side(),)), out_shardings=where)(
        divided(cj.random.key(2), P())), cj.random.bits(divided(cj.random.key(3), P()), (side(),))]


@program
@thorough
def random_keys() -> Any:
    keys = divided(cj.random.split(cj.random.key(7), side()))
    return [keys, cj.jit(cj.vmap(lambda key: cj.random.normal(key, (2,))))(keys), keys[0], keys[1:3],
            cj.random.key_data(keys), cj.jit(cj.vmap(lambda key: cj.random.split(key, 2)))(keys),
            cj.random.fold_in(divided(cj.random.key(1), P()), 3)]


@program
@thorough
def random_in_shard_map() -> Any:
    def f(key: Any) -> Any:
        return cj.random.normal(cj.random.fold_in(key, lax.axis_index("x")), (2,))
    return mapped(f, P())(cj.random.key(5))


@program
@thorough
def random_permutations() -> Any:
    return cj.jit(lambda key, x: cj.random.permutation(key, x))(cj.random.key(4), divided(numbers(side())))


# What arrays say of themselves

@program
def properties() -> Any:
    x, c = divided(numbers(side(), 2)), divided(numbers(3), P())
    positions = {device: i for i, device in enumerate(cj.devices())}
    return [[(positions[s.device], str(s.index), s.replica_id) for s in x.global_shards],
            [(positions[s.device], str(s.index), s.replica_id) for s in c.global_shards],
            x.is_fully_replicated, c.is_fully_replicated, x.sharding.num_devices,
            sorted(positions[d] for d in x.sharding.device_set), x.sharding.shard_shape(x.shape), repr(x.sharding),
            x.is_deleted(), x.block_until_ready() is x, sorted(positions[d] for d in x.devices()),
            repr(c), str(c), c.tolist(), c[0].item(), np.asarray(c), bytes(c.tobytes())]


@program
def deleted() -> Any:
    x = divided(numbers(side()))
    x.delete()
    return [x.is_deleted(), refusal(lambda: x + 1), refusal(lambda: np.asarray(x))]


@program
def refused_where_parts_are_elsewhere() -> Any:
    """What needs all elements says what to do instead; what needs the parts here goes on."""
    x, me = divided(whole_numbers(side())), cj.process_index()
    one = divided(np.ones(size() - size() + 1), P(), Mesh(np.array(cj.devices()[-1:], object), ("x",)))
    if PROCESSES == 1:
        return []
    assert not x.is_fully_addressable and not x.is_fully_replicated
    for wrong in (lambda: np.asarray(x), lambda: x.tolist(), lambda: list(np.nditer(x)), lambda: pickle.dumps(x),
                  lambda: copy.deepcopy(x), lambda: x.tobytes(), lambda: cj.device_get(x),
                  lambda: np.add(x, 1), lambda: cj.device_put(x, cj.local_devices()[0]), lambda: x.__array__(),
                  lambda: np.sin(x), lambda: sorted(np.array(x))):
        told = refusal(wrong)
        assert "doesn't hold the whole array" in told, told
    for wrong in (lambda: np.from_dlpack(x), lambda: x.__dlpack__(), lambda: x.item(), lambda: bool(x),
                  lambda: float(x), lambda: x.device.id, lambda: x.addressable_data(99)):
        try:
            raise AssertionError(f"not refused: {wrong()}")
        except (CorejaxError, AttributeError, BufferError) as error:
            assert str(error)
    assert "of which this process has" in repr(x) and str(x) == f"{x}" == repr(x)
    for shard in x.addressable_shards:
        np.testing.assert_array_equal(whole_numbers(side())[shard.index], np.asarray(shard.data))
    assert [s.data is None for s in x.global_shards] == [s.device not in cj.local_devices() for s in x.global_shards]
    np.testing.assert_array_equal(np.asarray(x.addressable_data(0)), np.asarray(x.addressable_shards[0].data))
    assert copy.copy(x).shape == x.shape
    if me != PROCESSES - 1:
        assert [] == one.addressable_shards and "this process has nothing" in repr(one)
    other = next(device for device in cj.devices() if device not in cj.local_devices())
    assert "belongs to another process" in refusal(lambda: cj.device_put(1.0, other))
    assert "belongs to another process" in refusal(lambda: cj.jit(lambda x: x).lower(1.0).compile(device=other))
    assert "differ between processes" in refusal(lambda: divided(np.arange(side()) + me))
    assert "differ between processes" in refusal(lambda: divided(jnp.arange(side()) + me))
    with_wrong = NamedSharding(line(), P("x"))
    for wrong in (lambda: cj.make_array_from_callback((side(),), with_wrong, lambda index: np.ones(99)),
                  lambda: cj.make_array_from_process_local_data(with_wrong, np.ones(2), (side(), 2)),
                  lambda: cj.make_array_from_process_local_data(with_wrong, np.ones(99), (side(),)),
                  lambda: cj.make_array_from_single_device_arrays((side(),), with_wrong, [])):
        assert refusal(wrong)
    return []


# Making arrays

@program
def made_from_callbacks() -> Any:
    x = numbers(side(), side())
    out = [cj.make_array_from_callback(x.shape, NamedSharding(mesh, spec), lambda index: x[index])
           for mesh, spec in each_way()]
    return [*out, cj.make_array_from_callback((), NamedSharding(line(), P()), lambda index: np.float32(3)),
            cj.make_array_from_callback((0, 2), NamedSharding(line(), P()), lambda index: np.zeros((0, 2))),
            cj.make_array_from_callback((side(),), NamedSharding(line(), P("x")), lambda index: np.arange(
                side())[index], dtype=np.int64)]


@program
@thorough
def made_from_single_device_arrays() -> Any:
    x = numbers(side(), side())
    out = []
    for mesh, spec in each_way():
        sharding = NamedSharding(mesh, spec)
        pieces = [cj.device_put(x[index], device) for device, index in
                  zip(sharding.flat_devices, sharding.indices(x.shape), strict=True) if device in cj.local_devices()]
        out.append(cj.make_array_from_single_device_arrays(x.shape, sharding, pieces[::-1]))
    return out


@program
def made_from_local_data() -> Any:
    x, n = numbers(side(), side()), size() // PROCESSES * 2
    me = cj.process_index()
    mine = slice(n * me, n * (me + 1))
    where = NamedSharding(line(), P("x"))
    return [cj.make_array_from_process_local_data(where, x[mine]),
            cj.make_array_from_process_local_data(where, x[mine], x.shape),
            cj.make_array_from_process_local_data(where, x, x.shape),
            cj.make_array_from_process_local_data(NamedSharding(line(), P(None, "x")), x[:, mine]),
            cj.make_array_from_process_local_data(NamedSharding(line(), P()), x)]


@program
def host_local_arrays() -> Any:
    x, n = numbers(side(), side()), size() // PROCESSES * 2
    me = cj.process_index()
    mine = slice(n * me, n * (me + 1))
    to, back = cj.multihost_utils.host_local_array_to_global_array, cj.multihost_utils.global_array_to_host_local_array
    one = to(x[mine], line(), P("x"))
    tree_of = to({"a": x[mine], "b": x[:, mine], "c": x}, line(), {"a": P("x"), "b": P(None, "x"), "c": P()})
    local = back(one, line(), P("x"))
    assert local.is_fully_addressable
    np.testing.assert_array_equal(x[mine], np.asarray(local))
    np.testing.assert_array_equal(x[:, mine], np.asarray(back(one * 1, line(), P(None, "x"))))
    np.testing.assert_array_equal(x, np.asarray(back(one, line(), P())))
    return [one, tree_of, to(local, line(), P("x"))]


@program
def gathered() -> Any:
    everywhere = cj.multihost_utils.process_allgather
    x = divided(numbers(side(), 3))
    b = everywhere({"x": x}, tiled=True)["x"]
    assert type(b) is np.ndarray
    if PROCESSES > 1:  # the array of one process is stacked
        np.testing.assert_array_equal(b, everywhere(x))
    own = everywhere(np.full((2, 3), cj.process_index()))
    tiled = everywhere(np.full((2, 3), cj.process_index()), tiled=True)
    np.testing.assert_array_equal(own, np.arange(PROCESSES)[:, None, None] * np.ones((1, 2, 3)))
    np.testing.assert_array_equal(tiled, np.repeat(np.arange(PROCESSES), 2)[:, None] * np.ones((1, 3)))
    assert (PROCESSES,) == everywhere(3.0).shape == everywhere(jnp.float32(cj.process_index())).shape
    for dtype in ("bool", "int8", "bfloat16", "complex64"):
        assert (PROCESSES, 2) == everywhere(np.ones(2, jnp.dtype(dtype))).shape
        assert jnp.dtype(dtype) == everywhere(np.ones(2, jnp.dtype(dtype))).dtype
    assert (PROCESSES, 0) == everywhere(np.ones(0)).shape
    return [b, refusal(lambda: everywhere(1.0, tiled=True))]


@program
def broadcast_and_compared() -> Any:
    utils = cj.multihost_utils
    me = cj.process_index()
    first = utils.broadcast_one_to_all({"a": np.full(3, me), "b": np.float32(me)})
    last = utils.broadcast_one_to_all(np.arange(2) + me, is_source=me == PROCESSES - 1)
    np.testing.assert_array_equal(last, np.arange(2) + PROCESSES - 1)
    utils.sync_global_devices("here")
    utils.assert_equal({"a": np.ones(3), "b": 5}, "must be the same")
    if PROCESSES > 1:
        assert "differ between processes" in refusal(lambda: utils.assert_equal(np.ones(3) * me))
        assert "exactly one process" in refusal(lambda: utils.broadcast_one_to_all(1, is_source=True))
        assert "differ" in refusal(lambda: utils.sync_global_devices(f"here {me}"))
    utils.assert_equal(1)
    return first


# pmap: each process passes the part of its own devices

def pmapped(f: Callable[..., Any], *args: Any, **how: Any) -> Any:
    """The results for all devices."""
    n = size() // PROCESSES
    mine = [x[n * cj.process_index():n * (cj.process_index() + 1)] for x in args]
    outs = cj.pmap(f, axis_name="i", **how)(*mine)
    assert all([x.is_fully_addressable and len(x) == n for x in cj.tree.leaves(outs)])
    return cj.multihost_utils.process_allgather(outs, tiled=True)


@program
def pmap_computes() -> Any:
    n, x = size(), whole_numbers(size(), 3)
    turn = [(i, (i + 1) % n) for i in range(n)]
    return [pmapped(lambda x: x * 2, x), pmapped(lambda x: lax.psum(x, "i"), x),
            pmapped(lambda x: lax.axis_index("i"), x), pmapped(lambda x: lax.all_gather(x, "i"), x),
            pmapped(lambda x: lax.ppermute(x, "i", turn), x),
            pmapped(lambda x, y: (x + y, {"a": x.sum() * y}), x, x + 1),
            pmapped(lambda x: lax.psum(x, "i"), x, axis_size=n),
            pmapped(lambda x: lax.axis_index("i"), x, devices=cj.devices()), pmapped(lambda x: x > 0, x),
            pmapped(cj.grad(lambda x: lax.psum((x * x).sum(), "i")), x), pmapped(lambda x: x, np.zeros((n, 0)))]


@program
def pmap_goes_on() -> Any:
    """What one call returns is as the next one wants it, so nothing is copied."""
    n = size() // PROCESSES
    x = whole_numbers(size(), 3)[n * cj.process_index():n * (cj.process_index() + 1)]
    step = cj.pmap(lambda x, w: x / lax.psum(w, "i"), axis_name="i", in_axes=(0, None))
    y = step(x, np.float64(0.25))
    for _ in range(3):
        y = step(y, 0.25)
    with_none = cj.pmap(lambda x: lax.psum(x, "i"), axis_name="i", out_axes=None)(y)
    columns = cj.pmap(lambda x: x * 2, in_axes=1, out_axes=1)(np.ones((3, n)))
    donated = cj.pmap(lambda x: x + 1, donate_argnums=0)(y)
    keyed = cj.pmap(lambda x, static: x * static, static_broadcasted_argnums=1)(x, 3)
    assert (3, n) == columns.shape and columns.is_fully_addressable
    everywhere = cj.multihost_utils.process_allgather
    return [with_none, everywhere(donated, tiled=True), everywhere(keyed, tiled=True)][1:] + [np.asarray(with_none)]


@program
def pmap_over_own_devices() -> Any:
    n = len(cj.local_devices())
    out = cj.pmap(lambda x: lax.psum(x, "i"), axis_name="i", devices=cj.local_devices())(np.ones(n))
    np.testing.assert_array_equal(np.full(n, float(n)), np.asarray(out))
    if PROCESSES > 1:
        f = cj.pmap(lambda x: x)
        assert f"{n + 1} elements are mapped over the {n} devices" in refusal(lambda: f(np.ones(n + 1)))
        assert "axis_size is 1" in refusal(lambda: cj.pmap(lambda x: x, axis_size=1, in_axes=None)(1.0))
        for wrong in (lambda: cj.jit(f)(np.ones(n)), lambda: cj.grad(lambda x: f(x).sum())(np.ones(n)),
                      lambda: cj.make_jaxpr(f)(np.ones(n))):
            assert "can't be part of a program" in refusal(wrong)
        other = [d for d in cj.devices() if d not in cj.local_devices()]
        if len({d.process_index for d in other}) > 1:
            theirs = cj.pmap(lambda x: x, devices=other)
            assert "has none of the devices" in refusal(lambda: theirs(np.ones(len(other))))
    return []


# Callbacks

CALLED: list[Any] = []


def doubled(x: Any) -> Any:
    CALLED.append(np.asarray(x))
    return np.asarray(x) * 2


def fails_in_first(x: Any) -> Any:
    if cj.process_index() == 0:
        raise KeyError("mine")
    return np.asarray(x)


def like(x: Any) -> Any:
    return cj.ShapeDtypeStruct(x.shape, x.dtype)


@program
def callbacks_of_whole_arrays() -> Any:
    """The process with the first device calls them, and all get the results."""
    from corejax.experimental import io_callback
    x, n = divided(numbers(side())), len(CALLED)
    out = [cj.jit(lambda x: cj.pure_callback(doubled, like(x), x))(x),
           cj.jit(lambda x: io_callback(doubled, like(x), x) + x)(x),
           cj.jit(lambda x: lax.scan(lambda c, _: (io_callback(doubled, like(c), c), None), x, None, 3)[0])(x),
           cj.jit(lambda x: (cj.debug.callback(doubled, x.max()), x)[1])(x)]
    cj.block_until_ready(out)
    assert len(CALLED) - n == (6 if cj.process_index() == 0 else 0)
    for f in (lambda x: io_callback(doubled, like(x), x, ordered=True),
              lambda x: cj.debug.callback(doubled, x, ordered=True), lambda x: cj.debug.print("{}", x, ordered=True)):
        assert "can't happen in a program for several devices" in refusal(lambda f=f: cj.jit(f)(x))
    if PROCESSES > 1:
        for f in (lambda: cj.pure_callback(doubled, like(x), x), lambda: cj.debug.print("{}", x)):
            assert "doesn't hold the whole array" in refusal(f)
    return out


@program
def callbacks_on_each_device() -> Any:
    from corejax.experimental import io_callback
    x, n = numbers(side()), len(CALLED)
    out = [mapped(lambda x: cj.pure_callback(doubled, like(x), x))(x),
           mapped(lambda x: io_callback(doubled, like(x), x))(x),
           mapped(lambda x: lax.pmax(cj.pure_callback(doubled, like(x), x), "x"), out_specs=P())(x),
           mapped(lambda x: (cj.debug.callback(doubled, x), x)[1])(x)]
    cj.block_until_ready(out)
    assert len(CALLED) - n == 4 * size() // PROCESSES
    return out


@program
def callbacks_that_fail() -> Any:
    """The exception comes where it was raised, a PeerError in the other processes; then all go on."""
    x = divided(whole_numbers(side()))
    for f in (cj.jit(lambda x: cj.pure_callback(fails_in_first, like(x), x)),
              mapped(lambda x: lax.psum(cj.pure_callback(fails_in_first, like(x), x), "x"), out_specs=P()),
              cj.jit(lambda x: lax.while_loop(lambda c: cj.pure_callback(
                  fails_in_first, cj.ShapeDtypeStruct((), "bool"), c.sum() == 0), lambda c: c + 1, x)),
              cj.jit(lambda x: lax.while_loop(lambda c: ~cj.pure_callback(
                  fails_in_first, cj.ShapeDtypeStruct((), "bool"), c.sum() != 0), lambda c: c * 0 + 1, x * 0))):
        for _ in range(2):
            try:
                raise AssertionError(f(x))
            except (KeyError, cj.distributed.PeerError) as error:
                assert cj.process_index() == 0 if isinstance(error, KeyError) else "KeyError: 'mine'" in str(error)
    return cj.jit(lambda x: x + x.sum())(x)


# Programs that are compiled, and saved

@program
def compiled_beforehand() -> Any:
    x = divided(whole_numbers(side()))
    lowered = cj.jit(lambda x: x * 2 + x.sum()).lower(x)
    compiled = lowered.compile()
    cost = compiled.cost_analysis()
    return [compiled(x), compiled(x + 1), compiled(cj.device_put(x, NamedSharding(line(), P()))),
            cost["flops"] > 0, compiled.memory_analysis() is not None,
            "all-reduce" in compiled.as_text(), lowered.as_text()]


@program
def compiled_for_another_division() -> Any:
    x = divided(whole_numbers(side(), side()))
    return cj.jit(lambda x: x * 2).lower(x).compile()(cj.device_put(x, NamedSharding(line(), P(None, "x"))))


@program
def compiled_by_one_only() -> Any:
    x = divided(whole_numbers(side()))
    if cj.process_index() == 0:
        cj.jit(lambda x: x * 3 + x.sum()).lower(x).compile()
    return cj.jit(lambda x: x * 4 + x.sum())(x)


@program
@thorough
def exported() -> Any:
    x = divided(whole_numbers(side()))
    made = cj.export.export(cj.jit(lambda x: x * 2 + x.sum()))(x)
    again = cj.export.deserialize(made.serialize())
    return [cj.jit(again.call)(x), made.serialize()]


@program
def staged() -> Any:
    x = divided(numbers(side()))
    return [str(cj.make_jaxpr(lambda x: lax.sin(x) * 2)(x)), str(cj.eval_shape(lambda x: x.sum(), x))]


# One device of each

@program
def one_device() -> Any:
    here = cj.local_devices()[0]
    x = cj.device_put(np.arange(3.0), here)
    np.testing.assert_array_equal(np.arange(3.0) + 1, np.asarray(cj.jit(lambda x: x + 1)(x)))
    assert x.is_fully_addressable and (x + 1).devices() == {here}
    np.testing.assert_array_equal(np.asarray(cj.random.normal(cj.random.key(0), (3,))), np.asarray(cj.jit(
        lambda: cj.random.normal(cj.random.key(0), (3,)))()))
    return float(np.asarray(jnp.arange(3.0).sum()))


@program
def own_devices() -> Any:
    mesh = Mesh(np.array(cj.local_devices(), object), ("x",))
    x = divided(np.arange(2.0 * len(cj.local_devices())), P("x"), mesh)
    assert x.is_fully_addressable
    total = cj.jit(cj.shard_map(lambda x: lax.psum(x.sum(), "x"), mesh=mesh, in_specs=P("x"), out_specs=P()))(x)
    assert float(total) == np.asarray(x).sum()
    return []


if __name__ == "__main__":
    import programs  # under this name, the test knows its classes

    programs.main(sys.argv[1:])
