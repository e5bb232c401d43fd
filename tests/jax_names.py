"""The public names of jax.lax that ours lacks. `python -m tests.jax_names` prints them where jax is installed."""

from __future__ import annotations

import inspect
from typing import Any

#: What is missing, by what is to bring it.
MISSING = {
    "windows and convolutions": """
        ConvDimensionNumbers ConvGeneralDilatedDimensionNumbers conv conv_dimension_numbers conv_general_dilated
        conv_general_dilated_local conv_general_dilated_patches conv_general_permutations conv_general_shape_tuple
        conv_shape_tuple conv_transpose conv_transpose_shape_tuple conv_with_general_padding reduce_window
        reduce_window_shape_tuple""",
    "linear algebra and Fourier transforms": "FftType fft linalg",
}

#: Primitives of jax.lax, without _p, of which we have the function: it is computed by other primitives.
COMPUTED = {"scatter_sub", "split", "stack", "stage", "tile", "unstack"}


def missing(theirs: Any, ours: Any) -> list[str]:
    """The public names of one module that another lacks; of primitives, those whose function it has, too."""
    names = [name for name in dir(theirs) if not name.startswith("_") and not inspect.ismodule(
        getattr(theirs, name)) or name == "linalg"]
    return sorted([name for name in names if not hasattr(ours, name) and (
        not name.endswith("_p") or name.removesuffix("_p") not in COMPUTED and hasattr(ours, name.removesuffix("_p")))])


if __name__ == "__main__":
    from jax import lax as theirs

    from corejax import lax as ours

    found = missing(theirs, ours)
    print(f"{len(found)} of {len([name for name in dir(theirs) if not name.startswith('_')])} names are missing")
    for brings, names in MISSING.items():
        print(f"\n{brings}: {' '.join([name for name in names.split() if name in found])}")
    print("\nnot listed:", *sorted({*found} - {name for names in MISSING.values() for name in names.split()}))
