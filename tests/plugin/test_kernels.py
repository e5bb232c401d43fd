"""Native kernels of packs: registered when a program needs them, refused by name, in this process and the next."""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from corejax.errors import CorejaxTypeError
from corejax.plugin import Kernel

#: A primitive that calls the kernel `PACK.twice`.
PRIMITIVE = """
from corejax.plugin import define, hookimpl

class Twice:
    name = "twice"

    @hookimpl
    def abstract_eval(self, avals):
        return avals[0]

    @hookimpl
    def xla_translation(self, ctx, args):
        return ctx.custom_call("{pack}.twice", args)[0]

twice = define(Twice())
"""
STANDARD = ["corejax-lax-basic", "corejax-reductions", "corejax-control-flow", "corejax-sorting"]
KERNEL = "from tests.plugin.ffi import times\ntwice = times(2.0)\n"

PRELUDE = """
    import corejax as cj
    from corejax.base import _jaxlib
    warned = []
    warnings.showwarning = lambda message, *rest: warned.append(str(message))
    x = np.arange(3.0)
"""


def pack(site: Any, name: str = "twice-pack", kernels: dict[str, str] | None = None, module: str = KERNEL) -> None:
    """A pack with the primitive `twice` and its kernel, each in a module of its own."""
    root = name.replace("-", "_")
    site.names += STANDARD
    site.pack(name, {"primitives": {"twice": f"{root}:twice"},
                     "kernels": {f"{name}.twice": f"{root}_native:twice"} if kernels is None else kernels},
              {root: PRIMITIVE.format(pack=name), f"{root}_native": module})


def run(site: Any, code: str, **environment: str) -> list[str]:
    out: str = site.run(textwrap.dedent(PRELUDE) + textwrap.dedent(code), **environment)
    return out.splitlines()


# When they are registered

def test_a_kernel_is_loaded_when_a_program_that_calls_it_is_compiled(site):
    pack(site)
    assert ["False False", "[0. 2. 4.] True", "[0. 4. 8.] [[0. 2. 4.] [0. 2. 4.]]", "[]"] == run(site, """
        lowered = cj.jit(lax.twice).lower(x)
        cj.jit(lambda x: x)(x)
        print("twice_pack_native" in sys.modules, "twice-pack.twice" in _jaxlib.registered_functions("cpu"))
        print(lowered.compile()(x), "twice-pack.twice" in _jaxlib.registered_functions("cpu"))
        rows = cj.vmap(lax.twice)(np.stack([x, x]))
        print(cj.jit(lambda x: lax.twice(lax.twice(x)))(x), str(np.asarray(rows)).replace("\\n", ""))
        print([said for said in warned if "no vmap rule" not in said])""")


def test_calls_that_a_rule_makes_by_the_bindings_are_found_too(site):
    own = "attributes = {'call_target_name': ctx.ir.StringAttr.get('twice-pack.twice'), " \
          "'api_version': ctx.ir.IntegerAttr.get(ctx.ir.IntegerType.get_signless(32), 4)}; " \
          "return ctx.ir.Operation.create('stablehlo.custom_call', ctx.out_types, args, attributes).result"
    pack(site)
    path = site.folder / "twice_pack.py"
    path.write_text(path.read_text().replace("return ctx.custom_call(\"twice-pack.twice\", args)[0]", own))
    assert ["[0. 2. 4.]"] == run(site, "print(lax.twice(x))")


def test_an_exported_program_and_one_of_the_cache_find_it_in_a_new_process(site, tmp_path):
    pack(site)
    code = f"""
        count, compile_module = [], _jaxlib.compile_module
        _jaxlib.compile_module = lambda *args: count.append(1) or compile_module(*args)
        path = {str(tmp_path / "program")!r}
        f = cj.jit(lambda x: lax.twice(x) + 1.0)
    """
    cache = {"COREJAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache")}
    assert ["[1. 3. 5.] 1", "('twice-pack.twice',)"] == run(site, code + """
        print(f(x), len(count))
        exported = cj.export.export(f)(x)
        open(path, "wb").write(exported.serialize())
        print(exported.custom_calls)""", **cache)
    assert ["[1. 3. 5.] 0 []", "False", "[1. 3. 5.]"] == run(site, code + """
        print(f(x), len(count), warned)
        print("twice-pack" in str(warned))
        print(cj.export.deserialize(open(path, "rb").read()).call(x))""", **cache)
    assert ["False", "[1. 3. 5.] True"] == run(site, code + """
        loaded = cj.export.deserialize(open(path, "rb").read())
        print("twice_pack_native" in sys.modules)
        print(loaded.call(x), "twice_pack_native" in sys.modules)""")
    without = code + """
        data = open(path, "rb").read()
        print(error(lambda: cj.export.deserialize(data)))
        allowed = cj.export.deserialize(data, allow_custom_calls=["twice-pack.twice"])
        print(error(lambda: allowed.call(x)))
        print(warned)"""
    said = run(site, without, COREJAX_PACKS=",".join(STANDARD), **cache)
    assert said[0].endswith("the exported program <lambda> needs the kernel 'twice-pack.twice', which is missing")
    assert 2 == said.count("  to do:  allow twice-pack there")
    assert "[]" == said[-1]
    for path in site.folder.glob("*.dist-info"):
        shutil.rmtree(path)
    said = run(site, without.replace("print(error(lambda: allowed.call(x)))", """
        from corejax.xla.runtime import kernels
        print(kernels.missing("twice-pack.twice", "cpu"))"""), COREJAX_PACKS="none")
    assert 2 == said.count("  to do:  pip install twice-pack")
    missing = "needs the kernel 'twice-pack.twice', which is missing: no installed pack provides it"
    assert 2 == sum(line.endswith(missing) for line in said)


def test_jaxlibs_own_functions_are_there_without_a_pack(site, tmp_path):
    code = f"""
        class Cholesky:
            name, multiple_results = "cholesky", True
            @hookimpl
            def abstract_eval(self, avals):
                return avals[0], avals[0].update(shape=(), dtype=np.dtype("int32"))
            @hookimpl
            def xla_translation(self, ctx, args):
                return ctx.custom_call("lapack_dpotrf_ffi", args, backend_config={{"uplo": np.uint8(ord("L"))}},
                                       operand_layouts="column", result_layouts="column", aliases={{0: 0}})
        path, a = {str(tmp_path / "cholesky")!r}, np.array([[4.0, 2.0], [2.0, 5.0]])
    """
    assert ["[[2.0, 2.0], [1.0, 2.0]]"] == run(site, code + """
        cholesky = define(Cholesky())
        open(path, "wb").write(cj.export.export(lambda x: cholesky(x)[0])(a).serialize())
        print(cholesky(a)[0].tolist())""")
    assert ["[[2.0, 2.0], [1.0, 2.0]]"] == run(site, code + """
        print(cj.export.deserialize(open(path, "rb").read()).call(a).tolist())""", COREJAX_PACKS="corejax-control-flow")


def test_threads_that_compile_at_once_register_it_once(site):
    pack(site)
    assert ["16 1 []"] == run(site, """
        import threading
        made, register = [], _jaxlib.register_function
        _jaxlib.register_function = lambda *args: made.append(args[0]) or register(*args)
        results, wrong, start = [], [], threading.Barrier(16)
        def work(i):
            start.wait()
            try:
                results.append(float(cj.jit(lambda x: lax.twice(x) + float(i))(np.float64(i))) == 3.0 * i)
            except BaseException as error:
                wrong.append(error)
        threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(sum(results), len(made), wrong)""")


# Two of one name

def test_another_function_of_that_name_is_refused_before_the_runtime_sees_it(site):
    pack(site)
    said = run(site, """
        from tests.plugin.ffi import times
        cj.devices()
        _jaxlib.register_function("twice-pack.twice", times(3.0), "cpu")
        print(error(lambda: lax.twice(x)))
        print(cj.jit(lambda x: x + 1.0)(x))""")
    assert "PackError: the kernel 'twice-pack.twice' of twice-pack 1.0 can't be registered: the runtime already has " \
           "another function of that name" == said[0]
    assert said[1].startswith("  got:    a function ") and said[1].endswith(", registered without corejax")
    assert "[1. 2. 3.]" == said[-1]


def test_the_same_function_may_be_registered_by_its_pack_as_well(site):
    pack(site, module=KERNEL + "import jaxlib.xla_client\njaxlib.xla_client.register_custom_call_target("
                               "'twice-pack.twice', twice, platform='cpu', api_version=1)\n")
    assert ["[0. 2. 4.]"] == run(site, "print(lax.twice(x))")


def test_a_kernel_named_after_another_pack_is_not_used_and_both_are_named(site):
    pack(site)
    site.pack("thrice-pack", {"kernels": {"twice-pack.twice": "thrice:twice", "no-pack.twice": "thrice:twice"}},
              {"thrice": KERNEL.replace("2.0", "3.0")})
    said = run(site, """
        print(lax.twice(x))
        print(warned)
        from corejax.xla.runtime import kernels
        print(error(lambda: kernels.provides("no-pack.twice", "cpu")))""")
    assert ["[0. 2. 4.]", "[\"the kernel 'twice-pack.twice' of thrice-pack 1.0 is not used: it is named after "
            "twice-pack 1.0, which provides it\"]"] == said[:2]
    assert "PackError: thrice-pack 1.0: the kernel 'no-pack.twice' is named after another distribution, no-pack" == \
        said[2]


def test_two_lines_for_one_kernel_of_a_pack_are_an_error_that_names_both(site):
    site.pack("twice-pack", "[corejax.primitives]\ntwice = twice_pack:twice\n[corejax.kernels]\n"
              "twice-pack.twice = native:twice\ntwice-pack.twice = native:other\n",
              {"twice_pack": PRIMITIVE.format(pack="twice-pack"), "native": KERNEL + "other = twice\n"})
    said = run(site, "print(error(lambda: lax.twice(x)))")
    assert "PackError: the kernel 'twice-pack.twice' is provided more than once" == said[0]
    assert "  got:    twice-pack 1.0 (native:other); twice-pack 1.0 (native:twice)" == said[1]


# Platforms

def test_a_kernel_for_another_platform_is_not_one_for_this(site):
    pack(site, kernels={"twice-pack.twice@cuda": "twice_pack_native:twice"})
    said = run(site, "print(error(lambda: lax.twice(x)))")
    assert "PackError: twice (twice-pack 1.0) needs the kernel 'twice-pack.twice', which is not available for cpu" == \
        said[0]
    assert "  got:    twice-pack 1.0, which provides it for cuda" == said[1]


def test_a_program_is_exported_for_the_platforms_that_its_kernels_are_for(site):
    pack(site)
    said = run(site, """
        print(error(lambda: cj.export.export(lax.twice, platforms=("cpu", "cuda"))(x)))
        from corejax.xla.runtime import client, kernels
        class Place:
            compiler, platform, backend, device = "cuda", "gpu", "toy", "gpu:0"
        registry.installed()._groups[groups.KERNELS]["twice-pack.twice@cuda"] = [
            manifest.Entry(groups.KERNELS, "twice-pack.twice@cuda", "twice_pack_native", "twice",
                           registry.installed().packs["twice-pack"])]
        print(cj.export.export(lax.twice, platforms=("cpu", "cuda"))(x).platforms)
        print(error(lambda: kernels.register(["twice-pack.twice"], Place())))""")
    assert "PackError: twice (twice-pack 1.0) needs the kernel 'twice-pack.twice', which is not available for cuda" == \
        said[0]
    assert "('cpu', 'cuda')" in said
    assert "PackError: the kernel 'twice-pack.twice' of twice-pack 1.0 can't be used on cuda" in said


# What can be wrong

HERE = Path(__file__)
LIBRARY = Path(sys.modules["_ctypes"].__file__ or "")

#: What an entry point leads to, and what the error says: its end, and what it got.
WRONG: dict[str, tuple[str, str, str]] = {
    "a class": ("Kernel", "is not a native function", "the class Kernel"),
    "a function": ("lambda: 1", "is not a native function", "a function"),
    "a capsule of something else": ("times(2.0, b'dltensor')", "is not a native function", "capsule object"),
    "no such library": ("Kernel('/no/such.so', 'Twice')", "is not there", "no file /no/such.so"),
    "no library": (f"Kernel({str(HERE)!r}, 'Twice')", "can't be loaded", "test_kernels.py"),
    "no such function": (f"Kernel({str(LIBRARY)!r}, 'Twice')", "has no function: its library doesn't export 'Twice'",
                         "'Twice')"),
    "nothing of that name": ("", "leads nowhere", "twice_pack_native:wrong_6"),
}


@pytest.mark.skipif(not LIBRARY.name, reason="this Python has _ctypes built in, so there is no library to look into")
def test_what_is_wrong_with_a_kernel_is_said_by_name_and_check_finds_it(site):
    lines = ["from tests.plugin.ffi import times", "from corejax.plugin import Kernel"]
    lines += [f"wrong_{i} = {value}" for i, (value, _, _) in enumerate(WRONG.values()) if value]
    lines.append(f"right = Kernel({str(LIBRARY)!r}, 'PyInit__ctypes')")
    names = {f"twice-pack.wrong_{i}": f"twice_pack_native:wrong_{i}" for i in range(len(WRONG))}
    pack(site, kernels={**names, "twice-pack.right": "twice_pack_native:right", "twice": "twice_pack_native:right",
                        "twice-pack.a@cpu": "twice_pack_native:right", "Twice_Pack.b": "twice_pack_native:right"},
         module="\n".join(lines))
    site.pack("broken-pack", {"kernels": {"broken-pack.f": "no_such_module:f"}})
    said = "\n".join(run(site, f"""
        from corejax.xla.runtime import client, kernels
        def said(target):
            return error(lambda: kernels.register([target], client.place_of()))
        for i in range({len(WRONG)}):
            print(f"-- {{i}}", said(f"twice-pack.wrong_{{i}}"), sep="\\n")
        print("-- broken", said("broken-pack.f"), sep="\\n")
        print("-- unknown", kernels.missing("twice-pack.rigth", "cpu"), sep="\\n")
        print("-- check")
        from corejax.inspect import checkup
        print(*map(": ".join, checkup.checkup()), sep="\\n")"""))
    parts = {part.partition("\n")[0]: part.partition("\n")[2] for part in said.split("-- ")}
    for i, (_, problem, got) in enumerate(WRONG.values()):
        first, second = parts[str(i)].splitlines()[:2]
        assert first.startswith("PackError: twice-pack 1.0: the ") and f"'twice-pack.wrong_{i}' {problem}" in first
        assert got in second
        assert f"twice-pack: {first.removeprefix('PackError: ')}" in parts["check"]
    assert "PackError: the pack broken-pack 1.0 can't be imported, so its kernel 'broken-pack.f' can't be used" == \
        parts["broken"].splitlines()[0]
    assert "the program needs the kernel 'twice-pack.rigth', which is not one of twice-pack 1.0" == \
        parts["unknown"].splitlines()[0]
    assert "did you mean 'twice-pack.right'" in parts["unknown"]
    for name in ("twice", "twice-pack.a@cpu", "Twice_Pack.b"):
        assert f"twice-pack 1.0: the kernel {name!r} is not named as kernels are" in parts["check"]
    assert "broken-pack: can't be imported" in parts["check"] and "right'" not in parts["check"]


def test_the_command_check_fails_for_a_broken_kernel(site):
    pack(site, kernels={"twice-pack.twice": "twice_pack_native:nothing"})
    said = run(site, "from corejax.inspect.cli import main; print(main(['check']))")
    assert ["1"] == said


@pytest.mark.parametrize("args", [(3, "Twice"), ("lib.so", None), ("lib.so", "")])
def test_kernel_refuses_what_is_no_path_and_name(args):
    with pytest.raises(CorejaxTypeError, match="Kernel takes the path of a library and the name of a function"):
        Kernel(*args)


def test_the_test_functions_need_no_compiler():
    done = subprocess.run([sys.executable, "-c", "from tests.plugin import ffi; print(ffi.times(2.0))"],
                          cwd=HERE.parents[2], capture_output=True, text=True)
    assert "capsule object" in done.stdout, done.stderr
