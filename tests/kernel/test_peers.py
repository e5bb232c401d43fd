"""How processes that a pack has brought together become those of the kernel. With real processes: plugins/processes."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pytest

import corejax as cj
from corejax import NamedSharding, P
from corejax.errors import CorejaxError, CorejaxRuntimeError, CorejaxValueError
from corejax.plugin import peers

TOY = """
    import numpy as np
    import corejax as cj
    from corejax.errors import CorejaxRuntimeError
    from corejax.plugin import peers

    class Toy:
        index, count = 0, 2
        asked = []
        def client_options(self, platform):
            self.asked.append(platform)
            return {}
        def started_together(self, start, program):
            raise AssertionError
        def reason(self, error):
            return CorejaxRuntimeError("the other is gone") if "gone" in str(error) else None
        def check_equal(self, what, value, processes, always):
            raise AssertionError
"""


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(TOY) + textwrap.dedent(code)], capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_alone_a_process_is_the_only_one():
    assert (0, 1) == (cj.process_index(), cj.process_count())
    assert cj.devices() == cj.local_devices() == cj.local_devices(0)
    assert cj.device_count() == cj.local_device_count() == len(cj.devices())
    assert cj.default_backend() == cj.devices()[0].platform
    with pytest.raises(CorejaxValueError, match="there is no process 1"):
        cj.local_devices(process_index=1)


def test_it_is_too_late_once_devices_are_in_use():
    cj.devices()
    with pytest.raises(CorejaxRuntimeError, match="once the runtime is started"):
        peers.join(object())


def test_the_client_is_made_with_what_a_pack_says_and_failures_are_explained():
    said = run("""
        from corejax.xla.runtime.failures import runtime_error
        peers.join(Toy())
        try:
            peers.join(Toy())
        except CorejaxRuntimeError as error:
            print(error.message)
        print(cj.devices()[0].platform, Toy.asked)
        print(runtime_error(ValueError("it is gone")).message, "|", runtime_error(ValueError("else")).message)
    """)
    assert said.splitlines() == ["this process has joined others already", "cpu ['cpu']",
                                 "the other is gone | the runtime failed to run a compiled program"]


def test_arrays_of_what_a_process_has_are_whole_where_there_is_no_other():
    sharding = NamedSharding(cj.make_mesh((1,), ("x",)), P("x"))
    x = cj.make_array_from_process_local_data(sharding, np.arange(6.0).reshape(2, 3))
    assert x.sharding == sharding and np.array_equal(x, np.arange(6.0).reshape(2, 3))
    again = cj.make_array_from_process_local_data(sharding, x, (2, 3))
    assert np.array_equal(again, x)
    for given, data in (((3, 3), np.ones((2, 3))), ((2,), np.ones((2, 3)))):
        with pytest.raises(CorejaxError, match="make_array_from_process_local_data"):
            cj.make_array_from_process_local_data(sharding, data, given)
