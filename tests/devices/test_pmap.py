"""`pmap`: as vmap, with each element on a device of its own."""

import numpy as np
import pytest

import corejax as cj
from corejax import P, lax
from corejax.errors import CorejaxError, CorejaxIndexError, CorejaxTypeError, CorejaxValueError
from corejax.sharding import Mesh, NamedSharding


def normalized(x):
    return x / lax.psum(x, "i")


def same(wanted, got):
    np.testing.assert_allclose(np.asarray(wanted), np.asarray(got), rtol=1e-12)


def test_each_element_is_on_a_device_of_its_own():
    out = cj.pmap(lambda x: x * 2.0)(np.arange(8.0).reshape(4, 2))
    same(2.0 * np.arange(8.0).reshape(4, 2), out)
    assert cj.devices()[:4] == [shard.device for shard in out.addressable_shards]
    assert [(1, 2)] * 4 == [shard.data.shape for shard in out.addressable_shards]


@pytest.mark.parametrize(("fun", "in_axes", "out_axes", "shapes"), [
    (lambda x: x.sum(), 1, 0, [(3, 8)]),
    (lambda x, y: (x + y, y * 2.0), (0, None), (1, 0), [(8, 2), (2,)]),
    (lambda d: {"a": d["x"] * d["y"]}, ({"x": -1, "y": None},), {"a": -1}, [{"x": (3, 8), "y": (3,)}]),
    (lambda x: lax.psum(x, "i"), 0, None, [(8, 2)]),
    (lambda x: (normalized(x), lax.pmax(x, "i"), lax.axis_index("i")), 0, 0, [(8, 2)]),
    (lambda x: lax.all_gather(x, "i") @ x, 0, 0, [(4, 3)]),
    (lambda x: lax.ppermute(x, "i", [(j, (j + 1) % 4) for j in range(4)]), 0, 0, [(4, 3)]),
])
def test_it_computes_what_vmap_does(rng, fun, in_axes, out_axes, shapes):
    args = [cj.tree.map(lambda shape: rng.standard_normal(shape), shape, is_leaf=lambda x: isinstance(x, tuple))
            for shape in shapes]
    options = {"in_axes": in_axes, "out_axes": out_axes, "axis_name": "i"}
    mapped, wanted = cj.pmap(fun, **options), cj.vmap(fun, **options)(*args)
    for got in (mapped(*args), cj.jit(mapped)(*args)):
        cj.tree.map(same, wanted, got)


def test_derivatives_of_every_kind(rng):
    x = rng.uniform(1.0, 2.0, (4, 3))
    weights = rng.standard_normal((4, 3))

    def loss(mapped):
        return lambda x: (mapped(lambda x: lax.sin(normalized(x)) * x, axis_name="i")(x) * weights).sum()

    several, one = loss(cj.pmap), loss(cj.vmap)
    for transform in (cj.grad, cj.hessian, cj.jacfwd, lambda f: cj.jit(cj.grad(f))):
        same(transform(one)(x), transform(several)(x))
    same(cj.vmap(cj.grad(lambda x: lax.sin(x).sum()))(x), cj.pmap(cj.grad(lambda x: lax.sin(x).sum()))(x))


def test_it_nests_in_jit_vmap_scan_and_itself(rng):
    x = rng.uniform(1.0, 2.0, (4, 3))
    mapped, wanted = cj.pmap(normalized, axis_name="i"), x / x.sum(axis=0)
    same(np.stack([wanted, wanted]), cj.vmap(mapped)(np.stack([x, 2.0 * x])))
    same(wanted, cj.jit(mapped)(x))
    same(wanted, lax.scan(lambda c, _: (mapped(c), None), x, None, length=3)[0])
    nested = cj.pmap(cj.pmap(lambda x: lax.psum(x, ("a", "b")), axis_name="b"), axis_name="a")
    same(np.full((4, 3), x.sum()), nested(x))


def test_static_and_keyword_arguments_and_those_that_all_have_alike():
    scaled = cj.pmap(lambda n, x, *, by: x * n * by, static_broadcasted_argnums=0)
    same([0.0, 6.0], scaled(3, np.arange(2.0), by=np.array([1.0, 2.0])))
    last = cj.pmap(lambda x, n: x + n, in_axes=(0, None), static_broadcasted_argnums=-1)
    same([2.0, 3.0], last(np.arange(2.0), 2))


def test_donated_arguments_are_gone():
    f = cj.pmap(lambda x: x + 1.0, donate_argnums=0)
    x = f(np.zeros(8))
    same(np.full(8, 2.0), f(x))
    assert x.is_deleted()


def test_it_runs_on_the_devices_that_are_given():
    out = cj.pmap(lambda x: lax.axis_index("i") + x, axis_name="i", devices=cj.devices()[-2:])(np.zeros(2))
    same([0.0, 1.0], out)
    assert NamedSharding(Mesh(cj.devices()[-2:], "i"), P("i")) is out.sharding
    assert 8 == len(cj.pmap(lambda x: x, backend="cpu")(np.zeros(8)).devices())


def test_programs_show_what_is_mapped():
    def f(x, extra):
        return cj.pmap(lambda x: x + extra, axis_name="rows")(x)

    text = str(cj.make_jaxpr(f)(np.ones((2, 3)), 5.0))
    assert "xla_pmap[" in text and "axis_name='rows'" in text and "axis_size=2" in text and "in_axes=(None, 0)" in text


def test_results_are_kept_for_the_same_types():
    count = []
    f = cj.pmap(lambda x: count.append(1) or x * 2.0)
    for _ in range(3):
        f(np.ones(4))
    f(np.ones(2))
    assert 2 == len(count)


@pytest.mark.parametrize(("wrong", "kind", "message"), [
    (lambda: cj.pmap(lambda x: x)(np.ones(9)), CorejaxValueError, "9 elements need 9 devices, and there are 8"),
    (lambda: cj.pmap(lambda x: x)(1.0), CorejaxIndexError, "an argument of rank 0 has no axis 0"),
    (lambda: cj.pmap(lambda x: x, in_axes=2)(np.ones((2, 2))), CorejaxIndexError, "has no axis 2"),
    (lambda: cj.pmap(lambda x: x, out_axes=3)(np.ones((2, 2))), CorejaxIndexError, "a result of rank 2 has no axis 3"),
    (lambda: cj.pmap(lambda x, y: x)(np.ones(2), np.ones(3)), CorejaxValueError, "differ in size"),
    (lambda: cj.pmap(lambda x: x, in_axes=None)(np.ones(2)), CorejaxValueError, "no argument is mapped"),
    (lambda: cj.pmap(lambda x: x, axis_size=3)(np.ones(2)), CorejaxValueError, "differ in size"),
    (lambda: cj.pmap(lambda x: x, axis_size=0), CorejaxTypeError, "axis_size must be a size"),
    (lambda: cj.pmap(lambda x: x, in_axes=(0, 0))(np.ones(2)), CorejaxValueError, "one entry for each positional"),
    (lambda: cj.pmap(lambda x: x, in_axes="0"), CorejaxTypeError, "in_axes must be an axis"),
    (lambda: cj.pmap(lambda x: x, devices=())(np.ones(2)), CorejaxValueError, "devices must not be empty"),
    (lambda: cj.pmap(lambda x: x, devices=cj.devices()[:3])(np.ones(2)), CorejaxValueError, "2 elements are mapped"),
    (lambda: cj.pmap(lambda x: lax.psum(x, "j"), axis_name="i")(np.ones(2)), NameError, "no axis is called 'j'"),
    (lambda: cj.pmap(3), CorejaxTypeError, "expected a function"),
])
def test_what_does_not_fit_is_refused(wrong, kind, message):
    with pytest.raises(kind, match=message) as raised:
        wrong()
    assert isinstance(raised.value, CorejaxError) and raised.value.todo


@pytest.mark.parametrize("seed", range(12))
def test_parity_with_jax(seed):
    jax = pytest.importorskip("jax")
    rng = np.random.default_rng(seed)
    size, extra = int(rng.choice([1, 2, 4, 8])), int(rng.integers(1, 4))
    x, y = rng.uniform(0.5, 1.5, (size, extra)), rng.uniform(0.5, 1.5, (extra,))

    def body(lib):
        def f(x, y):
            total = lib.psum(x * y, "i")
            around = lib.ppermute(x, "i", [(j, (j + 1) % size) for j in range(size)])
            return lib.sin(total) * around + lib.all_gather(x, "i").sum(0), lib.pmean(x, "i")
        return f

    ours = cj.pmap(body(lax), axis_name="i", in_axes=(0, None), out_axes=(0, 0))
    theirs = jax.pmap(body(jax.lax), axis_name="i", in_axes=(0, None), out_axes=(0, 0))
    for got, wanted in zip(ours(x, y), theirs(x, y), strict=True):
        same(wanted, got)
    for i in (0, 1):
        wanted = jax.grad(lambda *args: sum((out ** 2).sum() for out in theirs(*args)), i)(x, y)
        same(wanted, cj.grad(lambda *args: sum([(out * out).sum() for out in ours(*args)]), i)(x, y))
