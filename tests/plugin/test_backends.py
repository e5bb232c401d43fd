"""Backends of packs: found, chosen, passed over, refused; and that of GPUs, as far as a machine without one goes."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path
from typing import Any

import pytest

from corejax.base import _jaxlib

TOY = """
from jaxlib import xla_client

class Toy:
    name = {name!r}
    platform = {platform!r}
    priority = {priority}
    {more}

    def why_not(self):
        {why_not}

    def make_client(self):
        {make_client}

backend = Toy()
"""
CLIENT = "return xla_client.make_cpu_client(num_devices=2)"

#: The prelude of every program: errors and warnings as lines.
PRELUDE = """
    import corejax as cj
    warned = []
    warnings.showwarning = lambda message, *rest: warned.append(str(message))
    def devices(*args):
        return [str(device) for device in cj.devices(*args)]
"""


def toy(site: Any, name: str = "toy", pack: str = "", priority: int = 50, platform: str = "cpu", more: str = "",
        why_not: str = "return None", make_client: str = CLIENT, module: str | None = None) -> None:
    """A pack with a backend, which is the processor with two devices under another name."""
    pack = pack or f"{name}-pack"
    text = TOY.format(name=name, priority=priority, platform=platform, more=more, why_not=why_not,
                      make_client=make_client) if module is None else module
    site.pack(pack, {"backends": {name: f"{pack.replace('-', '_')}:backend"}}, {pack.replace("-", "_"): text})


def run(site: Any, code: str, **environment: str) -> list[str]:
    out: str = site.run(textwrap.dedent(PRELUDE) + textwrap.dedent(code), **environment)
    return out.splitlines()


# Choosing

def test_the_default_is_the_backend_of_highest_priority_that_can_be_used(site):
    toy(site, "slow", priority=-1)
    toy(site, "quick", priority=10)
    toy(site, "quicker", priority=20, why_not="return 'there is no such chip'")
    assert ["['cpu:0', 'cpu:1']", "quick", "[]"] == run(site, """
        from corejax.xla.runtime import client
        print(devices()); print(client.place_of().backend); print(warned)""")


def test_the_environment_and_config_name_one(site):
    toy(site)
    assert ["['cpu:0']"] == run(site, "print(devices())", COREJAX_BACKEND="cpu")
    assert ["['cpu:0', 'cpu:1']"] == run(site, "cj.config.backend = 'toy'; print(devices())", COREJAX_BACKEND="cpu")


def test_a_named_one_that_can_not_be_used_is_an_error_that_says_why_and_what_there_is(site):
    toy(site, why_not="return 'there is no such chip'")
    assert ["CorejaxRuntimeError: the backend 'toy' can't be used here: there is no such chip", "  got:    'toy'"] == \
        run(site, "print(error(cj.devices))", COREJAX_BACKEND="toy")[:2]
    said = run(site, "print(error(cj.devices)); print(error(lambda: cj.jit(lambda x: x)(1.0)))", COREJAX_BACKEND="toy")
    assert 2 == sum("cpu (can be used); cuda (" in line and "; toy (there is no such chip)" in line for line in said)


def test_a_name_that_no_backend_has_is_an_error_with_the_nearest(site):
    toy(site)
    said = run(site, "print(error(cj.devices))", COREJAX_BACKEND="toi")
    assert "CorejaxValueError: there is no backend called 'toi'" == said[0]
    assert "did you mean 'toy'?" in said[-1]


def test_settings_that_are_no_names_or_numbers_are_refused(site):
    said = run(site, """
        print(error(lambda: setattr(cj.config, "backend", None)))
        print(error(lambda: setattr(cj.config, "backend", "CPU")))
        print(error(lambda: setattr(cj.config, "num_cpu_devices", 0)))""")
    assert ["CorejaxValueError: config.backend can't be None", "CorejaxValueError: config.backend can't be 'CPU'",
            "CorejaxValueError: config.num_cpu_devices can't be 0"] == [line for line in said if "Error" in line]
    assert "  to do:  write 'cpu'" in said


def test_settings_can_not_change_once_the_runtime_is_started(site):
    toy(site, priority=-1)
    said = run(site, """
        with cj.config(backend="cpu", num_cpu_devices=1):
            cj.devices()
        print(devices())
        with cj.config(num_cpu_devices=2):
            print(error(cj.devices))
        with cj.config(backend="toy"):
            print(error(cj.devices))
            print(error(lambda: cj.jit(lambda x: x)(1.0)))
        print(devices())""")
    assert "['cpu:0']" == said[0] == said[-1]
    assert ["CorejaxRuntimeError: config.num_cpu_devices can't change once the runtime is started",
            *2 * ["CorejaxRuntimeError: config.backend can't change once the runtime is started"]] == \
        [line for line in said if "Error" in line]


def test_looking_at_backends_starts_none_and_loads_no_jaxlib(site):
    toy(site, module=TOY.format(name="toy", platform="cpu", priority=50, more="", why_not="return 'it is Sunday'",
                                make_client="pass").replace("from jaxlib import xla_client", ""))
    said = run(site, "from corejax.xla.runtime import backends; print(backends.overview(), 'jaxlib' in sys.modules)")
    assert said[0].startswith("cpu (can be used); cuda (") and said[0].endswith("; toy (it is Sunday) False")


def test_the_command_line_lists_them_with_the_reasons(site):
    toy(site, why_not="return 'it is Sunday'")
    toy(site, "tin", more="priority = None")
    said = run(site, "from corejax.inspect.cli import main; print(main(['backends']))")
    tin = "tin: faulty: tin-pack 1.0: the backend 'tin' isn't a backend"
    assert ["cpu: can be used", tin, "toy: it is Sunday", "0"] == \
        [line for line in said if not line.startswith("cuda: ")]


# Programs on several backends

def test_devices_of_other_backends_are_there_beside_the_default(site):
    toy(site)
    assert ["['cpu:0'] cpu", "['cpu:0', 'cpu:1'] toy", "['cpu:0']", "toy toy toy cpu", "3.0"] == run(site, """
        from corejax.xla.runtime import client
        backend = lambda x: client.home_of(x._buffer._sharding).backend
        f = cj.jit(lambda x: x)
        print(devices(), backend(f(1.0)))       # compiled while there is one device only
        there = cj.devices("toy")
        print(devices("toy"), backend(cj.device_put(1.0, there[0])))
        print(devices())
        x = cj.device_put(np.ones(3), there[1])
        print(backend(x), backend(f(x)), backend(cj.device_put(f(x), there[0])), backend(f(np.ones(3))))
        print(np.asarray(cj.device_put(f(x), cj.devices("cpu")[0])).sum())""", COREJAX_BACKEND="cpu")


def test_arrays_of_two_backends_do_not_mix(site):
    toy(site)
    said = run(site, """
        x, y = cj.device_put(np.ones(3), cj.devices("cpu")[0]), cj.device_put(np.ones(3), cj.devices("toy")[1])
        print(error(lambda: cj.jit(lambda x, y: (x, y))(x, y)))""", COREJAX_BACKEND="cpu")
    assert ["CorejaxValueError: arguments live on different devices", "  got:    f64[3] on cpu:0, f64[3] on cpu:1"] == \
        said[:2]


def test_programs_are_lowered_for_the_platform_that_a_backend_says(site):
    toy(site, "toychip", platform="toychip")
    site.pack("wave", {"primitives": {"wave": "wave:wave"},
                       "rules": {"wave/wave:xla_translation@toychip": "wave:negated"}}, {"wave": """
        from corejax.plugin import define, hookimpl
        class Wave:
            name = "wave"
            @hookimpl
            def abstract_eval(self, avals):
                return avals[0]
            @hookimpl
            def xla_translation(self, ctx, args):
                return args[0]
        wave = define(Wave())
        def negated(ctx, args):
            return ctx.op("stablehlo.negate", args)
        """})
    code = "f = cj.jit(lax.wave); print('negate' in f.lower(2.0).as_text(), float(f(2.0)), *devices('toychip'))"
    assert ["True -2.0 cpu:0 cpu:1"] == run(site, code)
    assert ["False 2.0 cpu:0"] == run(site, code.replace("toychip", "cpu"), COREJAX_BACKEND="cpu")


def test_the_compiler_gets_the_options_of_a_backend_before_those_of_a_call(site):
    toy(site, more="compiler_options = {'xla_cpu_enable_fast_math': True}")
    assert ["[('xla_cpu_enable_fast_math', True)]"] == run(site, """
        from corejax.base import _jaxlib
        seen, make = [], _jaxlib.compile_options
        _jaxlib.compile_options = lambda ids, overrides, **more: seen.extend(overrides) or make(ids, overrides, **more)
        cj.jit(lambda x: x)(1.0)
        print(seen)""")


def test_the_compiler_is_told_of_a_device_unless_it_is_the_first():
    assert _jaxlib.compile_options([0]).device_assignment is None
    assert "{1}" in str(_jaxlib.compile_options([1]).device_assignment)


def test_a_client_is_made_once_however_many_threads_ask(site):
    toy(site, make_client="print('made'); import time; time.sleep(0.2); " + CLIENT)
    out = run(site, """
        import threading
        found, go = [], threading.Barrier(8)
        def ask():
            go.wait()
            found.append(cj.devices()[1])
        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(len(found), len(set(found)))""")
    assert ["made", "8 1"] == out


# What can be wrong

BROKEN: dict[str, tuple[dict[str, str], str]] = {
    "an import that fails": ({"module": "import no_such_module"}, "ModuleNotFoundError"),
    "an import that exits": ({"module": "raise SystemExit(3)"}, "exits the process when it is imported"),
    "no such object": ({"module": "something = 1"}, "leads nowhere"),
    "the class instead of an object": ({"module": "class backend:\n    name = 'fault_3'"}, "not to the class"),
    "something else": ({"module": "backend = 7"}, "an int with no name"),
    "another name": ({"more": "name = 'tin'"}, "name = 'tin'"),
    "no platform": ({"more": "platform = None"}, "no platform"),
    "a priority that is no int": ({"more": "priority = True"}, "priority = True"),
    "no make_client": ({"make_client": "pass\n\n    make_client = None"}, "no make_client"),
    "options that are none": ({"more": "compiler_options = 'fast'"}, "compiler_options = 'fast'"),
    "an attribute that raises": ({"more": "platform = property(lambda self: 1 / 0)"}, "ZeroDivisionError"),
    "why_not raises": ({"why_not": "raise OSError('no bus')"}, "OSError: no bus"),
    "why_not exits": ({"why_not": "raise SystemExit('no bus')"}, "SystemExit: no bus"),
    "why_not says False": ({"why_not": "return False"}, "why_not() returned False"),
    "why_not takes no self": ({"make_client": CLIENT + "\n\n    def why_not(): pass"}, "TypeError"),
    "make_client raises": ({"make_client": "raise RuntimeError('no memory on the chip')"}, "no memory on the chip"),
    "make_client exits": ({"make_client": "raise SystemExit"}, "SystemExit"),
    "make_client returns nothing": ({"make_client": "pass"}, "make_client() returned None"),
    "make_client asks for devices": ({"make_client": "import corejax; corejax.devices()"}, "asks for devices"),
}
_said: dict[str, list[str]] = {}


def said_of(fault: str, site: Any) -> tuple[str, str, list[str], list[str]]:
    """The name of its backend, what is printed before all, its warnings, and its error where it is named.

    All are installed together: one process shows too that none keeps another from its turn.
    """
    if not _said:
        for i, (given, _) in enumerate(BROKEN.values()):
            toy(site, f"fault_{i}", pack=f"pack-{i}", **given)
        out = run(site, f"""
            print(devices(), devices(), np.asarray(cj.jit(lambda x: x)(2.0)))
            print("-- warned", *[line.replace("\\n", " ") for line in warned], sep="\\n")
            for i in range({len(BROKEN)}):
                print(f"-- fault_{{i}}", error(lambda: cj.devices(f"fault_{{i}}")), sep="\\n")""")
        _said.update({part.partition("\n")[0]: part.splitlines()[1:] for part in "\n".join(["-- first", *out]).split(
            "-- ")})
    name = f"fault_{list(BROKEN).index(fault)}"
    return name, _said["first"][0], [line for line in _said["warned"] if f"{name!r}" in line.partition(":")[0]
                                     or f"{name!r}" in line.partition("It is skipped")[0]], _said[name]


@pytest.mark.parametrize("fault", BROKEN)
def test_a_faulty_one_is_named_with_its_pack_and_passed_over_with_one_warning(site, fault):
    name, first, warned, error = said_of(fault, site)
    assert "['cpu:0'] ['cpu:0'] 2.0" == first
    assert 1 == len(warned), warned
    assert "It is skipped. COREJAX_BACKEND names the one to use" in warned[0]
    assert error[0].partition(":")[0] in ("PackError", "CorejaxRuntimeError")
    pack = f"{name.replace('fault_', 'pack-')} 1.0"
    for text in (warned[0], "\n".join(error)):
        assert pack in text and f"{name!r}" in text, text
    assert BROKEN[fault][1] in "\n".join([*warned, *error])


@pytest.mark.parametrize("fault", ["an import that exits", "make_client exits"])
def test_a_faulty_one_that_is_named_is_an_error_each_time(site, fault):
    given, words = BROKEN[fault]
    toy(site, **given)
    said = run(site, "print(error(cj.devices)); print(error(cj.devices)); print(warned)", COREJAX_BACKEND="toy")
    half = len(said) // 2
    assert said[:half] == said[half:-1] and "[]" == said[-1]
    assert "toy-pack 1.0" in said[0] and any(words in line for line in said)


def test_the_check_of_all_packs_looks_at_backends_and_starts_none(site):
    toy(site, make_client="print('made')")
    toy(site, "tin", more="priority = None")
    said = run(site, "from corejax.inspect.cli import main; print(main(['check']))", COREJAX_PACKS="toy-pack,tin-pack")
    assert ["1"] == said
    said = run(site, "from corejax.inspect.cli import main; print(main(['check']))", COREJAX_PACKS="toy-pack")
    assert ["nothing is broken", "0"] == said


def test_an_interrupt_passes_and_the_next_call_starts_it(site):
    toy(site, make_client=f"""
        import builtins
        if not hasattr(builtins, "again"):
            builtins.again = True
            raise KeyboardInterrupt
        {CLIENT}""")
    assert ["KeyboardInterrupt: ", "['cpu:0', 'cpu:1']"] == run(site, "print(error(cj.devices)); print(devices())")


def test_two_packs_with_one_name_conflict_until_one_is_preferred(site):
    toy(site, pack="first-toy")
    toy(site, pack="second-toy", make_client="return xla_client.make_cpu_client(num_devices=3)")
    said = run(site, "print(devices()); print(*warned); print(error(lambda: cj.devices('toy')))")
    assert "['cpu:0']" == said[0]
    assert "the backend 'toy' is provided more than once" in said[1] and "first-toy 1.0" in said[1]
    assert "PackError: the backend 'toy' is provided more than once" == said[2]
    assert ["['cpu:0', 'cpu:1', 'cpu:2']"] == run(site, "print(devices())", COREJAX_PREFER="second-toy")


def test_a_pack_takes_the_name_of_a_built_in_one_only_if_it_is_preferred(site):
    toy(site, "cpu", pack="my-cpu")
    said = run(site, "print(devices()); print(*warned)")
    assert ["['cpu:0']", "the backend 'cpu' of my-cpu 1.0 is not used, as corejax has one of that name; "
            "COREJAX_PREFER=my-cpu chooses it"] == said
    assert ["['cpu:0', 'cpu:1']", ""] == run(site, "print(devices()); print(*warned)", COREJAX_PREFER="my-cpu")


def test_a_pack_that_is_left_out_is_not_asked(site):
    toy(site, module="raise SystemExit")
    said = run(site, "print(devices(), warned); print(error(lambda: cj.devices('toy')))", COREJAX_PACKS="none")
    assert ["['cpu:0'] []", "CorejaxValueError: there is no device of platform 'toy'"] == said[:2]


# GPUs

class Gpu:
    """A site with a distribution as it brings the library for GPUs, which here is a file of anything."""

    def __init__(self, site: Any) -> None:
        self.site = site

    def install(self, number: int = 13, library: bytes | None = b"no library", version: str = "0.12.0") -> None:
        name, folder = f"jax_cuda{number}_pjrt", self.site.folder / f"jax_plugins/xla_cuda{number}"
        info = self.site.folder / f"{name}-{version}.dist-info"
        for path in (info, folder):
            path.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}\n")
        (folder / "__init__.py").write_text("raise ImportError('nobody needs to import this')")
        if library is not None:
            (folder / "xla_cuda_plugin.so").write_bytes(library)

    def run(self, code: str, driver: str = "libc.so.6", **environment: str) -> list[str]:
        """What a program prints where a driver seems to be installed."""
        environment = {"COREJAX_PACKS": "none", "CUDA_VISIBLE_DEVICES": "0", **environment}
        before = f"from corejax.xla.runtime import builtin\ncuda = builtin.BACKENDS['cuda']\ncuda.driver = {driver!r}\n"
        return run(self.site, before + textwrap.dedent(code), **environment)


@pytest.fixture
def gpu(site: Any) -> Gpu:
    return Gpu(site)


def test_without_a_distribution_there_is_no_gpu_and_no_warning(gpu):
    said = gpu.run("""
        from corejax import plugin
        manifest.distribution = lambda name: None
        print(devices(), warned)
        print(error(lambda: cj.devices("cuda")))""")
    assert ["['cpu:0'] []", "CorejaxRuntimeError: the backend 'cuda' can't be used here: neither jax-cuda13-pjrt nor "
            "jax-cuda12-pjrt is installed"] == said[:2]


def test_without_a_driver_there_is_no_gpu_and_no_warning(gpu):
    gpu.install()
    said = gpu.run("print(devices(), warned); print(cuda.why_not())", driver="libnosuch.so.1")
    assert ["['cpu:0'] []", "there is no NVIDIA driver: libnosuch.so.1 can't be loaded"] == said


@pytest.mark.parametrize("hidden", ["", "-1"])
def test_gpus_that_are_hidden_are_not_there(gpu, hidden):
    gpu.install()
    assert ["['cpu:0'] [] CUDA_VISIBLE_DEVICES hides all GPUs"] == \
        gpu.run("print(devices(), warned, cuda.why_not())", CUDA_VISIBLE_DEVICES=hidden)


def test_the_library_is_found_by_its_path_the_newer_one_first_and_nothing_of_jax_is_imported(gpu):
    gpu.install(12)
    gpu.install(13)
    path = str(gpu.site.folder / "jax_plugins/xla_cuda13/xla_cuda_plugin.so")
    assert [f"jax-cuda13-pjrt 0.12.0 {path} None", f"cuda {path} default cuda", "[]"] == gpu.run("""
        from corejax.base import _jaxlib
        found = cuda.library()
        print(found.distribution, found.version, found.path, cuda.why_not())
        def client(name, library, options, together):
            print(name, library, options["allocator"], options["platform_name"])
            return _jaxlib.make_cpu_client(2, together)
        _jaxlib.pjrt_client = client
        assert devices() == ["cpu:0", "cpu:1"]
        print([name for name in sys.modules if name.partition(".")[0] in ("jax", "jax_plugins")])""")


def test_a_library_that_does_not_load_falls_back_to_the_processor_with_one_warning(gpu):
    gpu.install(12, version="0.9")
    said = gpu.run("""
        print(devices(), devices())
        print(*warned, sep="\\n")
        print(error(lambda: cj.devices("cuda")))""")
    assert "['cpu:0'] ['cpu:0']" == said[0]
    assert said[1].startswith("the backend 'cuda' of corejax raises when it makes its client: CorejaxRuntimeError: the "
                              "library for the backend 'cuda' doesn't start")
    assert said[2].startswith("CorejaxRuntimeError: the backend 'cuda' of corejax raises")


def test_a_distribution_without_its_library_says_which_file_is_gone(gpu):
    gpu.install(library=None)
    said = gpu.run("print(devices()); print(*warned)")
    assert "['cpu:0']" == said[0]
    assert "there is no library for the backend 'cuda'" in said[1]
    assert str(Path("jax_plugins/xla_cuda13/xla_cuda_plugin.so")) in "\n".join(
        gpu.run("print(error(lambda: cuda.make_client()))"))


@pytest.mark.parametrize("folder", ["cu13", "cuda_nvcc"])
def test_the_compiler_is_told_where_the_tools_of_nvidias_distributions_are(gpu, folder):
    gpu.install()
    tools = gpu.site.folder / "nvidia" / folder
    (tools / "bin").mkdir(parents=True)
    assert ["{}"] == gpu.run("print(cuda.compiler_options)")
    (tools / "bin" / "ptxas").touch()
    assert [str({"xla_gpu_cuda_data_dir": str(tools)})] == gpu.run("print(cuda.compiler_options)")


def test_the_share_of_the_memory_comes_from_the_environment(gpu):
    gpu.install()
    code = "from corejax.base import _jaxlib; options = _jaxlib.gpu_options(); print(options.get('memory_fraction'))"
    assert ["0.5"] == gpu.run(code, XLA_CLIENT_MEM_FRACTION="0.5")
    said = gpu.run("print(error(lambda: cj.devices('cuda')))", XLA_PYTHON_CLIENT_ALLOCATOR="slab")
    assert any("XLA_PYTHON_CLIENT_ALLOCATOR" in line for line in said)


# A library as accelerators have one

@pytest.mark.slow
def test_a_real_library_computes_and_imports_no_jax(site):
    package = pytest.importorskip("lammps_jax_pjrt_cpu", reason="a PJRT library for the processor is not installed")
    toy(site, make_client=f"""
        from corejax.plugin import pjrt_client
        return pjrt_client("toy", {os.fspath(package.PLUGIN_PATH)!r})""")
    assert ["toy [2. 3. 4.] False"] == run(site, """
        from corejax.xla.runtime import client
        y = cj.jit(lambda x: x)(np.arange(2.0, 5.0))
        print(client.place_of().backend, y, "jax" in sys.modules)""")
