"""`corejax.ops` beside jax.ops: values, derivatives and maps of random calls."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

import corejax as cj
import corejax.numpy as jnp
from corejax import ops

jax = pytest.importorskip("jax")
jax.config.update("jax_enable_x64", True)

NAMES = ["sum", "prod", "max", "min"]
DTYPES = ["float64", "float32", "float16", "bfloat16", "int8", "int32", "int64", "uint8", "uint32", "complex64", "bool"]
CALLS = [pytest.param(seed, marks=() if seed < 4 else pytest.mark.exhaustive) for seed in range(200)]


class Call:
    """A random call: data, segments and options."""

    def __init__(self, name, seed):
        self.name = name
        rng = self.rng = np.random.default_rng([seed, NAMES.index(name)])
        # Truth values have no sums of their own (JAX's are truth values, too), and complex numbers no order.
        without = "bool" if name in ("sum", "prod") else "complex64"
        dtypes = [dtype for dtype in DTYPES if dtype != without]
        self.dtype = np.dtype(getattr(jax.numpy, dtypes[seed % len(dtypes)]))
        rows, count = int(rng.integers(0, 14)), int(rng.integers(0, 9))
        self.count = None if rng.random() < 0.3 else count
        ids = rng.integers(-3, count + 4, rows)
        self.options = {}
        if rng.random() < 0.3:
            ids = rng.choice(np.arange(-9, 21), rows, replace=False)
            self.options["unique_indices"] = True
        if rng.random() < 0.3:
            ids = np.sort(ids)
            self.options["indices_are_sorted"] = True
        if rng.random() < 0.4:
            self.options["bucket_size"] = int(rng.integers(1, rows + 3))
        if rng.random() < 0.3:
            self.options["mode"] = str(rng.choice(["drop", "fill", "clip"]))
            if self.options["mode"] == "clip":  # which makes some equal
                self.options.pop("unique_indices", None)
        if self.count is None and (not rows or ids.max() < 0):  # where JAX's default for it is an error
            self.count = count
        self.default_count = int(ids.max()) + 1 if self.count is None else self.count
        if not rows:  # of no buckets, JAX has no extremes
            self.options.pop("bucket_size", None)
        self.ids = ids.astype(rng.choice(["int64", "int32", "int8"]))
        if not (ids < 0).any() and rng.random() < 0.5:
            self.ids = ids.astype(rng.choice(["uint8", "uint32"]))
        self.data = self.numbers((rows, *rng.integers(0, 4, rng.integers(0, 3))))

    def numbers(self, shape):
        x = 3 * self.rng.standard_normal(shape)
        if self.dtype.kind == "c":
            x = x + 1j * self.rng.standard_normal(shape)
        if self.dtype.kind == "f" and self.rng.random() < 0.2:
            x = np.where(self.rng.random(shape) < 0.2, self.rng.choice([np.inf, -np.inf, np.nan, 0.0], shape), x)
        return (np.abs(x) if self.dtype.kind == "u" else x).astype(self.dtype)

    def of(self, module):
        """The function of data and segments."""
        function, options = getattr(module, f"segment_{self.name}"), self.options
        return lambda data, ids: function(data, ids, self.count, **options)

    def assert_alike(self, found, wanted):
        assert (wanted.shape, str(wanted.dtype)) == (found.shape, str(found.dtype))
        # Rows come in any order, and each step rounds: to half a unit of what is largest on the way.
        eps = 0 if self.name in ("max", "min") else float(jax.numpy.finfo(self.dtype).eps) if (
            self.dtype.kind not in "biu") else 0
        found, wanted = [np.asarray(x, np.result_type(self.dtype, "f4") if self.dtype.kind not in "biu" else None)
                         for x in (found, wanted)]
        largest = np.nan_to_num(np.abs(self.data.astype(complex)), posinf=0).sum()
        assert_allclose(found, wanted, rtol=len(self.ids) * eps, atol=eps * largest if self.name == "sum" else 0)


@pytest.mark.parametrize("seed", CALLS)
@pytest.mark.parametrize("name", NAMES)
def test_parity_of_segments(name, seed):
    call = Call(name, seed)
    found = call.of(ops)(call.data, call.ids)
    call.count = call.default_count
    wanted = jax.jit(call.of(jax.ops))(call.data, call.ids)  # compiled at once, in a tenth of the memory
    call.assert_alike(found, wanted)
    call.assert_alike(cj.jit(call.of(ops))(call.data, call.ids), wanted)
    other = call.ids if "indices_are_sorted" in call.options else call.rng.permutation(call.ids)
    data, ids = np.stack([call.data, call.numbers(call.data.shape)]), np.stack([call.ids, other])
    axes = [(0, 0), (0, None), (None, 0)][seed % 3]
    operands = [pair[0] if axis is None else pair for axis, pair in zip(axes, (data, ids), strict=True)]
    call.data = data
    call.assert_alike(cj.vmap(call.of(ops), axes)(*operands), jax.jit(jax.vmap(call.of(jax.ops), axes))(*operands))


@pytest.mark.parametrize("seed", CALLS)
@pytest.mark.parametrize("name", NAMES)
def test_parity_of_slopes_of_segments(name, seed):
    call = Call(name, seed)
    call.dtype = np.dtype(["float64", "float32"][seed % 2])
    # JAX's products have derivatives only if segments are unique. Those of its extremes are wrong where numbers are
    # clipped: the one of segment_max(x, [-1], 2, mode="clip")[0] is infinite.
    is_extreme = name in ("max", "min")
    is_wrong = name == "prod" or (is_extreme and call.options.get("mode") == "clip")
    with_ties = seed % 3 == 0 and not (is_wrong and is_extreme)  # which buckets share, and masks don't
    shape = call.data.shape
    data = (call.rng.integers(-2, 3, shape) if with_ties else call.rng.standard_normal(shape)).astype(call.dtype)
    call.count = max(call.default_count, 1)  # of none, those of JAX's extremes are an error
    weights = call.rng.standard_normal((call.count, *data.shape[1:])).astype(call.dtype)

    def total(reduce, where):
        def function(data):
            out = reduce(data, call.ids)
            return (weights * where(abs(out) < np.inf, out, 0)).sum()
        return function

    def by_masks(data, ids):
        ids = np.clip(ids, 0, call.count - 1) if call.options.get("mode") == "clip" else ids
        mask = (np.arange(call.count)[:, None] == ids).reshape(call.count, len(ids), *[1] * (data.ndim - 1))
        if name == "prod":
            return jax.numpy.where(mask, data, 1).prod(1).astype(call.dtype)
        empty = -np.inf if name == "max" else np.inf
        return getattr(jax.numpy.where(mask, data, empty), name)(1, initial=empty).astype(call.dtype)

    theirs = by_masks if is_wrong else call.of(jax.ops)
    wanted = jax.jit(jax.grad(total(theirs, jax.numpy.where)))(data)
    tolerance = 1e-12 if call.dtype == "float64" else 1e-5
    for function in (cj.grad(total(call.of(ops), jnp.where)), cj.jit(cj.grad(total(call.of(ops), jnp.where)))):
        found = function(data)
        assert found.dtype == wanted.dtype
        assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)
