"""The generator under every transformation, beside SplitMix64 in Python's integers."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import corejax as cj
from corejax import random

KEY = random.key(1234567, impl="splitmix64")
_MASK = 2 ** 64 - 1


def outputs(state, count):
    found = []
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) & _MASK
        z = ((state ^ state >> 30) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & _MASK
        found.append(z ^ z >> 31)
    return found


def test_its_bits_are_those_of_the_authors():
    known = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821]
    assert known == outputs(1234567, 5) == random.bits(KEY, (5,), "uint64").tolist()
    assert [x >> 32 for x in known] == random.bits(KEY, (5,), "uint32").tolist()


@pytest.mark.parametrize("seed", [0, 7, -1, 2 ** 40])
def test_all_bits_of_a_seed_count(seed):
    assert outputs(seed & _MASK, 3) == random.bits(random.key(seed, impl="splitmix64"), (3,), "uint64").tolist()


def test_it_is_mapped_compiled_and_scanned_over():
    keys = random.split(KEY, 3)
    apart = np.stack([np.asarray(random.normal(keys[i], (4,))) for i in range(3)])
    draw = cj.vmap(lambda key: random.normal(key, (4,)))
    assert_array_equal(apart, draw(keys))
    assert_array_equal(apart, cj.jit(draw)(keys))
    assert 3 == len({*random.key_data(keys)[:, 1].tolist()})
    folded = cj.vmap(lambda n: random.fold_in(KEY, n))(np.arange(3, dtype=np.uint32))
    assert 7 == len({tuple(x) for x in np.concatenate([np.asarray(random.key_data(x)).reshape(-1, 2)
                                                      for x in (keys, folded, KEY)])})


def test_another_process_finds_it_by_the_names_in_a_pickle():
    code = "import pickle, sys; print(pickle.loads(eval(sys.argv[1])).aval)"
    said = subprocess.run([sys.executable, "-c", code, repr(pickle.dumps(KEY))], capture_output=True, text=True)
    assert "key<splitmix64>[]" == said.stdout.strip(), said.stderr
