"""Types alone, as in jax: a `ShapeDtypeStruct` as a value where only types are asked for, and what programs show."""

from __future__ import annotations

import numpy as np
import pytest

import corejax as cj

jax = pytest.importorskip("jax")


def sine(m):
    return lambda x: m.numpy.sin(x) * 2


#: What `eval_shape` and `make_jaxpr` are asked about: functions of the library and a `ShapeDtypeStruct`.
USES = {
    "a compiled function": lambda m, s: m.jit(sine(m))(s),
    "a tree": lambda m, s: m.jit(lambda d: d["a"].sum())({"a": s}),
    "a plain function": lambda m, s: sine(m)(s),
    "a primitive": lambda m, s: m.lax.add(s, s),
    "a gradient": lambda m, s: m.grad(lambda x: sine(m)(x).sum())(s),
    "a map": lambda m, s: m.vmap(sine(m))(s),
    "a loop": lambda m, s: m.lax.scan(lambda c, x: (c + x, c), np.float32(0), s),
    "a branch": lambda m, s: m.lax.cond(True, sine(m), sine(m), s),
    "a function with a rule": lambda m, s: m.nn.relu(s),
    "what is computed again": lambda m, s: m.checkpoint(sine(m))(s),
    "a closure": lambda m, s: m.jit(lambda y: y + m.numpy.sin(s))(np.float32(1)),
    "the result": lambda m, s: s,
    "the type of a type": lambda m, s: m.eval_shape(sine(m), s).shape[0],
}


def described(outs):
    return [(x.shape, str(x.dtype), x.weak_type) for x in outs]


@pytest.mark.parametrize("name", USES)
def test_types_stand_for_values_as_in_jax(name):
    found = []
    for m in (cj, jax):
        s = m.ShapeDtypeStruct((3,), np.float32)
        by_shape = described(m.tree.leaves(m.eval_shape(lambda: USES[name](m, s))))  # noqa: B023
        by_program = m.make_jaxpr(lambda: USES[name](m, s), return_shape=True)()[1]  # noqa: B023
        assert by_shape == described(m.tree.leaves(by_program))
        found.append(by_shape)
    ours, theirs = found
    assert theirs == ours


def test_a_program_has_the_type_among_its_constants_as_in_jax():
    for m in (cj, jax):
        s = m.ShapeDtypeStruct((3,), np.float32)
        closed = m.make_jaxpr(lambda: m.jit(sine(m))(s))()  # noqa: B023
        assert [s] == list(closed.consts) and 1 == len(closed.jaxpr.constvars)


@pytest.mark.parametrize("use", [
    lambda m, s: m.jit(sine(m))(s),
    lambda m, s: m.jit(lambda: sine(m)(s))(),
    lambda m, s: m.jit(lambda: sine(m)(s)).lower(),
    lambda m, s: sine(m)(s),
    lambda m, s: m.eval_shape(lambda: sine(m)(s)) and m.jit(sine(m))(s),
])
def test_elsewhere_a_type_is_no_value_as_in_jax(use):
    for m in (cj, jax):
        with pytest.raises(TypeError, match="ShapeDtypeStruct"):
            use(m, m.ShapeDtypeStruct((3,), np.float32))


def test_a_function_traced_for_its_types_is_traced_again_for_values():
    s = cj.ShapeDtypeStruct((3,), np.float32)
    f = cj.jit(lambda x: x + cj.lax.sin(s))
    assert s == cj.eval_shape(f, s)
    with pytest.raises(TypeError, match="sin: operand 0: a value of type ShapeDtypeStruct is not an array"):
        f(np.ones(3, np.float32))


def test_a_struct_without_a_dtype_is_refused_as_in_jax():
    for m in (cj, jax):
        with pytest.raises(ValueError, match="ShapeDtypeStruct"):
            m.ShapeDtypeStruct((), None)


# Types and programs

def test_structs_are_updated_and_made_like_values_as_in_jax():
    for m in (cj, jax):
        s = m.ShapeDtypeStruct((2, 3), np.float32)
        assert m.ShapeDtypeStruct((3,), np.float32) == s.update(shape=(3,))
        assert m.ShapeDtypeStruct((2, 3), np.int32, weak_type=True) == s.update(dtype=np.int32, weak_type=True)
        assert m.ShapeDtypeStruct((2,), np.float32) == m.ShapeDtypeStruct.like(np.ones(2, np.float32))
        assert m.ShapeDtypeStruct((), np.float64, weak_type=True) == m.ShapeDtypeStruct.like(1.5)


def test_named_axes_of_a_program_are_given_as_in_jax():
    found = []
    for m in (cj, jax):
        closed, shape = m.make_jaxpr(lambda x: (m.lax.psum(x, "i"), m.lax.all_gather(x, "j"), m.lax.axis_index("i")),  # noqa: B023
                                     (), [("i", 4), ("j", 2)], True)(np.ones(3))
        found.append(([eqn.primitive.name for eqn in closed.eqns], described(m.tree.leaves(shape))))
    assert found[1] == found[0]


@pytest.mark.parametrize("axes", [[("i",)], 3, [("i", "j")], [([], 1)], "ab", [("i", 2.0)]])
def test_wrong_axes_are_refused(axes):
    with pytest.raises(TypeError, match="axis_env must be pairs of a name and a size"):
        cj.make_jaxpr(lambda x: x, axis_env=axes)
