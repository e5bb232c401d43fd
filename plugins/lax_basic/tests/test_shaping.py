"""The kit for axes and shapes as params: `corejax.plugin.shaping`, and the error `refused`."""

from __future__ import annotations

import numpy as np
import pytest

import corejax as cj
from corejax import lax
from corejax.core import ShapedArray, aval_of
from corejax.errors import CorejaxAxisError, CorejaxError, CorejaxIndexError, CorejaxTypeError, CorejaxValueError
from corejax.plugin import Sample, define, hookimpl, refused, shaping
from corejax.testing import check_primitive


@pytest.mark.parametrize(("given", "expected"), [(2, (2,)), (-1, (2,)), ((0, -1), (0, 2)), ([1], (1,)), ((), ()),
                                                 (np.array([2, 0]), (2, 0)), (np.int8(1), (1,))])
def test_axes_are_canonical_in_the_order_given(given, expected):
    assert expected == shaping.canonical_axes("f", given, 3)


@pytest.mark.parametrize(("given", "kind", "message"), [
    (3, CorejaxIndexError, "f: axis 3 is out of bounds for 3 dimensions"),
    ((0, -4), CorejaxIndexError, "f: axis -4 is out of bounds"),
    ((0, -3), CorejaxAxisError, "f: an axis appears twice"),
    (1.0, CorejaxTypeError, "f: an axis must be an integer"),
    ("01", CorejaxTypeError, "f: an axis must be an integer"),
    (None, CorejaxTypeError, "f: an axis must be an integer")])
def test_wrong_axes_are_refused_by_name_and_place(given, kind, message):
    with pytest.raises(kind, match=message) as caught:
        shaping.canonical_axes("f", given, 3)
    assert "test_shaping.py" in caught.value.where and "f" == caught.value.primitive
    assert None not in (caught.value.got, caught.value.wanted, caught.value.todo)


def test_a_traced_axis_is_refused_with_what_to_do_instead():
    with pytest.raises(CorejaxTypeError, match="static_argnums"):
        cj.jit(lambda i: shaping.canonical_axis("f", i, 3))(1)


@pytest.mark.parametrize("axes", [(0, 0), (3,), (-1,), (1.0,), [0], 1, (np.int64(1),)])
def test_a_param_that_is_no_tuple_of_distinct_axes_is_refused(axes):
    with pytest.raises(CorejaxIndexError, match="f: along=.* are not distinct axes of an operand of 3 dimensions"):
        shaping.check_axes("f", "along", axes, 3)


def test_sizes_are_static_integers():
    assert (2, 3) == shaping.as_ints("f", "shape", [np.int32(2), 3]) and (4,) == shaping.as_ints("f", "shape", 4)
    with pytest.raises(CorejaxTypeError, match="f: an entry of shape must be an integer"):
        shaping.as_ints("f", "shape", (2, 2.5))


def test_axes_move_out_of_the_way_of_a_batch_axis():
    x = np.zeros((2, 3, 5, 7))
    for axes in ((0,), (2, 0), (1,), ()):
        for dim in range(4):
            own = shaping.without(x.shape, (dim,))
            moved = shaping.shifted(axes, dim)
            assert [own[axis] for axis in axes] == [x.shape[axis] for axis in moved]
            rest = shaping.without(x.shape, moved)
            assert x.shape[dim] == rest[shaping.dim_without(dim, moved)]
            assert x.shape == shaping.insert(own, dim, x.shape[dim])


class Flip:
    """flip(x, axes): the elements in reverse order along axes."""

    name = "kit_flip"
    linear = (0,)

    def function(self, bind):
        return lambda x, axes=0: bind(x, axes=shaping.canonical_axes("kit_flip", axes, aval_of(x).ndim))

    @hookimpl
    def impl(self, args, *, axes):
        return np.flip(args[0], axes)

    @hookimpl
    def abstract_eval(self, avals, *, axes):
        (x,) = avals
        shaping.check_axes(self.name, "axes", axes, x.ndim)
        return ShapedArray(x.shape, x.dtype, x.weak_type)

    @hookimpl
    def transpose(self, cotangents, args, *, axes):
        return [flip(cotangents, axes)]

    @hookimpl
    def vmap(self, axis, args, dims, *, axes):
        return flip(args[0], shaping.shifted(axes, dims[0])), dims[0]

    @hookimpl
    def xla_translation(self, ctx, args, *, axes):
        return ctx.op("stablehlo.reverse", args, {"dimensions": ctx.ir.DenseI64ArrayAttr.get(axes)})

    @hookimpl
    def samples(self, rng):
        for shape, axes in [((3,), (0,)), ((2, 3), (1, 0)), ((2, 0, 3), (2,)), ((), ())]:
            yield Sample([rng.standard_normal(shape)], {"axes": axes})
        yield Sample([np.ones(3)], {"axes": (1,)}, error=IndexError)


flip = define(Flip())


def test_a_primitive_written_with_the_kit_keeps_the_laws():
    check_primitive(flip)
    assert [[2.0, 1.0], [4.0, 3.0]] == flip(np.array([[1.0, 2.0], [3.0, 4.0]]), -1).tolist()


def test_refused_makes_an_error_of_any_kind_that_lists_types():
    avals = [aval_of(1.0), aval_of(np.zeros(3))]
    error = refused("f", "operands differ", got=avals, wanted="one shape", todo="broadcast", kind=CorejaxValueError)
    assert isinstance(error, CorejaxError) and type(error) is CorejaxValueError
    assert "~f64[], f64[3]" == error.got and "f: operands differ" == error.message


def test_the_packs_use_the_same_kit():
    for call in (lambda: lax.rev(np.ones(3), (1,)), lambda: lax.reduce_sum(np.ones(3), (1,)),
                 lambda: lax.cumsum(np.ones(3), 1)):
        with pytest.raises(CorejaxIndexError, match="axis 1 is out of bounds for 1 dimensions") as caught:
            call()
        assert "an axis from -1 to 0" == caught.value.wanted
