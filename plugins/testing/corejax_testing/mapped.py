"""Primitives that communicate along named axes, applied under maps that name them.

Outside of such a map, a collective can't be applied. So the kit checks another primitive in its place, which has the
same name: operands have a leading axis for each name, and at each position there the collective is applied, under
`vmap`. Its rules are derived from that, so each law that it keeps is one of the collective under maps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from inspect import Parameter, Signature
from itertools import islice
from typing import Any

from corejax import vmap
from corejax.core import Primitive
from corejax.plugin import Sample, define, hookimpl
from corejax_testing.specification import MOST, samples_of

#: The param of the primitive in its place that has the axes: pairs of a name and a size.
AXES = "under_maps"


def under_maps(primitive: Primitive, samples: Iterable[Any] | None) -> tuple[Primitive, Iterable[Any] | None]:
    """The primitive to check in place of one whose samples name axes, and its samples; else these themselves.

    None stands for the samples of its hook.
    """
    given, error = (_hooks_samples(primitive), None) if samples is None else _first_of(samples)
    if not any([isinstance(sample, Sample) and sample.axes for sample in given]):
        return primitive, None if samples is None else _again(given, error)
    function: Any = define(_Mapped(primitive))  # of this module, so that rules of packs aren't taken for its own
    return function.primitive, None if samples is None else map(_moved, _again(given, error))


def _first_of(samples: Iterable[Any]) -> tuple[list[Any], Exception | None]:
    """As many as there may be, since there may be no end, and what they raise."""
    found: list[Any] = []
    try:
        found.extend(islice(samples, MOST + 1))
    except Exception as error:  # raised again where they are used
        return found, error
    return found, None


def _again(found: list[Any], error: Exception | None) -> Iterator[Any]:
    yield from found
    if error is not None:
        raise error


def _hooks_samples(primitive: Primitive) -> list[Any]:
    try:
        return samples_of(primitive)
    except Exception:  # reported where they are used
        return []


class _Mapped:
    """The plugin of such a primitive."""

    def __init__(self, primitive: Primitive) -> None:
        self.name = primitive.name
        self.multiple_results = primitive.multiple_results
        keywords = [Parameter(name, Parameter.KEYWORD_ONLY) for name in (*sorted(primitive.params), AXES)]

        def decompose(args: Any, *, under_maps: tuple[tuple[str, int], ...], **params: Any) -> Any:
            function: Callable[..., Any] = lambda *xs: primitive.bind(*xs, **params)
            for name, size in reversed(under_maps):
                function = vmap(function, axis_name=name, axis_size=size)
            return function(*args)

        decompose.__signature__ = Signature([  # type: ignore[attr-defined]
            Parameter("args", Parameter.POSITIONAL_OR_KEYWORD), *keywords, Parameter("params", Parameter.VAR_KEYWORD)])
        self.decompose = hookimpl(decompose)
        self._samples = primitive.samples

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Any]:
        for sample in self._samples(rng) if self._samples is not None else ():
            yield _moved(sample)


def _moved(sample: Any) -> Any:
    """The sample of the primitive in its place."""
    if not isinstance(sample, Sample):
        return sample
    return Sample(sample.args, {**sample.params, AXES: tuple(sample.axes.items())}, sample.domain, sample.error,
                  sample.exempt, sample.singular, sample.ulps, sample.results, sample.atol)
