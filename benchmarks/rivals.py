"""Each library by the same few names. A rival that is not installed is left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Rival:
    """A library: its functions, how it makes an array from an ndarray, and how it differentiates."""

    name: str
    sin: Function
    mul: Function
    add: Function
    total: Function
    array: Function
    gradient: Callable[[Function], Function]
    module: Any = None


def corejax() -> Rival:
    """The library that this is about."""
    cj = import_module("corejax")
    lax = cj.lax
    return Rival("corejax", lax.sin, lax.mul, lax.add, lambda x: x.sum(), _wrapped(cj), cj.grad, cj)


def jax() -> Rival:
    """JAX, in double precision as the others."""
    module = import_module("jax")
    module.config.update("jax_enable_x64", True)
    lax = module.lax
    return Rival("jax", lax.sin, lax.mul, lax.add, lambda x: x.sum(), module.numpy.asarray, module.grad, module)


def autograd() -> Rival:
    """autograd: NumPy's functions, a tape in Python."""
    np = import_module("autograd.numpy")
    return Rival("autograd", np.sin, np.multiply, np.add, np.sum, lambda x: x, import_module("autograd").grad)


def torch_func() -> Rival:
    """PyTorch by `torch.func`, its function transformations."""
    torch = import_module("torch")
    torch.set_num_threads(1)
    return Rival("torch.func", torch.sin, torch.mul, torch.add, torch.sum, torch.from_numpy, torch.func.grad)


def torch_tape() -> Rival:
    """PyTorch by `requires_grad`, its older interface: the tape in C++, no transformation."""
    torch = import_module("torch")

    def gradient(f: Function) -> Function:
        def derivative(x: Any, *rest: Any) -> Any:
            x = x.detach().requires_grad_()
            return torch.autograd.grad(f(x, *rest), x)[0]
        return derivative

    return Rival("torch tape", torch.sin, torch.mul, torch.add, torch.sum, torch.from_numpy, gradient)


def _wrapped(cj: Any) -> Function:
    """An `Array` in host memory, as the result of any eager computation is."""
    return lambda x: cj.lax.copy(x)


_NEEDS = {corejax: "corejax", jax: "jax", autograd: "autograd", torch_func: "torch", torch_tape: "torch"}


def installed() -> dict[str, Rival]:
    """Those that can be imported, by name."""
    return {rival.name: rival for rival in (make() for make, module in _NEEDS.items() if find_spec(module))}
