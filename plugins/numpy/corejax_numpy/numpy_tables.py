"""NumPy functions called with traced values: this pack's tables for the roles `numpy_ufunc` and `numpy_function`.

Functions that ndarray has as methods (`np.sum`, `np.squeeze`) call the array methods without a table; those here have
keyword arguments that the methods don't.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corejax.core import from_array_like
from corejax.plugin import operators
from corejax_numpy import _numpy_elements as elements
from corejax_numpy import _numpy_order as order
from corejax_numpy import _numpy_products as products
from corejax_numpy import _numpy_shapes as rearranged
from corejax_numpy import _numpy_totals as totals
from corejax_numpy._numpy_ufuncs import numpy_ufunc as elementwise
from corejax_numpy._numpy_ufuncs import vector_product

__all__ = ["numpy_function", "numpy_ufunc"]

numpy_ufunc = elementwise | totals.numpy_ufunc

numpy_function: dict[Any, Callable[..., Any]] = totals.numpy_function | order.numpy_function | {
    # joining, axes, parts
    np.concatenate: rearranged.concatenate, np.stack: rearranged.stack, np.vstack: rearranged.vstack,
    np.hstack: rearranged.hstack, np.dstack: rearranged.dstack, np.column_stack: rearranged.column_stack,
    np.append: rearranged.append, np.atleast_1d: rearranged.atleast_1d, np.atleast_2d: rearranged.atleast_2d,
    np.atleast_3d: rearranged.atleast_3d, np.reshape: rearranged.reshape, np.transpose: rearranged.transpose,
    np.matrix_transpose: rearranged.matrix_transpose, np.moveaxis: rearranged.moveaxis,
    np.expand_dims: rearranged.expand_dims, np.broadcast_to: rearranged.broadcast_to,
    np.broadcast_arrays: rearranged.broadcast_arrays, np.meshgrid: rearranged.meshgrid, np.flip: rearranged.flip,
    np.flipud: lambda m: rearranged.flip(m, 0), np.fliplr: lambda m: rearranged.flip(m, 1),
    np.roll: rearranged.roll, np.split: rearranged.split, np.array_split: rearranged.array_split,
    np.vsplit: lambda ary, indices_or_sections: rearranged.split(ary, indices_or_sections, 0),
    np.hsplit: lambda ary, indices_or_sections: rearranged.split(ary, indices_or_sections,
                                                                 1 if from_array_like(ary).ndim > 1 else 0),
    np.dsplit: lambda ary, indices_or_sections: rearranged.split(ary, indices_or_sections, 2),
    np.rollaxis: rearranged.rollaxis,
    np.tile: rearranged.tile, np.repeat: rearranged.repeat, np.take: rearranged.take, np.diff: rearranged.diff,
    # products
    np.dot: products.dot, np.inner: products.inner, np.vdot: products.vdot, np.outer: products.outer,
    np.tensordot: products.tensordot, np.kron: products.kron, np.einsum: products.einsum, np.trace: products.trace,
    np.diagonal: products.diagonal, np.linalg.outer: lambda x1, x2, /: products.outer(x1, x2),
    np.linalg.tensordot: lambda x1, x2, /, *, axes=2: products.tensordot(x1, x2, axes),
    np.linalg.matmul: lambda x1, x2, /: operators.matmul(from_array_like(x1), x2),
    np.linalg.matrix_transpose: lambda x, /: rearranged.matrix_transpose(x),
    np.linalg.vecdot: lambda x1, x2, /, *, axis=-1: vector_product(rearranged.moveaxis(x1, axis, -1),
                                                                   rearranged.moveaxis(x2, axis, -1)),
    np.linalg.diagonal: lambda x, /, *, offset=0: products.diagonal(x, offset, -2, -1),
    np.linalg.trace: lambda x, /, *, offset=0: products.trace(x, offset, -2, -1),
    # elements
    np.array: elements.array, np.asarray: elements.array, np.asanyarray: elements.array,
    np.zeros_like: elements.zeros_like, np.empty_like: elements.zeros_like, np.ones_like: elements.ones_like,
    np.full_like: elements.full_like, np.linspace: elements.linspace, np.diag: elements.diag, np.tril: elements.tril,
    np.triu: elements.triu, np.where: elements.where, np.select: elements.select, np.clip: elements.clip,
    np.nan_to_num: elements.nan_to_num, np.round: elements.around, np.around: elements.around, np.fix: elements.fix,
    np.angle: elements.angle, np.sinc: elements.sinc, np.polyval: elements.polyval, np.isclose: elements.isclose,
    np.allclose: elements.allclose, np.array_equal: elements.array_equal, np.isposinf: elements.isposinf,
    np.isneginf: elements.isneginf, np.real: lambda val: operators.real(from_array_like(val)),
    np.imag: lambda val: operators.imag(from_array_like(val)),
    np.copy: lambda a, order="K", subok=False: operators.copy(from_array_like(a)),
    np.iscomplex: lambda x: operators.ne(operators.imag(from_array_like(x)), 0),
    np.isreal: lambda x: operators.eq(operators.imag(from_array_like(x)), 0),
}
