"""The backends that come with corejax: `cpu`, which always works, and `cuda`, which runs on NVIDIA's GPUs."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from corejax.base import _jaxlib
from corejax.base.config import config
from corejax.base.errors import CorejaxRuntimeError
from corejax.base.late import late
from corejax.base.source import here
from corejax.base.tracebacks import public
from corejax.xla.runtime import peers

if TYPE_CHECKING:
    from corejax.installed import manifest
else:
    manifest = late("corejax.installed.manifest")


@public
def pjrt_client(name: str, library: str | Path, options: Mapping[str, Any] | None = None) -> Any:
    """A client of the runtime for the devices that a PJRT library drives, for a backend's `make_client` to return.

    `name` is the backend's; `library` is the path of the file, which the process loads once; `options` are specific to
    the library.

    >>> pjrt_client("chip", "no_such_library.so")
    Traceback (most recent call last):
      ...
    corejax.errors.CorejaxRuntimeError: there is no library for the backend 'chip'
      got:    no file no_such_library.so
      wanted: the path of a PJRT library
      ...
    """
    if not os.path.isfile(library):
        raise CorejaxRuntimeError(f"there is no library for the backend {name!r}", got=f"no file {library}",
                                  wanted="the path of a PJRT library", where=here(),
                                  todo="install the distribution that brings it again")
    try:
        return _jaxlib.pjrt_client(name, os.fspath(library), options or {}, peers.client_options(name))
    except Exception as error:
        raise CorejaxRuntimeError(f"the library for the backend {name!r} doesn't start: {error!s:.500}", where=here(),
                                  got=os.fspath(library), todo="install a release that is made for this jaxlib",
                                  wanted=f"one that works with jaxlib {_jaxlib.version}") from error


class Cpu:
    """The processor: one device, or `config.num_cpu_devices` of them."""

    name = platform = "cpu"
    priority = 0

    def why_not(self) -> None:
        """It can be used everywhere."""

    def make_client(self) -> Any:
        """A separate client, so that no other library's arrays are on its devices."""
        return _jaxlib.make_cpu_client(config.num_cpu_devices, peers.client_options(self.name))


class Library(NamedTuple):
    """The GPU library of an installed distribution."""

    distribution: str
    version: str
    packages: Path  # the folder that it is installed in
    path: Path

    @property
    def tools(self) -> Path | None:
        """Where the compiler's tools are, if one of NVIDIA's distributions installed them."""
        folders = (self.packages / "nvidia" / "cu13", self.packages / "nvidia" / "cuda_nvcc")
        return next((folder for folder in folders if (folder / "bin" / "ptxas").exists()), None)


class Cuda:
    """NVIDIA's GPUs, through the PJRT library of an installed distribution. This doesn't import jax."""

    name = platform = "cuda"
    priority = 100
    #: Distributions that contain the library, in order of preference, and its path in each.
    libraries = {"jax-cuda13-pjrt": "jax_plugins/xla_cuda13/xla_cuda_plugin.so",
                 "jax-cuda12-pjrt": "jax_plugins/xla_cuda12/xla_cuda_plugin.so"}
    driver = "libcuda.so.1"

    def library(self) -> Library | None:
        """The library of the first of these distributions that is installed."""
        for name, path in self.libraries.items():
            found = manifest.distribution(name)
            if found is not None:
                return Library(name, found.version, Path(found.locate_file("")), Path(found.locate_file(path)))
        return None

    def why_not(self) -> str | None:
        """Why there is no GPU to run on. Broken installations are not among the reasons: they are errors."""
        if self.library() is None:
            return f"neither {' nor '.join(self.libraries)} is installed"
        if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
            return "CUDA_VISIBLE_DEVICES hides all GPUs"
        try:
            ctypes.CDLL(self.driver)
        except OSError:
            return f"there is no NVIDIA driver: {self.driver} can't be loaded"
        return None

    def make_client(self) -> Any:
        """A client of the runtime for GPUs, with options from the environment variables that XLA documents."""
        found = self.library()
        if found is None:
            raise CorejaxRuntimeError("the library for GPUs is gone", got=self.why_not(), where=here(),
                                      wanted=" or ".join(self.libraries), todo="install it again")
        try:
            return pjrt_client(self.name, found.path, _jaxlib.gpu_options())
        except CorejaxRuntimeError as error:
            error.todo = f"pip install {found.distribution}=={_jaxlib.version}: {found.version} is there"
            raise

    @property
    def compiler_options(self) -> dict[str, str]:
        """Where the compiler finds its tools."""
        found = self.library()
        tools = None if found is None else found.tools
        return {} if tools is None else {"xla_gpu_cuda_data_dir": str(tools)}


BACKENDS: dict[str, Any] = {backend.name: backend for backend in (Cpu(), Cuda())}
