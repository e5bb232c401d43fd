# Written by `python -m corejax stubs`: don't edit it.

"""What the installed packs add to arrays."""

from collections.abc import Sequence
from corejax.core import Array, ArrayLike, DTypeLike
from corejax_lax_basic.indexing import Indexer
from corejax_reductions.operators import AxisSpec
from typing import Any

class Methods:
    """The methods of arrays that the installed packs provide."""

    @property
    def T(self) -> Array:
        """The array with its axes in reverse order."""

    def all(self, axis: AxisSpec = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None) -> Array:
        """Whether all elements along the axes are nonzero."""

    def any(self, axis: AxisSpec = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None) -> Array:
        """Whether any element along the axes is nonzero."""

    def argmax(self, axis: int | None = None, out: None = None, *, keepdims: bool = False) -> Array:
        """The position of the largest element along an axis, or in the flattened array: the first one, or the first NaN."""

    def argmin(self, axis: int | None = None, out: None = None, *, keepdims: bool = False) -> Array:
        """The position of the smallest element along an axis, or in the flattened array: the first, or the first NaN."""

    def argpartition(self, kth: int, axis: int = -1) -> Array:
        """The places to take elements from so that the kth smallest is in its place, between smaller and larger ones."""

    def argsort(self, axis: int | None = -1, kind: str | None = None, order: None = None, *, stable: bool | None = None) -> Array:
        """The places to take the elements from to have them in rising order; those of equal elements rise, too."""

    def astype(self, dtype: DTypeLike, copy: bool = True) -> Array:
        """The array in another dtype, not weakly typed. Arrays are immutable, so `copy` makes no difference."""

    @property
    def at(self) -> Indexer:
        """`x.at`."""

    def byteswap(self, inplace: bool = False) -> Array:
        """The elements with their bytes, or those of their real and imaginary parts, in reverse order."""

    def choose(self, choices: Any, out: None = None, mode: str = 'raise') -> Array:
        """From the arrays of a sequence, the elements of those that the integers of `x` say."""

    def clip(self, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
        """x, or the bound that it is beyond; `max` wins if the bounds cross."""

    def compress(self, condition: Any, axis: int | None = None, out: None = None, *, size: int | None = None, fill_value: ArrayLike = 0) -> Array:
        """The parts along an axis for which a condition holds."""

    def conj(self) -> Array:
        """The complex conjugate; x itself if it is real."""

    def conjugate(self) -> Array:
        """The complex conjugate; x itself if it is real."""

    def copy(self) -> Array:
        """The same values in new memory."""

    def copy_to_host_async(self) -> None:
        """Nothing: an array is copied when it is read."""

    def cumprod(self, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
        """Running products along an axis, or of the flattened array."""

    def cumsum(self, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
        """Running sums along an axis, or of the flattened array."""

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
        """The diagonals of the matrices along two axes."""

    def dot(self, y: ArrayLike) -> Array:
        """NumPy's `x.dot(y)`: sums of products over the last axis of x and the second-to-last of y."""

    def fill(self, value: ArrayLike) -> Array:
        """Refused, since arrays are immutable: `jnp.full_like(x, value)` is another array."""

    @property
    def flat(self) -> Array:
        """All elements along one axis."""

    def flatten(self, order: str | None = 'C') -> Array:
        """All elements along one axis, in row-major order or, with `order="F"`, in column-major order."""

    @property
    def imag(self) -> Array:
        """The imaginary part; zeros for real x."""

    @property
    def mT(self) -> Array:
        """The matrices along the last two axes, transposed."""

    def max(self, axis: AxisSpec = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
        """The largest element along axes, or `initial` if that is larger."""

    def mean(self, axis: AxisSpec = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False, *, where: ArrayLike | None = None) -> Array:
        """The arithmetic mean along axes."""

    def min(self, axis: AxisSpec = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
        """The smallest element along axes, or `initial` if that is smaller."""

    def nonzero(self, *, size: int | None = None, fill_value: Any = None) -> tuple[Array, ...]:
        """The indices along each axis of the elements that aren't zero."""

    def partition(self, kth: int, axis: int = -1) -> Array:
        """The elements with the kth smallest in its place, between smaller and larger ones: another array."""

    def prod(self, axis: AxisSpec = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None, promote_integers: bool = True) -> Array:
        """The product along axes, times `initial`; of integers in their own dtype unless `promote_integers`."""

    def ptp(self, axis: int | Sequence[int] | None = None, out: None = None, keepdims: bool = False) -> Array:
        """The largest element less the smallest along axes."""

    def put(self, indices: Any, values: Any, mode: str = 'raise') -> Array:
        """Refused, since arrays are immutable: `jnp.put(x, indices, values, inplace=False)` is another array."""

    def ravel(self, order: str | None = 'C') -> Array:
        """All elements along one axis, in row-major order or, with `order="F"`, in column-major order."""

    @property
    def real(self) -> Array:
        """The real part."""

    def repeat(self, repeats: Any, axis: int | None = None, *, total_repeat_length: int | None = None, out_sharding: Any = None) -> Array:
        """Each element repeated: so many times, or each by a count of its own."""

    def reshape(self, *shape: int | Sequence[int], order: str | None = 'C', copy: bool | None = None) -> Array:
        """The same elements in another shape, given as integers or one tuple; one size may be -1.

        With `order="F"`, elements are taken and placed in column-major order.
        """

    def round(self, decimals: int = 0) -> Array:
        """Round to this many decimals, halves to even."""

    def searchsorted(self, v: Any, side: str = 'left', sorter: Any = None, *, method: str = 'scan') -> Array:
        """Where to insert values into the rising elements of a vector to keep them so."""

    def sort(self, axis: int | None = -1, kind: str | None = None, order: None = None, *, stable: bool | None = None) -> Array:
        """The elements in rising order along an axis, or of the flattened array if it is None; NaN comes last."""

    def squeeze(self, axis: int | Sequence[int] | None = None) -> Array:
        """Drop axes of size 1: all of them, or the given ones."""

    def std(self, axis: AxisSpec = None, dtype: DTypeLike | None = None, out: None = None, ddof: float = 0, keepdims: bool = False, *, where: ArrayLike | None = None, mean: ArrayLike | None = None, correction: float | None = None) -> Array:
        """The standard deviation along axes: the square root of `var`."""

    def sum(self, axis: AxisSpec = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None, promote_integers: bool = True) -> Array:
        """The sum along axes, plus `initial`; of integers in their own dtype unless `promote_integers`."""

    def swapaxes(self, axis1: int, axis2: int) -> Array:
        """The array with two axes exchanged."""

    def take(self, indices: Any, axis: int | None = None, out: None = None, mode: str | None = None, unique_indices: bool = False, indices_are_sorted: bool = False, fill_value: Any = None) -> Array:
        """The parts at indices along an axis, or the elements at places in row-major order."""

    def tobytes(self, order: str | None = 'C') -> bytes:
        """The bytes of the elements, in row-major order or, with `order="F"`, in column-major order."""

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: DTypeLike | None = None, out: None = None) -> Array:
        """The sums of the diagonals of the matrices along two axes."""

    def transpose(self, *axes: int | Sequence[int] | None) -> Array:
        """The axes in another order, given as integers or one tuple; reversed by default."""

    def var(self, axis: AxisSpec = None, dtype: DTypeLike | None = None, out: None = None, ddof: float = 0, keepdims: bool = False, *, where: ArrayLike | None = None, mean: ArrayLike | None = None, correction: float | None = None) -> Array:
        """The variance along axes, with the divisor N - `ddof`; real for complex elements.

        `correction` is another name for `ddof`; a `mean` that is given isn't computed again.
        """

    def view(self, dtype: DTypeLike | None = None, type: None = None) -> Array:
        """The same bits taken as elements of another dtype; if that is wider or narrower, the last axis changes."""
