"""Builds the kernels: an extension that nobody imports, so all it needs is a C++ compiler and jaxlib's headers."""

from pathlib import Path

import jaxlib
from setuptools import Extension, setup

setup(ext_modules=[Extension(
    "corejax_native._kernels", ["corejax_native/_kernels.cc"],
    include_dirs=[str(Path(jaxlib.__file__).parent / "include")], extra_compile_args=["-std=c++17", "-O3"])])
