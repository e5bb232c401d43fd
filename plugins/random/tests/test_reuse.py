"""`config.debug_key_reuse`: keys that are used twice are found, in whatever way, and nothing else is reported."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import corejax as cj
import corejax.numpy as jnp
from corejax import lax, random
from corejax.errors import CorejaxError, CorejaxNotImplementedError
from corejax.random import KeyReuseError
from corejax_random import reuse
from corejax_random._remembered import Keys
from corejax_random._uses import Reused, Use
from programs_with_keys import run

_seeds = iter(range(5000, 10 ** 6))


@pytest.fixture(autouse=True)
def looking():
    with cj.config(debug_key_reuse=True):
        yield


@pytest.fixture
def key():
    return random.key(next(_seeds))


def normal(key):
    return random.normal(key)


# What is reported

def used_twice(key):
    return normal(key) + random.uniform(key)


def split_and_used(key):
    return normal(random.split(key)[0]) + normal(key)


def split_twice(key):
    return normal(random.split(key)[0]) + normal(random.split(key, 3)[1])


def one_element_twice(key):
    keys = random.split(key, 4)
    return normal(keys[1]) + normal(keys[0]) + normal(keys[1])


def element_and_slice(key):
    keys = random.split(key, 6).reshape(2, 3)
    return normal(keys[1, 2]) + cj.vmap(normal)(keys[:, 2]).sum()


def reversed_and_used(key):
    keys = random.split(key, 3)
    return cj.vmap(normal)(keys[::-1]).sum() + normal(keys[2])


def stacked(key):
    return cj.vmap(normal)(jnp.stack([key, key])).sum()


def chosen_by_number(key):
    keys = random.split(key, 2)
    return lax.fori_loop(0, 4, lambda i, x: x + normal(keys[i % 2]), 0.0)


def in_each_turn(key):
    return lax.scan(lambda x, _: (x + normal(key), None), 0.0, None, length=3)[0]


def carried(key):
    def turn(state, _):
        key, x = state
        return (key, x + normal(key)), None
    return lax.scan(turn, (key, 0.0), None, length=2)[0][1]


def in_while(key):
    return lax.while_loop(lambda x: x < 1e9, lambda x: jnp.abs(x * 1e5 + normal(key)) + 1e6, 1.0)


def in_condition(key):
    return lax.while_loop(lambda x: normal(key) + 100.0 * x < 1e3, lambda x: x + 1.0, 0.0)


def in_a_branch_and_after(key):
    return lax.cond(True, normal, lambda key: 1.0, key) + normal(key)


def before_a_branch(key):
    return normal(key) + lax.switch(1, [lambda key: 0.0, normal], key)


def folded_with_one_number(key):
    return normal(random.fold_in(key, 3)) + normal(random.fold_in(key, 3))


def folded_in_turns(key):
    return lax.fori_loop(0, 3, lambda i, x: x + normal(random.fold_in(key, 0 * i)), 0.0)


def called_twice(key):
    inner = cj.jit(normal)
    return inner(key) + inner(key)


def words_of_it(key):
    return normal(random.wrap_key_data(random.key_data(key))) + normal(key)


def cloned_once(key):
    return normal(key) + normal(random.clone(key)) + normal(key)


def checkpointed(key):
    drawn = cj.checkpoint(lambda x: x * normal(key) * random.uniform(key))
    return cj.grad(drawn)(2.0)


def with_own_derivative(key):
    @cj.custom_vjp
    def scaled(x, key):
        return x * normal(key)

    scaled.defvjp(lambda x, key: (scaled(x, key), key), lambda key, ct: (ct * normal(key), None))
    return cj.grad(scaled)(2.0, key)


REUSES = [used_twice, split_and_used, split_twice, one_element_twice, element_and_slice, reversed_and_used, stacked,
          chosen_by_number, in_each_turn, carried, in_while, in_condition, in_a_branch_and_after, before_a_branch,
          folded_with_one_number, folded_in_turns, called_twice, words_of_it, cloned_once, checkpointed,
          with_own_derivative]
WAYS = {
    "eagerly": lambda function, key: function(key),
    "compiled": lambda function, key: cj.jit(function)(key),
    "mapped": lambda function, key: cj.vmap(function)(random.split(key, 2)),
    "mapped and compiled": lambda function, key: cj.jit(cj.vmap(function))(random.split(key, 2)),
    "differentiated": lambda function, key: cj.value_and_grad(lambda x: x * function(key))(1.0),
    "from words": lambda function, key: cj.jit(lambda words: function(random.wrap_key_data(words)))(
        random.key_data(key)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("function", REUSES, ids=lambda function: function.__name__)
def test_a_key_that_is_used_twice_is_found(function, way, key):
    if way == "differentiated" and function in (in_while, in_condition):
        pytest.skip("while has no reverse mode")
    with pytest.raises(KeyReuseError) as caught:
        WAYS[way](function, key)
    assert __file__ in caught.value.where


PROGRAMS = [pytest.param(n, marks=() if n < 40 else pytest.mark.exhaustive) for n in range(300)]


@pytest.mark.parametrize("number", PROGRAMS)
def test_what_is_planted_in_a_random_program_is_found(number):
    try:
        with pytest.raises(KeyReuseError):
            run(number, plant=True)
    except CorejaxNotImplementedError:  # a derivative of a while loop
        pass


@pytest.mark.parametrize("number", PROGRAMS)
def test_nothing_is_found_in_a_random_program_that_is_right(number):
    try:
        run(number, plant=False)
    except CorejaxNotImplementedError:
        pass


# What isn't

def cloned(key):
    return normal(random.clone(key)) + normal(key)


def folded_with_numbers(key):
    return normal(random.fold_in(key, 1)) + normal(random.fold_in(key, 2)) + normal(key)


def compared(key):
    return normal(key) + (key == random.clone(key)) * 1.0


def picked(key):
    first, second = random.split(key)
    return normal(jnp.where(random.key_data(first)[1] % 2 == 0, first, second))


def moved(key):
    keys = random.split(key, 4)
    keys = jnp.concatenate([keys[2:], keys[:2]]).reshape(2, 2).T
    return cj.vmap(cj.vmap(normal))(keys).sum()


def written(key):
    keys = random.split(key, 3)
    return cj.vmap(normal)(keys.at[1].set(random.fold_in(keys[1], 5))).sum()


def shared_by_a_batch(key):
    return cj.vmap(lambda x, key: x + normal(key), (0, None))(jnp.arange(3.0), key).sum()


def shared_by_a_batch_with_ends(key):
    def walk(key, count):
        def turn(state):
            i, key, x = state
            key, subkey = random.split(key)
            return i + 1, key, x + normal(subkey)
        return lax.while_loop(lambda state: state[0] < count, turn, (0, key, 0.0))[2]
    return cj.vmap(walk, (None, 0))(key, jnp.arange(4)).sum()


def either(key):
    return cj.vmap(lambda x, key: lax.cond(x > 1, normal, random.uniform, key))(jnp.arange(3),
                                                                                random.split(key, 3)).sum()


def key_out_of_a_branch(key):
    def step(x, key):
        return normal(lax.cond(x > 1, lambda key: random.split(key)[0], lambda key: key, key))
    return step(0, random.fold_in(key, 0)) + cj.vmap(step)(jnp.arange(3), random.split(key, 3)).sum()


def dropped_again(key):
    def layer(x, key):
        return cj.checkpoint(lambda x: jnp.sin(x * random.bernoulli(key, 0.5, x.shape)))(x), None
    return cj.grad(lambda x: lax.scan(layer, x, random.split(key, 3))[0].sum())(jnp.ones(2)).sum()


def swapped_by_a_branch(key):
    def step(x, key):
        first, second = random.split(key)
        drawn, rest = lax.cond(x > 1, lambda: (normal(first), second), lambda: (normal(second), first))
        return drawn + normal(rest)
    return step(0, random.fold_in(key, 0)) + cj.vmap(step)(jnp.arange(3), random.split(key, 3)).sum()


def linearized_and_applied_twice(key):
    _, linear = cj.linearize(cj.checkpoint(lambda x: jnp.sin(x * normal(key))), 1.0)
    return linear(1.0) + linear(2.0)


def shuffled_with_their_numbers(key):
    of_keys, of_order = random.split(key)
    keys = random.split(of_keys, 5)[random.permutation(of_order, 5)]
    return cj.vmap(normal)(jnp.roll(keys, 2)).sum()


def replaced_in_turns(key):
    def turn(keys, _):
        pairs = cj.vmap(random.split)(keys)
        return pairs[:, 0], cj.vmap(normal)(pairs[:, 1])
    return lax.scan(turn, random.split(key, 3), None, length=4)[1].sum()


def curved(key):
    dropped = cj.checkpoint(lambda x: jnp.sin(x * normal(key)))
    return cj.grad(cj.grad(dropped))(1.0)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("function", [
    cloned, folded_with_numbers, compared, picked, moved, written, shared_by_a_batch, shared_by_a_batch_with_ends,
    either, key_out_of_a_branch, swapped_by_a_branch, linearized_and_applied_twice, shuffled_with_their_numbers,
    replaced_in_turns, dropped_again, curved], ids=lambda function: function.__name__)
def test_what_is_right_is_left_alone(function, way, key):
    WAYS[way](function, key)


#: Every distribution, as it is usually called.
CALLS = {
    "ball": (3,), "bernoulli": (), "beta": (2.0, 3.0), "binomial": (10.0, 0.3), "bits": (),
    "categorical": (np.zeros(3),),
    "cauchy": (), "chisquare": (3.0,), "choice": (5,), "dirichlet": (np.ones(3),), "double_sided_maxwell": (0.0, 1.0),
    "exponential": (), "f": (2.0, 3.0), "gamma": (2.0,), "generalized_normal": (1.5,), "geometric": (0.3,),
    "gumbel": (), "laplace": (), "loggamma": (0.5,), "logistic": (), "lognormal": (), "maxwell": (),
    "multinomial": (np.float64(5), np.ones(3) / 3), "multivariate_normal": (np.zeros(2), np.eye(2)), "normal": (),
    "orthogonal": (2,), "pareto": (2.0,), "permutation": (5,), "poisson": (3.0,), "rademacher": (),
    "randint": ((), 0, 9), "rayleigh": (1.0,), "t": (3.0,), "triangular": (0.0, 0.5, 1.0),
    "truncated_normal": (-1.0, 1.0), "uniform": (), "wald": (1.0,), "weibull_min": (1.0, 2.0),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_distribution_uses_its_key_once(name, key):
    draw = getattr(random, name)
    draw(key, *CALLS[name])
    with pytest.raises(KeyReuseError):
        draw(key, *CALLS[name])


def test_every_distribution_is_among_them():
    others = {"Generator", "KeyReuseError", "PRNGKey", "clone", "fold_in", "key", "key_data", "key_dtype", "key_impl",
              "random_gamma_p", "split", "wrap_key_data"}
    assert others == {*dir(random)} - {*CALLS}


# What is said

def place_of(text):
    lines = open(__file__).read().splitlines()
    return f"{__file__}:{next(i for i, line in enumerate(lines, 1) if line.rstrip().endswith(text))}"


def test_both_places_are_named(key):
    normal(key)
    with pytest.raises(KeyReuseError) as caught:
        random.split(key)  # here, a second time
    assert place_of("return random.normal(key)") not in caught.value.where
    assert place_of("# here, a second time") in caught.value.where
    assert place_of("# here, a second time") in caught.value.got
    assert "random.clone(key)" in str(caught.value)


def test_both_places_within_a_program_are_named(key):
    @cj.jit
    def drawn(key):
        x = random.normal(key)  # at first
        return x + random.uniform(key)  # and then

    with pytest.raises(KeyReuseError) as caught:
        drawn(key)
    assert place_of("# at first") in caught.value.got
    assert place_of("# and then") in caught.value.got
    assert place_of("# and then") in caught.value.where


def test_a_place_on_one_line_has_its_source(key):
    with pytest.raises(KeyReuseError, match=r"`random.normal\(key\)`.*`random.uniform\(key\)`"):
        cj.jit(lambda key: random.normal(key) + random.uniform(key))(key)


def test_a_loop_is_named_with_its_body(key):
    def looped(key):
        return lax.fori_loop(0, 3, lambda i, x: x + random.normal(key), 0.0)  # a loop

    with pytest.raises(KeyReuseError, match="then there once more") as caught:
        cj.jit(looped)(key)  # its call
    assert place_of("# a loop") in caught.value.got
    assert place_of("# its call") in caught.value.got


def test_the_error_is_one_of_corejax_and_a_runtime_error():
    assert issubclass(KeyReuseError, CorejaxError)
    assert issubclass(KeyReuseError, RuntimeError)


# Where keys come from, and when

def test_a_seed_makes_a_key_anew():
    for _ in range(3):
        normal(random.key(next(iter([77]))))
    first, second = random.key(78), random.key(78)
    assert normal(first).item() == normal(second).item()


def test_an_array_of_keys_is_another_array_after_each_split(key):
    for _ in range(3):
        key, subkey = random.split(key)
        normal(subkey)


def test_a_key_is_the_same_on_a_device_in_a_file_and_in_words(key):
    normal(key)
    for same in (cj.device_put(key), pickle.loads(pickle.dumps(key)), jnp.stack([key])[0]):
        with pytest.raises(KeyReuseError):
            normal(same)
    with pytest.raises(KeyReuseError):
        normal(random.key_data(key))
    with pytest.raises(KeyReuseError):
        random.normal(np.asarray(random.key_data(key)))


def test_what_a_program_closes_over_is_used_at_each_call(key):
    drawn = cj.jit(lambda x: x + random.normal(key))
    drawn(1.0)
    with pytest.raises(KeyReuseError):
        drawn(2.0)


def test_keys_that_a_program_returns_are_new(key):
    step = cj.jit(lambda key: random.split(key))
    for _ in range(3):
        key, subkey = step(key)
        normal(subkey)
    with pytest.raises(KeyReuseError):
        normal(subkey)


def test_a_compiled_stage_is_looked_at_as_well(key):
    compiled = cj.jit(normal).lower(key).compile()
    compiled(key)
    with pytest.raises(KeyReuseError):
        compiled(key)


@pytest.mark.parametrize("impl", ["threefry2x32", "philox4x32", "rbg", "unsafe_rbg"])
def test_keys_of_every_generator_are_found_and_told_from_each_other(impl):
    key = random.key(5, impl=impl)
    normal(key)
    with pytest.raises(KeyReuseError):
        normal(key)
    other = random.wrap_key_data(random.key_data(key)[:2], impl="philox4x32" if impl == "threefry2x32" else None)
    if impl in ("threefry2x32", "philox4x32"):
        normal(other)


def test_a_donated_key_is_found_before_it_is_gone(key):
    step = cj.jit(lambda key: random.normal(key), donate_argnums=0)
    copies = [cj.device_put(random.wrap_key_data(random.key_data(key).copy())) for _ in range(2)]
    step(copies[0])
    with pytest.raises(KeyReuseError):
        step(copies[1])
    assert not copies[1].is_deleted()


def test_other_threads_and_the_time_after_the_block_are_left_alone(key):
    errors = []

    def elsewhere():
        try:
            normal(key)
            normal(key)
        except Exception as error:  # reported below
            errors.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert [] == errors
    with cj.config(debug_key_reuse=False):
        used_twice(key)


def test_bits_are_the_same_with_and_without(key):
    def drawn(key):
        return [random.normal(key, (5,)), random.fold_in(key, 3), *random.split(random.clone(key), 3),
                cj.jit(lambda key: random.uniform(key, (3,)))(random.clone(key))]

    with cj.config(debug_key_reuse=False):
        expected = drawn(key)
    for x, y in zip(drawn(key), expected, strict=True):
        assert np.asarray(random.key_data(x) if x.dtype.names else x).tobytes() == np.asarray(
            random.key_data(y) if y.dtype.names else y).tobytes()


def test_the_environment_turns_it_on():
    code = ("from corejax import random\nkey = random.key(0)\nrandom.normal(key)\n"
            "try:\n    random.normal(key)\nexcept RuntimeError as error:\n    print(type(error).__name__)\n")
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                           env={"COREJAX_DEBUG_KEY_REUSE": "1", "PATH": ""})
    assert "KeyReuseError" == found.stdout.strip()


def test_a_key_that_is_stacked_and_reshaped_is_found(key):
    with pytest.raises(KeyReuseError):
        cj.vmap(normal)(jnp.stack([key, key]).reshape(2, 1)[:, 0])


# How much is remembered

def made_and_used(key, j):
    """Keys of which something is remembered, in each way, and those that are to stay in use."""
    for one in random.split(key, 4):
        normal(random.fold_in(one, j))
    many = cj.vmap(lambda i: random.fold_in(key, i))(jnp.arange(1000 * j, 1000 * (j + 1)))
    cj.vmap(normal)(many)
    jnp.broadcast_to(random.clone(random.split(random.fold_in(key, 10 ** 6 + j), 1000)), (1, 1000))
    return [random.key(next(_seeds)) for _ in range(20)]


def test_no_more_keys_are_remembered_than_that(key, monkeypatch):
    monkeypatch.setattr(reuse, "_keys", Keys(1500))
    alive = []
    for j in range(10):
        base, last = random.split(key)
        alive += made_and_used(base, j)
        assert 1000 < len(reuse._keys) <= 1500
        normal(last)
        many = random.split(random.fold_in(key, 7), 300)
        with pytest.raises(KeyReuseError):
            normal(last)
        key = random.clone(many)[0]


def test_what_is_remembered_of_keys_is_bounded_whatever_happens_to_them():
    keys, use, array = Keys(1000), Use((), (), "a"), random.key(next(_seeds))
    for i in range(50_000):
        key, parent = ("a", b"%d" % i), ("a", b"%d" % (i // 3))
        keys.use(key, use)
        keys.fold(("b", b"%d" % i), parent)
        keys.mean(("c", b"%d" % i), 1)
        keys.spread(("d", b"%d" % i))
        keys.make(("e", b"%d" % i), array)
    kept = list(keys._known.values())
    assert 1000 == len(keys) and sum([len(each.children or ()) for each in kept]) <= 1000
    assert all(len(each.seeded) <= 1 for each in kept)
    with pytest.raises(Reused):
        keys.use(key, use)
    assert keys.is_spread(("d", b"49999")) and 1 == keys.meant(("c", b"49999"))
    assert keys.used(("a", b"0")) is None and not keys.is_spread(("d", b"0")) and not keys.meant(("c", b"0"))


def test_the_key_that_is_forgotten_is_the_one_that_nothing_happened_to_for_longest():
    keys, use = Keys(4), Use((), (), "a")
    for name in (b"1", b"2", b"3", b"4"):
        keys.use(("a", name), use)
    keys.mean(("a", b"1"), 1)
    keys.use(("a", b"5"), use)
    keys.use(("a", b"2"), use)  # which is new again
    assert 1 == keys.meant(("a", b"1"))
    for name in (b"1", b"4", b"5", b"2"):
        if keys.meant(("a", name)):
            keys.use(("a", name), use)
        with pytest.raises(Reused):
            keys.use(("a", name), use)


def test_what_fold_in_made_is_used_once_until_its_key_is_another(monkeypatch):
    keys, use, array = Keys(3), Use((), (), "a"), random.key(next(_seeds))
    parent, child = ("a", b"parent"), ("a", b"child")
    for _ in range(2):
        keys.make(parent, array)
        keys.use(parent, use)
        keys.fold(child, parent)
        keys.use(child, use)
        keys.fold(child, parent)  # by the same number
        with pytest.raises(Reused):
            keys.use(child, use)
    for i in range(2):  # its parent is forgotten, and it isn't
        keys.spread(("a", b"%d" % i))
        with pytest.raises(Reused):
            keys.use(child, use)
    assert keys.used(parent) is None and 3 == len(keys)


def test_a_long_chain_of_fold_ins_is_forgotten(key):
    seed = next(_seeds)
    key = random.key(seed)
    for _ in range(1500):
        key = random.fold_in(key, 3)
    normal(key)
    del key
    normal(random.key(seed))
