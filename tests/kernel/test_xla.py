"""From a jaxpr to results: lowering, compiling, running, by primitives made for the tests."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import weakref

import ml_dtypes
import numpy as np
import pytest
from xla_toys import Build, Toy, add, add_sub, call, chain, elementwise, host, literal, mul, sin

from corejax.arrays.array import as_array, device_put
from corejax.arrays.storage import is_on_device
from corejax.base import dtypes
from corejax.base.avals import ShapedArray
from corejax.eager.dispatch import apply_primitive
from corejax.errors import CorejaxError, RuleError
from corejax.kernel.jaxpr import ClosedJaxpr
from corejax.xla.cache import compile as compile_module
from corejax.xla.cache.compile import compile_jaxpr
from corejax.xla.cache.stages import lower_jaxpr
from corejax.xla.lowering.programs import lower_module

F = ShapedArray((3,), np.float64)
S = ShapedArray((), np.float64)


def sum_program() -> ClosedJaxpr:
    b = Build(F, F)
    return b.returns(b(add, *b.invars))


# Lowering

def test_module_text_shows_the_program():
    text = lower_jaxpr(sum_program(), name="f").as_text()
    assert "module @jit_f" in text
    assert "func.func public @main" in text
    assert "stablehlo.add %arg0, %arg1 : tensor<3xf64>" in text


def test_literals_are_made_once_for_a_type_and_bits():
    b = Build(F)
    y = b(mul, b(add, b.invars[0], 2.0), 2.0)
    z = b(add, b(mul, y, -0.0), 0.0)
    text = lower_jaxpr(b.returns(z)).as_text()
    assert 3 == text.count("stablehlo.constant")


def test_equal_subprograms_share_one_function():
    def body(name):
        b = Build(F)
        return b.returns(b(sin, b.invars[0]), name=name).jaxpr

    b = Build(F)
    x, = b(call, b.invars[0], jaxpr=body("g"))
    y, = b(call, x, jaxpr=body("g"))
    closed = b.returns(y)
    text = lower_jaxpr(closed).as_text()
    assert 1 == text.count("func.func private")
    assert 2 == text.count("call @g(")
    np.testing.assert_allclose(np.sin(np.sin([1, 2, 3.0])), compile_jaxpr(closed)([np.array([1, 2, 3.0])])[0])


def test_different_subprograms_of_one_name_are_two_functions():
    def body(primitive):
        b = Build(F)
        return b.returns(b(primitive, b.invars[0], 2.0), name="main").jaxpr

    b = Build(F)
    x, = b(call, b.invars[0], jaxpr=body(add))
    y, = b(call, x, jaxpr=body(mul))
    closed = b.returns(y)
    assert 2 == lower_jaxpr(closed).as_text().count("func.func private")
    assert [6.0, 8.0, 10.0] == compile_jaxpr(closed)([np.array([1, 2, 3.0])])[0].tolist()


def test_small_constants_are_baked_and_large_ones_are_arguments():
    big = ShapedArray((65,), np.float64)
    b = Build(F, big)
    outs = b(add, b.invars[0], b.const(np.arange(3.0))), b(add, b.invars[1], b.const(np.arange(65.0)))
    closed = b.returns(*outs)
    text = lower_jaxpr(closed).as_text()
    assert "dense<[0.000000e+00, 1.000000e+00, 2.000000e+00]>" in text
    assert "@main(%arg0: tensor<65xf64>, %arg1: tensor<3xf64>, %arg2: tensor<65xf64>)" in text
    small, large = compile_jaxpr(closed)([np.ones(3), np.ones(65)])
    assert [1.0, 2.0, 3.0] == small.tolist()
    np.testing.assert_array_equal(np.arange(65.0) + 1, large)


def test_new_data_in_a_large_constant_does_not_compile_again():
    def program(value):
        b = Build(ShapedArray((70,), np.float64))
        return b.returns(b(add, b.invars[0], b.const(np.full(70, value))))

    first, second = compile_jaxpr(program(1.0)), compile_jaxpr(program(2.0))
    assert first.loaded is second.loaded
    assert (1.0, 2.0) == tuple(e([np.zeros(70)])[0].tolist()[0] for e in (first, second))


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint8, np.int32, np.uint64, np.float16, np.float32, np.float64,
                                   np.complex64, np.complex128, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn,
                                   ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3b11fnuz],
                         ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("shape", [(), (1,), (3,), (9,), (2, 3), (0, 2)], ids=str)
def test_constants_of_every_dtype_keep_their_bits(dtype, shape):
    value = (np.arange(np.prod(shape, dtype=int)).reshape(shape) % 3).astype(dtype)
    b = Build()
    out = compile_jaxpr(b.returns(b.const(value)))([])[0]
    assert value.dtype == out.dtype
    np.testing.assert_array_equal(value, out)


def test_special_floats_survive_as_literals():
    b = Build()
    values = [np.float64(v) for v in (-0.0, 0.0, np.nan, np.inf, 5e-324)]
    outs = compile_jaxpr(b.returns(*map(literal, values)))([])
    for value, out in zip(values, outs, strict=True):
        assert value.tobytes() == np.asarray(out).tobytes()


@pytest.mark.parametrize("rule, text", [
    (lambda ctx, args: None, "got:    None"), (lambda ctx, args: args, "a list"),
    (lambda ctx, args: ctx.constant(np.float32(1)), "f32[]"),
    (lambda ctx, args: ctx.constant(np.float64(1)), "f64[]")])
def test_rule_that_returns_something_else_is_named(rule, text):
    b = Build(F)
    closed = b.returns(b(Toy("odd", rule), b.invars[0]))
    with pytest.raises(RuleError, match=r"odd\.xla_translation \(toys 1\.0\)") as info:
        lower_jaxpr(closed)
    assert text in str(info.value)
    assert ("odd", "xla_translation") == (info.value.primitive, info.value.hook)


def test_rule_with_the_wrong_number_of_results_is_named():
    b = Build(F)
    few = Toy("few", lambda ctx, args: args[:1], lambda avals: (avals[0], avals[0]), multiple_results=True)
    closed = b.returns(*b(few, b.invars[0]))
    with pytest.raises(RuleError, match="few.xla_translation"):
        lower_jaxpr(closed)


def test_a_hundred_thousand_equations_lower_without_recursion():
    closed = chain(100_000, F)
    assert 1 == lower_module(closed.jaxpr, [], "long", "cpu").module.operation.regions[0].blocks[0].operations.__len__()


def test_a_rule_is_looked_up_once_for_a_module():
    toy = elementwise("counted", "stablehlo.negate")
    b = Build(F)
    x = b.invars[0]
    for _ in range(10):
        x = b(toy, x)
    lower_jaxpr(b.returns(x))
    assert 1 == toy.lowered


def test_regions_are_built_with_the_same_context():
    def rule(ctx, args):
        total = ctx.op("stablehlo.reduce", [args[0], ctx.constant(np.float64(0))],
                       {"dimensions": ctx.ir.DenseI64ArrayAttr.get([0])}, ctx.out_types, regions=1)
        block = total.owner.regions[0].blocks.append(ctx.out_types[0], ctx.out_types[0],
                                                     arg_locs=[ctx.ir.Location.unknown()] * 2)
        with ctx.ir.InsertionPoint(block):
            ctx.op("stablehlo.return", [ctx.op("stablehlo.add", list(block.arguments), None, ctx.out_types)], None, [])
        return total

    b = Build(F)
    closed = b.returns(b(Toy("total", rule, lambda avals: S), b.invars[0]))
    assert 6.0 == float(compile_jaxpr(closed)([np.array([1, 2, 3.0])])[0])


# Compiling and running

def test_arguments_may_live_anywhere():
    e = compile_jaxpr(sum_program())
    x = np.arange(3.0)
    for args in ([x, x], [device_put(x), x], [x, device_put(x)], [as_array(x, copy=True), device_put(x)],
                 [device_put(x), device_put(x)]):
        out, = e(args)
        assert is_on_device(out)
        assert [0.0, 2.0, 4.0] == out.tolist()


def test_python_and_numpy_scalars_are_arguments_too():
    b = Build(ShapedArray((), np.float64, True), ShapedArray((), np.float32))
    e = compile_jaxpr(b.returns(*b.invars))
    assert [1.5, 2.5] == [float(out) for out in e([1.5, np.float32(2.5)])]


def test_results_carry_weak_types():
    weak = ShapedArray((), np.float64, True)
    b = Build(weak, S)
    outs = compile_jaxpr(b.returns(b(add, b.invars[0], b.invars[0]), b.invars[1]))([1.0, np.float64(2)])
    assert [True, False] == [out.weak_type for out in outs]


def test_writing_to_an_argument_after_the_call_changes_nothing():
    e = compile_jaxpr(chain(40, ShapedArray((1000, 100), np.float64)))
    x = np.ones((1000, 100))
    expected = np.asarray(e([x.copy(), x.copy()])[0])
    out, = e([x, x])
    x[:] = 7
    np.testing.assert_array_equal(expected, out)


def test_several_results_and_none():
    b = Build(F, F)
    outs = compile_jaxpr(b.returns(*b(add_sub, *b.invars)))([np.ones(3), np.ones(3)])
    assert [[2.0] * 3, [0.0] * 3] == [out.tolist() for out in outs]
    assert [] == compile_jaxpr(Build(F).returns())([np.ones(3)])


def test_float0_passes_through():
    zero = ShapedArray((2,), dtypes.float0)
    b = Build(zero, F)
    out, x = compile_jaxpr(b.returns(*b.invars))([np.zeros(2, dtypes.float0), np.ones(3)])
    assert dtypes.float0 == out.dtype
    assert [1.0] * 3 == x.tolist()


def test_equal_programs_compile_once():
    compile_module._executables = compile_module._OncePerKey(64)
    assert compile_jaxpr(sum_program()) is compile_jaxpr(sum_program(), name="another")


def test_programs_that_differ_in_the_bits_of_a_constant_are_two():
    def program(value):
        b = Build(S)
        return b.returns(b(mul, b.invars[0], value))

    assert compile_jaxpr(program(0.0)) is not compile_jaxpr(program(-0.0))
    assert compile_jaxpr(program(0.0)) is compile_jaxpr(program(0.0))


def test_many_threads_compile_a_program_once():
    calls = []

    def rule(ctx, args):
        calls.append(threading.get_ident())
        return ctx.op("stablehlo.negate", args)

    toy, results, start = Toy("slow", rule), [], threading.Barrier(8)
    b = Build(F)
    closed = b.returns(b(toy, b.invars[0]))

    def work():
        start.wait()
        results.append(compile_jaxpr(closed))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 == len(calls)
    assert 1 == len(set(map(id, results)))


def test_a_failing_compile_leaves_nothing_behind():
    fail = [True]

    def rule(ctx, args):
        if fail[0]:
            raise KeyboardInterrupt
        return ctx.op("stablehlo.negate", args)

    b = Build(F)
    closed = b.returns(b(Toy("moody", rule), b.invars[0]))
    with pytest.raises(KeyboardInterrupt):
        compile_jaxpr(closed)
    fail[0] = False
    assert [-1.0] * 3 == compile_jaxpr(closed)([np.ones(3)])[0].tolist()
    assert {} == compile_module._executables._pending


def test_donated_argument_is_gone_and_says_so():
    e = compile_jaxpr(sum_program(), donated=(0,))
    x, y = device_put(np.ones(3)), device_put(np.ones(3))
    assert [2.0] * 3 == e([x, y])[0].tolist()
    assert x.is_deleted() and not y.is_deleted()
    with pytest.raises(RuntimeError, match="deleted, or donated") as info:
        e([x, y])
    assert isinstance(info.value, CorejaxError)
    with pytest.raises(ValueError, match="second time"):
        e([y, y])


def test_host_storage_survives_donation():
    big = ShapedArray((1 << 16,), np.float64)
    b = Build(big, big)
    e = compile_jaxpr(b.returns(b(add, *b.invars)), donated=(0,))
    x = as_array(np.ones(1 << 16), copy=True)
    e([device_put(x), x])[0].block_until_ready()
    e([x, x])[0].block_until_ready()
    assert float(1 << 16) == np.asarray(x).sum()


def test_optimised_program_and_its_figures_can_be_read():
    compiled = lower_jaxpr(sum_program()).compile()
    assert "HloModule" in compiled.as_text()
    assert compiled.cost_analysis()["flops"] > 0
    assert 48 == compiled.memory_analysis().argument_size_in_bytes
    assert [2.0] * 3 == compiled(np.ones(3), np.ones(3))[0].tolist()


def test_compiler_options_are_passed_and_wrong_ones_refused():
    lowered = lower_jaxpr(sum_program())
    lowered.compile({"xla_backend_optimization_level": 0})
    with pytest.raises(CorejaxError):
        lowered.compile({"xla_no_such_option": 1})
    with pytest.raises(TypeError, match="compiler option"):
        lowered.compile({"xla_dump_to": object()})


def test_executables_go_when_the_cache_is_cleared():
    e = compile_jaxpr(chain(3, ShapedArray((5,), np.float32)))
    ref = weakref.ref(e)
    compile_module._executables._cache.clear()
    del e
    assert ref() is None


# One primitive at a time

def test_apply_primitive_compiles_once_for_a_signature():
    toy = elementwise("negate", "stablehlo.negate")
    x = device_put(np.ones(3))
    assert [-1.0] * 3 == apply_primitive(toy, [x], {}).tolist()
    apply_primitive(toy, [x], {})
    assert 1 == toy.lowered
    apply_primitive(toy, [device_put(np.ones(4))], {})
    assert 2 == toy.lowered


def test_apply_primitive_returns_a_list_for_several_results():
    x = device_put(np.ones(3))
    assert [[2.0] * 3, [0.0] * 3] == [out.tolist() for out in apply_primitive(add_sub, [x, x], {})]


# Callbacks

def test_python_function_runs_in_a_compiled_program():
    b = Build(F)
    closed = b.returns(b(sin, b(host(lambda x: x * 2), b.invars[0])))
    np.testing.assert_allclose(np.sin([2, 4, 6.0]), compile_jaxpr(closed)([np.array([1, 2, 3.0])])[0])


@pytest.mark.parametrize("shape", [(), (2, 3), (0,)], ids=str)
def test_callbacks_keep_shapes_and_order(shape):
    aval = ShapedArray(shape, np.float32)
    x = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape)
    b = Build(aval)
    np.testing.assert_array_equal(x + 1, compile_jaxpr(b.returns(b(host(lambda x: x + 1), b.invars[0])))([x])[0])


class Unusual(Exception):
    pass


def test_exception_of_a_callback_keeps_its_type_and_traceback():
    def broken(x):
        raise Unusual("on purpose")

    b = Build(F)
    e = compile_jaxpr(b.returns(b(host(broken), b.invars[0])))
    for _ in range(2):
        with pytest.raises(Unusual, match="on purpose") as info:
            e([np.ones(3)])
        assert "broken" == info.traceback[-1].name


@pytest.mark.parametrize("wrong", [lambda x: x.astype(np.float32), lambda x: x[:1], lambda x: None])
def test_callback_that_returns_another_type_is_named(wrong):
    b = Build(F)
    toy = host(wrong)
    toy.name = "wrong"
    e = compile_jaxpr(b.returns(b(toy, b.invars[0])))
    with pytest.raises(RuleError, match="wrong.xla_translation .* called back returned") as info:
        e([np.ones(3)])
    assert info.value.wanted.endswith("f64[3]")


def test_callback_may_keep_its_argument():
    kept = []

    def keep(x):
        kept.append(x)
        return x

    b = Build(F)
    e = compile_jaxpr(b.returns(b(host(keep), b.invars[0])))
    for i in range(5):
        e([np.full(3, float(i))])
    assert [0.0, 1.0, 2.0, 3.0, 4.0] == [float(x[0]) for x in kept]


# Processes and imports

FORK = """
import os, sys, warnings
import numpy as np
warnings.simplefilter("ignore")
sys.path.insert(0, {tests!r})
from xla_toys import Build, add
from corejax.base.avals import ShapedArray
from corejax.arrays.array import device_put
from corejax.xla.cache.compile import compile_jaxpr
F = ShapedArray((3,), np.float64)
b = Build(F, F)
e = compile_jaxpr(b.returns(b(add, *b.invars)))
run = e.calls.call
x = device_put(np.ones(3))
child = os.fork()
if child == 0:
    bad = 0
    for use in (lambda: e([x, x]), lambda: run([np.ones(3)] * 2), lambda: device_put(np.ones(3)), lambda: x.tolist()):
        try:
            use()
        except RuntimeError as error:
            bad += "forked" not in str(error)
        else:
            bad += 1
    os._exit(bad)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert e([x, x])[0].tolist() == [2.0] * 3
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
def test_use_after_fork_is_refused_by_name():
    program = FORK.format(tests=os.path.dirname(__file__))
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_importing_the_compile_path_loads_no_jaxlib():
    program = ("import sys, corejax.eager.dispatch, corejax.base._jaxlib;"
               "assert not [m for m in sys.modules if m.split('.')[0] in ('jaxlib', 'jax')]")
    subprocess.run([sys.executable, "-c", program], check=True)


WITHOUT_JAX = """
import os, sys
sys.path.insert(0, {tests!r})

class Watch:
    def find_spec(self, name, *_):
        if name.split(".")[0] == "jax":
            os.write(2, b"somebody imports jax")
            os._exit(1)  # an exception would be swallowed

sys.meta_path.insert(0, Watch())
import ml_dtypes
import numpy as np
from xla_toys import Build, chain, host
from corejax.base.avals import ShapedArray
from corejax.arrays.array import device_put
from corejax.xla.cache.compile import compile_jaxpr
x = device_put(np.ones(3))
y, = compile_jaxpr(chain(3, x.aval))([x, x])
y.block_until_ready(), np.asarray(y), repr(y), np.from_dlpack(y), y.device, y.is_ready(), y.tolist(), repr(x)
repr(device_put(np.ones(3, ml_dtypes.bfloat16)))
b = Build(x.aval)
compile_jaxpr(b.returns(b(host(lambda x: x), b.invars[0])))([x])
y.delete()
try:
    y.tolist()
except RuntimeError:
    pass
"""


def test_running_programs_imports_no_jax():
    program = WITHOUT_JAX.format(tests=os.path.dirname(__file__))
    subprocess.run([sys.executable, "-c", program], check=True, stderr=subprocess.PIPE)
