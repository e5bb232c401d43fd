# Written by `python -m corejax stubs`: don't edit it.

"""What the installed packs add to arrays."""

from collections.abc import Sequence
from corejax.core import Array, ArrayLike, DTypeLike
from corejax_lax_basic.indexing import Indexer
from corejax_reductions.operators import AxisSpec

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

    def argsort(self, axis: int | None = -1, kind: str | None = None, order: None = None, *, stable: bool | None = None) -> Array:
        """The places to take the elements from to have them in rising order; those of equal elements rise, too."""

    def astype(self, dtype: DTypeLike, copy: bool = True) -> Array:
        """The array in another dtype, not weakly typed. Arrays are immutable, so `copy` makes no difference."""

    @property
    def at(self) -> Indexer:
        """`x.at`."""

    def clip(self, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
        """x, or the bound that it is beyond; `max` wins if the bounds cross."""

    def conj(self) -> Array:
        """The complex conjugate; x itself if it is real."""

    def conjugate(self) -> Array:
        """The complex conjugate; x itself if it is real."""

    def copy(self) -> Array:
        """The same values in new memory."""

    def cumprod(self, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
        """Running products along an axis, or of the flattened array."""

    def cumsum(self, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None) -> Array:
        """Running sums along an axis, or of the flattened array."""

    def dot(self, y: ArrayLike) -> Array:
        """NumPy's `x.dot(y)`: sums of products over the last axis of x and the second-to-last of y."""

    def flatten(self, order: str = 'C') -> Array:
        """All elements along one axis."""

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

    def prod(self, axis: AxisSpec = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
        """The product along axes, times `initial`."""

    def ravel(self, order: str = 'C') -> Array:
        """All elements along one axis."""

    @property
    def real(self) -> Array:
        """The real part."""

    def reshape(self, *shape: int | Sequence[int], order: str = 'C') -> Array:
        """The same elements in another shape, given as integers or one tuple; one size may be -1."""

    def round(self, decimals: int = 0) -> Array:
        """Round to this many decimals, halves to even."""

    def sort(self, axis: int | None = -1, kind: str | None = None, order: None = None, *, stable: bool | None = None) -> Array:
        """The elements in rising order along an axis, or of the flattened array if it is None; NaN comes last."""

    def squeeze(self, axis: int | Sequence[int] | None = None) -> Array:
        """Drop axes of size 1: all of them, or the given ones."""

    def std(self, axis: AxisSpec = None, dtype: DTypeLike | None = None, out: None = None, ddof: float = 0, keepdims: bool = False, *, where: ArrayLike | None = None) -> Array:
        """The standard deviation along axes: the square root of `var`."""

    def sum(self, axis: AxisSpec = None, dtype: DTypeLike | None = None, out: None = None, keepdims: bool = False, initial: ArrayLike | None = None, where: ArrayLike | None = None) -> Array:
        """The sum along axes, plus `initial`."""

    def swapaxes(self, axis1: int, axis2: int) -> Array:
        """The array with two axes exchanged."""

    def transpose(self, *axes: int | Sequence[int] | None) -> Array:
        """The axes in another order, given as integers or one tuple; reversed by default."""

    def var(self, axis: AxisSpec = None, dtype: DTypeLike | None = None, out: None = None, ddof: float = 0, keepdims: bool = False, *, where: ArrayLike | None = None) -> Array:
        """The variance along axes, with the divisor N - `ddof`; real for complex elements."""
