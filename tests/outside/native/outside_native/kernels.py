"""Where the library of kernels is."""

import sysconfig
from pathlib import Path

from corejax.plugin import Kernel

__all__ = ["tridiagonal_solve"]

tridiagonal_solve = Kernel(Path(__file__).with_name("_kernels" + sysconfig.get_config_var("EXT_SUFFIX")), "Solve")
