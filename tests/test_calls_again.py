"""Calls like many before them, for which code was made: it gives what the first call gave, or leaves the call alone."""

from __future__ import annotations

import dataclasses
import gc
import threading
import weakref
from collections import OrderedDict, defaultdict, namedtuple
from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import tree
from corejax.api import calls
from corejax.base.known_trees import OTHER
from corejax.config import config
from corejax.errors import CorejaxError, CorejaxOverflowError, CorejaxRuntimeError
from corejax.xla.runtime.entries import make_entry

Pair = namedtuple("Pair", "x y")
Nothing = namedtuple("Nothing", "")

#: After so many calls, each kind of arguments has its entry, even if mailboxes were tried and given up.
OFTEN = 30


@tree.register_dataclass
@dataclasses.dataclass
class Layer:
    weights: Any
    bias: Any
    name: str = dataclasses.field(default="layer", metadata={"static": True})


class Box:
    """A container by functions, whose static part is compared by a method of its own."""

    def __init__(self, *content, label="box"):
        self.content, self.label = content, label

    def __eq__(self, other):
        return type(other) is Box and (self.content, self.label) == (other.content, other.label)


tree.register_node(Box, lambda box: (box.content, box.label),
                               lambda label, content: Box(*content, label=label))


@pytest.fixture
def made(monkeypatch):
    """What the entries that were made returned, in order: True if one took the call."""
    taken = []

    def making(*args, **options):
        entry = make_entry(*args, **options)
        if entry is None:
            taken.append(None)
            return None

        def enter(data):
            result = entry(data)
            taken.append(result is not OTHER)
            return result
        return enter
    monkeypatch.setattr(calls, "make_entry", making)
    return taken


def described(result):
    """A result with all that a user can see of it: classes, order of keys, types, bytes."""
    leaves, structure = tree.flatten(result)
    keys = [list(node) for node in (result if isinstance(result, (list, tuple)) else [result])
            if isinstance(node, dict)]
    return structure, keys, [(type(x), str(x.aval), np.asarray(x).tobytes(), x.device) for x in leaves]


def array(*values, dtype="f4"):
    return cj.device_put(np.array(values, dtype))


ARGUMENTS = {
    "one array": (array(1, 2),),
    "two": (array(1, 2), array(3, 4)),
    "an ndarray and an array": (np.arange(3.0), array(1, 2, 3)),
    "numbers": (1, 2.5, True, 1 - 2j, np.float32(3), np.int8(-1)),
    "host arrays": (cj.vmap(lambda x: x)(np.arange(3.0)), 2),
    "a list": ([array(1), array(2)],),
    "an empty list": ([],),
    "no arguments": (),
    "None": (None, array(1), [None]),
    "a dict": ({"b": array(1), "a": 2.0, "c": {"d": np.arange(2)}},),
    "a dict of numbers": ({3: array(1), 1: array(2)},),
    "an ordered dict": (OrderedDict(b=array(1), a=2),),
    "a defaultdict": (defaultdict(list, b=array(1), a=2),),
    "a namedtuple": (Pair(array(1), [Pair(1, 2)]), Nothing()),
    "a dataclass": (Layer(array(1), array(2), "first"), Layer(None, 1.0)),
    "a class": (Box(array(1), Box(2, label="inner")), {"a": Box()}),
    "a large ndarray": (np.arange(10_000.0), {"x": np.zeros((300, 300), "f4")}),
    "empty arrays": (np.zeros((0, 3)), array(dtype="i4")),
    "other types": (np.zeros(3, "f2"), np.ones(3, "u1"), np.ones((2, 2), "c8"), np.array([True, False])),
    "unaligned": (np.zeros(9, "u1")[1:].view("f8"), np.arange(6.0)[::2], np.arange(6.0).reshape(2, 3).T),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_call_that_is_like_many_before_gives_what_the_first_gave(made, name):
    args = ARGUMENTS[name]
    f = cj.jit(lambda *args: tree.map(lambda x: x + x if x.dtype != bool else ~x, args))
    first = described(f(*args))
    for _ in range(OFTEN):
        assert described(f(*args)) == first
    assert True in made


@pytest.mark.parametrize("name", ARGUMENTS)
def test_the_parts_of_a_container_may_be_returned_in_another(made, name):
    args = ARGUMENTS[name]
    f = cj.jit(lambda *args: Box(Layer(args, tree.leaves(args)), {"b": 1.0, "a": [Pair(2, None)]}))
    first = described(f(*args))
    for _ in range(OFTEN):
        assert described(f(*args)) == first
    assert True in made


def test_calls_that_differ_in_any_way_are_told_apart(made):
    """Whatever is mixed, each call gives what it gave when it was the only one."""
    x, y = array(1, 2), array(3, 4, 5)
    variants = [
        ({"a": x, "b": y},), ({"a": y, "b": x},), ({"a": x, "c": y},), ({"a": x},), ({"a": x, "b": y, "c": x},),
        (OrderedDict(a=x, b=y),), (OrderedDict(b=y, a=x),), (defaultdict(int, a=x, b=y),),
        (defaultdict(list, a=x, b=y),), ([x, y],), ((x, y),), (Pair(x, y),), (Pair(y, x),), (Pair(x, [y]),),
        (Layer(x, y),), (Layer(x, y, "other"),), (Layer(x, None),), (Layer(None, y),), (Box(x, y),),
        (Box(x, y, label="other"),), (Box(x),), ([x, None],), ([None, x],), ([],), ((),), (None,), ([[], x],),
        (x,), (x, y), (np.asarray(x),), (np.asarray(x, "f8"),), (1,), (1.0,), (True,), (np.int64(1),), (np.bool_(1),),
        ({"a": 1},), ({"a": 1.0},), ({"a": np.float64(1)},), ({"a": np.asarray(x)},), ({1: x},), ({(1, 2): x},)]

    def fun(*args):
        leaves, structure = tree.flatten(args)
        return {"sum": sum([x.sum() * (i + 1) for i, x in enumerate(leaves)], cj.numpy.zeros(())), "same": args,
                "hash": cj.numpy.int32(len(str(structure)))}
    alone = [described(cj.jit(lambda *args: fun(*args))(*args)) for args in variants]
    together = cj.jit(fun)
    order = np.random.default_rng(5)
    for _ in range(12):
        for i in order.permutation(len(variants)):
            assert described(together(*variants[i])) == alone[i]
    for i, args in enumerate(variants):  # and those in a row, so that all have had entries
        for _ in range(4):
            assert described(together(*args)) == alone[i]
    assert True in made and False in made


def test_static_arguments_keywords_and_widths_are_told_apart(made):
    f = cj.jit(lambda x, n, *, scale, shift=0: ([x * scale] * n, shift), static_argnums=1,
               static_argnames=("n", "shift"))
    x = array(1, 2)
    for _ in range(OFTEN):
        assert [4.0, 4.0] == [float(y[1]) for y in f(x, 2, scale=2.0)[0]]
        assert [2.0] == [float(y[0]) for y in f(x, 1, scale=2)[0]]
        assert [6.0] == [float(y[1]) for y in f(scale=3, x=x, n=1)[0]]
        assert [6.0] == [float(y[1]) for y in f(x=x, n=1, scale=3)[0]]
        for shift in (1, 1.0, True):
            found = f(x, 1, shift=shift, scale=1)[1]
            assert type(shift) is type(found.item()) and found == shift
        with config(default_bits=32):
            assert "~i32[]" == str(f(1, 1, scale=2)[0][0].aval)
        assert "~i64[]" == str(f(1, 1, scale=2)[0][0].aval)
    assert True in made


def test_many_shapes_in_turn_have_their_own_results(made):
    f = cj.jit(lambda state: {"double": state["x"] * 2})
    for _ in range(OFTEN * 3):
        for n in range(1, 13):
            assert 2.0 * n == np.asarray(f({"x": np.ones(n)})["double"]).sum()
    assert made.count(None) == 0


def test_a_container_that_cannot_be_taken_apart_is_reported_again():
    class Angry(Exception):
        pass

    class Moody:
        angry = False

        def __init__(self, x):
            self.x = x

    def flatten(moody):
        if Moody.angry:
            raise Angry
        return [moody.x], None
    tree.register_node(Moody, flatten, lambda _, children: Moody(*children))
    f = cj.jit(lambda moody: Moody(moody.x * 2))
    for _ in range(OFTEN):
        assert 4.0 == float(f(Moody(2.0)).x)
    Moody.angry = True
    with pytest.raises(Angry):
        f(Moody(2.0))
    Moody.angry = False
    assert 4.0 == float(f(Moody(2.0)).x)


def test_a_container_that_cannot_be_put_together_is_reported():
    class Fragile:
        whole = True

        def __init__(self, x):
            self.x = x

    def unflatten(_, children):
        if not Fragile.whole:
            raise ZeroDivisionError
        return Fragile(*children)
    tree.register_node(Fragile, lambda fragile: ([fragile.x], None), unflatten)
    f = cj.jit(lambda x: Fragile(x * 2))
    for _ in range(OFTEN):
        assert 4.0 == float(f(2.0).x)
    Fragile.whole = False
    with pytest.raises(ZeroDivisionError):
        f(2.0)


def test_numbers_that_do_not_fit_are_refused_at_each_call():
    f = cj.jit(lambda state: [state["n"] + 1])
    for _ in range(OFTEN):
        assert 3 == f({"n": 2})[0]
    for _ in range(3):
        with pytest.raises((CorejaxOverflowError, OverflowError)):
            f({"n": 2**63})
    assert 3 == f({"n": 2})[0]


def test_what_is_written_later_never_shows():
    f = cj.jit(lambda state, batch: {"x": state["x"] + batch.sum(), "batch": batch})
    for n in (3, 5_000, 100_000):
        batch, state = np.ones(n), {"x": cj.device_put(0.0)}
        results = []
        for i in range(20):
            batch[:] = i
            results.append(f(state, batch))
        batch[:] = -1
        for i, result in enumerate(results):
            assert i * n == float(result["x"]) and np.all(i == np.asarray(result["batch"]))


def test_donated_arrays_are_deleted_and_refused_afterwards(made, capfd):
    f = cj.jit(lambda state, x: ({"a": state["a"] + x, "b": state["b"] * x}, x), donate_argnums=0)
    state = {"a": array(1, 2), "b": array(3, 4)}
    for _ in range(OFTEN):
        old, (state, _) = state, f(state, 1.0)
        assert old["a"].is_deleted() and old["b"].is_deleted()
    assert True in made
    assert [1.0 + OFTEN, 2.0 + OFTEN] == list(np.asarray(state["a"])) and [3.0, 4.0] == list(np.asarray(state["b"]))
    with pytest.raises(CorejaxRuntimeError, match="deleted"):
        f(old, 1.0)
    with pytest.raises(CorejaxError, match="second time"):
        f({"a": state["a"], "b": state["a"]}, 1.0)
    assert "" == capfd.readouterr().err
    assert [2.0 + OFTEN, 3.0 + OFTEN] == list(np.asarray(f(state, 1.0)[0]["a"]))
    with pytest.raises(CorejaxRuntimeError, match="deleted"):
        f(state, 1.0)


def test_a_donated_argument_may_come_from_the_host_again(made):
    f = cj.jit(lambda state: [x + 1 for x in state], donate_argnums=0)
    for _ in range(OFTEN):
        assert [2.0, 3.0] == [float(x) for x in f([array(1)[0], 2.0])]
        assert [2.0, 3.0] == [float(x) for x in f([1.0, array(2)[0]])]
        host = np.ones(3)
        assert [2.0] * 3 == list(np.asarray(f([host])[0])) and 3.0 == host.sum()
        computed = cj.vmap(lambda x: x * 2)(np.ones(3))
        assert [3.0] * 3 == list(np.asarray(f([computed])[0]))
        assert computed.is_deleted()


def test_the_same_function_works_under_transformations(made):
    f = cj.jit(lambda state: {"y": state["x"] ** 2, "z": state["x"]})
    x = array(1, 2, 3)
    for _ in range(OFTEN):
        assert [2.0, 4.0, 6.0] == list(np.asarray(cj.grad(lambda x: f({"x": x})["y"].sum())(x)))
        assert [1.0, 4.0, 9.0] == list(np.asarray(cj.vmap(lambda x: f({"x": x})["y"])(x)))
        assert [1.0, 4.0, 9.0] == list(np.asarray(f({"x": x})["y"]))
        assert [1.0, 4.0, 9.0] == list(np.asarray(cj.jit(lambda x: f({"x": x}))(x)["y"]))
    assert True in made


def test_a_leaked_traced_value_is_refused_after_many_calls():
    leaked = []
    f = cj.jit(lambda state: [state["x"] * 2])
    x = array(1, 2)
    for _ in range(OFTEN):
        f({"x": x})
    cj.jit(lambda x: leaked.append(x) or x)(x)
    with pytest.raises(CorejaxError, match=r"leak|outside|traced"):
        f({"x": leaked[0]})


def test_clearing_the_caches_forgets_them_and_the_function_dies_with_its_last_reference():
    traced = []

    def fun(state):
        traced.append(None)
        return [state["x"] * 2]
    f, x = cj.jit(fun), array(1, 2)
    for _ in range(OFTEN):
        f({"x": x})
    cj.clear_caches()
    f({"x": x})
    f.clear_cache()
    f({"x": x})
    assert 3 == len(traced)
    for _ in range(OFTEN):
        f({"x": x})
    alive = weakref.ref(f)
    del f
    gc.collect()
    assert alive() is None


def test_threads_share_them(made):
    f = cj.jit(lambda state, i: [state["x"] * i, i])
    x, wrong = np.arange(100.0), []

    def work(k):
        for i in range(k, 400, 4):
            state = {"x": x + i} if i % 3 else {"x": cj.device_put(x + i)}
            product, same = f(state, i)
            if int(same) != i or not np.array_equal(np.asarray(product), (x + i) * i):
                wrong.append(i)
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [] == wrong and True in made


def test_fields_of_other_names_are_called_the_general_way(made):
    """A field may be called by any string: no code is written for such a class."""
    cls = dataclasses.make_dataclass("Accents", [("größe", Any), ("x", Any)])
    tree.register_dataclass(cls)
    f = cj.jit(lambda both: cls(both.x, both.größe))
    for _ in range(OFTEN):
        result = f(cls(1.0, 2.0))
        assert (2.0, 1.0) == (float(result.größe), float(result.x))
    assert set(made) == {None}
