"""Arguments from host memory: compiled programs read them where they were written, and never too late or too early."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.base import dtypes
from corejax.errors import CorejaxOverflowError, CorejaxTypeError
from corejax.plugin import define, hookimpl
from corejax.xla.runtime import mailboxes
from tests.test_compiled_calls import counted

FORMS = {
    "ndarray": lambda x: x, "view": lambda x: np.stack([x, x], -1)[..., 0], "backward": lambda x: x[::-1].copy()[::-1],
    "big-endian": lambda x: x.astype(x.dtype.newbyteorder(">")), "subclass": lambda x: x.view(Subclass),
    "device": cj.device_put, "host": lambda x: lax.add(x, np.zeros_like(x))}


class Subclass(np.ndarray):
    """As np.memmap is one."""


@pytest.mark.parametrize("fun", [
    lambda x: x, lambda x: x.reshape(4, 2).reshape(8), lambda x: x.reshape(1, 8)[0], lambda x: x[::-1][::-1],
    lambda x: lax.stop_gradient(x), lambda x: (x, x)[1], lambda x: lax.select(x == x, x, x), lambda x: x.T],
    ids=["itself", "reshaped", "a row", "reversed twice", "stopped", "chosen", "selected", "transposed"])
def test_a_result_that_is_an_argument_does_not_change_with_the_next_call(fun):
    f = cj.jit(fun)
    x, outs = np.zeros(8), []
    for i in range(40):
        x[:] = i
        outs.append(f(x))
    assert list(range(40)) == [float(out[0]) for out in outs] == [float(out[7]) for out in outs]


def late(x, y):
    """`x`, which the program reads when it has done other work: its call returns before."""
    square = lax.dot(lax.reshape(y, (16, 1)), lax.reshape(y, (1, 16)))
    square = lax.broadcast_in_dim(square, (20, 16, 20, 16), (1, 3)).reshape(320, 320)
    worked = lax.fori_loop(0, 10, lambda i, m: lax.dot(m, square) * 1e-3, square)
    return x + 0.0 * worked[:4, 0]


@pytest.mark.parametrize("put", [np.asarray, cj.device_put], ids=["both from the host", "one from the device"])
def test_an_argument_may_change_as_soon_as_the_call_returns(put):
    f = cj.jit(late)
    x, y, outs, ready = np.zeros(4), put(np.ones(16)), [], []
    for i in range(20):
        x[:] = i
        outs.append(f(x, y))
        ready.append(outs[-1].is_ready())
        x[:] = -1
    assert not all(ready), "this program ends too early to show anything"
    assert [[float(i)] * 4 for i in range(20)] == [out.tolist() for out in outs]


def test_arguments_of_every_dtype_arrive():
    for dtype in dtypes.ALL:
        f = cj.jit(lambda x: x)
        for values in ([0, 1, 1, 0], [1, 0, 0, 1]) * 2:
            x = np.array(values).astype(dtype)
            assert x.tobytes() == np.asarray(f(x)).tobytes(), dtype


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1,), (7, 5, 3), (2048,), (2049,), (100_000,)], ids=str)
def test_arguments_of_every_size_arrive(shape):
    f = cj.jit(lambda x, y: (x + y, y - x))
    for i in range(4):
        x = np.random.default_rng(i).normal(size=shape)
        plus, minus = f(x, float(i))
        np.testing.assert_array_equal(x + i, plus)
        np.testing.assert_array_equal(i - x, minus)


def test_arguments_change_their_form_from_call_to_call():
    random = np.random.default_rng(0)
    f, traced = counted(lambda x, y, z: x - 10 * y + 100 * z)
    for _ in range(300):
        values = random.normal(size=(3, 6))
        forms = [FORMS[name] for name in random.choice(list(FORMS), 3)]
        out = f(*[form(x.copy()) for form, x in zip(forms, values, strict=True)])
        np.testing.assert_allclose(values[0] - 10 * values[1] + 100 * values[2], out, rtol=1e-13)
    assert 1 == len(traced)


def test_subclasses_of_ndarray_are_told_apart_by_their_types():
    double = cj.jit(lambda x: x * 2)
    for x in (np.arange(3.0), np.arange(4.0), np.arange(3), np.arange(4.0), np.arange(4)):
        out = double(x.view(Subclass))
        np.testing.assert_array_equal(x * 2, out)
        assert x.dtype == out.dtype


def test_a_subclass_of_ndarray_that_is_registered_is_a_container():
    class Quantity(np.ndarray):
        unit = 1.0

    cj.tree.register_node(Quantity, lambda q: ((q.view(np.ndarray),), q.unit), lambda unit, parts: (unit, *parts))
    inch, foot = np.ones(2).view(Quantity), np.ones(2).view(Quantity)
    inch.unit, foot.unit = 2.54, 30.48

    def metric(q):
        return q[0] * q[1] if type(q) is tuple else q * 1.0
    f = cj.jit(metric)
    for _ in range(2):
        assert [2.54, 30.48, 1.0] == [float(f(x)[0]) for x in (inch, foot, np.ones(2))]
    assert (30.48, [30.48] * 2) == (lambda unit, x: (unit, x.tolist()))(*cj.grad(lambda q: metric(q).sum())(foot))


def test_a_masked_array_is_refused_at_each_call_whatever_was_called_before():
    f = cj.jit(lambda x: x + 1)
    for _ in range(3):
        f(np.ones(2))
        with pytest.raises(CorejaxTypeError, match="lose its mask"):
            f(np.ma.masked_array(np.ones(2), mask=[True, False]))


def test_an_integer_that_does_not_fit_is_refused_beside_other_arguments():
    f = cj.jit(lambda x, n: x + n)
    for n in (1, 2, 3):
        assert [1.0 + n] == f(np.ones(1), n).tolist()
        with pytest.raises(CorejaxOverflowError):
            f(np.ones(1), 2**63)


def test_threads_share_a_program_and_not_their_arguments():
    f = cj.jit(lambda x, y: x * y)
    wrong = []

    def work(seed):
        random = np.random.default_rng(seed)
        for _ in range(1500):
            x, y = random.normal(size=(2, 16))
            if not np.array_equal(x * y, f(x, y)):
                wrong.append(seed)
    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [] == wrong


def test_a_callback_may_call_the_program_that_called_it():
    class Again:
        name = "again"

        @hookimpl
        def abstract_eval(self, avals):
            return avals[0]

        @hookimpl
        def impl(self, args):
            return np.asarray(f(args[0] - 1)) + args[0] if args[0][0] > 0 else args[0].copy()

    again = define(Again())
    f = cj.jit(lambda x: again(x) * 1.0)
    with cj.config(fallbacks="silent"):
        for top in (3.0, 4.0):
            assert [top * (top + 1) / 2] * 2 == f(np.full(2, top)).tolist()


def test_where_a_device_reads_no_memory_of_ours_arguments_are_put_there(monkeypatch):
    monkeypatch.setattr(mailboxes, "_make", lambda aval, place: (np.empty(aval.shape, aval.dtype), None))
    f = cj.jit(lambda x, y: x - y)
    assert [[i - 2.0] * 3 for i in range(5)] == [f(np.full(3, float(i)), 2.0).tolist() for i in range(5)]


def test_mailboxes_are_made_once_whatever_comes_beside(monkeypatch):
    make, made = mailboxes._make, []
    monkeypatch.setattr(mailboxes, "_make", lambda aval, place: (made.append(aval.shape), make(aval, place))[1])
    f = cj.jit(lambda x, y: x[0] + y[0])
    large, small = np.ones(100_000), np.ones(4)
    for i in range(6):
        small[0] = large[0] = i
        for x, y in ((small, large), (small, cj.device_put(large)), (cj.device_put(small), large),
                     (cj.device_put(small), cj.device_put(large)), (small, large.astype(">f8"))):
            assert 2.0 * i == float(f(x, y))
    assert [(4,)] == made


def test_containers_are_told_from_arguments():
    f, traced = counted(lambda *args, **kwargs: 1.0 * len(args) + 10 * len(kwargs))
    calls = [(((1.0, 2.0), {"a": 3.0}), {}), ((1.0, 2.0), {"a": 3.0}), (([1.0, 2.0], {"a": 3.0}), {}),
             (((1.0, 2.0),), {"a": 3.0}), ((), {"a": (1.0, 2.0)}), ((), {"b": (1.0, 2.0)}),
             ((), {"b": 1.0, "a": 2.0}), (((), (1.0, 2.0, 3.0)), {}), ((1.0, {"a": 2.0}), {}), ((None, 1.0, 2.0), {})]
    for _ in range(3):
        assert [len(args) + 10.0 * len(kwargs) for args, kwargs in calls] == [
            float(f(*args, **kwargs)) for args, kwargs in calls]
    assert len(calls) == len(traced)


def test_trees_are_told_apart_by_the_types_of_their_leaves_and_by_static_arguments():
    f, traced = counted(lambda tree, n: cj.tree.map(lambda x: x * n, tree), static_argnums=1)
    for _ in range(3):
        for n in (1, 2):
            for tree in ({"a": np.ones(2), "b": 3}, {"a": np.ones(2), "b": 3.0}, {"a": np.ones(3), "b": 3}):
                out = f(tree, n)
                assert (tree["a"] * n).tolist() == out["a"].tolist() and tree["b"] * n == out["b"]
    assert 6 == len(traced)


def test_large_arguments_beside_them_take_no_mailboxes_from_small_ones(monkeypatch):
    make, made = mailboxes._make, []
    monkeypatch.setattr(mailboxes, "_make", lambda aval, place: (made.append(aval.shape), make(aval, place))[1])
    f = cj.jit(lambda weights, x, rate: weights[0] * rate + x[0])
    weights, x = cj.device_put(np.ones(2_000_000)), np.ones(4)
    for i in range(6):
        assert 1.5 + i == float(f(weights, x, 0.5 + i))
    assert [(4,), ()] == made


def test_arrays_from_the_host_and_from_the_device_in_turn_lose_no_mailboxes(monkeypatch):
    make, made = mailboxes._make, []
    monkeypatch.setattr(mailboxes, "_make", lambda aval, place: (made.append(aval.shape), make(aval, place))[1])
    f = cj.jit(lambda x: x * 2.0)
    host, device = cj.vmap(lambda x: x + 1.0)(np.arange(3.0)), cj.device_put(np.arange(3.0))
    for _ in range(20):
        assert [2.0, 4.0, 6.0] == f(host).tolist() and [0.0, 2.0, 4.0] == f(device).tolist()
    assert 2 >= len(made)
