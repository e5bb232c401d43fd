"""`shard_map`: what each device computes of its part, and what becomes of that under transformations."""

import numpy as np
import pytest

import corejax as cj
from corejax import P, lax
from corejax.errors import CorejaxError, CorejaxTypeError, CorejaxValueError
from corejax.plugin import Effect, define, hookimpl
from corejax.sharding import Mesh

NOTED = Effect("note")


def mapped(f, mesh, in_specs, out_specs, **options):
    return cj.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, **options)


def differences(f, x):
    """The gradient of a function of NumPy arrays, by central differences."""
    out = np.zeros_like(x)
    for i in np.ndindex(x.shape):
        step = np.zeros_like(x)
        step[i] = 1e-5
        out[i] = (f(x + step) - f(x - step)) / 2e-5
    return out


# Meshes and arrays of odd sizes

def all_collectives(x):
    return [lax.psum(x, "x"), lax.pmax(x, "x"), lax.all_gather(x, "x"), lax.all_gather(x, "x", tiled=True),
            lax.psum_scatter(x, "x", tiled=True), lax.all_to_all(x, "x", 0, 0, tiled=True),
            lax.ppermute(x, "x", [(0, 0)]), lax.ppermute(x, "x", [])]


@pytest.mark.parametrize("place", [0, 3])
def test_a_mesh_may_have_one_device(place):
    mesh = Mesh(np.array(cj.devices()[place:place + 1]), ("x",))
    x = np.arange(2.0)
    for f in (mapped(all_collectives, mesh, P(), P(), check_vma=False), mapped(all_collectives, mesh, P("x"), P("x"))):
        for outs in (f(x), cj.jit(f)(x)):
            assert {(mesh.flat_devices)} == {tuple(out.devices()) for out in outs}
            for out, wanted in zip(outs, [x, x, x[None], x, x, x, x, 0 * x], strict=True):
                np.testing.assert_array_equal(wanted, np.asarray(out))
    assert 0 == cj.jit(mapped(lambda: lax.axis_index("x"), mesh, (), P(), check_vma=False))().item()


@pytest.mark.parametrize("shape", [(0, 3), (8, 0)])
def test_empty_arrays_are_exchanged(line, shape):
    f = cj.jit(mapped(all_collectives, line, P(), P(), check_vma=False))
    first = shape[0]
    wanted = [first, first, 8, 8 * first, first // 8, first, first, first]
    assert wanted == [out.shape[0] for out in f(np.zeros(shape))]


def test_a_program_may_have_no_results(line):
    x = cj.device_put(np.ones(8), cj.NamedSharding(line, P("x")))
    assert [] == cj.jit(lambda x: [lax.sin(x)][:0])(x)
    double = mapped(lambda x: x * 2, line, P("x"), P("x"))
    assert [] == cj.jit(lambda x: cj.jvp(lambda x: [double(x)][:0], (x,), (x,))[1])(np.ones(8))


def test_sums_of_numbers_that_vmap_does_not_map_stay_weak(line):
    f = cj.vmap(lambda x, y: x + lax.psum(lax.sin(y), "m"), in_axes=(0, None), axis_name="m")
    half = np.ones(3, np.float32)
    assert np.float32 == cj.jit(f)(half, 1.0).dtype
    np.testing.assert_allclose(1 + 3 * np.sin(1.0) * np.ones(3), np.asarray(cj.jit(f)(half, 1.0)), rtol=1e-6)


# What users pass

def test_none_stands_for_what_is_none(line):
    f = mapped(lambda x, y: (x, y), line, (P("x"), None), (P("x"), None))
    out, none = f(np.arange(8.0), None)
    assert none is None and cj.NamedSharding(line, P("x")) is out.sharding
    with pytest.raises(CorejaxTypeError, match=r"args\[1\]: None stands for what is None.*(?s:.)*write P\(\)"):
        f(np.arange(8.0), np.arange(3.0))
    with pytest.raises(CorejaxTypeError, match="doesn't know its in_specs"):
        mapped(lambda x: x, line, None, P())(1.0)


def test_the_mesh_may_be_known_only_where_the_function_is_called(line):
    @cj.shard_map(in_specs=P("x"), out_specs=P())
    def total(x):
        return lax.psum(x.sum(), "x")

    with pytest.raises(CorejaxValueError, match="doesn't know on which devices to run"):
        total(np.ones(8))
    for mesh in (line, Mesh(np.array(cj.devices()[:2]), ("x",))):
        with mesh:
            assert 8.0 == total(np.ones(8)).item()


# vmap

def test_vmap_may_divide_its_axis_along_one_that_is_manual(grid, rng):
    f = mapped(lambda x: x * lax.psum(x, "x"), grid, P("x"), P("x"))
    x = rng.standard_normal((8, 4))

    def loss(x):
        return (cj.vmap(f, spmd_axis_name="y")(x) ** 2).sum()

    def by_hand(x):
        halves = x.reshape(8, 2, 2)
        return ((halves * halves.sum(1, keepdims=True)) ** 2).sum()

    np.testing.assert_allclose(by_hand(x), np.asarray(loss(x)))
    assert cj.NamedSharding(grid, P("y", "x")) is cj.jit(cj.vmap(f, spmd_axis_name="y"))(x).sharding
    np.testing.assert_allclose(differences(by_hand, x), np.asarray(cj.jit(cj.grad(loss))(x)), rtol=1e-6)


# Derivatives

def loop(x, start):
    return lax.fori_loop(0, 3, lambda i, c: c * 0.5 + lax.sin(x.sum()), start)


BODIES = {
    "a loop in a branch": lambda x, y: lax.cond(x.sum() > 0.0, lambda q: loop(x, y) + q, lambda q: q, y),
    "a branch in a loop": lambda x, y: lax.fori_loop(0, 2, lambda i, c: lax.cond(
        x.sum() > 0.0, lambda q: lax.sin(q * y), lambda q: y, c), y),
    "a loop in a loop": lambda x, y: lax.fori_loop(0, 2, lambda i, c: loop(x, y) * lax.sin(c), y),
    "a call in a branch": lambda x, y: lax.cond(x.sum() > 0.0, lambda q: cj.jit(loop)(x, y) * q, lambda q: q, y),
    "a checkpoint in a branch": lambda x, y: lax.cond(
        x.sum() > 0.0, lambda q: cj.checkpoint(lambda z: lax.sin(loop(x, z)))(y), lambda q: q, y),
    "a cast in a branch": lambda x, y: lax.cond(
        x.sum() > 0.0, lambda q: lax.sin(lax.pcast(y, "x", to="varying")) + q, lambda q: q, y),
}


@pytest.mark.parametrize("name", BODIES)
def test_values_that_programs_are_widened_for_have_the_cotangents_of_all_devices(name, rng):
    mesh = cj.make_mesh((2, 2), ("x", "y"))
    f = mapped(lambda x, y: lax.expand_dims((BODIES[name](x, y) * lax.sin(x.sum())).sum(), (0,)), mesh,
               (P("x"), P("y")), P(("x", "y")))
    xs, weights = rng.standard_normal((2, 4)), np.array([1.0, -2.0, 0.5, 3.0])
    loss = cj.jit(lambda xs: (f(xs[0], xs[1]) * weights).sum())
    wanted = differences(lambda xs: loss(xs).item(), xs)
    np.testing.assert_allclose(wanted, np.asarray(cj.jit(cj.grad(loss))(xs)), rtol=1e-6, atol=1e-8)
    for policy in (None, cj.checkpoint_policies.everything_saveable, lambda p, *_, **__: p.name == "sin"):
        found = cj.grad(cj.checkpoint(loss, policy=policy))(xs)
        np.testing.assert_allclose(wanted, np.asarray(found), rtol=1e-6, atol=1e-8)
    second = differences(lambda xs: (cj.jit(cj.grad(loss))(xs) * np.ones((2, 4))).sum().item(), xs)
    found = cj.jit(lambda xs: cj.jvp(cj.grad(loss), (xs,), (np.ones((2, 4)),))[1])(xs)
    np.testing.assert_allclose(second, np.asarray(found), rtol=1e-5, atol=1e-6)


def test_gradients_of_shared_and_of_own_values(grid, rng):
    x, w = rng.standard_normal((4, 8)), rng.standard_normal(8)

    def body(part, w):
        shared = cj.grad(lambda w: (lax.sin(part) * w).sum())(w)
        own = cj.grad(lambda w: (lax.sin(part) * w).sum())(lax.pcast(w, ("x", "y"), to="varying"))
        return shared, lax.psum(own, ("x", "y")), lax.expand_dims(own, (0,))

    f = mapped(lambda x, w: body(x, w), grid, (P(("x", "y")), P()), (P(), P(), P(("x", "y"))))
    with pytest.raises(CorejaxValueError, match="can't be divided evenly"):
        f(x, w)
    x = rng.standard_normal((8, 8))
    for outs in (f(x, w), cj.jit(f)(x, w)):
        shared, total, own = map(np.asarray, outs)
        np.testing.assert_allclose(np.sin(x).sum(0), shared)
        np.testing.assert_allclose(shared, total)
        np.testing.assert_allclose(np.sin(x), own)


def test_gradients_without_checks_are_those_of_each_device(line, rng):
    x = rng.standard_normal(8)

    def body(part, w):
        return cj.grad(lambda w: (lax.sin(part) * w).sum())(w), cj.grad(lambda w: lax.psum((lax.sin(part) * w).sum(),
                                                                                          "x"))(w)
    own, of_sum = cj.jit(mapped(lambda p, w: [y[None] for y in body(p, w)], line, (P("x"), P()), P("x"),
                                check_vma=False))(x, 2.0)
    np.testing.assert_allclose(np.sin(x), np.asarray(own))
    np.testing.assert_allclose(8 * np.sin(x), np.asarray(of_sum))  # a sum's transpose is a sum


@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize(("in_spec", "out_spec", "body"), [
    (P("x"), P(), lambda x: lax.psum(lax.sin(x), "x")),
    (P("x"), P("x"), lambda x: x * lax.pmean(lax.cos(x).sum(), "x")),
    (P(), P("x"), lambda x: lax.psum_scatter(lax.pcast(lax.sin(x), "x", to="varying"), "x", tiled=True)),
    (P("x"), P("x"), lambda x: lax.sin(lax.all_gather(x, "x")).sum(0)),
    (P("x"), P("x"), lambda x: lax.ppermute(lax.sin(x), "x", [(0, 1), (1, 0), (3, 4)]) * x),
    (P(), P(None), lambda x: lax.sin(x)),
    (P(), P("x"), lambda x: lax.sin(x)),
    (P("x"), P("x"), lambda x: cj.checkpoint(lambda x: lax.sin(x * lax.psum(x.sum(), "x")))(x)),
    (P("x"), P(), lambda x: lax.pmax(lax.sin(x).sum(), "x")),
    (P("x"), P("x"), lambda x: lax.all_to_all(lax.sin(lax.all_gather(x, "x")), "x", 0, 1)),
])
def test_derivatives_of_mapped_functions(line, rng, check, in_spec, out_spec, body):
    x = rng.standard_normal(16)
    f = cj.jit(mapped(body, line, in_spec, out_spec, check_vma=check))
    weights = rng.standard_normal(f(x).shape)

    def loss(x):
        return (f(x) * weights).sum()

    slope = np.asarray(cj.jit(cj.grad(loss))(x))
    np.testing.assert_allclose(differences(lambda x: loss(x).item(), x), slope, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(slope.sum(), cj.jvp(loss, (x,), (np.ones(16),))[1].item())
    np.testing.assert_allclose(slope, np.asarray(cj.linear_transpose(cj.linearize(f, x)[1], x)(weights)[0]))


def test_residuals_of_any_rank_and_type_wait_for_the_cotangent(line):
    def body(x, i):
        chosen = lax.dynamic_index_in_dim(x, lax.rem(i[0], np.int32(2)), 0, False)  # an index and a scalar
        return lax.psum(lax.select(chosen > 0.0, lax.sin(chosen), chosen * x.sum()), "x")

    x, i = np.linspace(-1.0, 1.0, 16), np.arange(8, dtype=np.int32)
    for check in (True, False):
        f = mapped(body, line, (P("x"), P("x")), P(), check_vma=check)
        wanted = differences(lambda x, f=f: f(x, i).item(), x)
        for grad in (cj.grad(f), cj.jit(cj.grad(f))):
            np.testing.assert_allclose(wanted, np.asarray(grad(x, i)), rtol=1e-6, atol=1e-8)


def test_integers_have_no_tangents(line):
    f = mapped(lambda x, i: (x * i, i * 2), line, P("x"), P("x"))
    x, i = np.arange(8.0), np.arange(8, dtype=np.int32)
    of_x, of_i = cj.grad(lambda x, i: f(x, i)[0].sum(), argnums=(0, 1), allow_int=True)(x, i)
    np.testing.assert_array_equal(i, np.asarray(of_x))
    assert cj.float0 == np.asarray(of_i).dtype and (8,) == of_i.shape
    outs, dots = cj.jvp(f, (x, i), (x, np.zeros(8, cj.float0)))
    np.testing.assert_array_equal(x * i, np.asarray(dots[0]))
    assert cj.float0 == dots[1].dtype and np.int32 == outs[1].dtype


def test_linear_functions_inside_and_outside(line, rng):
    x = rng.standard_normal(8)
    f = mapped(lambda x: lax.sin(x) * lax.psum(x, "x"), line, P("x"), P("x"))
    out, push = cj.linearize(f, x)
    same, pull = cj.vjp(f, x)
    np.testing.assert_allclose(np.sin(x) * x.sum(), np.asarray(out))
    np.testing.assert_allclose(np.asarray(out), np.asarray(same))
    jacobian = np.diag(np.cos(x) * x.sum()) + np.sin(x)[:, None]
    np.testing.assert_allclose(jacobian, np.stack([np.asarray(push(row)) for row in np.eye(8)], 1))
    np.testing.assert_allclose(jacobian, np.stack([np.asarray(pull(row)[0]) for row in np.eye(8)]))
    np.testing.assert_allclose(jacobian, np.asarray(cj.jacfwd(f)(x)))
    np.testing.assert_allclose(jacobian, np.asarray(cj.jit(cj.jacrev(f))(x)))


# Some axes only

def test_the_compiler_divides_along_axes_that_are_not_named(grid, rng):
    x, w = rng.standard_normal((8, 8)), rng.standard_normal((8, 8))
    f = mapped(lambda x, w: lax.psum(lax.sin(x @ w), "x"), grid, (P(None, "x"), P("x")), P(), axis_names={"x"})

    def by_hand(x, w):
        return sum([np.sin(x[:, part] @ w[part]) for part in (slice(0, 4), slice(4, 8))])

    np.testing.assert_allclose(by_hand(x, w), np.asarray(cj.jit(f)(x, w)))
    placed = cj.device_put(x, cj.NamedSharding(grid, P("y", "x")))
    np.testing.assert_allclose(by_hand(x, w), np.asarray(cj.jit(f)(placed, w)))
    slope = cj.jit(cj.grad(lambda w: (f(placed, w) ** 2).sum()))(w)
    np.testing.assert_allclose(differences(lambda w: (by_hand(x, w) ** 2).sum(), w), np.asarray(slope), rtol=1e-5,
                               atol=1e-6)
    with pytest.raises(CorejaxValueError, match="names an axis 'y' that isn't mapped over"):
        mapped(lambda x: x, grid, P("y"), P(), axis_names={"x"})


def test_maps_within_maps_are_along_other_axes(cube, rng):
    def innermost(x):
        return cj.shard_map(lambda x: lax.psum(x * (1 + lax.axis_index("z")), "z"), in_specs=P("z"), out_specs=P(),
                            axis_names={"z"})(x)

    def inner(x):
        return cj.shard_map(lambda x: innermost(x) * lax.psum(x.sum(), ("x", "y")), in_specs=P("y"), out_specs=P("y"),
                            axis_names={"y"})(x)

    f = mapped(lambda x: inner(lax.sin(x)), cube, P("x"), P("x"), axis_names={"x"})
    x = rng.standard_normal(8)

    def by_hand(x):
        y = np.sin(x).reshape(2, 2, 2)
        return ((y * np.array([1, 2])).sum(-1) * y.sum()).ravel()

    np.testing.assert_allclose(by_hand(x), np.asarray(cj.jit(f)(x)))
    np.testing.assert_allclose(np.stack([by_hand(x), by_hand(2 * x)]),
                               np.asarray(cj.jit(cj.vmap(f))(np.stack([x, 2 * x]))))
    slope = cj.jit(cj.grad(lambda x: (f(x) ** 2).sum()))(x)
    np.testing.assert_allclose(differences(lambda x: (by_hand(x) ** 2).sum(), x), np.asarray(slope), rtol=1e-5)
    with pytest.raises(CorejaxValueError, match="axis 'x' is mapped over already"):
        mapped(lambda x: mapped(lambda x: x, cube, P("x"), P("x"))(x), cube, P("x"), P("x"))(x)


# Effects

class NotePart:
    """Calls back into Python with its operand, which is the result too."""

    name = "note_part"

    def __init__(self):
        self._seen = []

    def _note(self, x):
        self._seen.append(x.tolist())
        return [x]

    @hookimpl
    def abstract_eval(self, avals):
        return avals[0]

    @hookimpl
    def effects(self, avals):
        return frozenset({NOTED})

    @hookimpl
    def xla_translation(self, ctx, args):
        return ctx.callback(self._note, args, ctx.avals_out)[0]


def test_each_device_has_the_effects(line):
    plugin = NotePart()
    note = define(plugin)

    def body(x):
        note(x * 2.0)
        return x

    f = cj.jit(mapped(body, line, P("x"), P("x")))
    assert {NOTED} == cj.make_jaxpr(f)(np.ones(8)).effects
    np.testing.assert_array_equal(np.arange(8.0), np.asarray(f(np.arange(8.0))))
    assert [[2.0 * i] for i in range(8)] == sorted(plugin._seen)
    slope = cj.jit(cj.grad(lambda x: (f(x * 3.0) * lax.sin(x)).sum()))
    with pytest.raises(CorejaxError, match="note_part"):
        slope(np.arange(8.0))


# Errors

def test_a_result_that_varies_without_its_spec_saying_so(grid):
    def body(x):
        return {"total": lax.psum(x.sum(), "x")}  # the line

    with pytest.raises(CorejaxValueError) as caught:
        mapped(body, grid, P("x", "y"), P())(np.ones((8, 8)))
    message = str(caught.value)
    assert "result['total'] varies along axis 'y', of which its out_spec says nothing" in message
    assert "lax.psum(x, 'y')" in message and __file__ in message
    first = body.__code__.co_firstlineno
    assert f"{__file__}:{first + 4} " in message  # where the mapped function was called


@pytest.mark.parametrize(("wrong", "message"), [
    (lambda m: mapped(lambda x: x, m, P("x"), P("x"))(np.ones(3)), r"args.0.: dimension 0 can't be divided evenly"),
    (lambda m: mapped(lambda x: x, m, P(None, "x"), P("x"))(np.ones(8)), r"args.0.: a spec has more entries"),
    (lambda m: mapped(lambda x: x.sum(), m, P("x"), P("x"))(np.ones(8)), r"result: a spec has more entries"),
    (lambda m: mapped(lambda x: x, m, P("z"), P())(np.ones(8)), "names an axis 'z' that isn't mapped over"),
    (lambda m: mapped(lambda x: x, m, P("x", "x"), P())(np.ones((8, 8))), "two dimensions along axis 'x'"),
    (lambda m: mapped(lambda x: x, m, "x", P()), "in_specs isn't a PartitionSpec"),
    (lambda m: mapped(lambda x: x, m, (P(), P()), P())(1.0), "one entry for each argument"),
    (lambda m: mapped(lambda x: lax.psum(x, "z"), m, P("x"), P())(np.ones(8)), "no axis is called 'z' here"),
    (lambda m: mapped(lambda x: x, 3, P("x"), P())(np.ones(8)), "needs a mesh"),
    (lambda m: mapped(3, m, P("x"), P()), "expected a function"),
    (lambda m: mapped(lambda x: x, m, P(P.UNCONSTRAINED), P()), "leaves a dimension open"),
    (lambda m: cj.vmap(mapped(lambda x: x, m, P("x"), P("x")), spmd_axis_name="x")(np.ones((8, 8))),
     "vmap divides the mapped axis along 'x'"),
])
def test_what_does_not_fit_is_refused(line, wrong, message):
    with pytest.raises(CorejaxError, match=message):
        wrong(line)
