"""The two primitives that every element type of a pack needs: from what is stored to elements, and back.

>>> import numpy as np
>>> from corejax.plugin import ElementType, define, elements
>>> point = ElementType("doc_point", np.int32, (2,), show=lambda p: f"<{p[0]} {p[1]}>")
>>> points, coordinates = define(elements.Wrap("doc_points", point)), define(elements.Unwrap("doc_coordinates", point))
>>> points(np.array([[1, 2], [3, 4]], np.int32))[::-1]
Array([<3 4>, <1 2>], dtype=doc_point)
>>> coordinates(points(np.array([1, 2], np.int32)))
Array([1, 2], dtype=int32)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from corejax.base.avals import ShapedArray
from corejax.base.elements import ElementType, find as find, is_reserved as is_reserved, of_stored as of_stored
from corejax.base.errors import CorejaxTypeError
from corejax.base.source import here
from corejax.base.tracebacks import public
from corejax.installed.roles import roles
from corejax.kernel.declarations import Sample, hookimpl, not_differentiable, not_linear, partials
from corejax.kernel.primitive import Primitive


class _Same:
    """A plugin whose operand and result are stored alike."""

    operands = ("x",)

    def __init__(self, name: str, element: ElementType, doc: str) -> None:
        self.name, self._element = name, element
        self.element_types = (element.name,)
        self.__doc__ = doc

    @hookimpl
    def impl(self, args: Sequence[Any]) -> Any:
        return args[0]

    @hookimpl
    def xla_translation(self, ctx: Any, args: Sequence[Any]) -> Any:
        return args[0]

    @hookimpl
    def vmap(self, axis: Any, args: Sequence[Any], dims: Sequence[int]) -> Any:
        (x,), (dim,) = args, dims
        primitive = self._primitive
        return primitive.bind_one(roles.move_axis(x, dim, 0) if dim else x), 0

    def attached(self, primitive: Primitive) -> None:
        """Note the primitive that this plugin has become."""
        self._primitive = primitive

    def _stored(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return rng.integers(0, 2, (*shape, *self._element.trailing)).astype(self._element.physical)


@public
class Wrap(_Same):
    """A plugin for `name(x)`: the elements of which `x` is what is stored. They have no derivatives."""

    transpose = not_linear("elements can't be added")

    def __init__(self, name: str, element: ElementType) -> None:
        stored = ShapedArray(element.trailing, element.physical)
        super().__init__(name, element, f"{name}(x): elements of type {element.name}, each of which is stored as a "
                         f"{stored}.")
        self.jvp = not_differentiable(f"elements of type {element.name} have no derivatives")

    @hookimpl
    def abstract_eval(self, avals: Sequence[ShapedArray]) -> ShapedArray:
        (x,), element = avals, self._element
        ndim = x.ndim - len(element.trailing)
        if ndim < 0 or x.shape[ndim:] != element.trailing or x.dtype != element.physical:
            raise CorejaxTypeError(f"{self.name}: this isn't what elements of type {element.name} are stored as",
                                   primitive=self.name, got=str(x), where=here(),
                                   wanted=f"{element.physical.name}, with last axes {element.trailing}",
                                   todo="convert it with x.astype(...), or move these axes to the end")
        return ShapedArray(x.shape[:ndim], element.dtype)

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((3,), (), (2, 0), (2, 3)):
            yield Sample([self._stored(rng, shape)])
        other = np.bool_ if self._element.physical != np.bool_ else np.int8
        yield Sample([np.zeros((3, *self._element.trailing), other)], error=TypeError)


@public
class Unwrap(_Same):
    """A plugin for `name(x)`: what is stored of the elements `x`, with its own axes last."""

    jvp = partials(None)
    transpose = not_linear("elements can't be added")

    def __init__(self, name: str, element: ElementType) -> None:
        super().__init__(name, element, f"{name}(x): what is stored of elements of type {element.name}.")

    @hookimpl
    def abstract_eval(self, avals: Sequence[ShapedArray]) -> ShapedArray:
        (x,), element = avals, self._element
        if x.dtype != element.dtype:
            raise CorejaxTypeError(f"{self.name}: these aren't elements of type {element.name}", primitive=self.name,
                                   got=str(x), where=here(), wanted=f"an array of dtype {element.name}",
                                   todo=element.todo or "make elements of them first")
        return x.stored

    @hookimpl
    def samples(self, rng: np.random.Generator) -> Iterator[Sample]:
        for shape in ((3,), (), (2, 0), (2, 3)):
            yield Sample([self._element.of(self._stored(rng, shape))])
        yield Sample([np.zeros(3)], error=TypeError)
