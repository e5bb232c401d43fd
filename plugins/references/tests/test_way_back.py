"""Functions with rules of their own that use references on the way back, in programs: beside calls one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.errors import CorejaxNotImplementedError, CorejaxTypeError
from way_back_programs import CALLS, Language, Refs, fresh, program, run

PYTHON, PROGRAMS = Language(cj, lax, False), Language(cj, lax, True)
QUICK = 4
ALL = 200  # of `make test-all`


def seeds(count: int) -> list[Any]:
    return [pytest.param(seed, marks=[pytest.mark.exhaustive] if seed >= count else []) for seed in range(ALL)]


def close(expected: Any, got: Any) -> None:
    for x, y in zip(cj.tree.leaves(expected), cj.tree.leaves(got), strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=2e-6, atol=2e-6)


def by_python(nodes: Any, x: Any, start: Any) -> Any:
    """Value and gradient of a program, and what its references hold then."""
    refs = Refs(*map(cj.new_ref, start))
    found = cj.value_and_grad(lambda x: run(PYTHON, nodes, x, refs))(x)
    return *found, [ref[...] for ref in refs]


def pulled_back(f: Any) -> Any:
    def way(x: Any, refs: Any) -> Any:
        y, back = cj.vjp(cj.jit(lambda x: f(x, refs)), x)
        return y, back(np.ones_like(y))[0]

    return way


#: Ways to take the gradient of a function of a number and references; they are arguments of it, or closed over.
WAYS = {
    "grad": lambda f: lambda x, refs: cj.value_and_grad(lambda x: f(x, refs))(x),
    "jit(grad)": lambda f: cj.jit(lambda x, refs: cj.value_and_grad(lambda x: f(x, refs))(x)),
    "grad(jit), closed over": lambda f: lambda x, refs: cj.value_and_grad(cj.jit(lambda x: f(x, refs)))(x),
    "grad(jit)": lambda f: cj.value_and_grad(cj.jit(f)),
    "jit(grad(jit))": lambda f: cj.jit(cj.value_and_grad(cj.jit(f))),
    "vjp": pulled_back,
}


@pytest.mark.parametrize("seed", seeds(QUICK))
def test_programs_do_what_their_calls_do_one_by_one(seed):
    rng = np.random.default_rng(seed)
    nodes, start, x = program(rng, int(rng.integers(1, 4))), fresh(rng), np.float64(rng.uniform(-1, 1))
    expected = by_python(nodes, x, start)
    for way in WAYS.values():
        refs = Refs(*map(cj.new_ref, start))
        found = way(lambda x, refs: run(PROGRAMS, nodes, x, Refs(*refs)))(x, refs)
        close(expected, (*found, [ref[...] for ref in refs]))


#: Ways to take the gradients of a batch, where each element has references of its own.
MAPPED = {
    "vmap(grad)": lambda f: cj.vmap(cj.grad(f)),
    "vmap(grad(jit))": lambda f: cj.vmap(cj.grad(cj.jit(f))),
    "grad(vmap)": lambda f: cj.grad(lambda xs, refs: cj.vmap(f)(xs, refs).sum()),
    "grad(vmap(jit))": lambda f: cj.grad(lambda xs, refs: cj.vmap(cj.jit(f))(xs, refs).sum()),
    "grad(jit(vmap))": lambda f: cj.grad(cj.jit(lambda xs, refs: cj.vmap(f)(xs, refs).sum())),
    "jit(grad(vmap))": lambda f: cj.jit(cj.grad(lambda xs, refs: cj.vmap(f)(xs, refs).sum())),
}


@pytest.mark.parametrize("seed", seeds(QUICK // 2))
def test_mapped_programs_do_what_each_element_does(seed):
    rng = np.random.default_rng(seed)
    nodes = program(rng, int(rng.integers(1, 3)), [call for call in CALLS if call != "closes"])
    starts, xs = [fresh(rng) for _ in range(3)], rng.uniform(-1, 1, 3)
    each = [by_python(nodes, x, start)[1:] for x, start in zip(xs, starts, strict=True)]
    expected = [np.stack(rows) for rows in zip(*[[np.asarray(x) for x in cj.tree.leaves(row)] for row in each],
                                               strict=True)]
    for way in MAPPED.values():
        refs = Refs(*[cj.new_ref(np.stack(rows)) for rows in zip(*starts, strict=True)])
        found = way(lambda x, refs: run(PROGRAMS, nodes, x, Refs(*refs)))(xs, refs)
        close(expected, [found, *[ref[...] for ref in refs]])


# One function

def with_rules(bwd: Any, **options: Any) -> Any:
    f = cj.custom_vjp(lambda ref, x: lax.sin(x))
    f.defvjp(lambda ref, x: (lax.sin(x), (ref, lax.cos(x))), bwd, **options)
    return f


def doubling(kept: Any, g: Any) -> Any:
    ref, slope = kept
    ref[...] = ref[...] * 2 + g.astype(ref.dtype)
    return None, g * slope


h = with_rules(doubling)


def after(way: Any, init: Any, x: Any = 1.0) -> Any:
    """What `way(x, ref)` returns, and what the reference holds then."""
    ref = cj.new_ref(init)
    return way(x, ref), ref[...]


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16", "float16", "float8_e4m3fn", "complex64", "int64",
                                   "uint8", "int16", "bool"])
def test_references_of_all_dtypes_have_trails(dtype):
    def flipping(kept: Any, g: Any) -> Any:
        kept[0][...] = ~kept[0][...]
        return None, g * kept[1]

    f = with_rules(flipping if dtype == "bool" else doubling)
    start = np.asarray([3, 0]).astype(dtype) * (1 + 2j if dtype.startswith("complex") else 1)
    start = start.astype(dtype)
    one = after(cj.grad(lambda x, ref: f(ref, x)), start)
    two = after(cj.grad(cj.jit(lambda x, ref: f(ref, x))), start)
    assert one[1].aval == two[1].aval
    assert [np.asarray(x).tobytes() for x in one] == [np.asarray(x).tobytes() for x in two]


def test_a_reference_to_nothing_has_a_trail():
    assert after(cj.grad(cj.jit(lambda x, ref: h(ref, x))), np.zeros((0, 3)))[1].shape == (0, 3)


def test_the_same_program_goes_on_with_what_is_held():
    f = cj.grad(cj.jit(lambda x, ref: h(ref, x)))
    ref = cj.new_ref(0.0)
    assert [(f(1.0, ref).item(), ref[...].item())[1] for _ in range(3)] == [1.0, 3.0, 7.0]
    other = cj.new_ref(5.0)
    f(1.0, other)
    assert (other[...], ref[...]) == (11.0, 7.0)


def test_a_pullback_writes_each_time_it_is_called():
    ref = cj.new_ref(0.0)
    _, back = cj.vjp(cj.jit(lambda x: h(ref, x)), 1.0)
    assert ref[...] == 0.0
    back(1.0)
    ref[...] = 10.0
    back(2.0)
    assert ref[...] == 22.0


def test_nothing_is_written_where_no_derivative_is_taken():
    f = cj.jit(lambda x, ref: h(ref, x))
    assert after(f, 3.0)[1] == 3.0
    assert after(lambda x, ref: cj.grad(cj.jit(lambda y: y * f(x, ref)))(2.0), 3.0)[1] == 3.0
    assert after(lambda x, ref: cj.vmap(lambda x: f(x, ref))(x), 3.0, np.ones(2))[1] == 3.0


def test_a_backward_rule_alone_may_close_over_a_reference():
    ref = cj.new_ref(np.zeros(()))
    tap = cj.custom_vjp(lambda x: x * 1.0)
    tap.defvjp(lambda x: (x * 1.0, None), lambda _, g: (ref.addupdate(g), (g,))[1])

    def f(x: Any) -> Any:
        return lax.scan(lambda x, _: (lax.sin(tap(x)), None), x, None, length=3)[0]

    slope = cj.grad(f)(1.0)
    assert ref[...] > slope > 0
    once = ref[...].item()
    for way in (cj.grad(cj.jit(f)), cj.jit(cj.grad(f))):
        way(1.0)
    assert ref[...].item() == pytest.approx(3 * once, rel=1e-12)


def test_what_rules_could_read_but_do_not_use_is_left_alone():
    ref, ended = cj.new_ref(1.0), cj.new_ref(1.0)
    cj.freeze(ended)

    def f(x: Any) -> Any:
        g = cj.custom_vjp(lambda x: lax.sin(x))
        g.defvjp(lambda x: (lax.sin(x), lax.cos(x)), lambda slope, ct: (ct * slope if ref is not ended else ct,))
        return g(x)

    x = np.ones(2)
    for way in (cj.grad(lambda x: cj.vmap(cj.jit(f))(x).sum()), cj.vmap(cj.grad(cj.jit(f))),
                cj.jit(cj.grad(lambda x: cj.vmap(f)(x).sum()))):
        close(np.cos(x), way(x))
    assert "cosine" in cj.jit(cj.grad(f)).lower(1.0).as_text()
    assert ref[...] == 1.0


def test_rules_for_both_modes_write_in_both():
    f = cj.custom_jvp(lambda ref, x: lax.sin(x))

    @f.defjvp
    def rule(primals, tangents):
        ref, x = primals
        ref[...] += 1.0
        return lax.sin(x), lax.cos(x) * tangents[1]

    f.defvjp(lambda ref, x: (lax.sin(x), (ref, lax.cos(x))), doubling)
    def forward(g: Any) -> Any:
        return after(lambda x, ref: cj.jvp(lambda x: g(x, ref), (x,), (1.0,))[1], 5.0)[1]

    def backward(g: Any) -> Any:
        return after(lambda x, ref: cj.grad(lambda x: g(x, ref))(x), 5.0)[1]

    at_once, program = (lambda x, ref: f(ref, x)), (lambda x, ref: cj.jit(lambda x: f(ref, x))(x))
    assert (forward(at_once), backward(at_once), backward(program)) == (6.0, 11.0, 11.0)
    assert after(lambda x, ref: cj.linearize(lambda x: f(ref, x), x)[1](2.0), 5.0)[0] == pytest.approx(2 * np.cos(1.0))
    with pytest.raises(CorejaxNotImplementedError, match="rules for one mode"):
        forward(program)


def test_a_derivative_of_a_derivative_writes_as_one_by_one():
    def counting(kept: Any, g: Any) -> Any:
        kept[0][...] += 1
        return None, g * kept[1]

    f = with_rules(counting)
    twice = cj.grad(cj.grad(lambda x, ref: f(ref, x)))
    expected = after(twice, 0)
    assert expected[0] == pytest.approx(-np.sin(1.0))
    assert after(cj.grad(cj.grad(cj.jit(lambda x, ref: f(ref, x)))), 0) == expected
    assert after(cj.jit(twice), 0) == expected


@pytest.mark.parametrize("options", [{"symbolic_zeros": True}, {"optimize_remat": True}])
def test_options_of_rules_do_not_matter(options):
    f = cj.custom_vjp(lambda ref, x: lax.sin(x))

    def fwd(ref: Any, x: Any) -> Any:
        ref, x = [each.value for each in (ref, x)] if "symbolic_zeros" in options else (ref, x)
        return lax.sin(x), (ref, lax.cos(x))

    f.defvjp(fwd, doubling, **options)
    assert after(cj.grad(cj.jit(lambda x, ref: f(ref, x))), 2.0)[1] == 5.0


def test_parts_of_references_are_found_and_kept():
    ref = cj.new_ref(np.zeros(2))
    part = ref.at[0]
    closing = cj.custom_vjp(lambda x: lax.sin(x))
    closing.defvjp(lambda x: (lax.sin(x), lax.cos(x)), lambda slope, g: (part.addupdate(g), (g * slope,))[1])
    cj.grad(cj.jit(closing))(0.5)
    keeping = cj.custom_vjp(lambda ref, x: lax.sin(x))
    keeping.defvjp(lambda ref, x: (lax.sin(x), (ref.at[1], lax.cos(x))),
                   lambda kept, g: (kept[0].addupdate(g), (None, g * kept[1]))[1])
    cj.grad(cj.jit(lambda x: keeping(ref, x)))(0.5)
    close(ref[...], cj.device_put(np.ones(2)))


def test_rules_that_fail_use_no_reference():
    ref = cj.new_ref(0.0)

    def wrong(_: Any, g: Any) -> Any:
        raise RuntimeError(f"no derivative, {ref is None}")

    f = cj.custom_vjp(lambda x: lax.sin(x))
    f.defvjp(lambda x: (lax.sin(x), None), wrong)
    assert "sine" in cj.jit(f).lower(1.0).as_text()
    close(np.sin(np.ones(2)), cj.vmap(cj.jit(f))(np.ones(2)))
    with pytest.raises(RuntimeError, match="no derivative"):
        cj.grad(cj.jit(f))(1.0)


def test_rules_get_references_with_tangents_where_the_derivative_is_taken_at_once():
    f = cj.custom_jvp(lambda ref, x: x * ref[...])
    f.defjvp(lambda xs, dots: (xs[1] * xs[0][...], dots[1] * xs[0][...] + xs[1] * dots[0][...]))
    for start in (2.0, np.float64(2.0)):
        for g in (f, lambda ref, x: x * ref[...]):
            out, dot = cj.jvp(g, (cj.new_ref(start), 0.5), (cj.new_ref(np.float64(1.0)), 1.0))
            assert (out.item(), dot.item()) == (1.0, 2.5)
    with pytest.raises(CorejaxNotImplementedError, match="what it holds has a derivative"):
        cj.jvp(cj.jit(lambda ref, x: f(ref, x)), (cj.new_ref(2.0), 0.5), (cj.new_ref(1.0), 1.0))


# What is refused

def shared(x: Any, ref: Any) -> Any:
    return cj.grad(lambda xs: cj.vmap(cj.jit(lambda x: h(ref, x)))(xs).sum())(np.ones(2) * x)


def kept_by_fwd(x: Any, ref: Any) -> Any:
    f = cj.custom_vjp(lambda x: lax.sin(x) + ref[...] * 0.0)
    f.defvjp(lambda x: (lax.sin(x), cj.new_ref(x)), lambda kept, g: (g * kept[...],))
    return cj.grad(cj.jit(lambda x: f(x)))(x)


@pytest.mark.parametrize(("wrong", "said"), [
    (lambda x, ref: cj.grad(cj.jit(lambda x: h(cj.new_ref(0.0), x)))(x), "make the reference outside"),
    (lambda x, ref: cj.grad(cj.jit(lambda x: cj.jit(h)(cj.new_ref(0.0), x)))(x), "make the reference outside"),
    (shared, "pass one with an axis for the batch"),
    (lambda x, ref: cj.grad(cj.jit(lambda x: h(cj.new_ref(x), x)))(x), "holds has a derivative"),
    (kept_by_fwd, "its fwd rule made it, and keeps it"),
])
def test_references_that_are_gone_by_then_are_refused(wrong, said):
    with pytest.raises(CorejaxNotImplementedError, match=said) as error:
        after(wrong, 0.0)
    assert "test_way_back.py" in str(error.value.where)


def test_keys_have_no_trails():
    random = pytest.importorskip("corejax.random")

    def splitting(kept: Any, g: Any) -> Any:
        kept[0][...] = random.split(kept[0][...])[0]
        return None, g * kept[1]

    f = with_rules(splitting)
    after(cj.grad(lambda x, ref: f(ref, x)), random.key(0))
    with pytest.raises(CorejaxNotImplementedError, match="holds no numbers"):
        after(cj.grad(cj.jit(lambda x, ref: f(ref, x))), random.key(0))


def test_what_depends_on_what_is_differentiated_is_no_value_of_an_argument():
    def f(x: Any) -> Any:
        ref = cj.new_ref(x)
        return cj.jit(lambda x: h(ref, x))(x)

    with pytest.raises((CorejaxNotImplementedError, CorejaxTypeError)):
        cj.grad(cj.jit(f))(1.0)
