"""Programs that jax and corejax both run, in several processes: `python programs_of_both.py jax`, or corejax.

What each process says of a result: its type, how it is divided, and the parts on its devices.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from together import keep

NAME = sys.argv[1]
if NAME == "jax":
    import jax as cj
    import jax.numpy as jnp
    from jax import lax
    from jax.experimental import multihost_utils
    from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
    cj.config.update("jax_enable_x64", True)
    cj.config.update("jax_num_cpu_devices", int(os.environ["COREJAX_NUM_CPU_DEVICES"]))
    cj.config.update("jax_cpu_collectives_implementation", "gloo")
    cj.distributed.initialize(os.environ["COREJAX_COORDINATOR_ADDRESS"], int(os.environ["COREJAX_NUM_PROCESSES"]),
                              int(os.environ["COREJAX_PROCESS_ID"]))
else:
    import corejax as cj
    from corejax import NamedSharding, P, lax, multihost_utils, numpy as jnp
    from corejax.sharding import Mesh
    cj.distributed.initialize(heartbeat_timeout_seconds=20)

N, ME, COUNT = cj.device_count(), cj.process_index(), cj.process_count()
LINE = Mesh(np.array(cj.devices()), ("x",))
GRID = Mesh(np.array(cj.devices()).reshape(2, -1), ("a", "b"))
X = np.random.default_rng(0).standard_normal((2 * N, 2 * N))
OWN = X[N // COUNT * ME:N // COUNT * (ME + 1)]


def put(x: Any, spec: Any, mesh: Any = LINE) -> Any:
    return cj.device_put(x, NamedSharding(mesh, spec))


ALONG = P("x")


def mapped(f: Any, in_specs: Any = ALONG, out_specs: Any = ALONG, mesh: Any = LINE) -> Any:
    return cj.jit(cj.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=False))


TURN = [(i, (i + 1) % N) for i in range(N)]
PROGRAMS: dict[str, Callable[[], Any]] = {
    "device_put": lambda: [put(X, P("x")), put(X, P("b", "a"), GRID), put(X, P()), put(2.5, P())],
    "device_put to another sharding": lambda: cj.device_put(put(X, P("x")), NamedSharding(LINE, P(None, "x"))),
    "jit, elementwise": lambda: cj.jit(lambda x: lax.sin(x) * 2)(put(X, P("a", "b"), GRID)),
    "jit, matrix product": lambda: cj.jit(lambda x, y: x @ y)(put(X, P("x")), put(X, P())),
    "jit, sums": lambda: cj.jit(lambda x: (x.sum(), x.sum(0), x.max(1)))(put(X, P("a", "b"), GRID)),
    "jit, out_shardings": lambda: cj.jit(lambda x: x + 1, out_shardings=NamedSharding(GRID, P("b")))(
        put(X, P("a", "b"), GRID)),
    "jit, in_shardings": lambda: cj.jit(lambda x: x * 2, in_shardings=NamedSharding(LINE, P("x")))(put(X, P("x"))),
    "jit, constraint": lambda: cj.jit(lambda x: lax.with_sharding_constraint(x * 2, NamedSharding(LINE, P(None, "x"))))(
        put(X, P("x"))),
    "grad": lambda: cj.jit(cj.grad(lambda x: (lax.sin(x) ** 2).sum()))(put(X, P("x"))),
    "jvp": lambda: cj.jit(lambda x: cj.jvp(lax.sin, (x,), (x,)))(put(X, P("x"))),
    "vmap": lambda: cj.jit(cj.vmap(lambda x: x - x[0]))(put(X, P("x"))),
    "scan": lambda: cj.jit(lambda x: lax.scan(lambda c, row: (c + row, c), x[0] * 0, x))(put(X, P(None, "x"))),
    "cond": lambda: cj.jit(lambda x: lax.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, x))(put(X, P("x"))),
    "checkpoint": lambda: cj.jit(cj.grad(lambda x: cj.checkpoint(
        lambda x: lax.sin(lax.cos(x)).sum(), policy=cj.checkpoint_policies.nothing_saveable)(x)))(put(X, P("x"))),
    "shard_map, psum": lambda: mapped(lambda x: lax.psum(x, "x"), out_specs=P())(put(X, P("x"))),
    "shard_map, pmax and pmean": lambda: mapped(lambda x: (lax.pmax(x, "x"), lax.pmean(x, "x")))(put(X, P("x"))),
    "shard_map, all_gather": lambda: mapped(lambda x: lax.all_gather(x, "x", tiled=True), out_specs=P())(
        put(X, P("x"))),
    "shard_map, psum_scatter": lambda: mapped(lambda x: lax.psum_scatter(x, "x", tiled=True), P(None))(put(X, P())),
    "shard_map, ppermute": lambda: mapped(lambda x: lax.ppermute(x, "x", TURN))(put(X, P("x"))),
    "shard_map, all_to_all": lambda: mapped(lambda x: lax.all_to_all(x, "x", 1, 0, tiled=True))(put(X, P("x"))),
    "shard_map, axis_index": lambda: mapped(lambda x: x * 0 + lax.axis_index("x"))(put(X, P("x"))),
    "shard_map, grid": lambda: mapped(lambda x: lax.psum(x, "a"), P("a", "b"), P(None, "b"), GRID)(
        put(X, P("a", "b"), GRID)),
    "pmap": lambda: cj.pmap(lambda x: lax.psum(x, "i"), axis_name="i")(OWN),
    "pmap, axis_index": lambda: cj.pmap(lambda x: x * 0 + lax.axis_index("i"), axis_name="i")(OWN),
    "random numbers": lambda: cj.jit(lambda key: cj.random.normal(key, (2 * N,)), out_shardings=NamedSharding(
        LINE, P("x")))(cj.random.key(3)),
    "make_array_from_callback": lambda: cj.make_array_from_callback(X.shape, NamedSharding(LINE, P("x")),
                                                                    lambda index: X[index]),
    "make_array_from_process_local_data": lambda: cj.make_array_from_process_local_data(
        NamedSharding(LINE, P("x")), X[2 * N // COUNT * ME:2 * N // COUNT * (ME + 1)]),
    "process_allgather": lambda: [multihost_utils.process_allgather(np.full(3, ME)), multihost_utils.process_allgather(
        put(X, P("x")), tiled=True)],
    "broadcast_one_to_all": lambda: multihost_utils.broadcast_one_to_all(np.full(3, 1.0 + ME)),
    "host_local_array_to_global_array": lambda: multihost_utils.host_local_array_to_global_array(OWN, LINE, P("x")),
    "global_array_to_host_local_array": lambda: multihost_utils.global_array_to_host_local_array(
        put(X, P("x")), LINE, P("x")),
    "indexing": lambda: [put(X, P("x"))[0, 0], put(X, P("x")).sum()],
    "callbacks in shard_map": lambda: mapped(lambda x: cj.pure_callback(
        lambda x: np.asarray(x) * 2, cj.ShapeDtypeStruct(x.shape, x.dtype), x))(put(X, P("x"))),
    "types": lambda: [put(jnp.arange(2 * N).astype(t), P("x")) * 2 for t in ("bfloat16", "int8", "complex64", "bool")],
}


def told(x: Any) -> Any:
    """A result in words and ndarrays."""
    if not isinstance(x, cj.Array):
        return "host", np.asarray(x).dtype.name, np.shape(x), "", {0: np.asarray(x)}
    positions = {device: i for i, device in enumerate(cj.devices())}
    spec = getattr(x.sharding, "spec", None)
    divided = "one device" if spec is None else str(tuple(spec)).replace("(None,)", "()")
    parts = {(positions[s.device], str(s.index), s.replica_id): np.asarray(s.data) for s in x.addressable_shards}
    return "array", str(x.dtype), x.shape, divided, parts


found: dict[str, Any] = {}
for name, run in PROGRAMS.items():
    try:
        found[name] = [told(x) for x in cj.tree.leaves(run())]
    except Exception as error:
        found[name] = f"{type(error).__name__}: {error}"
    print(name, flush=True)
keep(found)
