"""Keys: made, split, moved about by everything that moves elements, and refused by what computes with numbers."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import corejax as cj
import corejax.numpy as jnp
from corejax import dtypes, lax, random
from corejax_random.keyed import random_bits_p, random_fold_in_p, random_seed_p, random_split_p

GENERATORS = ("threefry2x32", "philox4x32", "rbg", "unsafe_rbg")
every_generator = pytest.mark.parametrize("impl", GENERATORS)


def words(keys):
    return np.asarray(random.key_data(keys))


# Made from seeds

@pytest.mark.parametrize("seed, wanted", [
    (0, [0, 0]), (7, [0, 7]), (-1, [2 ** 32 - 1] * 2), (2 ** 40 + 3, [256, 3]), (2 ** 64 - 1, [2 ** 32 - 1] * 2),
    (-2 ** 63, [2 ** 31, 0]), (np.int32(-1), [0, 2 ** 32 - 1]), (np.uint8(3), [0, 3]), (np.array(5), [0, 5])])
def test_all_bits_of_a_seed_count(seed, wanted):
    assert wanted == words(random.key(seed)).tolist() == np.asarray(random.PRNGKey(seed)).tolist()


def test_seeds_have_both_words_in_32_bit_mode_and_small_negative_ones_the_lower():
    with cj.config(default_bits=32):
        assert [256, 0] == words(random.key(2 ** 40)).tolist()
        assert [0, 2 ** 32 - 1] == words(random.key(-1)).tolist()
        assert [2 ** 32 - 2, 0] == words(random.key(-2 ** 33)).tolist()


@every_generator
@pytest.mark.parametrize("seed", [0, 7, -1, 2 ** 40 + 3, 2 ** 63])
def test_the_short_way_to_a_key_gives_the_words_of_the_long_one(impl, seed):
    number = np.array(seed % 2 ** 64, np.uint64)
    long = random_seed_p.primitive.bind(number, dtype=random.key_dtype(impl))
    assert_array_equal(words(long), words(random.key(seed, impl=impl)))


@every_generator
@pytest.mark.parametrize("num", [0, 1, 2, 3, 257, 1000, (), (2, 3), (0, 3)])
def test_the_short_way_to_split_gives_the_words_of_the_long_one(impl, num):
    key = random.key(5, impl=impl)
    shape = num if isinstance(num, tuple) else (num,)
    found = words(random.split(key, num))
    assert_array_equal(words(random_split_p.primitive.bind(key, shape=shape)), found)
    assert_array_equal(words(cj.jit(lambda key: random.split(key, num))(key)), found)
    assert (*shape, *words(key).shape) == found.shape


@every_generator
@pytest.mark.parametrize("data", [0, 1, 2 ** 32 - 1])
def test_the_short_way_to_fold_in_gives_the_words_of_the_long_one(impl, data):
    key = random.key(5, impl=impl)
    found = words(random.fold_in(key, data))
    assert_array_equal(words(random_fold_in_p.primitive.bind(key, np.uint32(data))), found)
    assert_array_equal(words(cj.jit(random.fold_in)(key, np.uint32(data))), found)


def test_numbers_of_arrays_are_folded_in_modulo_32_bits():
    assert random.fold_in(random.key(0), np.int32(-1)) == random.fold_in(random.key(0), 2 ** 32 - 1)
    assert random.fold_in(random.key(0), np.int64(2 ** 32 + 3)) == random.fold_in(random.key(0), 3)


# What they are

def test_a_key_has_a_type_of_its_own():
    key = random.key(42)
    assert "key<fry>[]" == str(key.aval) and "Array(00000000:0000002a, dtype=key<fry>)" == repr(key)
    assert dtypes.issubdtype(key.dtype, dtypes.prng_key) and dtypes.issubdtype(key.dtype, dtypes.extended)
    assert not dtypes.issubdtype(np.dtype("uint32"), dtypes.prng_key)
    assert key.dtype == random.key_dtype() == random.key(0, dtype=key.dtype).dtype
    assert "{ lambda ; a:key<fry>[]. let b:key<fry>[3] = random_split[shape=(3,)] a in (b,) }" == str(
        cj.make_jaxpr(lambda key: random.split(key, 3))(key))


@every_generator
def test_words_and_keys_are_made_of_each_other(impl):
    keys = random.split(random.key(1, impl=impl), 3)
    assert impl == random.key_impl(keys)
    assert (random.wrap_key_data(random.key_data(keys), impl=impl) == keys).all()
    assert (random.wrap_key_data(random.key_data(keys), dtype=keys.dtype) == keys).all()


def test_words_are_taken_for_keys_and_given_back():
    raw, key = random.PRNGKey(3), random.key(3)
    assert_array_equal(words(random.split(key)), random.split(raw))
    assert_array_equal(words(random.fold_in(key, 3)), random.fold_in(raw, 3))
    assert_array_equal(random.normal(key, (5,)), random.normal(raw, (5,)))
    assert_array_equal(random.normal(key, (5,)), random.normal(np.asarray(raw), (5,)))
    assert np.uint32 == random.clone(raw).dtype


def test_the_usual_generator_is_a_setting():
    with cj.config(default_prng_impl="philox4x32"):
        assert "philox4x32" == random.key_impl(random.key(0)) and "key<phx4>[]" == str(random.key(0).aval)
    assert "threefry2x32" == random.key_impl(random.key(0))


# Moved about

KEYS = random.split(random.key(9), (2, 3))
MOVES = {
    "index": (lambda keys: keys[1, 2], lambda x: x[1, 2]),
    "slice": (lambda keys: keys[:, ::-1], lambda x: x[:, ::-1]),
    "reshape": (lambda keys: keys.reshape(3, 2), lambda x: x.reshape(3, 2, 2)),
    "transpose": (lambda keys: keys.T, lambda x: x.transpose(1, 0, 2)),
    "concatenate": (lambda keys: jnp.concatenate([keys, keys], 1), lambda x: np.concatenate([x, x], 1)),
    "stack": (lambda keys: jnp.stack([keys[0], keys[1]]), lambda x: np.stack([x[0], x[1]])),
    "where": (lambda keys: jnp.where(np.array([True, False, True]), keys[0], keys[1]),
              lambda x: np.where(np.array([[True], [False], [True]]), x[0], x[1])),
    "at": (lambda keys: keys.at[0, 1].set(keys[1, 2]), lambda x: np.concatenate(
        [np.stack([x[0, 0], x[1, 2], x[0, 2]])[None], x[1:]])),
    "take": (lambda keys: jnp.take(keys, np.array([1, 0]), 0), lambda x: x[::-1]),
    "broadcast": (lambda keys: jnp.broadcast_to(keys[0, 0], (2,)), lambda x: np.stack([x[0, 0]] * 2)),
    "cond": (lambda keys: lax.cond(True, lambda: keys[0], lambda: keys[1]), lambda x: x[0]),
    "scan": (lambda keys: lax.scan(lambda key, other: (other, key), keys[0], keys)[1],
             lambda x: np.stack([x[0], x[0]])),
    "while": (lambda keys: lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, s[1][::-1]), (0, keys))[1],
              lambda x: x),
    "vmap": (lambda keys: cj.vmap(lambda row: row[0])(keys), lambda x: x[:, 0]),
    "tree": (lambda keys: cj.tree.map(lambda x: x[0], {"a": keys})["a"], lambda x: x[0]),
}


@pytest.mark.parametrize("name", MOVES)
@pytest.mark.parametrize("way", [lambda f: f, cj.jit, lambda f: lambda x: f(cj.device_put(x))],
                         ids=["eager", "compiled", "on the device"])
def test_keys_are_moved_as_their_words_are(name, way):
    move, wanted = MOVES[name]
    assert_array_equal(wanted(words(KEYS)), words(way(move)(KEYS)))


def test_keys_are_shuffled_and_chosen():
    keys = random.split(KEYS[0, 0], 9)
    assert (keys[random.permutation(KEYS[0, 1], 9)] == random.permutation(KEYS[0, 1], keys)).all()
    assert (keys[random.choice(KEYS[0, 1], 9, (4,), False)] == random.choice(KEYS[0, 1], keys, (4,), False)).all()


def test_a_shape_may_be_any_sequence():
    for shape in ([2, 3], np.array([2, 3])):
        assert (2, 3) == random.normal(KEYS[0, 0], shape).shape
    assert (3,) == random.normal(KEYS[0, 0], 3).shape


def test_keys_are_equal_if_their_words_are():
    assert_array_equal([[True, False, False]] * 2, KEYS == jnp.stack([KEYS[:, 0]] * 3, 1))
    assert_array_equal(cj.jit(lambda a, b: a != b)(KEYS, KEYS[0]), [[False] * 3, [True] * 3])


def test_keys_are_pickled_and_exported():
    assert (pickle.loads(pickle.dumps(KEYS)) == KEYS).all()
    draw = cj.jit(lambda key: random.normal(key, (3,)))
    exported = cj.export.deserialize(cj.export.export(draw)(KEYS[0, 0]).serialize())
    assert_array_equal(draw(KEYS[0, 0]), exported.call(KEYS[0, 0]))


def test_keys_have_no_derivatives_and_others_beside_them_do():
    assert 3.0 == cj.grad(lambda x, key: x * 3.0 + 0.0 * random.normal(key))(2.0, KEYS[0, 0])
    assert 0.0 == cj.grad(lambda x: x * 0.0 + random.randint(KEYS[0, 0], (), 0, 9))(2.0)


@every_generator
def test_mapped_and_compiled_bits_are_those_of_each_key(impl):
    keys = random.split(random.key(3, impl=impl), (2, 2))
    one = [[np.asarray(random.bits(keys[i, j], (3,))) for j in range(2)] for i in range(2)]
    draw = cj.vmap(cj.vmap(lambda key: random.bits(key, (3,))))
    assert_array_equal(one, draw(keys))
    assert_array_equal(one, cj.jit(draw)(keys))
    assert_array_equal(one, random_bits_p.primitive.bind(keys, bit_width=64, shape=(3,)))


# Wrong uses

KEY = random.key(0)
WRONG = {
    "a seed of too many bits": (lambda: random.key(2 ** 70), OverflowError, "a seed has 64 bits"),
    "a seed below": (lambda: random.key(-2 ** 63 - 1), OverflowError, "a seed has 64 bits"),
    "a seed that is a float": (lambda: random.key(1.5), TypeError, "a seed is an integer"),
    "a seed that is a bool": (lambda: random.key(True), TypeError, "a seed is an integer"),
    "a seed that is a text": (lambda: random.key("0"), TypeError, "a seed is an integer"),
    "a seed that is a key": (lambda: random.key(KEY), TypeError, "a key already"),
    "many seeds": (lambda: random.key(np.arange(3)), TypeError, "a key is made from one seed"),
    "a misspelled generator": (lambda: random.key(0, impl="threefri2x32"), ValueError, "did you mean 'threefry2x32'"),
    "no generator": (lambda: random.key(0, impl=3.0), TypeError, "isn't a random generator"),
    "another dtype": (lambda: random.key(0, dtype=np.dtype("float32")), TypeError, "isn't the dtype of keys"),
    "two generators": (lambda: random.key(0, impl="rbg", dtype=KEY.dtype), ValueError, "both name a generator"),
    "a number as a key": (lambda: random.normal(0), TypeError, "the first argument must be a key"),
    "a float as a key": (lambda: random.normal(np.zeros(2)), TypeError, "the first argument must be a key"),
    "None as a key": (lambda: random.normal(None), TypeError, "the first argument must be a key"),
    "a shape as a key": (lambda: random.normal((3,)), TypeError, "the first argument must be a key"),
    "three words as a key": (lambda: random.normal(np.zeros(3, np.uint32)), TypeError, "must be a key"),
    "many keys": (lambda: random.normal(random.split(KEY)), ValueError, "this takes one key"),
    "many words": (lambda: random.normal(random.split(random.PRNGKey(0))), ValueError, "this takes one key"),
    "splitting many keys": (lambda: random.split(random.split(KEY)), ValueError, "this takes one key"),
    "a negative number of keys": (lambda: random.split(KEY, -1), ValueError, "can't be negative"),
    "half a number of keys": (lambda: random.split(KEY, 1.5), TypeError, "split"),
    "folding in a float": (lambda: random.fold_in(KEY, 1.5), TypeError, "only an integer can be folded in"),
    "folding in many": (lambda: random.fold_in(KEY, np.arange(3)), TypeError, "one number is folded in at a time"),
    "folding in 40 bits": (lambda: random.fold_in(KEY, 2 ** 40), OverflowError, "has 32 bits"),
    "folding in below zero": (lambda: random.fold_in(KEY, -1), OverflowError, "has 32 bits"),
    "wrapping floats": (lambda: random.wrap_key_data(np.zeros(2)), TypeError, "stored as"),
    "wrapping three words": (lambda: random.wrap_key_data(np.zeros(3, np.uint32)), TypeError, "stored as"),
    "wrapping words of another": (lambda: random.wrap_key_data(random.PRNGKey(0), impl="rbg"), TypeError, "rbg"),
    "looking into numbers": (lambda: random.key_data(np.zeros(2)), TypeError, "must be a key"),
    "adding": (lambda: KEY + 1, TypeError, "aren't numbers"),
    "negating": (lambda: -KEY, TypeError, "aren't numbers"),
    "comparing order": (lambda: KEY < KEY, TypeError, "aren't numbers"),
    "comparing with a number": (lambda: KEY == 0, TypeError, "aren't numbers"),
    "comparing generators": (lambda: KEY == random.key(0, impl="rbg"), TypeError, "no common dtype"),
    "sorting": (lambda: lax.sort(random.split(KEY)), TypeError, "aren't numbers"),
    "shuffling rows apart": (lambda: random.permutation(KEY, KEYS, independent=True), TypeError, "aren't numbers"),
    "summing": (lambda: random.split(KEY).sum(), TypeError, "aren't numbers"),
    "casting": (lambda: KEY.astype("uint32"), TypeError, "key"),
    "giving to NumPy": (lambda: np.asarray(KEY), TypeError, "key"),
    "giving to Python": (lambda: KEY.tolist(), TypeError, "key"),
    "giving by DLPack": (lambda: KEY.__dlpack__(), Exception, "key"),
    "a gradient": (lambda: cj.grad(lambda key: random.normal(key))(KEY), TypeError, "key"),
    "keys of two generators in one array": (lambda: jnp.stack([KEY, random.key(0, impl="rbg")]), TypeError, "key"),
    "a key as a parameter": (lambda: random.gamma(KEY, KEY), TypeError, "must be real"),
    "a misspelled name": (lambda: random.gausian, AttributeError, "has no attribute 'gausian'"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_use_is_told(what):
    use, kind, text = WRONG[what]
    with pytest.raises(kind) as caught:
        use()
    assert isinstance(caught.value, cj.errors.CorejaxError)
    assert text in str(caught.value)


@pytest.mark.parametrize("count", [8, 9, 12, 20, 21])
def test_a_few_numbers_have_the_bits_of_many(count):
    key = random.key(11)
    many = np.asarray(random.bits(key, (1000,)))
    assert_array_equal(random.bits(key, (count,)), many[:count])
    assert_array_equal(cj.vmap(lambda key: random.bits(key, (3,)))(random.split(key, count))[-1],
                       random.bits(random.split(key, count)[-1], (3,)))
    each = cj.vmap(random.bits)(random.split(key, count))
    assert_array_equal(each, [random.bits(one).item() for one in random.split(key, count)])
