"""Builds the library of kernels, which nobody imports."""

from pathlib import Path

import jaxlib
from setuptools import Extension, setup

setup(ext_modules=[Extension(
    "outside_native._kernels", ["outside_native/_kernels.cc"],
    include_dirs=[str(Path(jaxlib.__file__).parent / "include")], extra_compile_args=["-std=c++17", "-O3"])])
