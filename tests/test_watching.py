"""Settings that watch: their function is called in the place of whatever is evaluated, and changes no bit."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.core import context
from corejax.eager.evaluate import EvalTrace
from corejax.plugin import Setting, settings

log = []


def watch(primitive, args, params, apply):
    log.append(params["name"] if primitive is None else primitive.name)
    return apply()


@pytest.fixture(autouse=True)
def watcher():
    from corejax.base import config as home
    setting = Setting("watch_in_a_test", False, settings.OneOf(False, True), "tells what is evaluated", watch)
    home.declare(setting)
    log.clear()
    yield
    assert type(context.trace) is EvalTrace
    del home.SETTINGS["watch_in_a_test"]
    delattr(home.Config, "watch_in_a_test")


def double(x):
    return lax.mul(x, 2.0)


def test_each_primitive_and_each_program_is_told():
    x, compiled = np.arange(3.0), cj.jit(double)
    with cj.config(watch_in_a_test=True):
        compiled(lax.add(x, 1.0))
        compiled.lower(x).compile()(x)
        cj.vmap(double)(x)
        cj.grad(lambda x: lax.reduce_sum(lax.sin(x), axes=(0,)))(x)
    assert ["add", "double", "double", "mul"] == log[:4]
    assert {"sin", "cos", "reduce_sum"} <= {*log[4:]}


def test_nothing_is_told_within_a_program_nor_after_the_block():
    with cj.config(watch_in_a_test=True):
        cj.make_jaxpr(double)(1.0)
    cj.jit(double)(3.0)
    double(2.0)
    assert [] == log


def test_an_assignment_holds_for_all_threads_and_a_block_for_its_own():
    def elsewhere():
        thread = threading.Thread(target=double, args=(np.arange(2.0),))
        thread.start()
        thread.join()

    with cj.config(watch_in_a_test=True):
        elsewhere()
    assert [] == log
    cj.config.watch_in_a_test = True
    try:
        elsewhere()
        assert ["mul"] == log
        with cj.config(watch_in_a_test=False):
            double(1.0)
        assert ["mul"] == log
    finally:
        cj.config.watch_in_a_test = False


def test_it_is_called_in_the_place_of_what_is_evaluated():
    from corejax.base.config import SETTINGS

    def halved(primitive, args, params, apply):
        return [lax.div.primitive.impl([np.asarray(x), 2.0]) for x in apply()] if primitive is None else apply()

    object.__setattr__(SETTINGS["watch_in_a_test"], "watch", halved)
    compiled = cj.jit(double)
    with cj.config(watch_in_a_test=True):
        assert 1.0 == float(compiled(1.0))


def test_an_error_of_the_watcher_reaches_the_user_and_nothing_stays_behind():
    from corejax.base.config import SETTINGS

    def refuse(primitive, args, params, apply):
        raise ValueError("not this one")

    object.__setattr__(SETTINGS["watch_in_a_test"], "watch", refuse)
    with pytest.raises(ValueError, match="not this one"), cj.config(watch_in_a_test=True):
        cj.jit(double)(1.0)
    assert 2.0 == float(double(1.0))


@pytest.mark.parametrize("place", ["host", "device"])
def test_watched_results_have_the_same_bits(place):
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 3, 4))
    x, y = (cj.device_put(x), cj.device_put(y)) if place == "device" else (lax.add(x, 0.0), lax.add(y, 0.0))
    compiled = cj.jit(lambda x, y: {"sum": lax.sin(x) * y, "parts": (x[0], y.sum(1))})

    def results():
        found = cj.device_get([lax.sin(x), x + y, x[1:, ::2], x.mean(), lax.exp(2.0), compiled(x, y), x.T @ y,
                               cj.grad(lambda x: compiled(x, y)["sum"].sum())(x), cj.vmap(lax.tanh)(x),
                               lax.scan(lambda c, row: (c + row, lax.exp(c)), x[0], y)])
        return [leaf.tobytes() for leaf in cj.tree.leaves(found)]

    expected = results()
    with cj.config(watch_in_a_test=True):
        assert expected == results()
    assert log
