"""Calls that transformations make of calls (see `_user_calls`): mapped along an axis, and with fewer results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corejax.core import Axis, Jaxpr, ShapedArray, Zero, aval_of, to_dim, vmap_flat
from corejax.plugin import roles

Dims = Sequence[int | None]


class MappedCall:
    """A call mapped along an axis, with its rules mapped.

    Unless `out_dims` says where the axis is in the results, it is known when the call has run.
    """

    n_consts: int

    def __init__(self, call: Any, axis: Axis, dims: Dims, out_dims: Dims | None = None) -> None:
        self.call, self.axis, self.dims = call, axis, tuple(dims)
        self.name, self.n_consts = call.name, call.n_consts
        self.has_jvp, self.has_vjp = call.has_jvp, call.has_vjp
        self.out_dims: Dims = () if out_dims is None else tuple(out_dims)
        self._places = out_dims is not None
        self.out_avals: Sequence[ShapedArray] | None = None

    def __corejax_key__(self) -> Any:
        return self.call.__corejax_key__(), *self.mapping

    @property
    def mapping(self) -> tuple[Any, ...]:
        """How it is mapped."""
        return self.axis.size, _name_key(self.axis.name), self.dims, tuple(self.out_dims)

    def __corejax_rule__(self, hook: str) -> str:
        return self.call.__corejax_rule__(hook)  # type: ignore[no-any-return]

    def as_program(self, jaxpr: Jaxpr, n_consts: int) -> MappedCall:
        """The same call, which has a program."""
        call = MappedCall(self.call, self.axis, self.dims, self.out_dims)
        call.n_consts = n_consts
        return call

    def primal(self, args: Sequence[Any]) -> list[Any]:
        outs, dims = self._map(lambda *xs: self.call.primal(xs), args, self.dims)
        return self._placed(outs, dims, dims)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        flows = [type(t) is not Zero for t in tangents]
        nonzero: list[bool] = []

        def rule(*args: Any) -> list[Any]:
            xs, rest = args[: len(flows)], iter(args[len(flows):])
            dots = [next(rest) if f else Zero(aval_of(x).tangent) for f, x in zip(flows, xs, strict=True)]
            outs, out_dots = self.call.jvp(xs, dots)
            nonzero[:] = [type(t) is not Zero for t in out_dots]
            return [*outs, *[t for t in out_dots if type(t) is not Zero]]

        found, dims = self._map(rule, [*primals, *[t for t in tangents if type(t) is not Zero]],
                                [*self.dims, *[d for d, f in zip(self.dims, flows, strict=True) if f]])
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
        # each slice of an output has a cotangent of its own, also where all slices are the same
        outs = self._placed(found[:n], dims[:n], [0 if d is None else d for d in dims[:n]])
        return outs, found[n:], MappedPullback(self, pullback, dims[n:])

    def _map(self, fun: Callable[..., Sequence[Any]], args: Sequence[Any], dims: Dims) -> tuple[list[Any], Any]:
        return vmap_flat(fun, self.axis.size, self.axis.name, args, dims)

    def _placed(self, outs: Sequence[Any], dims: Dims, wanted: Dims) -> list[Any]:
        """The results with the axis where it should be: it was said before, or `wanted` says it now."""
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

    def __corejax_rule__(self, hook: str) -> str:
        return self.pullback.__corejax_rule__(hook)  # type: ignore[no-any-return]

    def bwd(self, residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        call = self.call
        flows = [type(ct) is not Zero for ct in cotangents]
        nonzero: list[bool] = []

        def rule(*args: Any) -> list[Any]:
            rest = iter(args[self.n_residuals:])
            cts = [next(rest) if f else Zero(aval.tangent)
                   for f, aval in zip(flows, self.pullback.out_avals, strict=True)]
            back = self.pullback.bwd(args[: self.n_residuals], cts)
            nonzero[:] = [type(ct) is not Zero for ct in back]
            return [ct for ct in back if type(ct) is not Zero]

        dims = [*self.residual_dims, *[d for d, f in zip(call.out_dims, flows, strict=True) if f]]
        found, found_dims = call._map(rule, [*residuals, *[ct for ct in cotangents if type(ct) is not Zero]], dims)
        pairs = iter(zip(found, found_dims, strict=True))
        return [self._of_argument(*next(pairs), dim) if nz else Zero(aval)
                for nz, dim, aval in zip(nonzero, call.dims, self.in_avals, strict=True)]

    def _of_argument(self, ct: Any, found: int | None, dim: int | None) -> Any:
        """A cotangent with the axis where it is in its argument; summed over it where that has none."""
        if dim is not None:
            return to_dim(ct, found, dim, self.call.axis.size)
        return ct if found is None else roles.sum_axes(ct, (found,))


class SelectedCall:
    """A call of which some results are not needed."""

    def __init__(self, call: Any, used: Sequence[bool]) -> None:
        self.call, self.used = call, tuple(used)
        self.name, self.n_consts = call.name, call.n_consts
        self.has_jvp, self.has_vjp = call.has_jvp, call.has_vjp

    def __corejax_key__(self) -> Any:
        return self.call.__corejax_key__(), self.used

    def __corejax_rule__(self, hook: str) -> str:
        return self.call.__corejax_rule__(hook)  # type: ignore[no-any-return]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        outs, dots = self.call.jvp(primals, tangents)
        return self._of(outs), self._of(dots)

    def fwd(self, primals: Sequence[Any], nonzero: Sequence[bool]) -> tuple[list[Any], list[Any], SelectedPullback]:
        outs, residuals, pullback = self.call.fwd(primals, nonzero)
        return self._of(outs), residuals, SelectedPullback(self, pullback)

    def _of(self, xs: Sequence[Any]) -> list[Any]:
        return [x for x, u in zip(xs, self.used, strict=True) if u]


class SelectedPullback:
    """The pullback of a call of which some results are not needed: their cotangents are zero."""

    def __init__(self, call: SelectedCall, pullback: Any) -> None:
        self.call, self.pullback = call, pullback
        self.name, self.n_residuals, self.in_avals = pullback.name, pullback.n_residuals, pullback.in_avals
        self.out_avals = tuple(call._of(pullback.out_avals))

    def __corejax_key__(self) -> Any:
        return self.pullback.__corejax_key__(), self.call.used

    def __corejax_rule__(self, hook: str) -> str:
        return self.pullback.__corejax_rule__(hook)  # type: ignore[no-any-return]

    def bwd(self, residuals: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        given = iter(cotangents)
        cts = [next(given) if u else Zero(aval.tangent)
               for u, aval in zip(self.call.used, self.pullback.out_avals, strict=True)]
        return self.pullback.bwd(residuals, cts)  # type: ignore[no-any-return]


def _name_key(name: Any) -> Any:
    return None if name is None else (type(name), name)


def _with_axis(aval: ShapedArray, dim: int | None, size: int) -> ShapedArray:
    return aval if dim is None else aval.update(shape=(*aval.shape[:dim], size, *aval.shape[dim:]))
