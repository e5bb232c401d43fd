"""Calls with custom derivatives mapped along an axis, with their rules and pullbacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.core import Axis, Jaxpr, ShapedArray, Zero, aval_of, to_dim, vmap_flat
from corejax.errors import CorejaxError
from corejax.plugin import carrying, roles

Dims = Sequence[int | None]


class MappedCall:
    """A call mapped along an axis, with its rules mapped.

    Unless `out_dims` says where the axis is in the results, that is known once the call has run.
    """

    def __init__(self, call: Any, axis: Axis, dims: Dims, out_dims: Dims | None = None) -> None:
        self.call, self.axis, self.dims = call, axis, tuple(dims)
        self.name, self.n_consts = call.name, call.n_consts
        self.has_jvp, self.has_vjp, self.optimize_remat = call.has_jvp, call.has_vjp, call.optimize_remat
        self.out_dims: Dims = () if out_dims is None else tuple(out_dims)
        self._places = out_dims is not None
        self.out_avals: Sequence[ShapedArray] | None = None

    def __corejax_key__(self) -> Any:
        return self.call.__corejax_key__(), *self.mapping

    @property
    def mapping(self) -> tuple[Any, ...]:
        """How it is mapped."""
        return self.axis.size, _name_key(self.axis.name), self.dims, tuple(self.out_dims)

    @property
    def __corejax_unique__(self) -> bool:
        return self.call.__corejax_unique__  # type: ignore[no-any-return]

    def __corejax_rule__(self, hook: str) -> str:
        return self.call.__corejax_rule__(hook)  # type: ignore[no-any-return]

    def twin(self) -> MappedCall:
        """A copy."""
        call = MappedCall(self.call.twin(), self.axis, self.dims)
        call.out_dims, call.out_avals, call._places = self.out_dims, self.out_avals, self._places
        return call

    def as_program(self, jaxpr: Jaxpr) -> MappedCall:
        """The same call with a program."""
        return MappedCall(self.call, self.axis, self.dims, self.out_dims)

    def closing_over(self, values: Sequence[Any]) -> MappedCall:
        """The same call with more operands before the others, for these closed-over values."""
        call = self.twin()
        call.call, call.dims = self.call.closing_over(values), (*[None] * len(values), *self.dims)
        call.n_consts += len(values)
        return call

    def names_of(self, flags: Sequence[bool]) -> list[str]:
        """The names of closed-over values, as far as they are known."""
        return self.call.names_of(flags)  # type: ignore[no-any-return]

    def primal(self, args: Sequence[Any]) -> list[Any]:
        outs, dims = self._map(lambda *xs: self.call.primal(xs), args, self.dims)
        return self._placed(outs, dims, dims)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        flows = carrying.nonzero(tangents)
        nonzero: list[bool] = []

        def rule(*args: Any) -> list[Any]:
            xs = args[: len(flows)]
            dots = carrying.with_zeros(args[len(flows):], flows, [aval_of(x).tangent for x in xs])
            outs, out_dots = self.call.jvp(xs, dots)
            nonzero[:] = carrying.nonzero(out_dots)
            return [*outs, *carrying.without_zeros(out_dots)]

        found, dims = self._map(rule, [*primals, *carrying.without_zeros(tangents)],
                                [*self.dims, *carrying.marked(self.dims, flows)])
        n = len(nonzero)
        rest, rest_dims = iter(found[n:]), iter(dims[n:])
        pairs = [(next(rest), next(rest_dims)) if nz else (None, None) for nz in nonzero]
        outs = self._placed(found[:n], dims[:n], [d if d is not None else t for d, (_, t) in
                                                  zip(dims[:n], pairs, strict=True)])
        return outs, [Zero(aval_of(x).tangent) if t is None else self._at(t, d, wanted)
                      for x, (t, d), wanted in zip(outs, pairs, self.out_dims, strict=True)]

    def fwd(self, primals: Sequence[Any], nonzero: Sequence[bool]) -> tuple[list[Any], list[Any], MappedPullback]:
        inner: list[Any] = []

        def rule(*xs: Any) -> list[Any]:
            outs, residuals, pullback = self.call.fwd(xs, nonzero)
            inner[:] = [pullback]
            return [*outs, *residuals]

        found, dims = self._map(rule, primals, self.dims)
        pullback = inner[0]
        n = len(found) - pullback.n_residuals
        # each slice of an output has its own cotangent, even if all slices are the same
        outs = self._placed(found[:n], dims[:n], [0 if d is None else d for d in dims[:n]])
        return outs, found[n:], MappedPullback(self, pullback, dims[n:])

    def _map(self, fun: Callable[..., Sequence[Any]], args: Sequence[Any], dims: Dims) -> tuple[list[Any], Any]:
        return vmap_flat(fun, self.axis.size, self.axis.name, args, dims)

    def _placed(self, outs: Sequence[Any], dims: Dims, wanted: Dims) -> list[Any]:
        """The results with the axis where it should be: at the places set before, or else at `wanted`."""
        if not self._places:
            self.out_dims = tuple(wanted)
        outs = [self._at(x, d, w) for x, d, w in zip(outs, dims, self.out_dims, strict=True)]
        self.out_avals = [aval_of(x) for x in outs]
        return outs

    def _at(self, x: Any, dim: int | None, wanted: int | None) -> Any:
        return x if wanted is None else to_dim(x, dim, wanted, self.axis.size)


class MappedPullback:
    """The pullback of a mapped call."""

    def __init__(self, call: MappedCall, pullback: Any, residual_dims: Dims) -> None:
        self.call, self.pullback, self.residual_dims = call, pullback, tuple(residual_dims)
        self.name, self.n_residuals = pullback.name, pullback.n_residuals
        size = call.axis.size
        self.in_avals = [_with_axis(a, d, size) for a, d in zip(pullback.in_avals, call.dims, strict=True)]
        self.out_avals = tuple([_with_axis(a, d, size) for a, d in zip(pullback.out_avals, call.out_dims, strict=True)])

    def __corejax_key__(self) -> Any:
        return self.pullback.__corejax_key__(), *self.call.mapping, self.residual_dims

    @property
    def __corejax_unique__(self) -> bool:
        return self.pullback.__corejax_unique__  # type: ignore[no-any-return]

    def __corejax_rule__(self, hook: str) -> str:
        return self.pullback.__corejax_rule__(hook)  # type: ignore[no-any-return]

    def bwd(self, residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        call = self.call
        flows = carrying.nonzero(cotangents)
        nonzero: list[bool] = []

        def rule(*args: Any) -> list[Any]:
            cts = carrying.with_zeros(args[self.n_residuals:], flows, [a.tangent for a in self.pullback.out_avals])
            back = self.pullback.bwd(args[: self.n_residuals], cts)
            nonzero[:] = carrying.nonzero(back)
            return carrying.without_zeros(back)

        dims = [*self.residual_dims, *carrying.marked(call.out_dims, flows)]
        found, found_dims = call._map(rule, [*residuals, *carrying.without_zeros(cotangents)], dims)
        pairs = iter(zip(found, found_dims, strict=True))
        return [self._of_argument(*next(pairs), dim) if nz else Zero(aval)
                for nz, dim, aval in zip(nonzero, call.dims, self.in_avals, strict=True)]

    def backward_only(self) -> CorejaxError:
        """The error for computing it forward."""
        return self.pullback.backward_only()  # type: ignore[no-any-return]

    def _of_argument(self, ct: Any, found: int | None, dim: int | None) -> Any:
        """A cotangent with the axis where its argument has it; summed over the axis if the argument has none."""
        if dim is not None:
            return to_dim(ct, found, dim, self.call.axis.size)
        return ct if found is None else roles.sum_axes(ct, (found,))


def _name_key(name: Any) -> Any:
    return None if name is None else (type(name), name)


def _with_axis(aval: ShapedArray, dim: int | None, size: int) -> ShapedArray:
    return aval if dim is None else aval.update(shape=(*aval.shape[:dim], size, *aval.shape[dim:]))
