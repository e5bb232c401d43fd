"""The names of jax.numpy and of NumPy that `corejax.numpy` has, and why each of the others is missing.

`python -m tests.numpy_names` prints them; `--write` writes the table into docs/reference/numpy-names.md.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np

import corejax.numpy as jnp

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs/reference/numpy-names.md"

#: The public names of jax.numpy 0.10.2, by module; tests/packs/numpy_functions/test_names_parity.py compares them.
JAX = {module: names.split() for module,
       names in json.loads((Path(__file__).parent / "jax_numpy_names.json").read_text()
                                                             ).items()}

#: Names of jax.numpy that stay missing, each with the reason.
MISSING: dict[str, str] = {
    **dict.fromkeys(("int1", "uint1"), "a number of one bit is a boolean, as which NumPy prints it"),
    **dict.fromkeys(("float6_e2m3fn", "float6_e3m2fn"), "the runtime has no such elements")}

_OUT_OF_MEMORY = "it is about the memory of ndarrays, which arrays of corejax don't show"
_TEXT = "arrays have no text, dates or records"
_ITSELF = "it is about NumPy itself"
_PLAIN = "it gives Python values, text or files: NumPy's own takes arrays"
_FLAGS = "arrays of corejax have no floating-point flags: config.numerical_failures asks for errors"

#: Names of NumPy that neither jax.numpy nor we have, by reason.
NUMPY_ONLY: dict[str, str] = {name: reason for reason, names in {
    _OUT_OF_MEMORY: """asanyarray asarray_chkfinite ascontiguousarray asfortranarray broadcast copyto flatiter isfortran
        may_share_memory memmap ndenumerate ndindex nditer nested_iters putmask require shares_memory""",
    _TEXT: """busday_count busday_offset busdaycalendar bytes_ char datetime64 datetime_as_string datetime_data
        is_busday isnat rec recarray record str_ strings timedelta64 void""",
    _ITSELF: """core ctypeslib dtypes emath exceptions f2py get_include getbufsize info lib ma show_config show_runtime
        setbufsize test testing typing random polynomial sctypeDict typecodes typename mintypecode
        min_scalar_type common_type ScalarType little_endian""",
    _PLAIN: """array2string base_repr binary_repr format_float_positional format_float_scientific fromregex genfromtxt
        loadtxt savetxt savez_compressed""",
    "a matrix without a result gives NaN, or an error of corejax with config.numerical_failures": "LinAlgError",
    _FLAGS: "errstate geterr geterrcall seterr seterrcall",
    "NumPy advises against it": "asmatrix bmat matrix poly1d row_stack True_ False_ real_if_close trapz in1d",
    "another name of a dtype, which depends on the machine": """byte clongdouble complex256 float128 half intc intp long
        longdouble longlong short ubyte uintc uintp ulong ulonglong ushort complex192 float96""",
}.items() for name in names.split()}


def public(module: ModuleType) -> list[str]:
    """The names without an underscore, but for the modules of tests."""
    return [name for name in dir(module) if not name.startswith("_") and name != "test"]


def rows() -> list[tuple[str, bool, bool, bool, str]]:
    """For each name: whether it is here, in jax.numpy and in NumPy, and why it is missing here."""
    found = []
    for prefix, ours, theirs in (("", jnp, np), ("linalg.", jnp.linalg, np.linalg), ("fft.", jnp.fft, np.fft)):
        here, jax, numpy = set(ours.__all__), set(JAX[prefix]), set(public(theirs))
        for name in sorted({*here, *jax, *numpy}, key=lambda name: (name.lower(), name)):
            reason = "" if name in here else MISSING.get(prefix + name) or NUMPY_ONLY.get(name, "")
            found.append((prefix + name, name in here, name in jax, name in numpy, reason))
    return found


def page() -> str:
    """The table, as a page of the documentation."""
    table = rows()
    total = [sum([row[i] for row in table]) for i in (1, 2, 3)]
    mark = {True: "yes", False: "-"}
    lines = [f"| `{name}` | {mark[here]} | {mark[jax]} | {mark[numpy]} | {reason} |" for name, here, jax, numpy,
             reason in table]
    return "\n".join([
        "# Names of corejax.numpy", "",
        f"{total[0]} names are here, {total[1]} in jax.numpy 0.10.2, and {total[2]} in NumPy 2,",
        "with those of `linalg` and `fft`.",
        "Written by `python -m tests.numpy_names --write`.", "",
        "| name | here | jax.numpy | NumPy | why it is missing |", "| --- | --- | --- | --- | --- |", *lines, ""])


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(page())
    print(*[f"{name}: {reason or 'NO REASON'}" for name, here, _, _, reason in rows() if not here], sep="\n")
