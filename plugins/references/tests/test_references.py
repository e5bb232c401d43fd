"""What references do: parts, programs, derivatives, maps; and how they are kept and shown."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxError

A = np.arange(3.0)
TABLE = np.arange(12.0).reshape(3, 4)


def equal(expected, got):
    np.testing.assert_array_equal(np.asarray(expected), np.asarray(got[...] if isinstance(got, cj.Ref) else got))


INDICES = [2, -1, slice(1, 3), slice(None, None, 2), slice(None, None, -1), ..., (None,), (0, 1), (slice(None), 2),
           (..., 0), (1, ...), (None, 1), np.array([0, 2]), [0, 2], (np.array([0, 1]), np.array([3, 0])),
           (slice(None), np.array([1, 1])), np.array([True, False, True]), (), (np.array([[0], [1]]), np.array([2, 3]))]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_parts_are_those_of_ndarrays(index):
    index = np.array(index) if isinstance(index, list) else index
    host, ref = TABLE.copy(), cj.new_ref(TABLE)
    equal(host[index], ref[index])
    equal(host[index], cj.jit(lambda ref: ref[index])(ref))
    host[index] = -5.0
    ref[index] = -5.0
    equal(host, ref)
    host[index] = host[index] * 2.0 + 1.0
    cj.jit(lambda ref: ref.__setitem__(index, ref[index] * 2.0 + 1.0))(ref)
    equal(host, ref)
    before = host[index].copy()
    equal(before, cj.ref.swap(ref, index, 3.0))
    host[index] = 3.0
    np.add.at(host, index if index is not ... else (), 2.0)
    cj.ref.addupdate(ref, index, 2.0)
    equal(host, ref)


def test_a_traced_index_is_clamped_when_read_and_skipped_when_written():
    ref = cj.new_ref(A)
    cj.jit(lambda i: ref.__setitem__(i, 7.0))(5)
    equal(A, ref)
    assert cj.jit(lambda i: ref[i])(5).item() == 2.0


def test_parts_of_parts_are_written_where_they_are():
    ref = cj.new_ref(TABLE)
    row = ref.at[1]
    assert ((4,), np.float64, 1) == (row.shape, row.dtype, row.ndim)
    row.at[1:3][0] = 50.0
    cj.ref.addupdate(row, 0, 1.0)
    row.addupdate(1.0, 3)
    equal([5.0, 50.0, 6.0, 8.0], row[...])
    equal([5.0, 50.0, 6.0, 8.0], ref[1])
    with pytest.raises(IndexError, match="out of bounds"):
        ref.at[7]


def test_what_is_written_keeps_the_type():
    for value in (True, 2, 3.5, np.float32(1.0)):
        ref = cj.new_ref(np.ones(3, np.float32))
        ref[0] = value
        assert (np.float32, False) == (ref[...].dtype, ref[...].weak_type)
        assert value == ref[0].item()
    for value in (2.5, np.float64(1.0), 1j, np.int32(1)):
        with pytest.raises(TypeError, match="must have its dtype"):
            cj.new_ref(np.ones(3, np.int64))[0] = value
    number = cj.new_ref(1.0)
    number[...] = np.float64(2.0)
    assert (np.float64, True) == (number[...].dtype, number[...].weak_type)


def test_an_ndarray_that_changes_later_does_not_change_a_reference():
    host = A.copy()
    ref = cj.new_ref(host)
    host[0] = 9.0
    equal(A, ref)
    ref[...] = host
    host[0] = 8.0
    assert ref[0].item() == 9.0
    kept = ref[...]
    ref[0] = 1.0
    assert kept[0].item() == 9.0


def test_keys_can_be_held():
    ref = cj.new_ref(cj.random.key(3))

    @cj.jit
    def draw():
        ref[...], key = cj.random.split(ref[...])
        return cj.random.bits(key)
    first, second = draw(), draw()
    key, one = cj.random.split(cj.random.key(3))
    _, two = cj.random.split(key)
    assert (cj.random.bits(one).item(), cj.random.bits(two).item()) == (first.item(), second.item())


# Programs

def test_a_program_without_references_from_outside_is_pure():
    def f(x):
        ref = cj.new_ref(x)
        lax.fori_loop(0, 3, lambda i, _: ref.__setitem__(i, ref[i] * 2.0), None)
        return cj.freeze(ref)
    closed = cj.make_jaxpr(f)(A)
    assert "ref" not in str(closed).lower() and not closed.effects
    assert "ref" not in cj.jit(f).lower(A).as_text()


def test_a_program_with_references_says_so():
    ref = cj.new_ref(A)
    closed = cj.make_jaxpr(lambda ref: ref.__setitem__(0, 1.0))(ref)
    assert ["Ref{f64[3]}"] == [str(aval) for aval in closed.in_avals]
    assert {"reference_read", "reference_write"} == {str(effect) for effect in closed.effects}
    assert () == cj.eval_shape(lambda ref: ref[0], ref).shape
    equal(A, ref)


def test_a_function_is_traced_once_for_references_of_a_type():
    traced = []

    @cj.jit
    def f(ref, other):
        traced.append(1)
        ref[0] = other["b"][1]
        return ref[...]
    refs = [cj.new_ref(A + i) for i in range(4)]
    for one, two in zip(refs, refs[1:], strict=False):
        f(one, {"b": two})
    f(cj.new_ref(A), {"b": A})
    assert 2 == len(traced)
    equal([2.0, 1.0, 2.0], refs[0])


def test_a_program_reads_what_a_closed_over_reference_holds_now():
    ref = cj.new_ref(1.0)
    f = cj.jit(lambda x: x * ref[...])
    assert f(2.0).item() == 2.0
    ref[...] = 10.0
    assert f(2.0).item() == 20.0


def test_the_condition_of_a_loop_may_read_and_write():
    ref, count = cj.new_ref(0.0), cj.new_ref(0)

    def goes_on(x):
        count[...] += 1
        return ref[...] < 3.0

    def step(x):
        ref[...] += 1.0
        return x + ref[...]
    for f in (lambda x: lax.while_loop(goes_on, step, x), cj.jit(lambda x: lax.while_loop(goes_on, step, x))):
        ref[...], count[...] = 0.0, 0
        assert (6.0, 3.0, 4) == (f(0.0).item(), ref[...].item(), count[...].item())


def test_each_step_writes_a_row_of_a_reference_that_is_scanned():
    for f in (lambda f: f, cj.jit):
        ref, total = cj.new_ref(TABLE), cj.new_ref(np.zeros(4))

        def step(c, x, total=total):
            row, k = x
            total[...] += row[...]
            row[0] = k * 100.0
            return c + row[1], row[1]
        out, ys = f(lambda ref, step=step: lax.scan(step, 0.0, (ref, np.arange(3.0)), reverse=True))(ref)
        equal([0.0, 100.0, 200.0], ref[:, 0])
        equal(TABLE.sum(0), total)
        assert TABLE[:, 1].sum() == out.item()
        equal(TABLE[:, 1], ys)


@pytest.mark.parametrize("length", [0, 1, 2])
def test_loops_of_few_steps(length):
    for f in (lambda f: f, cj.jit):
        rows, total = cj.new_ref(TABLE[:length]), cj.new_ref(0.0)

        def step(c, row, total=total):
            row[...] = row[...] + 1.0
            total[...] += 1.0
            return c, None
        f(lambda rows, step=step: lax.scan(step, None, rows))(rows)
        equal(TABLE[:length] + 1.0, rows)
        assert float(length) == total[...].item()


def test_map_in_batches_writes_one_after_the_other():
    total = cj.new_ref(0.0)
    ys = lax.map(lambda x: cj.ref.swap(total, ..., total[...] + x), np.arange(5.0), batch_size=2)
    equal([0.0, 0.0, 1.0, 3.0, 6.0], ys)


def test_a_checkpointed_scan_writes_even_if_nothing_else_comes_out():
    total = cj.new_ref(0.0)
    lax.scan(lambda c, x: (total.addupdate(x), (c, None))[1], None, np.arange(5.0), checkpoint_every=2)
    assert total[...].item() == 10.0


def test_without_jit_python_writes():
    ref = cj.new_ref(A)
    with cj.disable_jit():
        lax.fori_loop(0, 3, lambda i, _: ref.__setitem__(i, i * 10.0), None)
        lax.scan(lambda c, x: (x.__setitem__(..., x[...] + 1.0), (c, None))[1], None, ref)
        lax.map(lambda x: x[...], ref)
        cj.jit(lambda ref: ref.addupdate(1.0))(ref)
    equal([2.0, 12.0, 22.0], ref)


def test_composites_and_platforms():
    ref = cj.new_ref(A)

    def f(x):
        y = lax.composite(lambda x: (ref.__setitem__(0, x), x * 2.0)[1], "my.double")(x)
        return lax.platform_dependent(y, default=lambda y: (ref.__setitem__(1, y), ref[0])[1])
    assert 5.0 == f(5.0).item() == cj.jit(f)(5.0).item()
    equal([5.0, 10.0, 2.0], ref)


# Derivatives

def test_a_checkpointed_program_writes_once():
    count = cj.new_ref(0)

    @cj.checkpoint
    def f(x):
        count[...] += 1
        return lax.sin(lax.sin(x))
    expected = np.cos(np.sin(0.5)) * np.cos(0.5)
    assert np.isclose(expected, cj.grad(f)(0.5).item()) and np.isclose(expected, cj.jit(cj.grad(f))(0.5).item())
    assert count[...].item() == 2


def test_forward_mode_takes_references_to_tangents():
    def f(ref):
        ref[0] = lax.sin(ref[1])
        return ref[...].sum()
    for g in (f, cj.jit(f)):
        ref, dot = cj.new_ref(A), cj.new_ref(np.ones(3))
        out, out_dot = cj.jvp(g, (ref,), (dot,))
        np.testing.assert_allclose([np.sin(1.0) + 3.0, np.cos(1.0) + 2.0], [out.item(), out_dot.item()])
        np.testing.assert_allclose([np.cos(1.0), 1.0, 1.0], np.asarray(dot[...]))
        np.testing.assert_allclose([np.sin(1.0), 1.0, 2.0], np.asarray(ref[...]))


def test_what_a_closed_over_reference_holds_is_a_constant_of_derivatives():
    ref = cj.new_ref(A)

    def f(x):
        ref[0] = lax.stop_gradient(x) + 1.0
        return x * ref[0]
    for g in (cj.grad(f), cj.jit(cj.grad(f)), cj.grad(cj.jit(f))):
        assert g(3.0).item() == 4.0
    assert ref[0].item() == 4.0


def test_higher_derivatives_and_maps_of_a_function_with_a_loop():
    def f(x):
        ref = cj.new_ref(x)
        lax.fori_loop(0, 3, lambda i, _: ref.__setitem__(i, ref[i] * ref[0] * ref[2]), None)
        return ref[...].sum()

    def g(x):
        for i in range(3):
            x = x.at[i].set(x[i] * x[0] * x[2])
        return x.sum()
    x = np.array([0.5, -1.5, 2.0])
    np.testing.assert_allclose(np.asarray(cj.hessian(g)(x)), np.asarray(cj.hessian(f)(x)))
    np.testing.assert_allclose(np.asarray(cj.jit(cj.vmap(cj.hessian(g)))(x[None])),
                               np.asarray(cj.jit(cj.vmap(cj.hessian(f)))(x[None])))


def test_a_backward_rule_writes_on_the_way_back():
    @cj.custom_vjp
    def spy(ref, x):
        return x
    spy.defvjp(lambda ref, x: (x, ref), lambda ref, ct: (ref.__setitem__(..., ct), (None, ct))[1])

    def f(x, ref):
        return lax.sin(spy(ref, x * x))
    for g in (cj.grad(f), cj.jit(cj.grad(f))):
        ref = cj.new_ref(0.0)
        np.testing.assert_allclose(np.cos(4.0) * 4.0, g(2.0, ref).item())
        np.testing.assert_allclose(np.cos(4.0), ref[...].item())


def test_functions_with_rules_read_and_write_what_they_close_over():
    ref = cj.new_ref(A)

    @cj.custom_jvp
    def f(x):
        ref[0] = x
        return x * 2.0
    f.defjvp(lambda xs, dots: (f(*xs), dots[0] * 5.0))

    @cj.custom_vjp
    def g(x):
        ref[1] = x
        return x * 2.0
    g.defvjp(lambda x: (g(x), None), lambda _, ct: (ref.__setitem__(2, ct), (ct * 7.0,))[1])
    for how in (lambda h: h, cj.jit):
        for x in (3.0, 4.0):
            assert x * 2.0 == how(f)(x).item() == how(g)(x).item()
            equal([x, x], ref[:2])
            assert (5.0, 7.0) == (how(cj.grad(f))(x + 1.0).item(), how(cj.grad(g))(x + 1.0).item())
            equal([x + 1.0, x + 1.0, 1.0], ref)


def test_rules_with_reference_arguments_are_mapped():
    @cj.custom_jvp
    def f(ref, x):
        return ref[0] * x
    f.defjvp(lambda xs, dots: (f(*xs), dots[1] * xs[0][1]))
    ref = cj.new_ref(np.array([2.0, 3.0]))
    for how in (lambda h: h, cj.jit):
        equal(2.0 * A, how(cj.vmap(lambda x: f(ref, x)))(A))
        equal([3.0] * 3, how(cj.vmap(cj.grad(lambda x: f(ref, x))))(A))


# Maps

def test_a_mapped_reference_is_one_for_each_element():
    def f(ref, x):
        ref[0] = x
        return ref[...].sum()
    for in_axis in (0, 1, -1):
        for g in (f, cj.jit(f)):
            rows = np.moveaxis(np.ones((2, 3)), 0, in_axis)
            ref = cj.new_ref(rows)
            equal([2.0, 3.0], cj.vmap(g, in_axes=(in_axis, 0))(ref, np.arange(2.0)))
            rows = np.moveaxis(rows.copy(), in_axis, 0)
            rows[:, 0] = [0.0, 1.0]
            equal(np.moveaxis(rows, 0, in_axis), ref)


def test_branches_and_loops_of_a_batch_are_those_of_its_elements():
    def f(x):
        ref = cj.new_ref(x)
        lax.cond(x[0] > 0.0, lambda: ref.__setitem__(1, 9.0), lambda: None)
        lax.while_loop(lambda _: ref[2] < 5.0, lambda _: ref.__setitem__(2, ref[2] + 1.5), None)
        return ref[...]
    xs = np.array([[1.0, 2.0, 3.0], [-1.0, 0.0, 6.0]])
    equal([np.asarray(f(x)) for x in xs], cj.vmap(f)(xs))
    equal([np.asarray(f(x)) for x in xs], cj.jit(cj.vmap(f))(xs))


# Objects

def test_references_are_shown_with_what_they_hold():
    ref = cj.new_ref(A)
    assert "Ref([0., 1., 2.], dtype=float64)" == repr(ref)
    shown = []
    cj.jit(lambda ref: shown.append((repr(ref), isinstance(ref, cj.Ref), isinstance(ref, cj.Array))))(ref)
    assert [("Ref<f64[3]>", True, False)] == shown
    cj.freeze(ref)
    assert "Ref(f64[3], frozen)" == repr(ref)
    assert "Ref{f64[3]}" == repr(cj.typeof(cj.new_ref(A)))
    assert repr(cj.new_ref(A).at[1]).startswith("<a part of Ref{f64[3]}")


def test_references_are_leaves_compared_by_identity():
    ref = cj.new_ref(A)
    assert [ref] == cj.tree.leaves({"a": ref}) and ref == ref and ref != cj.new_ref(A)
    assert ref in {ref}


@pytest.mark.parametrize("use", [copy.copy, copy.deepcopy, pickle.dumps, np.asarray, bool, list, np.sin, lax.sin,
                                 cj.device_put, lambda ref: ref + 1.0, lambda ref: cj.device_put(A) * ref])
def test_a_reference_is_no_array(use):
    with pytest.raises(TypeError):
        use(cj.new_ref(A))


def test_nothing_keeps_the_traces_alive_that_used_a_reference():
    ref, traces = cj.new_ref(A), []

    def f(x):
        traces.append(weakref.ref(cj.core.context.trace))
        ref[0] = lax.stop_gradient(x)
        return x
    cj.jit(f)(1.0)
    cj.make_jaxpr(f)(1.0)
    cj.grad(f)(1.0)
    cj.vmap(lambda r: traces.append(weakref.ref(cj.core.context.trace)) or r[0], axis_size=3)(cj.new_ref(TABLE))
    gc.collect()
    assert [None] * 4 == [trace() for trace in traces]


def test_a_reference_is_used_in_any_thread():
    ref = cj.new_ref(A)
    f = cj.jit(lambda i: ref.__setitem__(i, 5.0))
    threads = [threading.Thread(target=f, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
        thread.join()
    equal([5.0] * 3, ref)


def test_empty_and_freed():
    ref = cj.ref.empty_ref(cj.ShapeDtypeStruct((2,), "float32"))
    assert ((2,), np.float32) == (ref.shape, ref.dtype)
    assert cj.ref.free_ref(ref) is None
    with pytest.raises(ValueError, match="freed"):
        ref[0]
    assert "Ref{f64[]}" == repr(cj.ref.empty_ref(cj.ref.AbstractRef((), "float64")).aval)


def test_programs_that_are_kept_do_not_hold_references_of_other_programs():
    traced = []

    @cj.jit
    def outer(x):
        ref = cj.new_ref(x)

        @cj.jit
        def inner(y):
            traced.append(1)
            ref[0] += y
            return ref[...]
        return inner(1.0) + inner(2.0)
    equal([4.0, 2.0, 4.0], outer(A))
    equal([4.0, 2.0, 4.0], cj.jit(lambda x: outer(x))(A))


def test_programs_that_cannot_have_references_from_outside_say_so():
    ref = cj.new_ref(A)
    with pytest.raises(NotImplementedError, match=r"lower: .* objects that hold arrays"):
        cj.jit(lambda ref: ref[0]).lower(ref)
    with pytest.raises(CorejaxError, match="has effects"):
        cj.export.export(cj.jit(lambda ref: ref[0]))(ref)
    with pytest.raises(NotImplementedError, match="bounded_while_loop: its program can't"):
        lax.bounded_while_loop(lambda n: n < 3, lambda n: (ref.__setitem__(0, 1.0), n + 1)[1], 0, max_steps=5)
