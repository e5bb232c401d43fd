"""Arrays in NumPy's files, and as text."""

# mypy: no-warn-return-any

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import ml_dtypes
import numpy as np
from numpy import get_printoptions, printoptions, set_printoptions

from corejax.core import Array, aval_of, dtypes
from corejax.errors import CorejaxValueError
from corejax.plugin import public, refused
from corejax_numpy._arrays import array

__all__ = ["array_repr", "array_str", "get_printoptions", "load", "printoptions", "save", "savez", "set_printoptions"]

#: How files name a dtype that NumPy doesn't have: two bytes without a meaning.
_BFLOAT16 = np.dtype((np.void, 2))


# Files

def _in_file(name: str, x: Any) -> np.ndarray:
    host = np.asarray(array(x))
    if host.dtype.isbuiltin == 1 or host.dtype == dtypes.bfloat16:
        return host
    raise refused(name, "files have no such dtype", got=str(aval_of(x)), kind=CorejaxValueError,
                  wanted="a dtype of NumPy's own, or bfloat16", todo="save x.view(jnp.uint8), or convert it")


def _from_file(host: np.ndarray) -> Array:
    return array(host.view(ml_dtypes.bfloat16) if host.dtype == _BFLOAT16 else host)


@public
def save(file: Any, arr: Any, allow_pickle: bool = True) -> None:
    """Write an array to a file, in NumPy's format.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "x.npy"
    >>> save(path, jnp.arange(3))
    >>> jnp.load(path)
    Array([0, 1, 2], dtype=int64)
    """
    np.save(file, _in_file("save", arr), allow_pickle=allow_pickle)


@public
def savez(file: Any, *args: Any, allow_pickle: bool = True, **kwds: Any) -> None:
    """Write several arrays to a file, in NumPy's format: by name, or as `arr_0`, `arr_1`, ...

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "xy.npz"
    >>> savez(path, jnp.arange(3), y=2.0)
    >>> dict(jnp.load(path))
    {'y': Array(2., dtype=float64), 'arr_0': Array([0, 1, 2], dtype=int64)}
    """
    np.savez(file, *[_in_file("savez", x) for x in args], allow_pickle=allow_pickle,
             **{name: _in_file("savez", x) for name, x in kwds.items()})


class Archive(Mapping[str, Array]):
    """The arrays of a file that `savez` wrote, read when they are first asked for."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.files: list[str] = file.files

    @public
    def __getitem__(self, name: str) -> Array:
        return _from_file(self._file[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __repr__(self) -> str:
        return f"Archive({', '.join(self.files)})"


@public
def load(file: Any, mmap_mode: str | None = None, allow_pickle: bool = False, *args: Any,
         **kwargs: Any) -> Array | Mapping[str, Array]:
    """The array of a file that `save` wrote, or the arrays of one that `savez` wrote, by name.

    >>> import io
    >>> file = io.BytesIO()
    >>> save(file, jnp.arange(3))
    >>> _ = file.seek(0)
    >>> load(file)
    Array([0, 1, 2], dtype=int64)
    """
    found = np.load(file, mmap_mode, allow_pickle, *args, **kwargs)  # type: ignore[arg-type]
    return _from_file(found) if isinstance(found, np.ndarray) else Archive(found)


# Text

@public
def array_repr(arr: Any, max_line_width: int | None = None, precision: int | None = None,
               suppress_small: bool | None = None) -> str:
    """The text of an array as code, like `repr`.

    >>> array_repr(jnp.array([1.5, 2.25]), precision=1)
    'Array([1.5, 2.2], dtype=float64)'
    """
    x = array(arr)
    if max_line_width is precision is suppress_small is None:
        return repr(x)
    text = np.array2string(np.asarray(x), max_line_width, precision, suppress_small, ", ", "Array(")
    shape = f", shape={x.shape}" if not x.size and x.ndim > 1 else ""
    weak = ", weak_type=True" if x.aval.weak_type else ""
    return f"Array({text}{shape}, dtype={dtypes.long_name(x.dtype)}{weak})"


@public
def array_str(a: Any, max_line_width: int | None = None, precision: int | None = None,
              suppress_small: bool | None = None) -> str:
    """The text of an array's elements, like `str`.

    >>> array_str(jnp.array([1.5, 2.25]), precision=1)
    '[1.5 2.2]'
    """
    x = array(a)
    if max_line_width is precision is suppress_small is None:
        return str(x)
    return np.array_str(np.asarray(x), max_line_width, precision, suppress_small)
