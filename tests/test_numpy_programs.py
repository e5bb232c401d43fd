"""Programs written with NumPy alone differentiate, compile and map unchanged."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import corejax as cj
import numpy_programs
from numpy_programs import PROGRAMS

every_program = pytest.mark.parametrize("name", PROGRAMS)


@every_program
def test_compiled_and_mapped_it_gives_what_numpy_gives(name):
    program, x, others = PROGRAMS[name]
    wanted = program(x, *others)
    np.testing.assert_allclose(np.asarray(cj.jit(program)(x, *others)), wanted, rtol=1e-12)
    batch = np.stack([x, x + 0.1, x * 0.5])
    rows = cj.vmap(lambda x: program(x, *others))(batch)
    np.testing.assert_allclose(np.asarray(rows), [program(row, *others) for row in batch], rtol=1e-12)


@pytest.mark.sample(4)
@every_program
def test_its_gradient_agrees_with_differences(name):
    program, x, others = PROGRAMS[name]
    step = 1e-6
    wanted = np.array([(program(x + e, *others) - program(x - e, *others)) / (2 * step)
                       for e in step * np.eye(x.size).reshape(x.size, *x.shape)]).reshape(x.shape)
    gradient = cj.grad(program)
    np.testing.assert_allclose(np.asarray(gradient(x, *others)), wanted, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(np.asarray(cj.jit(gradient)(x, *others)), wanted, rtol=1e-6, atol=1e-7)
    mapped = cj.vmap(lambda x: gradient(x, *others))(x[None])
    np.testing.assert_allclose(np.asarray(mapped[0]), wanted, rtol=1e-6, atol=1e-7)
    value, again = cj.value_and_grad(program)(x, *others)
    np.testing.assert_allclose(np.asarray(again), wanted, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(np.asarray(value), program(x, *others), rtol=1e-13)


@every_program
def test_its_derivatives_of_second_order_are_those_of_its_gradient(name):
    program, x, others = PROGRAMS[name]
    gradient, direction, step = cj.grad(program), np.cos(np.arange(x.size)).reshape(x.shape), 1e-6
    wanted = (np.asarray(gradient(x + step * direction, *others))
              - np.asarray(gradient(x - step * direction, *others))) / (2 * step)
    got = cj.jvp(lambda x: gradient(x, *others), (x,), (direction,))[1]
    np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-5, atol=1e-6)


@every_program
def test_parity_with_jax_which_needs_another_import(name):
    jax = pytest.importorskip("jax")
    _, x, others = PROGRAMS[name]
    source = inspect.getsource(numpy_programs).replace("import numpy as np", "import jax.numpy as np, numpy")
    source = source.partition("_RNG = ")[0].replace("kernel = np.zeros(size)", "kernel = numpy.zeros(size)")
    namespace = {}
    exec(compile(source.replace("from __future__ import annotations", ""), "<jax>", "exec"), namespace)
    program = namespace[PROGRAMS[name][0].__name__]
    wanted, gradient = jax.value_and_grad(program)(x, *others)
    value, got = cj.value_and_grad(PROGRAMS[name][0])(x, *others)
    np.testing.assert_allclose(np.asarray(value), np.asarray(wanted), rtol=1e-12)
    np.testing.assert_allclose(np.asarray(got), np.asarray(gradient), rtol=1e-10, atol=1e-12)
