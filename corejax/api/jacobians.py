"""Whole Jacobians: `jacfwd`, `jacrev`, `hessian`. Each is one derivative per unit vector, all at once with `vmap`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec

from corejax.api.arguments import as_weak_as, check_argnums, finish_cotangent, wraps
from corejax.api.gradients import Argnums, Chosen, check_input
from corejax.base import dtypes
from corejax.base.avals import ShapedArray, Zero
from corejax.base.errors import CorejaxTypeError
from corejax.base.source import here
from corejax.base.tracebacks import public
from corejax.installed.roles import roles
from corejax.interpreters import batching, forward, reverse
from corejax.interpreters.leaves import check_callable

P = ParamSpec("P")


@public
def jacfwd(fun: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False
           ) -> Callable[P, Any]:
    """The Jacobian by forward mode, a column at a time: for functions with few inputs.

    It has an array of shape `out.shape + in.shape` for each leaf of the output and each leaf of the arguments.

    >>> import corejax as cj, numpy as np
    >>> cj.jacfwd(lambda x: x * x)(np.array([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    check_callable(fun, "jacfwd")
    argnums = check_argnums(argnums, "jacfwd")

    def jacfwd_f(*args: Any, **kwargs: Any) -> Any:
        chosen = Chosen(fun, argnums, args, kwargs, "jacfwd", has_aux)
        for i, x in enumerate(chosen.values):
            check_input(x.aval, holomorphic, False, chosen, i)
            if dtypes.is_complex(x.aval.dtype) and not holomorphic:
                raise CorejaxTypeError("jacfwd: an input is complex", got=f"{x.aval} at {chosen.name(i)}",
                                       wanted="a real float", where=here(),
                                       todo="set holomorphic=True if the function is holomorphic")
        outs: Sequence[Any] = chosen.flat(*chosen.values) if not chosen.values else ()
        columns = []  # for each leaf of the arguments, the derivatives of all leaves of the output
        for i in range(len(chosen.values)):
            column, outs = _column(chosen, i)
            columns.append(column)
        flat = chosen.flat
        for y in outs[: flat.n_outs]:
            _check_output(y.aval, holomorphic, dtypes.is_inexact(y.aval.dtype), "jacfwd")
        jacobian = flat.unflatten([chosen.unflatten([column[k] for column in columns]) for k in range(flat.n_outs)])
        return (jacobian, flat.aux(outs)) if has_aux else jacobian

    return wraps(fun, jacfwd_f)


def _column(chosen: Chosen, i: int) -> tuple[list[Any], list[Any]]:
    """The derivatives of all output leaves with respect to input leaf `i`, and the outputs themselves."""
    xs, flat = chosen.values, chosen.flat
    zeros = [Zero(x.aval.tangent) for x in xs]
    aval = xs[i].aval

    def along(x_dot: object) -> list[Any]:
        outs, dots = forward.jvp(flat, xs, [*zeros[:i], x_dot, *zeros[i + 1:]])
        n = flat.n_outs
        return [*[finish_cotangent(t, y.aval.tangent) for t, y in zip(dots[:n], outs[:n], strict=True)], *outs]

    found, dims = batching.vmap(along, aval.size, None, [roles.standard_basis(aval.tangent)], [0])
    n = flat.n_outs
    dots, outs = found[:n], _unmapped(found[n:], dims[n:], aval.size, chosen)
    return [_as_jacobian(t, d, y.aval, y.aval.ndim, aval) if dtypes.is_inexact(y.aval.dtype) else t
            for t, d, y in zip(dots, dims[:n], outs[:n], strict=True)], outs


def _unmapped(outs: Sequence[Any], dims: Sequence[int | None], size: int, chosen: Chosen) -> list[Any]:
    """The function's values: the same for each unit vector, though a primitive may have mapped all of its results."""
    if size == 0 and any([d is not None for d in dims]):
        return [*chosen.flat(*chosen.values)]
    return [x if d is None else roles.index(batching.to_dim(x, d, 0, size), 0) for x, d in zip(outs, dims, strict=True)]


@public
def jacrev(fun: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False,
           allow_int: bool = False) -> Callable[P, Any]:
    """The Jacobian by reverse mode, a row at a time: for functions with few outputs.

    It has an array of shape `out.shape + in.shape` for each leaf of the output and each leaf of the arguments.

    >>> import corejax as cj, numpy as np
    >>> cj.jacrev(lambda x: x * x)(np.array([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    check_callable(fun, "jacrev")
    argnums = check_argnums(argnums, "jacrev")

    def jacrev_f(*args: Any, **kwargs: Any) -> Any:
        chosen = Chosen(fun, argnums, args, kwargs, "jacrev", has_aux)
        flat = chosen.flat
        for i, x in enumerate(chosen.values):
            check_input(x.aval, holomorphic, allow_int, chosen, i)
        outs, pull = reverse.vjp(flat, chosen.values)
        rows = []
        for k, y in enumerate(outs[: flat.n_outs]):
            _check_output(y.aval, holomorphic, dtypes.is_float(y.aval.dtype) or holomorphic, "jacrev")
            rows.append(chosen.unflatten(_row(pull, k, [x.aval for x in outs], [x.aval for x in chosen.values])))
        jacobian = flat.unflatten(rows)
        return (jacobian, flat.aux(outs)) if has_aux else jacobian

    return wraps(fun, jacrev_f)


jacobian = jacrev


def _row(pull: Callable[[Sequence[Any]], list[Any]], k: int, outs: Sequence[ShapedArray], ins: Sequence[ShapedArray]
         ) -> list[Any]:
    """The derivatives of output leaf `k` with respect to each input leaf."""
    zeros = [Zero(aval.tangent) for aval in outs]
    aval = outs[k]
    inexact = [dtypes.is_inexact(x.dtype) for x in ins]

    def back(ct: object) -> list[Any]:
        cts = pull([*zeros[:k], ct, *zeros[k + 1:]])
        return [finish_cotangent(x, a.tangent) for x, a, wanted in zip(cts, ins, inexact, strict=True) if wanted]

    found, dims = batching.vmap(back, aval.size, None, [roles.standard_basis(aval.tangent)], [0])
    rows = iter(zip(found, dims, strict=True))
    return [_as_jacobian(*next(rows), x, 0, aval) if wanted else
            finish_cotangent(None, ShapedArray((*aval.shape, *x.shape), x.dtype))
            for x, wanted in zip(ins, inexact, strict=True)]


def _as_jacobian(x: object, dim: int | None, aval: ShapedArray, axis: int, basis: ShapedArray) -> Any:
    """Combine derivatives of type `aval`, one per unit vector of `basis`, with the axes of `basis` put at `axis`."""
    whole = batching.to_dim(x, dim, axis, basis.size)
    shape = (*aval.shape[:axis], *basis.shape, *aval.shape[axis:])
    return as_weak_as(whole.reshape(shape), aval.update(shape=shape))


def _check_output(aval: ShapedArray, holomorphic: bool, allowed: bool, what: str) -> None:
    if holomorphic and not dtypes.is_complex(aval.dtype):
        raise CorejaxTypeError(f"{what}: with holomorphic=True the output must be complex", got=str(aval), where=here(),
                               wanted="c64 or c128", todo="leave out holomorphic=True")
    if not allowed:
        raise CorejaxTypeError(f"{what}: the output has no real derivative", got=str(aval), where=here(),
                               wanted="a real float",
                               todo="return floats; for a holomorphic function set holomorphic=True")


@public
def hessian(fun: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False
            ) -> Callable[P, Any]:
    """The second derivatives: forward mode over reverse mode.

    >>> import corejax as cj
    >>> cj.hessian(lambda x: x * x * x)(2.0)
    Array(12., dtype=float64, weak_type=True)
    """
    return jacfwd(jacrev(fun, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)
