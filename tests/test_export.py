"""Exported functions: called where they are loaded, refused where they can't be exported, and bytes that are wrong."""

from __future__ import annotations

import base64
import hashlib
import json
import pickle
import re
import subprocess
import sys
import threading
from collections import OrderedDict, defaultdict, namedtuple
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.core import ShapedArray
from corejax.errors import CorejaxError, CorejaxNotImplementedError, CorejaxTypeError, CorejaxValueError
from corejax.export import container, deserialize, export, register_namedtuple
from corejax.ir import parse_jaxpr
from corejax.plugin import Effect, define, hookimpl
from corejax.xla.cache import compile as compiling

X = np.array([0.5, -1.0, 2.0])
PARAMS = {"w": np.array([[1.0, -0.5, 0.25], [0.5, 2.0, 0.0]]), "n": np.array([1, 2], np.int32)}
BENEATH = re.compile(r"INVALID_ARGUMENT|NOT_FOUND|mlir|jaxlib\._|absl|deserialize module", re.IGNORECASE)


def model(params, x, *, scale):
    loop = lax.fori_loop(0, 3, lambda i, c: lax.sinh(c) * 0.5, x)
    return {"y": lax.tanh(params["w"] @ loop) * scale, "n": (params["n"] + 1, None)}


ARGS, SCALE = (PARAMS, X), {"scale": 2.0}
DATA = export(model, vjp_order=2)(*ARGS, **SCALE).serialize()
LOADED = deserialize(DATA)


def loss(f):
    return lambda w, x: (f({"w": w, "n": PARAMS["n"]}, x, scale=2.0)["y"] ** 2).sum()


def refusal(kind, function, *args, **kwargs):
    with pytest.raises(kind) as caught:
        function(*args, **kwargs)
    error = caught.value
    assert isinstance(error, CorejaxError) and None not in (error.got, error.wanted, error.where, error.todo)
    assert not BENEATH.search(str(error)), str(error)
    assert str(error.where).startswith(__file__), error.where
    return error


def close(wanted, got, rtol=1e-13):
    assert cj.tree.structure(wanted) == cj.tree.structure(got)
    for x, y in zip(cj.tree.leaves(wanted), cj.tree.leaves(got), strict=True):
        assert np.asarray(x).dtype == np.asarray(y).dtype
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=rtol)


# Calling

def test_a_loaded_function_computes_what_the_function_does():
    close(model(*ARGS, **SCALE), LOADED.call(*ARGS, **SCALE))


def test_a_loaded_function_is_called_within_programs_as_often_as_one_likes():
    def f(call):
        return lambda x: call(PARAMS, x * 2.0, scale=3.0)["y"] + call(PARAMS, x, scale=1.0)["y"]

    jitted = cj.jit(f(LOADED.call))
    close(cj.jit(f(model))(X), jitted(X))
    assert 1 == jitted.lower(X).as_text().count("func.func private @scan_body")


def test_functions_of_the_same_names_don_t_meet():
    def make(k):
        def helper(x):
            return x * k
        return lambda x: cj.jit(helper)(x) + 1.0

    loaded = [deserialize(export(make(k))(X).serialize()) for k in (2.0, 3.0)]
    own = make(5.0)
    got = cj.jit(lambda x: [f.call(x) for f in loaded] + [own(x)])(X)
    close([cj.lax.add(X * k, 1.0) for k in (2.0, 3.0, 5.0)], got)


def test_names_within_an_artifact_that_are_those_that_it_would_get_are_kept_apart():
    # `helper` is renamed to `helper_1`, as the program has a `helper`: which the artifact has too, for something else
    def helper(x):
        return x * 2.0

    def helper_1(x):
        return x * 3.0

    exported = export(lambda x: cj.jit(helper)(x) + cj.jit(helper_1)(x) * 10.0)(X)
    close(cj.device_put(X * 7.0 + X * 32.0), cj.jit(
        lambda x: cj.jit(lambda x: x * 7.0)(x) + deserialize(exported.serialize()).call(x))(X))
    for name in ("helper", "helper_1", "main"):
        def own(x):
            return x * 7.0
        own.__name__ = name
        close(cj.device_put(X * 7.0 + X * 32.0), cj.jit(lambda x, own=own: cj.jit(own)(x) + exported.call(x))(X))


def test_vmap_calls_it_slice_by_slice():
    xs = np.stack([X, X * 0.5, -X])
    wanted = np.stack([np.asarray(model(PARAMS, x, scale=2.0)["y"]) for x in xs])
    for f in (cj.vmap, lambda f: cj.jit(cj.vmap(f))):
        np.testing.assert_allclose(wanted, f(lambda x: LOADED.call(PARAMS, x, scale=2.0)["y"])(xs), rtol=1e-13)
    ws = np.stack([PARAMS["w"]] * 3, axis=2)
    got = cj.vmap(lambda w, x: LOADED.call({"w": w, "n": PARAMS["n"]}, x, scale=2.0)["y"], in_axes=(2, 0))(ws, xs)
    np.testing.assert_allclose(wanted, got, rtol=1e-13)


def test_reverse_mode_goes_as_far_as_it_was_exported():
    assert (2, 1, 0) == (LOADED.vjp_order, LOADED.vjp().vjp_order, LOADED.vjp().vjp().vjp_order)
    w = PARAMS["w"]
    wanted = cj.grad(loss(model), (0, 1))(w, X)
    for f in (cj.grad(loss(LOADED.call), (0, 1)), cj.jit(cj.grad(loss(LOADED.call), (0, 1)))):
        close(wanted, f(w, X), rtol=1e-12)

    def twice(f):
        return cj.grad(lambda x: (cj.grad(loss(f), 1)(w, x) ** 2).sum())

    close(twice(model)(X), twice(LOADED.call)(X), rtol=1e-11)
    error = refusal(CorejaxNotImplementedError, cj.grad(lambda x: (twice(LOADED.call)(x)).sum()), X)
    assert "vjp_order" in error.message


def test_gradients_of_a_loaded_function_are_batched():
    xs = np.stack([X, X * 0.5])
    grad = cj.grad(loss(LOADED.call), 1)
    close(cj.device_put(np.stack([np.asarray(cj.grad(loss(model), 1)(PARAMS["w"], x)) for x in xs])),
          cj.vmap(lambda x: grad(PARAMS["w"], x))(xs), rtol=1e-12)


def test_the_derivative_is_a_function_of_arguments_and_a_cotangent():
    backward = export(lambda x, n, *, k: x * k + n, vjp_order=1)(X, 3, k=2.0).vjp()
    (of_x, of_n), named = backward.call(X, 3, np.ones(3), k=2.0)
    np.testing.assert_array_equal([2.0] * 3, of_x)
    assert cj.float0 == of_n.dtype and X.sum() == named["k"]
    without_keywords = export(lambda x: x * x, vjp_order=1)(3.0).vjp()
    assert (8.0,) == without_keywords.call(4.0, 1.0)


def test_without_its_derivative_the_error_says_how_to_export_it():
    plain = deserialize(export(lambda x: x * x)(3.0).serialize())
    for f in (cj.grad(plain.call), cj.jit(cj.grad(plain.call)), lambda x: cj.jvp(plain.call, (x,), (1.0,))):
        error = refusal(CorejaxNotImplementedError, f, 2.0)
        assert "export it with vjp_order=1" in error.message
    assert "vjp_order=1" in refusal(CorejaxValueError, plain.vjp).todo
    assert 12.0 == cj.grad(lambda x: x * plain.call(cj.lax.stop_gradient(x)) + x * 8.0)(2.0)


def test_forward_mode_is_refused():
    assert "no rule for forward mode" in refusal(CorejaxTypeError, cj.jvp, lambda x: LOADED.call(PARAMS, x, scale=2.0),
                                                 (X,), (X,)).message


WRONG_CALLS = {
    "shape": (lambda f: f.call(PARAMS, X[:2], scale=2.0), "args[1]", "f64[2]", "f64[3]"),
    "dtype": (lambda f: f.call({**PARAMS, "n": np.ones(2)}, X, scale=2.0), "args[0]['n']", "f64[2]", "i32[2]"),
    "keyword": (lambda f: f.call(*ARGS), "(args, kwargs)[1]", "[]", "['scale']"),
    "container": (lambda f: f.call(tuple(PARAMS.values()), X, scale=2.0), "(args, kwargs)[0][0]", "tuple", "dict"),
    "no array": (lambda f: f.call(PARAMS, "x", scale=2.0), "args[1]", "'x'", "an array"),
    "traced": (lambda f: cj.jit(lambda x: f.call(PARAMS, x, scale=2.0))(X[:1]), "args[1]", "f64[1]", "f64[3]"),
}


@pytest.mark.parametrize("call, place, got, wanted", WRONG_CALLS.values(), ids=WRONG_CALLS)
def test_wrong_arguments_are_named(call, place, got, wanted):
    error = refusal(CorejaxTypeError, call, LOADED)
    assert place in error.message and got in str(error.got) and wanted in str(error.wanted)


# What it says of itself

def test_an_exported_function_knows_its_types_structures_and_platforms():
    jitted = cj.jit(model).trace(*ARGS, **SCALE)
    for exported in (export(cj.jit(model))(*ARGS, **SCALE), LOADED):
        assert ("model", ("cpu",)) == (exported.fun_name, exported.platforms)
        assert (jitted.in_tree, jitted.out_tree) == (exported.in_tree, exported.out_tree)
        assert (jitted.in_avals, jitted.out_avals) == (list(exported.in_avals), list(exported.out_avals))
        assert (jitted.args_info, jitted.out_info) == (exported.args_info, exported.out_info)
        assert "Exported(model: (i32[2], f64[2,3], f64[3], ~f64[]) -> (i32[2], f64[2]), for cpu)" == repr(exported)
        assert "func.func public @main" in exported.as_text() and "chlo." not in exported.as_text()
        assert re.fullmatch(r"\d+\.\d+\.\d+", exported.stablehlo_version)
        assert exported.portable_artifact().startswith(b"ML\xefR\rStableHLO_v")


def test_types_are_enough_to_export():
    exported = export(lambda x: x.sum())(cj.ShapeDtypeStruct((4,), "float32"))
    assert 4.0 == exported.call(np.ones(4, np.float32)) and "float32" == exported.call(np.ones(4, np.float32)).dtype


def test_static_arguments_become_part_of_the_program():
    exported = export(cj.jit(lambda x, n: x ** n, static_argnums=1))(X, 3)
    np.testing.assert_array_equal(X ** 3, exported.call(X))


def test_constants_become_part_of_the_program_whatever_their_size():
    large = np.arange(200.0)
    data = export(lambda x: x + large)(1.0).serialize()
    large[:] = 0.0
    np.testing.assert_array_equal(1.0 + np.arange(200.0), deserialize(data).call(1.0))


def test_arguments_that_nothing_uses_stay():
    exported = export(lambda x, unused: x)(X, 1.0)
    assert 2 == len(exported.in_avals)
    np.testing.assert_array_equal(X, exported.call(X, 2.0))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "uint64", "float16", "bfloat16", "float32",
                                   "complex64", "complex128", "float8_e4m3fn", "float0"])
def test_arrays_of_every_dtype_come_and_go(dtype):
    aval = ShapedArray((2,), cj.float0 if dtype == "float0" else dtype)
    x = np.zeros(2, aval.dtype) if dtype == "float0" else np.array([1, 0]).astype(aval.dtype)
    exported = deserialize(export(lambda x: {"x": x, "y": lax.add(X, 1.0)})(x).serialize())
    assert (aval,) == exported.in_avals
    out = exported.call(x)["x"]
    assert aval.dtype == out.dtype
    assert dtype == "float0" or np.asarray(out).tobytes() == x.tobytes()


def test_weak_types_are_kept():
    exported = deserialize(export(lambda x: (x, x * np.float32(1)))(2.0).serialize())
    weak, strong = exported.call(3.0)
    assert (True, False) == (weak.aval.weak_type, strong.aval.weak_type)
    assert "float32" == strong.dtype


def test_an_exported_function_is_pickled_as_its_bytes():
    again = pickle.loads(pickle.dumps(LOADED))
    assert DATA == again.serialize()
    close(LOADED.call(*ARGS, **SCALE), again.call(*ARGS, **SCALE))


def test_bytes_are_the_same_for_the_same_function():
    assert DATA == LOADED.serialize() == export(model, vjp_order=2)(*ARGS, **SCALE).serialize()


def test_another_process_without_the_source_runs_it(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(DATA)
    code = f"""
import numpy as np, corejax as cj, pathlib
f = cj.export.deserialize(pathlib.Path({str(path)!r}).read_bytes())
params = dict(w=np.array({PARAMS['w'].tolist()}), n=np.array([1, 2], np.int32))
print(cj.jit(cj.grad(lambda x: f.call(params, x, scale=2.0)["y"].sum()))(np.array({X.tolist()})).tolist())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    wanted = cj.grad(lambda x: model(PARAMS, x, scale=2.0)["y"].sum())(X)
    np.testing.assert_allclose(wanted, json.loads(done.stdout), rtol=1e-12)


def test_importing_corejax_doesn_t_load_what_only_export_needs():
    code = ("import sys, corejax as cj; before = 'corejax.export' in sys.modules, 'hashlib' in sys.modules; "
            "cj.export.export; print(before, 'corejax.export' in sys.modules)")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "(False, False) True" == done.stdout.strip()


def test_many_threads_load_and_call():
    failures = []

    def work(k):
        try:
            f = deserialize(DATA)
            for i in range(5):
                close(LOADED.call(PARAMS, X + k, scale=float(i)), cj.jit(f.call)(PARAMS, X + k, scale=float(i)))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [] == failures


# Pytrees

class Point(NamedTuple):
    x: object
    y: object


def test_closed_containers_come_back_as_they_were():
    register_namedtuple(Point, "tests.Point")
    tree = OrderedDict(b=[X, (None, {"k": X, "a": ()})], a=Point(X, {3: 1.0, 1: X}))
    exported = deserialize(export(lambda tree: (tree, [tree["a"]]))(tree).serialize())
    assert cj.tree.structure(((tree,), {})) == exported.in_tree
    out, (point,) = exported.call(tree)
    assert type(out) is OrderedDict and ["b", "a"] == list(out) and type(point) is Point
    close(tree, cj.tree.map(np.asarray, out))


def test_other_containers_are_refused_with_their_place():
    @cj.tree.register_node_class
    class Box:
        def __init__(self, x):
            self.x = x

        def tree_flatten(self):
            return (self.x,), None

        @classmethod
        def tree_unflatten(cls, static, children):
            return cls(*children)

    Unknown = namedtuple("Unknown", "x")
    for make, place, name, todo in (
            (lambda: Box(X), "(args, kwargs)[0][0]['a']", "Box", "make it a dict"),
            (lambda: defaultdict(list, k=X), "(args, kwargs)[0][0]['a']", "defaultdict", "make it a dict"),
            (lambda: Unknown(X), "(args, kwargs)[0][0]['a']", "Unknown", "register_namedtuple(Unknown")):
        error = refusal(CorejaxTypeError, export(lambda tree: 1.0), {"a": make()})
        assert place in error.message and name in error.got and todo in error.todo
        error = refusal(CorejaxTypeError, export(lambda x, make=make: [make()]), X)
        assert "the result[0]" in error.message
    error = refusal(CorejaxTypeError, export(lambda tree: 1.0), {1.5: X})
    assert "1.5" in error.got and "key" in error.message


def test_names_of_namedtuples_are_unique():
    one, other = namedtuple("One", "x"), namedtuple("Other", "x")
    assert one is register_namedtuple(one, "tests.One") is register_namedtuple(one, "tests.One")
    refusal(CorejaxValueError, register_namedtuple, other, "tests.One")
    refusal(CorejaxValueError, register_namedtuple, one, "tests.Another")
    with pytest.raises(CorejaxTypeError, match="only namedtuples"):
        register_namedtuple(dict, "tests.dict")
    with pytest.raises(CorejaxTypeError, match="under a name"):
        register_namedtuple(other, 3)


def test_a_namedtuple_that_is_not_known_where_it_is_loaded_is_named():
    cls = namedtuple("Far", "x y")
    register_namedtuple(cls, "tests.Far")
    data = export(lambda p: p.x)(cls(X, X)).serialize()
    code = """
import sys, collections, corejax as cj
data = sys.stdin.buffer.read()
for fields in (None, "x z"):
    if fields:
        cj.export.register_namedtuple(collections.namedtuple("Far", fields), "tests.Far")
    try:
        cj.export.deserialize(data)
    except TypeError as error:
        print(error.message, "|", error.wanted, "|", error.todo)
"""
    done = subprocess.run([sys.executable, "-c", code], input=data, capture_output=True, check=True)
    unknown, others = done.stdout.decode().splitlines()
    assert "'tests.Far'" in unknown and "('x', 'y')" in unknown and "register_namedtuple" in unknown
    assert "different fields" in others and "('x', 'y')" in others


# What can't be exported

class Noise:
    """Has no lowering: compiled programs call back into Python."""

    name = "noise"

    @hookimpl
    def abstract_eval(self, avals):
        return avals[0]

    @hookimpl
    def impl(self, args):
        return args[0] + 1.0


class Elsewhere:
    """Lowers to a call of a function of the runtime."""

    name = "elsewhere"

    @hookimpl
    def abstract_eval(self, avals):
        return avals[0]

    @hookimpl
    def xla_translation(self, ctx, args):
        return ctx.custom_call("tests_elsewhere", args)[0]


SHOUTING = Effect("shouting")


class Shouts(Noise):
    name = "shouts"

    @hookimpl
    def effects(self, avals):
        return frozenset({SHOUTING})


noise, elsewhere, shouts = define(Noise()), define(Elsewhere()), define(Shouts())


@pytest.mark.filterwarnings("ignore::corejax.errors.CorejaxWarning")
def test_a_program_that_calls_back_into_python_is_refused_by_primitive():
    error = refusal(CorejaxTypeError, export(lambda x: lax.fori_loop(0, 3, lambda i, c: noise(c), x)), X)
    assert "noise" in error.got and "Python function" in error.got and "xla_translation" in error.todo


def test_a_program_with_effects_is_refused():
    error = refusal(CorejaxValueError, export(lambda x: shouts(x)), X)
    assert "shouting" in error.got and "effect" in error.message


def test_calls_of_the_runtime_that_may_not_be_elsewhere_are_refused_at_both_ends():
    f = export(lambda x: lax.cond(x[0] > 0.0, lambda: elsewhere(x), lambda: x))
    error = refusal(CorejaxTypeError, f, X)
    assert "elsewhere" in error.got and "'tests_elsewhere'" in error.got and "allow_custom_calls" in error.todo
    data = export(elsewhere, allow_custom_calls=["tests_elsewhere"])(X).serialize()
    error = refusal(CorejaxValueError, deserialize, data)
    assert "tests_elsewhere" == error.got and "allow_custom_calls" in error.todo
    assert (ShapedArray((3,), "float64"),) == deserialize(data, allow_custom_calls=["tests_elsewhere"]).in_avals


def test_a_function_that_closes_over_a_traced_value_is_refused():
    with pytest.raises(CorejaxError, match="leak|traced|tracer"):
        cj.jit(lambda x: export(lambda y: y * x)(1.0).call(2.0))(X)


NONSENSE = {
    "no function": lambda: export(3),
    "order": lambda: export(lax.sin, vjp_order=-1),
    "order of another type": lambda: export(lax.sin, vjp_order=True),
    "platform": lambda: export(lax.sin, platforms=("gpu",)),
    "platform in capitals": lambda: export(lax.sin, platforms="CPU"),
    "platform of another type": lambda: export(lax.sin, platforms=(3,)),
    "no platform": lambda: export(lax.sin, platforms=()),
    "platform twice": lambda: export(lax.sin, platforms=("cpu", "cpu")),
    "calls": lambda: export(lax.sin, allow_custom_calls="one"),
    "calls of another type": lambda: deserialize(DATA, allow_custom_calls=[1]),
    "arguments": lambda: export(lax.sin)("a"),
    "data": lambda: deserialize("text"),
    "another platform's program": lambda: LOADED.portable_artifact("tpu"),
}


@pytest.mark.parametrize("call", NONSENSE.values(), ids=NONSENSE)
def test_nonsense_is_refused(call):
    with pytest.raises(CorejaxError) as caught:
        call()
    assert str(caught.value.where).startswith(__file__) and caught.value.wanted is not None


# Platforms

def test_one_program_serves_the_platforms_for_which_it_is_the_same():
    exported = deserialize(export(model, platforms=("cpu", "cuda"))(*ARGS, **SCALE).serialize())
    assert ("cpu", "cuda") == exported.platforms
    assert exported.portable_artifact("cpu") == exported.portable_artifact("cuda")
    close(model(*ARGS, **SCALE), exported.call(*ARGS, **SCALE))
    assert "func.func private" in cj.jit(exported.call).trace(*ARGS, **SCALE).lower("cuda").as_text()


def test_a_program_for_other_platforms_is_refused_here():
    exported = deserialize(export(lax.sin, platforms=("cuda", "tpu"))(X).serialize())
    error = refusal(CorejaxValueError, exported.call, X)
    assert ("cpu", "cuda or tpu") == (error.got, error.wanted) and "sin was not exported for cpu" in error.message
    assert "platforms=('cpu', ...)" in error.todo


# Bytes

PREFIX = container._PREFIX


def resealed(change):
    """The bytes with another description, of the right length and digest: what a foreign writer might write."""
    _, version, _, n_text = PREFIX.unpack_from(DATA)
    description = json.loads(DATA[PREFIX.size: PREFIX.size + n_text])
    modules = DATA[PREFIX.size + n_text: -32]
    changed = change(description)
    text = json.dumps(description if changed is None else changed).encode()
    body = text + modules
    whole = PREFIX.pack(container._MARK, version, PREFIX.size + len(body) + 32, len(text)) + body
    return whole + hashlib.sha256(whole).digest()


def test_resealed_bytes_load_if_nothing_is_changed():
    close(LOADED.call(*ARGS, **SCALE), deserialize(resealed(lambda description: None)).call(*ARGS, **SCALE))


def test_bytes_that_end_early_are_cut_off():
    for n in (*range(PREFIX.size + 2), 100, len(DATA) // 2, len(DATA) - 33, len(DATA) - 1):
        error = refusal(CorejaxValueError, deserialize, DATA[:n])
        assert "truncated" in error.message and f"{n} bytes" == error.got


def test_any_other_byte_is_noticed():
    rng = np.random.default_rng(0)
    places = [*range(PREFIX.size), *rng.integers(PREFIX.size, len(DATA), 60).tolist(), len(DATA) - 1]
    for at in places:
        changed = bytearray(DATA)
        changed[at] ^= 1 << int(rng.integers(8))
        assert re.search("damaged|truncated|not an exported|different format",
                         refusal(CorejaxValueError, deserialize, bytes(changed)).message)
    assert "damaged" in refusal(CorejaxValueError, deserialize, DATA + b"\0").message


def test_two_halves_of_different_files_are_damaged():
    other = export(model, vjp_order=2)(PARAMS, X, scale=np.float32(2.0)).serialize()
    n = min(len(other), len(DATA)) // 2
    assert re.search("damaged|truncated", refusal(CorejaxValueError, deserialize, DATA[:n] + other[n:]).message)


FOREIGN = {
    "nothing of ours": b"PK\x03\x04 and so on", "text": b"module {}", "a portable artifact": LOADED.portable_artifact(),
    "pickle": pickle.dumps([1, 2]), "with other line ends": DATA.replace(b"\r\n", b"\n"),
    "decoded as text": DATA.decode("latin-1").encode("utf-8"),
}


@pytest.mark.parametrize("data", FOREIGN.values(), ids=FOREIGN)
def test_bytes_of_others_are_not_an_exported_function(data):
    error = refusal(CorejaxValueError, deserialize, data)
    assert "are not an exported function of corejax" in error.message
    assert ("binary mode" in error.todo) == (data in (FOREIGN["with other line ends"], FOREIGN["decoded as text"]))


def test_another_version_of_the_format_says_what_to_install():
    changed = bytearray(DATA)
    changed[8] = 2
    error = refusal(CorejaxValueError, deserialize, bytes(changed))
    assert ("format 2", "format 1", "install a newer corejax") == (error.got, error.wanted, error.todo)


def of_first(**fields):
    return lambda description: description["functions"][0].update(fields)


def deep(description):
    tree = "*"
    for _ in range(100_000):
        tree = ["list", tree]
    description["functions"][0]["in_tree"] = tree


DESCRIPTIONS = {
    "no functions": lambda d: {"functions": []},
    "a list": lambda d: [1],
    "a number": lambda d: 3,
    "functions of another type": lambda d: {"functions": 3},
    "a function of another type": lambda d: {"functions": ["f"]},
    "a name of another type": of_first(name=3),
    "no name": lambda d: d["functions"][0].pop("name") and None,
    "a tree of another kind": of_first(in_tree=["set", "*"]),
    "a tree of another size": of_first(out_tree="*"),
    "a class's name for a tree": of_first(in_tree=["builtins.eval", "*"]),
    "a key that is no key": of_first(out_tree=["dict", [["a"], "*"], ["b", "*"]]),
    "a key twice": of_first(out_tree=["dict", ["a", "*"], ["a", "*"]]),
    "a namedtuple without a name": of_first(out_tree=["namedtuple"]),
    "a dtype that isn't": of_first(out_avals=[["f65", [2], False], ["f64", [2], False]]),
    "a shape that isn't": of_first(out_avals=[["i32", [-2], False], ["f64", [2], False]]),
    "a shape that is no list": of_first(out_avals=[["i32", 2, False], ["f64", [2], False]]),
    "a shape that is too large": of_first(out_avals=[["i32", [2 ** 40, 2 ** 40], False], ["f64", [2], False]]),
    "a size that is a bool": of_first(out_avals=[["i32", [True], False], ["f64", [2], False]]),
    "a weak type that isn't": of_first(out_avals=[["i32", [2], 0], ["f64", [2], False]]),
    "an aval too short": of_first(out_avals=[["i32"], ["f64", [2], False]]),
    "a module too many": of_first(modules=[[["cpu"], 10], [["cpu"], 10 ** 9]]),
    "a module of no size": of_first(modules=[[["cpu"], 0]]),
    "a module of a negative size": of_first(modules=[[["cpu"], -5]]),
    "no module": of_first(modules=[]),
    "a platform of another type": of_first(modules=[[[3], 10]]),
    "modules left over": lambda d: {"functions": d["functions"][:1]},
}


@pytest.mark.parametrize("change", DESCRIPTIONS.values(), ids=DESCRIPTIONS)
def test_a_description_that_is_none_is_refused(change):
    error = refusal(CorejaxValueError, deserialize, resealed(change))
    assert re.search("don't describe an exported function|not what its description says|can't be read", error.message)


def test_a_description_that_is_too_deep_is_refused():
    text = b'{"functions":[' + b"[" * 200_000 + b"]" * 200_000 + b"]}"
    whole = PREFIX.pack(container._MARK, 1, PREFIX.size + len(text) + 32, len(text)) + text
    assert "don't describe" in refusal(CorejaxValueError, deserialize, whole + hashlib.sha256(whole).digest()).message


def test_types_that_are_not_the_programs_are_refused():
    change = of_first(out_avals=[["i32", [2], False], ["f32", [2], False]])
    error = refusal(CorejaxValueError, deserialize, resealed(change))
    assert "is not what its description says" in error.message
    assert ("i32[2], f64[2]", "i32[2], f32[2]") == (error.got, error.wanted)


@pytest.mark.parametrize("damage, got", [(lambda m: b"module {}".ljust(len(m)), "StableHLO"),
                                         (lambda m: m[:200].ljust(len(m), b"\0"), r"StableHLO \d"),
                                         (lambda m: re.sub(rb"v(\d+)\.(\d+)\.(\d+)", rb"v9.9.9", m).ljust(len(m)),
                                          "StableHLO 9.9.9")], ids=["text", "cut", "of the future"])
def test_a_module_that_can_t_be_read_is_refused_quietly(damage, got, capfd):
    _, version, total, n_text = PREFIX.unpack_from(DATA)
    module = LOADED.portable_artifact()
    at = DATA.index(module)
    whole = (DATA[:at] + damage(module)[: len(module)] + DATA[at + len(module):])[:-32]
    error = refusal(CorejaxValueError, deserialize, whole + hashlib.sha256(whole).digest())
    assert "can't be read" in error.message and re.match(got, error.got)
    assert ("newer" in error.todo) == ("9.9.9" in got)
    assert ("", "") == tuple(capfd.readouterr())


# A file that an earlier release wrote

KEPT = Path(__file__).parent / "exported" / "model_1.txt"


def test_a_file_of_the_first_format_still_loads():
    exported = deserialize(base64.b64decode(KEPT.read_text()))
    assert 1 == exported.vjp_order
    close(model(*ARGS, **SCALE), exported.call(*ARGS, **SCALE))
    close(cj.grad(loss(model), 1)(PARAMS["w"], X), cj.grad(loss(exported.call), 1)(PARAMS["w"], X), rtol=1e-12)


# The primitive that calls it

def test_a_call_prints_with_the_functions_name_and_is_not_parsed():
    exported = export(lax.sin)(X)
    text = str(cj.make_jaxpr(exported.call)(X))
    assert "exported_call[name='sin' program=<opaque>] a" in text
    with pytest.raises(CorejaxError, match="opaque"):
        parse_jaxpr(text)


def test_equal_programs_compile_once_and_others_do_not(monkeypatch):
    data = [export(f)(X).serialize() for f in (lambda x: x * 2.0, lambda x: x * 3.0)]
    first, again, other = (deserialize(each).call for each in (data[0], data[0], data[1]))
    compiled = []
    compile_lowered = compiling.compile_lowered
    monkeypatch.setattr(compiling, "compile_lowered", lambda *args: compiled.append(args) or compile_lowered(*args))
    for call in (first, again, other):
        cj.jit(lambda x, call=call: call(x) + 0.125)(X)
    assert 2 == len(compiled)


@pytest.mark.parametrize("program", [3, None])
def test_the_primitive_takes_exported_programs_only(program):
    error = refusal(CorejaxTypeError, lambda: lax.exported_call(X, program=program))
    assert "cj.export" in error.wanted and "exported_call" == error.primitive
