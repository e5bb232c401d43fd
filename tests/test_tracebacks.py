"""What of a traceback reaches a user: frames of the user's own code, and whose fault it is."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
import threading
import traceback
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.base import tracebacks
from corejax.base.source import library_packages
from corejax.base.tracebacks import calls_users, trim
from corejax.config import config
from corejax.errors import CorejaxError, CorejaxTypeError, CorejaxValueError
from corejax.plugin import define, hookimpl, public
from corejax.xla.runtime import failures

HERE = Path(__file__).name
ROOT = Path(__file__).resolve().parent.parent


def provoked(call: Callable[[], Any]) -> Exception:
    """What a call raises."""
    try:
        call()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def frames(error: BaseException) -> list[str]:
    """The functions in a traceback, without `provoked`; those of other files with the name of their package."""
    found = []
    for frame, _ in traceback.walk_tb(error.__traceback__):
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        own = frame.f_code.co_filename.endswith(HERE)
        found.append(frame.f_code.co_name if own else f"{package}:{frame.f_code.co_name}")
    assert found[0] == "provoked"
    return found[1:]


def everything(error: BaseException) -> str:
    """What Python prints."""
    return "".join(traceback.format_exception(error))


def users_only(error: BaseException) -> bool:
    """Does what Python prints mention no file of the kernel or of a pack?"""
    return "corejax/" not in everything(error).replace(str(ROOT / "tests"), "").replace(str(ROOT / "docs"), "")


X = np.arange(3.0)


# Entries

def one_line(text: str) -> Callable[[], Any]:
    """The code of a user, in a function called `user`."""
    scope = {"cj": cj, "lax": lax, "np": np, "x": cj.device_put(X), "__name__": "users_module"}
    exec(compile(f"def user():\n    {text}", HERE, "exec"), scope)
    return scope["user"]


ENTRIES = [
    "x + np.ones(4)", "np.ones(4) + x", "x @ np.ones(4)", "x[5]", "x['a']", "x[0] = 1", "-cj.device_put(True)", "x & x",
    "x.sum(axis=7)", "x.sum(1, 2, 3, 4, 5, 6, 7, 8, 9)", "x.unheard_of", "x.mT", "x._unheard_of", "hash(x)", "bool(x)",
    "int(x)", "float(x)", "complex(x)", "x.item()", "len(x[0])", "iter(x[0])", "x.at[7].set(1)", "x.at[0].set('a')",
    "x.at[0].unheard_of(1)", "x.reshape(5)", "x.astype('text')", "round(x, 'a')", "[0][x]", "cj.Array()",
    "lax.add(x, np.ones(4))", "lax.add(x)", "lax.sin('a')", "lax.sin(x, x)", "lax.reshape(x, (2, 2))",
    "lax.reduce_sum(x, (3,))", "lax.full((2,), 'a')", "lax.clamp(x, x)", "lax.unheard_of", "lax.stack([x, x[0]])",
    "cj.grad(3)", "cj.grad()", "cj.grad(lambda x: x)(x)", "cj.grad(lambda x: x.sum())('a')", "cj.grad(lambda x: x)()",
    "cj.value_and_grad(lambda x: x)(x)", "cj.jit(3)", "cj.jit(lambda x: x)('a')", "cj.jit(lambda x: x)(x, x)",
    "cj.jit(lambda x: x).lower('a')", "cj.jit(lambda x: x).trace('a')", "cj.jit(lambda x: x).eval_shape('a')",
    "cj.jit(lambda x: x).lower(x).compile()(x, x)",
    "cj.jit(lambda x: x, static_argnums=0)(x)", "cj.vmap(lambda x: x)(1.0)", "cj.vmap(lambda x: x)(x, x, x)",
    "cj.vmap(lambda x, y: x, in_axes=(0,))(x, x)", "cj.vmap(lambda x: x, in_axes='a')", "cj.jvp(lambda x: x, x, x)",
    "cj.jvp(lambda x: x, (x,), (1,))", "cj.vjp(lambda x: x, x)[1](1)", "cj.linearize(lambda x: x, x)[1](1)",
    "cj.linear_transpose(lambda x: x * 1.5, 1)", "cj.linear_transpose(lambda x: x * 2.0, 1.0)(x)", "cj.jacfwd(3)",
    "cj.jacfwd(lambda x: x)('a')", "cj.jacrev(lambda x: x)('a')", "cj.hessian(lambda x: x)(1)", "cj.make_jaxpr(3)",
    "cj.make_jaxpr(lambda x: x)('a')", "cj.eval_shape(lambda x: x, 'a')", "cj.ShapeDtypeStruct('a', 'f')",
    "cj.device_put('a')", "cj.device_get('a')", "cj.devices('abacus')", "cj.named_scope(3)",
    "cj.tree.map(lambda x, y: x, [1], {})", "cj.tree.unflatten(cj.tree.structure([1, 2]), [1])",
    "cj.tree.flatten({1: 2, 'a': 3})",
    "cj.tree.register_node(3, None, None)", "cj.tree.reduce(max, [])", "cj.config(unheard_of=1)",
    "cj.config.unheard_of = 1", "cj.config.default_bits = 7", "del cj.config.default_bits",
    "cj.grad(lambda x: lax.add(x, np.ones(4)))(x)", "cj.jit(cj.vmap(lambda x: x.foo))(x)",
    "cj.checkpoint(3)", "cj.custom_jvp(3)", "cj.custom_vjp(lambda x: x)(x)", "lax.cond(True, 1, 2, x)",
    "lax.switch(0, [], x)", "lax.scan(3, x, x)", "lax.while_loop(1, 2, x)", "lax.fori_loop('a', 3, max, x)",
    "lax.scan(lambda c, y: c, x, x)", "lax.map(len, 3)", "cj.grad(lambda x: lax.scan(lambda c, y: (c, y), x, 3))(x)",
]


@pytest.mark.parametrize("text", ENTRIES)
def test_a_wrong_call_shows_the_users_frames_only(text: str) -> None:
    error = provoked(one_line(text))
    assert set(frames(error)) <= {"user", "<lambda>"}
    assert users_only(error)
    assert isinstance(error, CorejaxError) or type(error) in (TypeError, AttributeError)
    if isinstance(error, CorejaxError):
        assert str(error.where).startswith(f"{HERE}:2 (user")
        assert error.__cause__ is None


def test_every_line_of_the_table_is_of_another_entry_or_fault() -> None:
    assert len(set(ENTRIES)) == len(ENTRIES) > 80


def test_frames_of_the_user_within_a_transformed_function_stay() -> None:
    def inner(x: Any) -> Any:
        return lax.add(x, np.ones(4))

    def outer(x: Any) -> Any:
        return cj.vmap(inner)(x[None])[0].sum()

    for transform in (cj.grad, cj.jit, cj.jacfwd, cj.make_jaxpr, lambda f: lambda x: cj.vjp(f, x)):
        error = provoked(lambda transform=transform: transform(outer)(X))
        assert [name for name in frames(error) if name != "<lambda>"] == ["outer", "inner"]
        assert "(test_frames_of_the_user_within_a_transformed_function_stay.<locals>.inner)" in error.where


def test_what_the_users_function_raises_passes_unchanged() -> None:
    raised = ZeroDivisionError("mine")

    def broken(x: Any) -> Any:
        raise raised

    for transform in (cj.grad, cj.jit, cj.vmap, cj.jacrev, cj.make_jaxpr):
        raised.__traceback__ = None
        error = provoked(lambda transform=transform: transform(broken)(X))
        assert error is raised
        assert frames(error) == ["<lambda>", "broken"]
        assert not hasattr(error, "__notes__")


def test_what_a_c_function_of_the_user_raises_is_not_blamed_on_the_kernel() -> None:
    for call in (lambda: cj.grad({}.__getitem__)(1.0), lambda: cj.jit([].index)(1.0), lambda: cj.tree.map({}.pop, [1]),
                 lambda: cj.vmap([].pop)(np.arange(3))):
        error = provoked(call)
        assert frames(error) == ["<lambda>"]
        assert not hasattr(error, "__notes__")


def test_a_function_of_numpy_leaves_no_frame_when_the_kernel_called_it() -> None:
    sizes = np.vectorize(abs)
    error = provoked(lambda: cj.jit(lambda x: sizes(x))(np.ones(2)))  # the user's own call of it
    assert ["<lambda>", "<lambda>"] == frames(error)[:2] and frames(error)[2].startswith("numpy:")
    error = provoked(lambda: cj.jit(sizes)(np.ones(2)))
    assert ["<lambda>"] == frames(error)
    error = provoked(lambda: cj.jit(lambda x: np.nditer(x))(np.ones((2, 2))))  # refused before NumPy runs it
    assert ["<lambda>", "<lambda>"] == frames(error)


def test_keyboard_interrupts_are_left_alone() -> None:
    def interrupted(x: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as caught:
        cj.grad(interrupted)(1.0)
    shown = [frame.f_globals["__name__"] for frame, _ in traceback.walk_tb(caught.value.__traceback__)]
    assert any(name.startswith("corejax.") for name in shown)


def test_filtering_can_be_turned_off() -> None:
    with config(traceback_filtering=False):
        error = provoked(lambda: lax.add(X, np.ones(4)))
        inner = provoked(lambda: cj.grad(lambda x: x)("a"))
    assert any(name.startswith("corejax:") for name in frames(error))
    assert isinstance(inner.__cause__, CorejaxTypeError)
    assert "corejax/" in everything(error)


def test_filtering_can_be_turned_off_in_the_environment() -> None:
    code = "import corejax as cj, numpy as np\ncj.lax.add(np.ones(3), np.ones(4))"
    for setting, shown in (("0", True), ("1", False)):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                              env={"COREJAX_TRACEBACK_FILTERING": setting, "PATH": ""})
        assert 'File "<string>", line 2' in done.stderr
        assert shown == ("corejax/" in done.stderr)


def test_each_line_of_a_comprehension_or_generator_stays() -> None:
    def user() -> Any:
        return sum(x for x in (lax.add(x, "a") for x in [X]))

    assert frames(provoked(user)) == ["user", "<genexpr>", "<genexpr>"]


def test_threads_of_the_user_show_the_same() -> None:
    found: list[Exception] = []
    thread = threading.Thread(target=lambda: found.append(provoked(lambda: X + cj.device_put(np.ones(4)))))
    thread.start()
    thread.join()
    assert frames(found[0]) == ["<lambda>"]


def test_functions_keep_their_signature_name_and_pickle() -> None:
    import inspect
    import pickle
    assert "argnums" in inspect.signature(cj.grad).parameters
    assert cj.grad.__name__ == "grad" and "gradient" in cj.grad.__doc__
    for function in (cj.grad, lax.add, lax.reshape, lax.full, cj.tree.map):
        assert pickle.loads(pickle.dumps(function)) is function


# Whose fault it is

@pytest.fixture
def faulty(monkeypatch: pytest.MonkeyPatch) -> Iterator[types.SimpleNamespace]:
    """Primitives of a pack `faulty_pack`, one of whose hooks fails by an error of its own."""
    source = textwrap.dedent("""
        import numpy as np
        from corejax import lax
        from corejax.plugin import define, hookimpl, public

        def helper():
            return 1 / 0

        class Base:
            @hookimpl
            def impl(self, args):
                return np.sin(args[0])
            @hookimpl
            def abstract_eval(self, avals):
                return avals[0]

        class BadImpl(Base):
            name = "bad_impl"
            @hookimpl
            def impl(self, args):
                return helper()

        class BadJvp(Base):
            name = "bad_jvp"
            @hookimpl
            def jvp(self, primals, tangents):
                return primals[0], lax.mul(tangents[0], np.linalg.inv(np.zeros((2, 2))))

        class BadKernelUse(Base):
            name = "bad_kernel_use"
            @hookimpl
            def vmap(self, axis, args, dims):
                return axis.sighs, dims[0]

        bad_impl, bad_jvp, bad_kernel_use = define(BadImpl()), define(BadJvp()), define(BadKernelUse())

        @public
        def bad_function(x):
            return {}[x]

        @public
        def calls_back(f, x):
            return f(x)

        @public
        def converts(x):
            try:
                np.broadcast_shapes((2,), (3,))
            except ValueError as error:
                raise TypeError("own words") from error
        """)
    module = types.ModuleType("faulty_pack")
    monkeypatch.setitem(sys.modules, "faulty_pack", module)
    monkeypatch.setitem(library_packages, "faulty_pack", "corejax-faulty 0.3")
    exec(compile(source, "/site-packages/faulty_pack/__init__.py", "exec"), module.__dict__)
    yield module


def test_a_fault_of_a_pack_keeps_the_packs_frames_and_says_so(faulty: Any) -> None:
    error = provoked(lambda: faulty.bad_impl(X))
    assert frames(error) == ["<lambda>", "faulty_pack:impl", "faulty_pack:helper"]
    hook, note = error.__notes__
    assert "raised by bad_impl.impl (defined in faulty_pack)" in hook
    assert "bug in corejax-faulty 0.3, not in your code" in note
    assert "/site-packages/faulty_pack/__init__.py:7 (helper)" in note
    assert "primitive 'bad_impl'" in note
    assert "traceback_filtering = False" in note


def test_a_fault_of_a_pack_is_noted_once_however_many_entries_it_passes(faulty: Any) -> None:
    def f(x: Any) -> Any:
        return faulty.calls_back(cj.jit(lambda x: cj.grad(faulty.bad_jvp)(x)), x)

    error = provoked(lambda: cj.vmap(f)(np.arange(3.0)))
    assert isinstance(error, np.linalg.LinAlgError)
    shown = [name for name in frames(error) if name != "<lambda>"]
    assert shown[:2] == ["f", "faulty_pack:jvp"]
    assert {name.partition(":")[0] for name in shown[2:]} == {"numpy"}  # what the hook called
    hook, note = error.__notes__
    assert "raised by bad_jvp.jvp (defined in faulty_pack)" in hook
    assert "bug in corejax-faulty 0.3" in note


def test_a_pack_that_uses_the_kernel_wrongly_is_shown(faulty: Any) -> None:
    error = provoked(lambda: cj.vmap(faulty.bad_kernel_use)(X))
    assert isinstance(error, AttributeError)
    assert frames(error) == ["<lambda>", "faulty_pack:vmap"]


def test_a_fault_in_a_function_of_a_pack_is_the_packs(faulty: Any) -> None:
    error = provoked(lambda: faulty.bad_function(3))
    assert frames(error) == ["<lambda>", "faulty_pack:bad_function"]
    assert "bug in corejax-faulty 0.3" in error.__notes__[0]


def test_a_fault_of_the_kernel_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from corejax.interpreters import forward
    monkeypatch.setattr(forward, "JVPTracer", None)
    error = provoked(lambda: cj.jvp(lambda x: x, (1.0,), (1.0,)))
    assert frames(error) == ["<lambda>"]
    (note,) = error.__notes__
    assert "bug in corejax, not in your code" in note
    assert "interpreters/forward.py:" in note


def test_a_plugin_written_in_the_users_script_is_the_users_code() -> None:
    class Mine:
        name = "mine"

        @hookimpl
        def abstract_eval(self, avals: Any) -> Any:
            return avals[0]

        @hookimpl
        def impl(self, args: Any) -> Any:
            return 1 / 0

    mine = define(Mine())
    error = provoked(lambda: mine(X))
    assert frames(error) == ["<lambda>", "impl"]
    (note,) = error.__notes__
    assert "raised by mine.impl (defined in test_tracebacks)" in note


def test_running_out_of_stack_is_nobodys_bug() -> None:
    def endless(x: Any) -> Any:
        return endless(lax.add(x, 1.0))

    error = provoked(lambda: endless(1.0))
    assert isinstance(error, RecursionError)
    assert not hasattr(error, "__notes__")
    assert {"<lambda>", "endless"} <= set(frames(error)) <= {"<lambda>", "endless", "corejax:function"}


# What lies beneath

@pytest.mark.parametrize("made", ["ctx.op('stablehlo.add', [args[0]])", "ctx.op('unheard.of', args)",
                                  "ctx.op('stablehlo.add', [None, 3])", "ctx.attribute('#stablehlo<')"])
def test_a_lowering_rule_that_makes_nonsense_is_named_without_the_compilers_words(faulty: Any, made: str) -> None:
    exec(compile(textwrap.dedent(f"""
        class BadLowering(Base):
            name = "bad_lowering"
            @hookimpl
            def xla_translation(self, ctx, args):
                return {made}
        bad_lowering = define(BadLowering())"""), "/site-packages/faulty_pack/__init__.py", "exec"), faulty.__dict__)

    def f(x: Any) -> Any:
        return faulty.bad_lowering(x)

    error = provoked(lambda: cj.jit(f)(X))
    assert isinstance(error, cj.errors.RuleError)
    assert (error.primitive, error.hook) == ("bad_lowering", "xla_translation")
    assert f"{HERE}:{f.__code__.co_firstlineno + 1} (" in error.where
    assert frames(error) == ["<lambda>"]
    assert not re.search("mlir|stablehlo|jaxlib", everything(error).replace("faulty", ""), re.IGNORECASE)
    with config(traceback_filtering=False):
        assert "faulty_pack" in everything(provoked(lambda: cj.jit(f)(X)))


def test_failures_of_compiler_and_runtime_are_told_in_own_words() -> None:
    own = "an error inside the compiler or the runtime"
    for text, shown in (("RESOURCE_EXHAUSTED: out of memory", "RESOURCE_EXHAUSTED: out of memory"),
                        ("INTERNAL: error: loc(unknown): 'stablehlo.add' op requires", own),
                        ("INTERNAL: Traceback (most recent call last)", own), ("", own)):
        for make in (failures.runtime_error, failures.refused_program):
            error = make(RuntimeError(text))
            assert shown == error.got
            assert error.where.startswith(str(Path(__file__)))
            assert "traceback_filtering" in error.todo


# Errors from errors

def test_an_error_made_from_another_of_ours_stands_alone() -> None:
    error = provoked(lambda: cj.grad(lambda x: x)("a"))
    assert error.__cause__ is None
    assert "direct cause" not in everything(error)
    assert "During handling" not in everything(error)


def test_no_lookup_error_of_the_kernel_shows_as_context() -> None:
    @public
    def refuses() -> None:
        def fails() -> None:
            raise CorejaxValueError("no")
        fails()

    def caller() -> None:
        try:
            {}["a"]  # the user's own handling
        except KeyError:
            refuses()

    error = provoked(caller)
    assert isinstance(error.__context__, KeyError)
    assert "During handling" in everything(error)  # as that is the user's code

    scope = {"__name__": "corejax.elsewhere", "error": CorejaxValueError("no"), "trim": trim}
    exec(compile(textwrap.dedent("""
        def entry():
            try:
                try:
                    {}["a"]
                except KeyError:
                    raise error
            except Exception as raised:
                trim(raised)
                raise"""), "<elsewhere>", "exec"), scope)  # a file of its own: whose "<string>" is, is remembered
    error = provoked(scope["entry"])
    assert "KeyError" not in everything(error)


def test_the_cause_of_a_broken_pack_is_kept() -> None:
    cause = ImportError("no module named abacus")

    @public
    def loads() -> None:
        raise cj.errors.PackError("the pack can't be imported") from cause

    assert "abacus" in everything(provoked(loads))


def test_loops_of_causes_are_cut() -> None:
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    trim(first)
    assert first.__cause__ is second
    assert second.__cause__ is None


def test_errors_that_do_not_say_where_learn_it() -> None:
    @public
    def refuses() -> None:
        raise CorejaxValueError("no")

    assert provoked(refuses).where.startswith(str(Path(__file__)))


# Arity

def test_a_function_called_with_the_wrong_arguments_is_named_with_its_signature() -> None:
    def model(weights: Any, x: Any) -> Any:
        return weights * x

    for transform in (cj.grad, cj.jit, cj.vmap, cj.jacfwd, cj.make_jaxpr, cj.value_and_grad):
        error = provoked(lambda transform=transform: transform(model)(np.arange(2.0)))
        assert isinstance(error, CorejaxTypeError)
        assert "missing 1 required positional argument: 'x'" in error.got
        assert "model(weights" in error.wanted
        assert frames(error) == ["<lambda>"]


def test_a_miscall_inside_the_users_function_is_the_users_own_error() -> None:
    def helper(x: Any, y: Any) -> Any:
        return x

    def f(x: Any) -> Any:
        return helper(x)

    error = provoked(lambda: cj.grad(f)(1.0))
    assert type(error) is TypeError
    assert frames(error) == ["<lambda>", "f"]


@pytest.mark.parametrize(("call", "reason", "got", "wanted"), [
    ("cj.grad()", "missing 1 required positional argument: 'fun'", "no positional arguments", "grad(fun, argnums=0, "),
    ("jnp.sin()", "missing 1 required positional argument: 'x'", "no positional arguments", "sin(x, /, out=None, "),
    ("jnp.add(1, 2, 3, 4, 5)", "takes from 2 to 4 positional arguments but 5 were given", "5 positional arguments",
     "add(x1, x2, /, "),
    ("jnp.sum(1.0, axes=0)", "got an unexpected keyword argument 'axes'", "1 positional argument, axes=...", "sum(a, "),
    ("jnp.add.reduce()", "missing 1 required positional argument: 'a'", "no positional arguments", "reduce(a, axis=0"),
    ("jnp.float32(1, 2)", "takes from 0 to 1 positional arguments but 2 were given", "2 positional arguments",
     "float32(x=0)"),
])
def test_arguments_that_a_public_function_does_not_have_are_told_with_its_signature(
        call: str, reason: str, got: str, wanted: str) -> None:
    error = provoked(lambda: eval(call, {"cj": cj, "jnp": cj.numpy}))
    assert isinstance(error, CorejaxTypeError)
    assert reason in str(error)
    assert got == error.got
    assert error.wanted.startswith(wanted)
    assert frames(error) == ["<lambda>", ":<module>"]


def test_a_misspelt_keyword_gets_a_hint() -> None:
    assert "did you mean 'axis'?" == provoked(lambda: cj.numpy.sum(1.0, axes=0)).todo


def test_a_type_error_inside_a_public_function_is_not_about_its_arguments() -> None:
    @public
    def calls(f: Any) -> Any:
        return f()

    def wants(x: Any) -> Any:
        return x

    assert type(provoked(lambda: calls(wants))) is TypeError


# Where

def test_an_equation_that_was_recorded_earlier_is_named_by_its_own_line() -> None:
    def f(x: Any) -> Any:
        y = x * 2.0
        return lax.reshape(unlinear(y), ())

    class Unlinear:
        name = "unlinear"

        @hookimpl
        def abstract_eval(self, avals: Any) -> Any:
            return avals[0]

        @hookimpl
        def impl(self, args: Any) -> Any:
            return np.sin(args[0])

    unlinear = define(Unlinear())
    line = f.__code__.co_firstlineno + 2
    closed = cj.make_jaxpr(f)(1.0)
    for call in (lambda: cj.grad(cj.core.jaxpr_as_fun(closed))(1.0), lambda: cj.grad(cj.jit(f))(1.0)):
        assert f"{HERE}:{line} (" in provoked(call).where


def test_wrong_results_of_hooks_say_where(faulty: Any) -> None:
    exec(compile(textwrap.dedent("""
        class BadResult(Base):
            name = "bad_result"
            @hookimpl
            def impl(self, args):
                return args[0][:1]
        bad_result = define(BadResult())"""), "/site-packages/faulty_pack/__init__.py", "exec"), faulty.__dict__)
    error = provoked(lambda: faulty.bad_result(X))
    assert isinstance(error, cj.errors.RuleError)
    assert f"{HERE}:" in error.where


def test_dtypes_that_are_none_say_where() -> None:
    for dtype in ("abacus", object, (X, X), {}, 3.5):
        error = provoked(lambda dtype=dtype: lax.full((2,), 0, dtype))
        assert isinstance(error, CorejaxTypeError)
        assert f"{HERE}:" in error.where


def test_what_callers_of_users_are_is_written_down() -> None:
    @calls_users
    def outer(fun: Any) -> Any:
        return lambda: fun()

    assert outer.__code__ in tracebacks._callers
    assert outer(len).__code__ in tracebacks._callers


def test_the_whole_text_of_an_error_is_short() -> None:
    code = "import corejax as cj\ndef loss(w): return cj.lax.dot(w, 'a')\ncj.jit(cj.grad(loss))(1.0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    lines = done.stderr.splitlines()
    assert [line for line in lines if line.startswith("  File")] == [
        '  File "<string>", line 3, in <module>', '  File "<string>", line 2, in loss']
    assert len([line for line in lines if line[:4].strip()]) <= 8, json.dumps(lines)  # newer Pythons quote the source
