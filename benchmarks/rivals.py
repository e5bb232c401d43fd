"""The libraries, each with the same few names. A rival that isn't installed is left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Rival:
    """A library: its functions, how it makes an array from an ndarray, and the transformations that it has.

    `module` is set for libraries with the same names as `jax`.
    """

    name: str
    sin: Function
    mul: Function
    add: Function
    total: Function
    array: Function
    gradient: Callable[[Function], Function]
    jvp: Function | None = None
    vmap: Function | None = None
    nests: bool = True
    module: Any = None


def corejax() -> Rival:
    """The library that this is about."""
    cj = import_module("corejax")
    lax = cj.lax
    return Rival("corejax", lax.sin, lax.mul, lax.add, lambda x: x.sum(), _wrapped(cj), cj.grad, cj.jvp, cj.vmap,
                 module=cj)


def jax() -> Rival:
    """JAX, in double precision like the others."""
    module = import_module("jax")
    module.config.update("jax_enable_x64", True)
    lax = module.lax
    return Rival("jax", lax.sin, lax.mul, lax.add, lambda x: x.sum(), module.numpy.asarray, module.grad, module.jvp,
                 module.vmap, module=module)


def autograd() -> Rival:
    """autograd: NumPy's functions, with a tape in Python."""
    np, module = import_module("autograd.numpy"), import_module("autograd")

    def jvp(f: Function, primals: Any, tangents: Any) -> Any:
        return module.make_jvp(f, tuple(range(len(primals))))(*primals)(tangents)

    return Rival("autograd", np.sin, np.multiply, np.add, np.sum, lambda x: x, module.grad, jvp)


def torch_func() -> Rival:
    """PyTorch with `torch.func`, its function transformations."""
    torch = import_module("torch")
    torch.set_num_threads(1)
    return Rival("torch.func", torch.sin, torch.mul, torch.add, torch.sum, torch.from_numpy, torch.func.grad,
                 torch.func.jvp, torch.func.vmap)


def torch_tape() -> Rival:
    """PyTorch with `requires_grad`, its older interface: a tape in C++, without transformations."""
    torch = import_module("torch")

    def gradient(f: Function) -> Function:
        def derivative(x: Any, *rest: Any) -> Any:
            x = x.detach().requires_grad_()
            return torch.autograd.grad(f(x, *rest), x)[0]
        return derivative

    return Rival("torch tape", torch.sin, torch.mul, torch.add, torch.sum, torch.from_numpy, gradient,
                 nests=False)


def _wrapped(cj: Any) -> Function:
    """Makes an `Array` in host memory, like the result of any eager computation."""
    return lambda x: cj.lax.copy(x)


_NEEDS = {corejax: "corejax", jax: "jax", autograd: "autograd", torch_func: "torch", torch_tape: "torch"}


def installed() -> dict[str, Rival]:
    """The libraries that can be imported, by name."""
    return {rival.name: rival for rival in (make() for make, module in _NEEDS.items() if find_spec(module))}
