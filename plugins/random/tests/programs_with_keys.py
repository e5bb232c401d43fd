"""Random programs with keys, by a number: right ones, and ones in which a key is used twice.

A program is a tree of steps, each a function of a key and a number that returns a number. It uses the key up once,
except for the one step that was planted.
"""

from __future__ import annotations

import random as python_random

import corejax as cj
import corejax.numpy as jnp
from corejax import lax, random

# Steps: functions of inner steps that return a function of a key and a number


def _draw(how):
    return lambda key, x: how(key) * x + jnp.sin(x)


DRAWS = [
    lambda key: random.normal(key), lambda key: random.uniform(key, (3,)).sum(),
    lambda key: random.bernoulli(key).astype(float), lambda key: random.randint(key, (2,), 0, 9).sum() * 1.0,
    lambda key: random.permutation(key, 4)[0] * 1.0, lambda key: random.bits(key, (), "uint8").astype(float),
    lambda key: random.categorical(key, jnp.zeros(3)) * 1.0, lambda key: random.exponential(key),
    lambda key: random.uniform(random.split(key)[1]), lambda key: random.choice(key, 5, (2,)).sum() * 1.0,
    lambda key: random.gamma(key, 2.0), lambda key: random.poisson(key, 3.0) * 1.0,
]


def _sequence(first, second):
    def step(key, x):
        a, b = random.split(key)
        return second(b, first(a, x))
    return step


def _three(first, second):
    def step(key, x):
        keys = random.split(key, (2, 2))
        x = first(keys[0, 1], x)
        rest = jnp.concatenate([keys[1], keys[0, :1]])
        return x + cj.vmap(second, (0, None))(rest[::-1], x).sum()
    return step


def _folded(first, second):
    return lambda key, x: second(random.fold_in(key, 2), first(random.fold_in(key, 1), x))


def _jitted(first, second):
    inner = cj.jit(first)
    return lambda key, x: inner(key, x)


def _either(first, second):
    return lambda key, x: lax.cond(x > 0.5, first, second, key, x)


def _one_of(first, second):
    return lambda key, x: lax.switch(jnp.asarray(x).astype(int) % 3, [first, second, first], key, x)


def _branch_gives_key(first, second):
    def step(key, x):
        key = lax.cond(x > 0.5, lambda key: random.split(key)[1], lambda key: key, key)
        return first(key, x)
    return step


def _scanned(first, second):
    def step(key, x):
        def turn(state, _):
            key, x = state
            key, subkey = random.split(key)
            return (key, first(subkey, x)), None
        (key, x), _ = lax.scan(turn, (key, x), None, length=3)
        return second(key, x)
    return step


def _scanned_over(first, second):
    def step(key, x):
        x, ys = lax.scan(lambda x, key: (first(key, x), x), x, random.split(key, 3), reverse=True)
        return x + ys.sum()
    return step


def _stacked_by_scan(first, second):
    def step(key, x):
        def turn(key, _):
            key, subkey = random.split(key)
            return key, subkey
        key, subkeys = lax.scan(turn, key, None, length=3)
        return second(key, cj.vmap(first, (0, None))(subkeys, x).sum())
    return step


def _counted(first, second):
    def step(key, x):
        keys = random.split(key, 4)
        return lax.fori_loop(0, 4, lambda i, x: first(keys[i], x), x)
    return step


def _counted_by_folding(first, second):
    return lambda key, x: lax.fori_loop(0, 3, lambda i, x: first(random.fold_in(key, i), x), x)


def _while(first, second):
    def step(key, x):
        def turn(state):
            i, key, x = state
            key, subkey = random.split(key)
            return i + 1, key, first(subkey, x)
        return lax.while_loop(lambda state: (state[0] < 5) & (state[2] < 3.0), turn, (0, key, x))[2]
    return step


def _mapped(first, second):
    return lambda key, x: cj.vmap(first)(random.split(key, 3), x + jnp.arange(3.0)).sum()


def _mapped_numbers(first, second):
    return lambda key, x: cj.vmap(first, (None, 0))(key, x + jnp.arange(3.0)).sum()


def _checkpointed(first, second):
    return lambda key, x: cj.checkpoint(first)(key, x)


def _differentiated(first, second):
    return lambda key, x: cj.grad(lambda x: first(key, x) ** 2)(x)


def _differentiated_checkpoint(first, second):
    return lambda key, x: sum(cj.value_and_grad(lambda x: cj.checkpoint(first)(key, jnp.sin(x)))(x))


def _own_derivative(first, second):
    @cj.custom_jvp
    def inner(key, x):
        return first(key, x)

    inner.defjvp(lambda primals, tangents: (inner(*primals), tangents[1]))
    return lambda key, x: inner(key, x)


def _picked(first, second):
    def step(key, x):
        a, b = random.split(key)
        return first(jnp.where(x > 0.5, a, b), x)
    return step


def _from_words(first, second):
    def step(key, x):
        words = random.split(random.key_data(key))
        return second(random.wrap_key_data(words[1]), first(random.wrap_key_data(words[0]), x))
    return step


def _cloned(first, second):
    return lambda key, x: second(key, first(random.clone(key), x))


def _set(first, second):
    def step(key, x):
        keys = random.split(key, 3)
        keys = keys.at[0].set(random.fold_in(keys[1], 7))
        return x + cj.vmap(first, (0, None))(keys, x).sum()
    return step


STEPS = [_sequence, _three, _folded, _jitted, _either, _one_of, _branch_gives_key, _scanned, _scanned_over,
         _stacked_by_scan, _counted, _counted_by_folding, _while, _mapped, _mapped_numbers, _checkpointed,
         _differentiated, _differentiated_checkpoint, _own_derivative, _picked, _from_words, _cloned, _set]


# What is wrong

def _twice(first, second):
    return lambda key, x: second(key, first(key, x))


def _parent_and_child(first, second):
    def step(key, x):
        _, subkey = random.split(key)
        return second(key, first(subkey, x))
    return step


def _slice_and_element(first, second):
    def step(key, x):
        keys = random.split(key, 4)
        return x + cj.vmap(first, (0, None))(keys[1:3], x).sum() + second(keys[2], x)
    return step


def _same_turn(first, second):
    return lambda key, x: lax.fori_loop(0, 3, lambda i, x: first(key, x), x)


def _same_half(first, second):
    def step(key, x):
        keys = random.split(key, 4)
        return lax.fori_loop(0, 4, lambda i, x: first(keys[i // 2], x), x)
    return step


def _carried(first, second):
    def step(key, x):
        def turn(state, _):
            key, x = state
            return (key, first(key, x)), None
        return lax.scan(turn, (key, x), None, length=2)[0][1]
    return step


def _in_condition(first, second):
    def step(key, x):
        return lax.while_loop(lambda state: (state[0] < 3) & (first(key, state[1]) > -1e9),
                              lambda state: (state[0] + 1, state[1] + 1.0), (0, x))[1]
    return step


def _folded_alike(first, second):
    return lambda key, x: second(random.fold_in(key, 4), first(random.fold_in(key, 4), x))


def _folded_alike_in_turns(first, second):
    return lambda key, x: lax.fori_loop(0, 3, lambda i, x: first(random.fold_in(key, i * 0), x), x)


def _repeated(first, second):
    return lambda key, x: x + cj.vmap(first, (0, None))(jnp.stack([key, key]), x).sum()


def _joined(first, second):
    def step(key, x):
        keys = random.split(key, 2)
        return x + cj.vmap(first, (0, None))(jnp.concatenate([keys, keys[::-1]]), x).sum()
    return step


def _branch_and_after(first, second):
    return lambda key, x: second(key, lax.cond(x > -1e9, first, lambda key, x: x, key, x))


def _called_twice(first, second):
    inner = cj.jit(first)
    return lambda key, x: inner(key, inner(key, x))


def _scanned_again(first, second):
    def step(key, x):
        keys = random.split(key, 3)
        for _ in range(2):
            x, _ = lax.scan(lambda x, key: (first(key, x), None), x, keys)
        return x
    return step


def _words_twice(first, second):
    def step(key, x):
        words = random.key_data(key)
        return second(random.wrap_key_data(words), first(random.wrap_key_data(words), x))
    return step


PLANTS = [_twice, _parent_and_child, _slice_and_element, _same_turn, _same_half, _carried, _in_condition, _folded_alike,
          _folded_alike_in_turns, _repeated, _joined, _branch_and_after, _called_twice, _scanned_again, _words_twice]

#: Ways to run a whole program with a key and a number.
RUNS = {
    "eager": lambda step, key, x: step(key, x),
    "jit": lambda step, key, x: cj.jit(step)(key, x),
    "grad": lambda step, key, x: cj.grad(step, 1)(key, x),
    "jit of grad": lambda step, key, x: cj.jit(cj.value_and_grad(step, 1))(key, x),
    "vmap": lambda step, key, x: cj.vmap(step)(random.split(key, 2), jnp.stack([x, x + 1])),
    "jit of vmap": lambda step, key, x: cj.jit(cj.vmap(step, (0, None)))(random.split(key, 2), x),
}


def run(number: int, plant: bool) -> str:
    """Build the program of this number, and run it; says what it consists of."""
    rng = python_random.Random(number)
    depth = rng.randint(1, 3)
    names: list[str] = []
    wrong = PLANTS[number % len(PLANTS)] if plant else None

    def build(level: int, wrong):
        if level == 0:
            if wrong is None:
                return _draw(rng.choice(DRAWS))
            names.append(wrong.__name__)
            return wrong(_draw(rng.choice(DRAWS)), _draw(rng.choice(DRAWS)))
        kind = rng.choice(STEPS)
        names.append(kind.__name__)
        first = build(level - 1, wrong)
        return kind(first, first if wrong is not None else build(rng.randint(0, level - 1), None))

    step = build(depth, wrong)
    how = rng.choice(list(RUNS))
    RUNS[how](step, random.key(1_000_000 * plant + number), 0.25 * rng.randint(0, 5))
    return f"{how}: {' of '.join(names)}"
