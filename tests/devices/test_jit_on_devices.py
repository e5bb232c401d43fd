"""`jit` with arrays and shardings of several devices."""

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import corejax as cj
from corejax import P, lax
from corejax.errors import CorejaxError, CorejaxTypeError, CorejaxValueError
from corejax.sharding import Mesh, NamedSharding, SingleDeviceSharding


def on(mesh, *entries):
    return NamedSharding(mesh, P(*entries))


def test_results_are_where_the_compiler_puts_them(grid, rng):
    x = rng.standard_normal((8, 8))
    out = cj.jit(lambda x: x.T + 1.0)(cj.device_put(x, on(grid, "x", "y")))
    assert on(grid, "y", "x") is out.sharding
    np.testing.assert_allclose(x.T + 1.0, np.asarray(out))


def test_shardings_of_arguments_and_results(grid, rng):
    x, y = rng.standard_normal((8, 8)), rng.standard_normal(8)
    f = cj.jit(lambda x, y: {"product": x @ y, "x": x}, in_shardings=(on(grid, "x"), None),
               out_shardings={"product": on(grid, "y"), "x": None})
    out = f(x, y)
    assert on(grid, "y") is out["product"].sharding
    np.testing.assert_allclose(x @ y, np.asarray(out["product"]))
    np.testing.assert_array_equal(x, np.asarray(out["x"]))
    same = cj.jit(lambda t: t, out_shardings=on(grid, "x"))((x, {"y": y}))
    assert on(grid, "x") is same[0].sharding is same[1]["y"].sharding


def test_specs_mean_the_current_mesh(grid, rng):
    x = rng.standard_normal((8, 8))
    with grid:
        f = cj.jit(lambda x: x * 2.0, in_shardings=P("x"), out_shardings=P("y"))
    assert on(grid, "y") is f(x).sharding
    with pytest.raises(CorejaxValueError, match="doesn't say which mesh"):
        cj.jit(lambda x: x, in_shardings=P("x"))


def test_a_constraint_within_a_program(grid, rng):
    x = rng.standard_normal((8, 8))
    f = cj.jit(lambda x: lax.with_sharding_constraint(x * 2.0, on(grid, None, "y")))
    assert on(grid, None, "y") is f(x).sharding
    np.testing.assert_allclose(2 * x, np.asarray(f(x)))
    assert on(grid, "x") is lax.with_sharding_constraint(x, on(grid, "x")).sharding  # eagerly, it moves
    np.testing.assert_allclose(2 * np.ones((8, 8)), np.asarray(cj.grad(lambda x: f(x).sum())(x)))
    np.testing.assert_allclose(2 * np.stack([x, x]), np.asarray(cj.vmap(f)(np.stack([x, x]))))


@pytest.mark.parametrize("size", [0, 1, 3, 7, 9, 10, 17])
def test_a_constraint_within_a_program_takes_any_size(line, grid, rng, size):
    x = rng.standard_normal(size)

    def f(x):
        return lax.with_sharding_constraint(x * x, on(line, "x"))

    for out in (cj.jit(f)(x), cj.jit(lambda x: f(x) * 1.0)(x), cj.vmap(f)(x[None])[0], cj.jit(cj.vmap(f))(x[None])[0]):
        np.testing.assert_allclose(x * x, np.asarray(out))
        assert {(size,)} == {shard.data.shape for shard in out.addressable_shards}  # parts of one size, so all have all
    np.testing.assert_allclose(2 * x, np.asarray(cj.jit(cj.grad(lambda x: f(x).sum()))(x)))
    np.testing.assert_allclose(x ** 8, np.asarray(cj.jit(lambda x: lax.scan(
        lambda c, _: (f(c), None), x, None, length=3)[0])(x)))
    both = cj.jit(lambda x: lax.with_sharding_constraint(x * 2.0, on(grid, ("x", "y"), None)).sum(1))
    np.testing.assert_allclose(6 * x, np.asarray(both(np.stack([x, x, x], 1))))


@pytest.mark.parametrize("put", [
    lambda x, on_line: lax.with_sharding_constraint(x, on_line),
    lambda x, on_line: cj.grad(lambda x: lax.with_sharding_constraint(x, on_line).sum())(x),
    cj.device_put, lambda x, on_line: cj.jit(lambda x: cj.device_put(x, on_line))(x),
    lambda x, on_line: cj.grad(lambda x: cj.device_put(x, on_line).sum())(x),
    lambda x, on_line: cj.jit(lambda x: x, in_shardings=on_line)(x),
    lambda x, on_line: cj.jit(lambda x: x, out_shardings=on_line)(x)])
def test_arrays_are_divided_evenly_or_not_at_all(line, put):
    with pytest.raises(CorejaxValueError, match="dimension 0 can't be divided evenly over mesh axis 'x' of size 8"):
        put(np.arange(10.0), on(line, "x"))


def test_a_constraint_of_too_many_dimensions_is_refused(line):
    with pytest.raises(CorejaxValueError, match="leaf 0: .*more entries than the array has dimensions"):
        cj.jit(lambda x: lax.with_sharding_constraint(x, on(line, None, "x")))(np.ones(8))


def test_shardings_of_inner_jits_are_constraints(grid, rng):
    x = rng.standard_normal((8, 8))
    inner = cj.jit(lambda x: x + 1.0, in_shardings=on(grid, "x"), out_shardings=on(grid, None, "y"))
    np.testing.assert_allclose((x + 1.0) * 2.0, np.asarray(cj.jit(lambda x: inner(x) * 2.0)(x)))
    assert 2 == cj.jit(lambda x: inner(x) * 2.0).lower(x).as_text().count("sdy.sharding_constraint")


def test_closed_over_arrays_decide_where_a_program_runs(grid, rng):
    w = cj.device_put(rng.standard_normal((16, 16)), on(grid, "x"))
    x = rng.standard_normal(16)
    out = cj.jit(lambda x: w @ x)(x)
    assert 8 == len(out.devices())
    np.testing.assert_allclose(np.asarray(w) @ x, np.asarray(out))


def test_donated_arguments_are_gone(grid):
    x = cj.device_put(np.ones((8, 8)), on(grid, "x"))
    out = cj.jit(lambda x: x + 1.0, donate_argnums=0)(x)
    assert x.is_deleted() and on(grid, "x") is out.sharding
    with pytest.raises(CorejaxError, match="deleted"):
        x + 1.0


def test_stages_show_and_keep_shardings(grid, rng):
    x = rng.standard_normal((8, 8))
    f = cj.jit(lambda x: lax.sin(x).T, in_shardings=on(grid, "x", "y"))
    lowered = f.lower(x)
    assert '"x"=2, "y"=4' in lowered.as_text()
    out = lowered.compile()(x)
    assert on(grid, "y", "x") is out.sharding
    np.testing.assert_allclose(np.sin(x).T, np.asarray(out))


def test_each_sharding_has_its_own_program_and_equal_ones_share_it(grid):
    f = cj.jit(lambda x: x * 3.0)
    outs = [f(cj.device_put(np.ones((8, 8)), on(grid, *entries))) for entries in (("x",), ("y",), ("x",))]
    assert [on(grid, "x"), on(grid, "y"), on(grid, "x")] == [out.sharding for out in outs]


def test_the_persistent_cache_holds_programs_of_several_devices(grid, rng, tmp_path):
    x = cj.device_put(rng.standard_normal((8, 8)), on(grid, "x", "y"))
    with cj.config(compilation_cache_dir=tmp_path):
        first = cj.jit(lambda x: lax.cos(x).T @ x)(x)
        kept = sorted(tmp_path.glob("*.xla"))
        cj.clear_caches()
        second = cj.jit(lambda x: lax.cos(x).T @ x)(x)
    assert 1 == len(kept) and kept == sorted(tmp_path.glob("*.xla"))
    assert first.sharding is second.sharding
    np.testing.assert_array_equal(np.asarray(first), np.asarray(second))


@pytest.mark.parametrize(("wrong", "message"), [
    (lambda f, m: cj.jit(f, in_shardings=on(m, "x"))(np.ones((3, 8))), "in_shardings for args.0.: dimension 0 can't"),
    (lambda f, m: cj.jit(f, in_shardings=on(m, "x", "y"))(np.ones(8)), "in_shardings for args.0.: a PartitionSpec has"),
    (lambda f, m: cj.jit(f, out_shardings=on(m, "x"))(1.0), "out_shardings: a PartitionSpec has more entries"),
    (lambda f, m: cj.jit(f, in_shardings=(on(m, "x"), None))(np.ones(8)), "one entry for each positional argument"),
    (lambda f, m: cj.jit(f, in_shardings="x"), "in_shardings isn't a sharding"),
    (lambda f, m: cj.jit(f, out_shardings=3), "out_shardings isn't a sharding"),
    (lambda f, m: cj.jit(f, in_shardings=on(m, "x"))(cj.device_put(np.ones(8), on(m, "y"))), "divided in another way"),
    (lambda f, m: cj.jit(lambda a, b: a + b)(cj.device_put(np.ones(8), on(m, "x")), cj.device_put(np.ones(8), on(
        Mesh(cj.devices()[:4], "x"), "x"))), "live on different devices"),
    (lambda f, m: cj.jit(f, in_shardings=on(m, "x"), out_shardings=on(Mesh(cj.devices()[:4], "x"), "x"))(np.ones(8)),
     "two different sets of devices"),
    (lambda f, m: cj.device_put(np.ones(6), on(m, "y")), "can't be divided evenly"),
])
def test_what_does_not_fit_is_refused(grid, wrong, message):
    with pytest.raises((CorejaxTypeError, CorejaxValueError), match=message):
        wrong(lambda x: x, grid)


def test_hundreds_of_calls_with_collectives_may_be_under_way_from_several_threads(grid):
    f = cj.jit(cj.shard_map(lambda x: lax.psum(x, ("x", "y")), mesh=grid, in_specs=P(("x", "y")), out_specs=P()))
    g = cj.jit(cj.shard_map(lambda x: lax.pmax(x, "x"), mesh=grid, in_specs=P("x"), out_specs=P()))
    x = cj.device_put(np.arange(8.0), on(grid, ("x", "y")))
    with ThreadPoolExecutor(4) as pool:
        outs = list(pool.map(lambda i: (f(x), g(x)), range(200)))
    assert {28.0} == {float(total[0]) for total, _ in outs}
    assert {7.0} == {float(most[3]) for _, most in outs}


def test_programs_are_known_to_exchange_data_between_devices(grid):
    x = cj.device_put(np.ones((8, 8)), on(grid, "x", "y"))

    def exchange(f):
        return cj.jit(f).lower(x).compile()._flat.executable.at.exchanges

    assert not exchange(lambda x: lax.sin(x) * x)
    assert exchange(lambda x: x @ x) and exchange(lambda x: x.sum())
    assert exchange(cj.shard_map(lambda x: lax.ppermute(x, "x", [(0, 1)]), mesh=grid, in_specs=P("x"),
                                 out_specs=P("x")))


def test_calls_follow_arguments_that_are_elsewhere_each_time(grid, line, rng):
    x = rng.standard_normal((8, 8))
    one, tree = cj.jit(lambda x, y: x * y), cj.jit(lambda x, y: {"product": x * y})
    shardings = [on(grid, "x"), on(grid, None, "y"), on(line, "x"), SingleDeviceSharding(cj.devices()[3])]
    for _ in range(3):
        for sharding in shardings:
            y = cj.device_put(x, sharding)
            for other in (y, x, 2.0, cj.device_put(x)):
                for out in (one(y, other), tree(y, other)["product"], y * other):
                    assert sharding.is_equivalent_to(out.sharding, 2)
                    np.testing.assert_allclose(x * np.asarray(other), np.asarray(out))
        assert cj.devices()[0] == one(x, cj.device_put(x)).device


def test_types_say_how_arrays_will_be_divided(grid, rng):
    x = rng.standard_normal((8, 8))
    struct = cj.ShapeDtypeStruct(x.shape, x.dtype, sharding=on(grid, "x", "y"))
    assert struct == pickle.loads(pickle.dumps(struct)) and "P('x', 'y')" in repr(struct)
    compiled = cj.jit(lambda x: x.T + 1.0).lower(struct).compile()
    for given in (x, cj.device_put(x, on(grid, "x", "y"))):
        out = compiled(given)
        assert on(grid, "y", "x") is out.sharding
        np.testing.assert_allclose(x.T + 1.0, np.asarray(out))


def test_device_put_takes_a_tree_of_shardings_and_is_a_constraint_in_programs(grid, rng):
    x = rng.standard_normal((8, 8))
    tree = cj.device_put({"a": x, "b": (x, x)}, {"a": on(grid, "x"), "b": on(grid, "y")})
    assert on(grid, "x") is tree["a"].sharding
    assert [on(grid, "y")] * 2 == [leaf.sharding for leaf in tree["b"]]
    out = cj.jit(lambda x: cj.device_put(x * 2.0, on(grid, "y")))(x)
    assert on(grid, "y") is out.sharding
    np.testing.assert_allclose(2.0 * x, np.asarray(out))
    np.testing.assert_allclose(np.full((8, 8), 2.0), np.asarray(
        cj.grad(lambda x: (cj.device_put(x, on(grid, "y")) * 2.0).sum())(x)))
