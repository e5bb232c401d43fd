"""What the entry points in `corejax.kernels` lead to; the library is loaded when a program needs it."""

from __future__ import annotations

import sysconfig
from pathlib import Path

from corejax.plugin import Kernel

__all__ = ["decaying_sum"]

LIBRARY = Path(__file__).with_name("_kernels" + (sysconfig.get_config_var("EXT_SUFFIX") or ".so"))

decaying_sum = Kernel(LIBRARY, "DecayingSum")
