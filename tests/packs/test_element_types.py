"""Structural primitives on elements of a type of one's own: the same is done to each part of what is stored.

The oracle is the primitive itself, applied to one part after the other.
"""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.core import ShapedArray
from corejax.ir.parsing import parse_jaxpr
from corejax.plugin import ElementType, define, elements, find, hookimpl
from corejax.testing import check_primitive

PAIR = ElementType("test_pair", np.float64, (2,), show=lambda pair: f"<{pair[0]:g} {pair[1]:g}>", todo="use neither",
                   refuses={"rev": "they have an order"})
TABLE = ElementType("test_table", np.float32, (2, 3))
PLAIN = ElementType("test<plain>", np.int16)
TYPES = (PAIR, TABLE, PLAIN)
wrap = {kind: define(elements.Wrap(f"wrap_{i}", kind)) for i, kind in enumerate(TYPES)}
unwrap = {kind: define(elements.Unwrap(f"unwrap_{i}", kind)) for i, kind in enumerate(TYPES)}

MOVING = ["broadcast_in_dim", "concatenate", "copy", "dynamic_slice", "dynamic_update_slice", "gather",
          "optimization_barrier", "pad", "reshape", "rev", "scatter", "select_n", "slice", "squeeze", "stop_gradient",
          "transpose", "untaken"]


def samples(name):
    """Operands, which of them are floats, and params, with which the primitive can be called."""
    for sample in find(name).samples(np.random.default_rng(0)):
        floats = [np.asarray(x).dtype == np.float64 for x in sample.args]
        if sample.error is None and any(floats) and sample.params.get("fill_value") is None:
            yield [np.asarray(x) for x in sample.args], floats, sample.params


def flat(outs):
    return list(outs) if isinstance(outs, (list, tuple)) else [outs]


def check(outs, kind, wanted):
    """The results have the parts that are wanted for each index into what is stored."""
    outs = flat(outs)
    assert outs[0].dtype == kind.dtype
    for i, out in enumerate(outs):
        if out.dtype != kind.dtype:  # of an operand that was a number from the start
            np.testing.assert_array_equal(out, wanted[()][i] if () in wanted else next(iter(wanted.values()))[i])
            continue
        got = np.asarray(unwrap[kind](out))
        for at, parts in wanted.items():
            np.testing.assert_array_equal(got[(..., *at)], parts[i])


@pytest.mark.sample(17)
@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.name)
@pytest.mark.parametrize("name", MOVING)
def test_each_part_is_moved_alike(name, kind):
    rng, count = np.random.default_rng(1), 0
    if name == "rev" and kind is PAIR:
        pytest.skip("this type refuses it: see below")
    for args, floats, params in samples(name):
        apply = partial(find(name).bind, **params)
        stored = [np.asarray(rng.integers(-9, 9, (*x.shape, *kind.trailing)), kind.physical) if f else x
                  for x, f in zip(args, floats)]
        wanted = {at: [np.asarray(out) for out in flat(apply(*[x[(..., *at)] if f else x
                                                               for x, f in zip(stored, floats)]))]
                  for at in np.ndindex(kind.trailing)}
        wrapped = [wrap[kind](x) if f else x for x, f in zip(stored, floats)]
        check(apply(*wrapped), kind, wanted)
        check(apply(*map(cj.device_put, wrapped)), kind, wanted)
        check(cj.jit(apply)(*wrapped), kind, wanted)
        if count < 3:
            mapped = cj.vmap(apply, in_axes=tuple(0 if f else None for f in floats))(
                *[lax.concatenate([x[None], x[None]], 0) if f else x for x, f in zip(wrapped, floats)])
            for i in range(2):
                check([out[i] for out in flat(mapped)], kind, wanted)
        count += 1
    assert count >= 2


X = wrap[TABLE](np.arange(24, dtype=np.float32).reshape(4, 2, 3))
STORED = np.asarray(unwrap[TABLE](X))


def stored(x):
    return np.asarray(unwrap[TABLE](x))


@pytest.mark.parametrize("place", [lambda x: x, cj.device_put], ids=["host", "device"])
@pytest.mark.parametrize("index", [
    0, -1, np.int32(2), slice(1, None), slice(None, None, -1), slice(None, None, 2), slice(-1, None, -2),
    (None, 1), [0, 2], np.array([[3, 1], [0, 0]]), ..., (),
    np.array([True, False, True, False])], ids=repr)
def test_indexing(index, place):
    if isinstance(index, np.ndarray) and index.dtype == bool:
        runs = [lambda x: x[index]]
    else:
        runs = [lambda x: x[index], cj.jit(lambda x: x[index])]
    for run in runs:
        np.testing.assert_array_equal(stored(run(place(X))), STORED[index])
    replaced = np.array(STORED)
    replaced[index] = STORED[1]
    for run in (lambda x, v: x.at[index].set(v), cj.jit(lambda x, v: x.at[index].set(v))):
        np.testing.assert_array_equal(stored(run(place(X), X[1])), replaced)


def test_what_is_out_of_bounds():
    # the extreme of what is stored; a number can't be chosen
    for run in (lambda f: f, cj.jit):
        np.testing.assert_array_equal(stored(run(lambda x, i: x.at[i].get(mode="clip"))(X, 9)), STORED[3])
        assert np.isnan(stored(run(lambda x, i: x.at[i].get(mode="fill"))(X, 9))).all()
    with pytest.raises(cj.CorejaxError, match="can't stand for elements of type test_table"):
        X.at[9].get(mode="fill", fill_value=0.0)
    with pytest.raises(cj.CorejaxError, match="can't be stored in test_table"):
        X.at[1].set(0.0)


@cj.custom_jvp
def reversed_(x):
    return x[::-1]


reversed_.defjvp(lambda primals, tangents: (reversed_(*primals), tangents[0]))

LOOPS = {
    "scan": (lambda x: lax.scan(lambda c, r: (r, c), x[0], x)[1], [0, 0, 1, 2]),
    "scan of constants": (lambda x: lax.scan(lambda c, i: (c, x[i]), 0, np.array([3, 1]))[1], [3, 1]),
    "reverse scan": (lambda x: lax.scan(lambda c, r: (r, c), x[0], x, reverse=True)[1], [1, 2, 3, 0]),
    "unrolled scan": (lambda x: lax.scan(lambda c, r: (r, c), x[0], x, unroll=3)[1], [0, 0, 1, 2]),
    "map": (lambda x: lax.map(lambda r: r, x), [0, 1, 2, 3]),
    "while": (lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1].at[s[0]].set(x[3])), (0, x))[1],
              [3, 3, 3, 3]),
    "fori": (lambda x: lax.fori_loop(0, 2, lambda i, x: x.at[i].set(x[i + 1]), x), [1, 2, 2, 3]),
    "cond": (lambda x: lax.cond(True, lambda x: x[::-1], lambda x: x, x), [3, 2, 1, 0]),
    "switch": (lambda x: lax.switch(2, [lambda: x, lambda: x, lambda: x[::-1]]), [3, 2, 1, 0]),
    "jit": (lambda x: cj.jit(lambda x: x[::-1])(x), [3, 2, 1, 0]),
    "checkpoint": (lambda x: cj.checkpoint(lambda x: x[::-1])(x), [3, 2, 1, 0]),
    "custom_jvp": (lambda x: reversed_(x), [3, 2, 1, 0]),
    "scan of no steps": (lambda x: lax.concatenate([lax.scan(lambda c, r: (r, c), x[0], x[:0])[1], x], 0),
                         [0, 1, 2, 3]),
    "select": (lambda x: lax.select(np.array([True, False, True, False]), x, x[::-1]), [0, 2, 2, 0]),
    "sequential map": (lambda x: cj.vmap(one_by_one)(x), [0, 1, 2, 3]),
}


class OneByOne:
    """Without a rule for maps, and with an impl alone: what stands in for rules gets elements, too."""

    name = "test_one_by_one"
    element_types = ("test_table",)

    @hookimpl
    def abstract_eval(self, avals):
        return avals[0]

    @hookimpl
    def impl(self, args):
        assert args[0].dtype == np.float32  # what is stored
        return args[0] + 0


one_by_one = define(OneByOne())


@pytest.mark.sample(15)
@pytest.mark.filterwarnings("ignore::corejax.errors.CorejaxWarning")
@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("run", [lambda f: f, cj.jit, lambda f: lambda x: cj.vmap(f)(x[None])[0],
                                 lambda f: lambda x: cj.jit(cj.vmap(f))(x[None])[0]],
                         ids=["eager", "jit", "vmap", "jit of vmap"])
def test_control_flow(name, run):
    function, order = LOOPS[name]
    np.testing.assert_array_equal(stored(run(function)(X)), STORED[order])
    np.testing.assert_array_equal(stored(run(function)(cj.device_put(X))), STORED[order])


def test_derivatives_pass_them_by():
    def loss(y, x):
        return lax.scan(lambda c, r: (c * unwrap[TABLE](r)[0, 1], r), y, x[1:])[0]

    wanted = STORED[1:, 0, 1].prod()
    for f in (loss, cj.jit(loss), cj.checkpoint(loss)):
        assert cj.grad(f)(np.float32(2.0), X) == wanted
        assert cj.jvp(lambda y, f=f: (f(y, X), X), (np.float32(2.0),), (np.float32(1.0),))[1][0] == wanted
    out, tangent = cj.jvp(lambda x: x[0], (X,), (np.zeros(4, cj.float0),))
    assert tangent.dtype == cj.float0
    with pytest.raises(TypeError, match="elements that aren't numbers, and so no derivative"):
        cj.grad(lambda x: 1.0)(X)
    # a derivative that would silently be zero is refused
    with pytest.raises(cj.CorejaxError, match="test_table have no derivatives"):
        cj.grad(lambda x: unwrap[TABLE](wrap[TABLE](x)).sum())(STORED)


@cj.custom_vjp
def scaled(y, x):
    return y * unwrap[TABLE](x).sum(), x[::-1]


scaled.defvjp(lambda y, x: (scaled(y, x), x), lambda x, ct: (ct[0] * unwrap[TABLE](x).sum(), None))


def test_rules_of_the_users_keep_and_return_them():
    def loss(y, x):
        return lax.scan(lambda c, _: (scaled(c, x)[0], None), scaled(y, x)[0], None, length=2)[0]

    for run in (lambda f: f, cj.jit, cj.checkpoint, lambda f: lambda y, x: cj.vmap(f)(y[None], x[None])[0]):
        out = run(cj.grad(loss))(np.float32(2.0), X[:2])
        assert out == STORED[:2].sum() ** 3


@pytest.mark.parametrize("compute", [
    lambda x: x + x, lambda x: x * 2, lambda x: -x, lambda x: x == x, lambda x: x < x, lambda x: x @ x, lax.sin,
    lambda x: x.sum(), lambda x: x.max(), lambda x: lax.argmax(x, 0, np.int32), lambda x: x.astype("float32"),
    lambda x: lax.convert_element_type(np.zeros(3), x.dtype), lambda x: lax.full((2,), 1, x.dtype),
    lambda x: lax.full_like(x, 0), lambda x: lax.clamp(x, x, x), lambda x: x.at[0].add(x[0]), lambda x: x.round(),
    lambda x: lax.concatenate([x, np.zeros(4, np.float32)], 0), lambda x: lax.select(True, x, 1.0),
    lambda x: np.add(x, x), lambda x: lax.concatenate([x, wrap[PAIR](np.zeros((3, 2)))], 0), lambda x: x.conj(),
    lambda x: x.real, lambda x: x.imag, lambda x: abs(x)])
def test_all_others_refuse_them_by_name(compute):
    for run in (lambda: compute(X), lambda: compute(cj.device_put(X)), lambda: cj.make_jaxpr(compute)(X)):
        with pytest.raises(cj.CorejaxError, match="test_table"):
            run()


@pytest.mark.parametrize("read", [
    np.asarray, lambda x: x.tolist(), lambda x: x[0].item(), lambda x: float(x[0]), lambda x: bool(x[0]),
    np.from_dlpack, lambda x: x[0] in x])
def test_nobody_outside_reads_them_as_numbers(read):
    for x in (X, cj.device_put(X)):
        with pytest.raises(cj.CorejaxError, match="test_table"):
            read(x)


def test_they_are_got_into_host_memory_as_they_are():
    for x in (X, cj.device_put(X), X[0]):
        got = cj.device_get({"x": x})["x"]
        assert x.aval == got.aval and repr(x) == repr(got)


def test_a_type_may_refuse_more_and_say_what_to_do():
    pairs = wrap[PAIR](np.zeros((3, 2)))
    with pytest.raises(TypeError) as caught:
        lax.rev(pairs, (0,))
    assert "rev (corejax-lax-basic 0.1.0) doesn't take elements of type test_pair: they have an order" in str(
        caught.value)
    assert "use neither" in str(caught.value)
    for run in (lambda: pairs[::-1], lambda: cj.jit(lambda x: x[::-1])(pairs), lambda: cj.device_put(pairs)[::-1]):
        with pytest.raises(TypeError, match="they have an order"):
            run()
    assert pairs[1:].shape == (2,)
    assert elements.find(pairs.dtype) is PAIR


def test_programs_print_and_parse_back():
    program = cj.make_jaxpr(lambda x, i: (lax.select(i > 0, x, x[::-1]), x[0]))(X, 2)
    assert "a:test_table[4]" in str(program)
    assert str(parse_jaxpr(str(program))) == str(program)


def test_arrays_print_and_go_to_other_processes():
    pairs = wrap[PAIR](np.arange(4.0).reshape(2, 2))
    assert "Array([<0 1>, <2 3>], dtype=test_pair)" == repr(pairs) == repr(cj.device_put(pairs))
    assert "<0 1>" == str(pairs[0]) == f"{pairs[0]}"
    assert "Array([], shape=(0, 3), dtype=test_pair)" == repr(wrap[PAIR](np.zeros((0, 3, 2))))
    for x in (pairs, cj.device_put(pairs), pairs[0]):
        assert repr(pickle.loads(pickle.dumps(x))) == repr(x)
    assert pickle.loads(pickle.dumps(pairs.aval)) is pairs.aval
    assert pickle.loads(pickle.dumps(PAIR)) is PAIR
    exported = cj.export.export(cj.jit(lambda x, y: (x[::-1], y)))(X, 2.0)
    loaded = cj.export.deserialize(exported.serialize())
    assert loaded.in_avals[0] is X.aval
    for call in (loaded.call, cj.jit(loaded.call)):
        np.testing.assert_array_equal(stored(call(X, 1.0)[0]), STORED[::-1])
    np.testing.assert_array_equal(stored(cj.vmap(loaded.call)(X[None], np.ones(1))[0]), STORED[None, ::-1])
    with pytest.raises(TypeError, match="a different type than it was exported for"):
        loaded.call(STORED, 1.0)


def test_programs_of_types_stored_alike_are_not_mixed_up():
    other = ElementType("test_other", np.float32, (2, 3))
    make = define(elements.Wrap("wrap_test_other", other))
    f = cj.jit(lambda x: x[::-1])
    assert [x.dtype for x in (f(X), f(make(STORED)), f(STORED))] == [TABLE.dtype, other.dtype, np.float32]
    f = cj.jit(lambda i: (X[i], make(STORED)[i]))
    assert [x.dtype for x in f(1)] == [TABLE.dtype, other.dtype]


@pytest.mark.parametrize("physical", [bool, np.int8, np.uint32, np.float16, cj.bfloat16, np.complex64], ids=str)
def test_each_dtype_can_be_what_is_stored(physical):
    kind = ElementType(f"test_of_{np.dtype(physical).name}", physical, (2,))
    make, read = define(elements.Wrap(f"wrap_{kind.name}", kind)), define(elements.Unwrap(f"un{kind.name}", kind))
    values = np.array([[0, 1], [1, 1], [0, 0]]).astype(physical)
    for run in (lambda f: f, cj.jit):
        for place in (lambda x: x, cj.device_put):
            out = run(lambda x: read(lax.concatenate([x[::-1], x], 0)))(make(place(values)))
            np.testing.assert_array_equal(out, np.concatenate([values[::-1], values]))


class Counted:
    """Elements backwards, and how many there are: as its vmap rule has it, one number for each part of an element."""

    name = "test_counted"
    structural = multiple_results = True

    @hookimpl
    def abstract_eval(self, avals):
        return [avals[0], ShapedArray((), np.int32)]

    @hookimpl
    def vmap(self, axis, args, dims):
        x = args[0].swapaxes(0, dims[0])
        return [x[:, ::-1], lax.full((axis.size,), np.int32(x.shape[1]))], [0, 0]

    @hookimpl
    def xla_translation(self, ctx, args):
        return ctx.lower(lambda x: (x[::-1], np.int32(x.shape[0])), *args)


class Like:
    """Elements of a type that a param names."""

    name = "test_like"
    structural = True

    @hookimpl
    def abstract_eval(self, avals, *, dtype):
        return ShapedArray(avals[0].shape, dtype)

    @hookimpl
    def vmap(self, axis, args, dims, *, dtype):
        return like(args[0], dtype=dtype), dims[0]

    @hookimpl
    def xla_translation(self, ctx, args, *, dtype):
        return args[0]


counted, like = define(Counted()), define(Like())


@pytest.mark.parametrize("make, problem", [
    (lambda: ElementType("test_table", np.float32, (3,)), "'test_table' is declared by test_element_types, twice"),
    (lambda: ElementType("f64", np.float32), "a dtype of corejax's own"),
    *[(partial(ElementType, name, np.float32), "must be an identifier, perhaps with another one in angle brackets") for
      name in ("no name", "key<", "key<>", "<fry>", "key<fry", "key<fry>2", "key<un-safe>", "key<a<b>>", "key<f>>")],
    (lambda: ElementType("test_wrong", object), "object can't be computed with"),
    (lambda: ElementType("test_wrong", PAIR), "can't be stored as test_pair"),
    (lambda: ElementType("test_wrong", cj.float0), "can't be stored as float0"),
    (lambda: ElementType("test_wrong", np.float32, 3), "must hold integers"),
    (lambda: ElementType("test_wrong", np.float32, (0,)), "must be stored as something"),
    (lambda: ElementType("test_wrong", np.float32, show="x"), "show of test_wrong must be a function"),
    (lambda: wrap[PAIR](np.zeros((2, 3))), "isn't what elements of type test_pair are stored as"),
    (lambda: wrap[PAIR](np.zeros((3, 2), np.float32)), "isn't what elements of type test_pair are stored as"),
    (lambda: unwrap[PAIR](np.zeros(3)), "aren't elements of type test_pair"),
    (lambda: unwrap[PAIR](X), "its rules are for elements of type test_pair"),
    (lambda: cj.ShapeDtypeStruct((3,), "test_nobody"), "is not a dtype"),
    (lambda: cj.device_put(np.zeros(3, [("test_nobody", np.int8)])), "no pack in use brings the element type"),
    (lambda: cj.device_put(np.zeros(3, [("test_pair", ">f8", (2,))])), "test_pair are stored in another way"),
    (lambda: ElementType("float64", np.float32), "means something else in Python, in NumPy or where"),
    (lambda: ElementType("None<of>", np.float32), "means something else in Python, in NumPy or where"),
    (lambda: ElementType("closed", np.float32), "means something else in Python, in NumPy or where"),
    (lambda: lax.iota("test_pair", 3), "can't count in test_pair"),
    (lambda: f"{wrap[PAIR](np.zeros(2)):.3f}", "can't be formatted as '.3f'"),
    (lambda: cj.jit(counted)(X), "test_counted .* structural: its vmap rule maps a result that holds no elements"),
    (lambda: cj.jit(lambda x: like(x, dtype=TABLE.dtype))(X), "test_like .* isn't structural: a param says which"),
])
def test_mistakes_are_told(make, problem):
    with pytest.raises(cj.CorejaxError, match=problem):
        make()


@pytest.mark.parametrize("physical", [np.float64, np.complex64, cj.bfloat16, bool], ids=str)
def test_the_conformance_kit_passes_what_makes_and_opens_elements(physical):
    name = np.dtype(physical).name
    kind = ElementType(f"test_kit<{name}>", physical, (2,))
    check_primitive(define(elements.Wrap(f"wrap_kit_{name}", kind)))
    check_primitive(define(elements.Unwrap(f"unwrap_kit_{name}", kind)))


def test_what_was_made_of_a_users_array_can_not_be_written_to():
    class Writes(OneByOne):
        name = "test_writes"

        @hookimpl
        def impl(self, args):
            args[0][...] = 7
            return args[0]

    given = np.zeros((2, 2, 3), np.float32)
    with pytest.raises(cj.CorejaxError, match="test_writes.*writes to its operands"):
        define(Writes())(wrap[TABLE](given))
    assert not given.any()


def test_threads_that_declare_a_type_get_the_same_dtype():
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: ElementType("test_shared", np.float32, (2,)).dtype, range(200)))
    assert 1 == len({id(dtype) for dtype in found})


def test_names_in_capitals_parse_back():
    kind = ElementType("Test_Date", np.int32)
    program = cj.make_jaxpr(lambda x: x[::-1])(define(elements.Wrap("wrap_date", kind))(np.zeros(3, np.int32)))
    assert "a:Test_Date[3]" in str(program)
    assert str(parse_jaxpr(str(program))) == str(program)


def test_declaring_one_again_is_the_same_type():
    again = ElementType("test<plain>", "int16", (), show=lambda x: "plain")
    assert again.dtype is PLAIN.dtype
    assert "Array([plain, plain], dtype=test<plain>)" == repr(wrap[PLAIN](np.zeros(2, np.int16)))
    assert cj.ShapeDtypeStruct((3,), "test<plain>") == cj.ShapeDtypeStruct((3,), PLAIN)


# Any program that only moves elements, applied to the elements' numbers, says where each of them goes.

def _moves(rng, depth=0):
    """A random function of an array of shape (4, 3) to another of that shape, which moves its elements."""
    turns = rng.permutation(4)
    mask = rng.random((4, 3)) < 0.5
    at = int(rng.integers(4))
    inner = _moves(rng, depth + 1) if depth < 2 else lambda x: x
    return [
        lambda x: x[::-1], lambda x: x[turns], lambda x: x.T.reshape(4, 3),
        lambda x: x.reshape(2, 6)[:, ::-1].reshape(4, 3),
        lambda x: lax.select(mask, x, inner(x)), lambda x: x.at[at].set(inner(x)[0]),
        lambda x: lax.concatenate([x[:at], inner(x)[at:]], 0), lambda x: x.at[turns[:2]].set(x[:2]),
        lambda x: lax.dynamic_slice(lax.concatenate([x, inner(x)], 0), (at, 0), (4, 3)),
        lambda x: lax.dynamic_update_slice(x, inner(x)[:2], (at, 0)),
        lambda x: lax.pad(x, x[at, 0], ((1, -1, 0), (0, 0, 0))),
        lambda x: lax.cond(at > 1, inner, lambda x: x, x), lambda x: lax.fori_loop(0, at, lambda i, x: inner(x), x),
        lambda x: lax.scan(lambda c, r: (r, c), x[at], inner(x))[1], lambda x: cj.jit(inner)(x),
        lambda x: lax.map(lambda r: r[::-1], inner(x)), lambda x: cj.vmap(lambda r: r[::-1])(inner(x)),
        lambda x: cj.vmap(lambda r, m: lax.select(m, r, r[::-1]), in_axes=(1, 1), out_axes=1)(x, mask),
        lambda x: cj.vmap(lambda r, m: lax.cond(m, lambda r: r[::-1], lambda r: r, r))(inner(x), mask[:, 0]),
        lambda x: cj.vmap(lambda r, n: lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1][::-1]), (0, r))[1])(
            x, turns),
        lambda x: cj.checkpoint(inner)(x), lambda x: lax.broadcast_in_dim(inner(x)[at], (4, 3), (1,)),
        lambda x: lax.rev(inner(x), (0, 1)), lambda x: lax.stop_gradient(inner(x)), lambda x: x[:, np.array([2, 0, 0])],
    ][rng.integers(25)]


@pytest.mark.sample(12)
@pytest.mark.parametrize("seed", [
    *range(30), *[pytest.param(i, marks=pytest.mark.exhaustive) for i in range(30, 1000)]])
def test_random_programs_move_elements_as_they_move_numbers(seed):
    kind = (TABLE, PLAIN)[seed % 2]
    values = np.random.default_rng(seed).integers(-99, 99, (12, *kind.trailing)).astype(kind.physical)
    elements_of = wrap[kind](values.reshape(4, 3, *kind.trailing))
    numbers = cj.device_put(np.arange(12).reshape(4, 3))

    def program(x):
        rng = np.random.default_rng(seed)
        for _ in range(3):
            x = _moves(rng)(x)
        return x

    wanted = values[np.asarray(program(numbers))]
    runs = [program, lambda x: program(cj.device_put(x)), cj.jit(program),
            lambda x: cj.vmap(program, in_axes=2, out_axes=2)(lax.concatenate([x[..., None]] * 2, 2))[..., 1]]
    for run in runs:
        np.testing.assert_array_equal(np.asarray(unwrap[kind](run(elements_of))), wanted)
