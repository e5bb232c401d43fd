"""What stands in for missing rules: compiled programs that call `impl`, vmap slice by slice; and how they are told."""

from __future__ import annotations

import traceback
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.core import ShapedArray
from corejax.errors import CorejaxWarning, MissingRuleError, RuleError
from corejax.plugin import define, hookimpl

pytestmark = pytest.mark.filterwarnings("ignore::corejax.errors.CorejaxWarning")

BOOM = KeyError("boom")
GOOD = object()
DTYPES = [np.bool_, np.int8, np.uint32, np.int64, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, np.float32,
          np.float64, np.complex64, np.complex128]


class Flipped:
    """Its operand backwards, and its size: by `impl` alone."""

    name = "flipped"
    multiple_results = True

    @hookimpl
    def abstract_eval(self, avals):
        return [avals[0], ShapedArray((), np.int32)]

    @hookimpl
    def impl(self, args):
        return [np.array(args[0])[::-1] if args[0].ndim else args[0], np.int32(args[0].size)]


class Affine:
    """a x + b, by `impl` and abstract_eval alone; it may raise, or return something else."""

    name = "affine"

    def __init__(self) -> None:
        self._fault: Any = GOOD

    @hookimpl
    def abstract_eval(self, avals, *, a, b):
        return avals[0]

    @hookimpl
    def impl(self, args, *, a, b):
        if isinstance(self._fault, BaseException):
            raise self._fault
        return args[0] * args[0].dtype.type(a) + args[0].dtype.type(b) if self._fault is GOOD else self._fault


@pytest.fixture
def affine():
    plugin = Affine()
    function = define(plugin)
    call = lambda x: function(x, a=2.0, b=1.0)
    call.plugin, call.function = plugin, function
    return call


def same(expected: Any, got: Any) -> None:
    assert (np.shape(expected), np.asarray(expected).dtype) == (got.shape, got.dtype)
    np.testing.assert_array_equal(np.asarray(got), np.asarray(expected))


# Compiled programs that call impl

@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,), (2, 0, 3)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_compiled_programs_call_impl_with_every_dtype_and_shape(dtype, shape):
    flipped = define(Flipped())
    x = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    back, size = cj.jit(lambda x: flipped(x))(x)
    same(x[::-1] if shape else x, back)
    same(np.int32(x.size), size)


def test_impl_is_called_in_loops_branches_and_below_vmap(affine):
    x = np.arange(3.0)
    programs = {
        "scan": lambda x: lax.scan(lambda c, y: (affine(c + y), c), x, np.ones((4, 3))),
        "while": lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, affine(s[1])), (0, x))[1],
        "cond": lambda x: lax.cond(x[0] < 1.0, affine, lambda x: x, x),
        "vmap": cj.vmap(affine), "vmap of vmap": lambda x: cj.vmap(cj.vmap(affine))(x[None]),
        "scan below vmap": cj.vmap(lambda x: lax.scan(lambda c, _: (affine(c), c), x, None, length=3)),
        "twice in one program": lambda x: affine(affine(x)) - affine(x),
    }
    for name, program in programs.items():
        expected = program_by_hand(name, x)
        for run in (program, cj.jit(program)):
            for want, got in zip(expected, cj.tree.leaves(run(x)), strict=True):
                np.testing.assert_array_equal(np.asarray(got), want, err_msg=name)


def program_by_hand(name: str, x: Any) -> list[Any]:
    def affine(x):
        return x * 2.0 + 1.0

    carries = [x]
    for _ in range(4):
        carries.append(affine(carries[-1] + 1.0))
    thrice = [x, affine(x), affine(affine(x)), affine(affine(affine(x)))]
    return {"scan": [carries[-1], np.stack(carries[:-1])], "while": [thrice[3]], "cond": [affine(x)],
            "vmap": [affine(x)], "vmap of vmap": [affine(x)[None]],
            "scan below vmap": [thrice[3], np.stack(thrice[:3], 1)],
            "twice in one program": [affine(affine(x)) - affine(x)]}[name]


def test_what_impl_returns_to_a_compiled_program_is_checked(affine):
    x = np.arange(3.0)
    faults = [(np.ones(2), "f64[2]"), (np.ones(3, np.float32), "f32[3]"), (None, "None"), ([1.0, 2.0, 3.0], "[~f64[]"),
              (1.0, "~f64[]"), ("text", "str"), (np.array(["a"]), "<U1"), ((np.ones(3),), "(f64[3])")]
    for fault, got in faults:
        affine.plugin._fault = fault
        with pytest.raises(RuleError, match=r"affine.impl \(defined in .*\): returned .*, wanted ") as caught:
            cj.jit(affine)(x)
        assert ("affine", "impl") == (caught.value.primitive, caught.value.hook)
        assert got in str(caught.value.got) and "f64[3]" in caught.value.wanted and __file__ in caught.value.where


def test_wrong_numbers_of_results_are_an_error_in_compiled_programs():
    class Short(Flipped):
        name = "short"

        @hookimpl
        def impl(self, args):
            return [args[0]]

    short = define(Short())
    with pytest.raises(RuleError, match=r"short.impl .*: returned \[f64\[3\]\], wanted a sequence of 2 arrays"):
        cj.jit(lambda x: short(x))(np.ones(3))


@pytest.mark.parametrize("error", [BOOM, ZeroDivisionError("by design"), StopIteration(3), RuntimeError("mine"),
                                   np.linalg.LinAlgError("singular"), Warning("odd")])
def test_an_exception_of_impl_leaves_a_compiled_program_as_it_is(affine, error):
    affine.plugin._fault = error
    x = np.ones((2, 3))
    programs = [affine, cj.vmap(affine), lambda x: affine(affine(x)),
                lambda x: lax.scan(lambda c, _: (affine(c), c), x, None, length=3),
                lambda x: lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, affine(s[1])), (0, x))[1],
                lambda x: lax.cond(x[0, 0] < 2.0, affine, lambda x: x, x),
                lambda x: cj.jit(affine)(x) + 1.0]
    for program in programs:
        for _ in range(2):
            with pytest.raises(type(error)) as caught:
                cj.jit(program)(x)
            assert error is caught.value
            names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
            assert "impl" in names and names[0].startswith("test_an_exception")
    affine.plugin._fault = GOOD
    same(x * 2.0 + 1.0, cj.jit(affine)(x))


def test_a_keyboard_interrupt_in_impl_passes_a_compiled_program(affine):
    affine.plugin._fault = KeyboardInterrupt("stop")
    with pytest.raises(KeyboardInterrupt):
        cj.jit(affine)(np.ones(3))
    affine.plugin._fault = GOOD
    same(np.full(3, 3.0), cj.jit(affine)(np.ones(3)))


def test_exceptions_of_many_threads_reach_their_own_callers():
    class Picky:
        name = "picky"

        @hookimpl
        def abstract_eval(self, avals):
            return avals[0]

        @hookimpl
        def impl(self, args):
            if args[0] % 2:
                raise LookupError(int(args[0]))
            return args[0] + 1.0

    picky = define(Picky())
    f = cj.jit(lambda x: picky(x))

    def call(i: int) -> Any:
        try:
            return float(f(float(i)))
        except LookupError as error:
            return type(error)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(call, range(60)))
    assert [LookupError if i % 2 else i + 1.0 for i in range(60)] == found


def test_impl_may_use_primitives_when_a_compiled_program_calls_it():
    class Nested:
        name = "nested"

        @hookimpl
        def abstract_eval(self, avals):
            return avals[0]

        @hookimpl
        def impl(self, args):
            return np.asarray(cj.jit(lambda x: lax.sin(x) * 2.0)(args[0]))

    nested = define(Nested())
    x = np.arange(3.0)
    np.testing.assert_allclose(np.sin(x) * 2.0 + 1.0, np.asarray(cj.jit(lambda x: nested(x) + 1.0)(x)), rtol=1e-15)


def test_floating_point_events_in_impl_are_as_quiet_compiled_as_eager():
    class Log:
        name = "my_log"

        @hookimpl
        def abstract_eval(self, avals):
            return avals[0]

        @hookimpl
        def impl(self, args):
            return np.log(args[0])

    my_log = define(Log())
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for f in (my_log, cj.jit(lambda x: my_log(x))):
            same(np.array([-np.inf]), f(np.zeros(1)))


def test_impl_may_keep_its_operands_in_compiled_programs_and_not_write_to_them():
    kept = []

    class Keeps:
        name = "keeps"

        @hookimpl
        def abstract_eval(self, avals, *, write):
            return avals[0]

        @hookimpl
        def impl(self, args, *, write):
            kept.append(args[0])
            if write:
                args[0][...] = 7.0
            return args[0]

    keeps = define(Keeps())
    x = np.arange(3.0)
    f = cj.jit(lambda x: keeps(x, write=False) + x)
    for i in range(20):
        f(x + i)
    assert [(x + i).tolist() for i in range(20)] == [array.tolist() for array in kept]
    with pytest.raises(RuleError, match="keeps.impl .* writes to its operands"):
        cj.jit(lambda x: keeps(x, write=True))(x)


def test_programs_for_other_platforms_can_not_call_back(affine):
    with pytest.raises(MissingRuleError, match="affine .* can't be compiled for cuda: it has no xla_translation rule"):
        cj.jit(affine).trace(1.0).lower("cuda")


# vmap slice by slice

def test_a_missing_vmap_maps_slice_by_slice(affine):
    x = np.arange(6.0).reshape(2, 3)
    for f in (cj.vmap(affine), cj.vmap(affine, 1, 1), cj.vmap(cj.vmap(affine)), cj.jit(cj.vmap(affine, 1, 1))):
        same(x * 2.0 + 1.0, f(x))
    for size in (0, 1):
        same(x[:size] * 2.0 + 1.0, cj.vmap(affine)(x[:size]))
        same(x[:size] * 2.0 + 1.0, cj.jit(cj.vmap(affine))(x[:size]))


def test_a_missing_vmap_maps_several_operands_and_results():
    class Swap:
        name = "swap"
        multiple_results = True

        @hookimpl
        def abstract_eval(self, avals):
            return avals[::-1]

        @hookimpl
        def impl(self, args):
            return args[::-1]

    swap = define(Swap())
    x, y = np.arange(6.0).reshape(2, 3), np.arange(3, dtype=np.int8)
    for dims, operands, expected in (
            ((0, None), (x, y), (np.stack([y, y]), x)), ((None, 0), (x, y), (y, np.stack([x] * 3))),
            ((1, 0), (x, y), (y, x.T))):
        for f in (cj.vmap(swap, dims), cj.jit(cj.vmap(swap, dims))):
            for want, got in zip(expected, f(*operands), strict=True):
                same(want, got)


def test_a_primitive_that_names_an_axis_is_not_mapped_slice_by_slice():
    class Along:
        name = "along_axis"

        @hookimpl
        def abstract_eval(self, avals, *, axis_name):
            return avals[0]

        @hookimpl
        def impl(self, args, *, axis_name):
            return args[0]

    along = define(Along())
    with pytest.raises(MissingRuleError, match="along_axis .* has no vmap rule and none can be derived"):
        cj.vmap(lambda x: along(1.0, axis_name="i") + x, axis_name="i")(np.ones(3))


# How they are told

def told(action: Any) -> list[Any]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        action()
    return [w for w in caught if issubclass(w.category, CorejaxWarning)]


def test_each_fallback_warns_once_names_the_users_line_its_cost_and_its_remedy(affine):
    def calls():
        for _ in range(2):
            y = cj.jit(lambda x: affine(x))(np.ones(3))
            cj.vmap(affine)(y)
            cj.jit(lambda x: affine(x) + 2.0)(y)

    lowering, vmap = told(calls)
    for warning, hook, cost in ((lowering, "xla_translation", "copies the operands to Python and back"),
                                (vmap, "vmap", "one call for each slice")):
        text = str(warning.message)
        assert f"affine (defined in {__name__}) has no {hook} rule" in text and cost in text
        assert f"Writing the hook {hook} (or decompose) removes it" in text
        assert "config.fallbacks = 'error'" in text
        assert __file__ == warning.filename


def test_the_line_that_is_named_is_the_one_that_applies_the_primitive():
    function = define(Affine())

    def program(x):
        y = lax.sin(x)
        return function(y, a=2.0, b=1.0)

    (warning,) = told(lambda: cj.jit(program)(1.0))
    assert (__file__, program.__code__.co_firstlineno + 2) == (warning.filename, warning.lineno)


def test_fallbacks_are_silent_or_errors_as_the_configuration_says(affine):
    with cj.config(fallbacks="silent"):
        assert [] == told(lambda: (cj.vmap(affine)(np.ones(3)), cj.jit(affine)(np.ones(3))))
    with cj.config(fallbacks="error"):
        same(np.array(3.0), affine(1.0))  # eager calls need no substitute
        for hook, f in (("vmap", cj.vmap(affine)), ("xla_translation", cj.jit(lambda x: affine(x) * 3.0)),
                        ("vmap", cj.jit(cj.vmap(lambda x: affine(x) * 4.0)))):
            with pytest.raises(MissingRuleError, match=f"affine .* has no {hook} rule") as caught:
                f(np.ones(3))
            assert hook == caught.value.hook and __file__ in caught.value.where
            assert f"the hook {hook}, or decompose" == caught.value.wanted


def test_a_program_that_was_compiled_before_is_refused_too(affine):
    f = cj.jit(lambda x: affine(x))
    same(np.full(3, 3.0), f(np.ones(3)))
    with cj.config(fallbacks="error"), pytest.raises(MissingRuleError, match="affine .* has no xla_translation rule"):
        f(np.ones(3))
    same(np.full(3, 3.0), f(np.ones(3)))


def test_an_error_mode_leaves_the_warning_to_come(affine):
    with cj.config(fallbacks="error"), pytest.raises(MissingRuleError):
        cj.vmap(affine)(np.ones(3))
    assert 1 == len(told(lambda: cj.vmap(affine)(np.ones(3))))


def test_a_missing_impl_compiles_and_is_no_fallback():
    class Compiled:
        name = "compiled"

        @hookimpl
        def decompose(self, args):
            return lax.sin(args[0])

    compiled = define(Compiled())
    with cj.config(fallbacks="error"):
        assert [] == told(lambda: np.testing.assert_allclose(np.sin(1.0), float(compiled(1.0)), rtol=1e-15))
    assert "absent" == cj.plugins.explain(compiled).hooks["impl"].how


@pytest.mark.parametrize("use", [lambda f: cj.grad(f)(1.0), lambda f: cj.jvp(cj.jit(f), (1.0,), (1.0,))])
def test_what_can_not_be_derived_is_an_error_that_names_the_hook(affine, use):
    with pytest.raises(MissingRuleError, match="affine .* has no jvp rule and none can be derived"):
        use(affine)


class Pushed:
    """(sin x, t cos x), without a vmap rule: mapped along t, both are."""

    name = "pushed"
    multiple_results = True

    @hookimpl
    def abstract_eval(self, avals):
        return list(avals)

    @hookimpl
    def impl(self, args):
        x, t = args
        return [np.sin(x), t * np.cos(x)]


class Wave:
    """sin x, whose jvp computes value and tangent together."""

    name = "wave"

    @hookimpl
    def abstract_eval(self, avals):
        return avals[0]

    @hookimpl
    def impl(self, args):
        return np.sin(args[0])

    @hookimpl
    def jvp(self, primals, tangents):
        return tuple(pushed(*primals, *tangents))


pushed, wave = define(Pushed()), define(Wave())


@pytest.mark.parametrize("shape", [(2,), (0,), (2, 3)])
def test_jacfwd_takes_values_that_a_fallback_has_mapped_with_their_tangents(shape):
    x = np.arange(float(np.prod(shape))).reshape(shape)
    jacobian, (aux,) = cj.jacfwd(lambda x: (wave(x), [wave(x)]), has_aux=True)(x)
    assert shape * 2 == jacobian.shape
    np.testing.assert_allclose(cj.jacfwd(lax.sin)(x), jacobian)
    np.testing.assert_array_equal(np.sin(x), aux)
