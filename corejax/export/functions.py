"""`export`, `deserialize`, and the class of exported functions that both return."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from corejax.api.arguments import wraps
from corejax.api.autodiff import vjp
from corejax.api.jit import jit
from corejax.api.stages import Lowered, Traced, check_arguments
from corejax.api.staging import struct_of
from corejax.base import _jaxlib, trees
from corejax.base.avals import ShapedArray
from corejax.base.errors import CorejaxTypeError, CorejaxValueError, kind_of
from corejax.base.source import here
from corejax.base.tracebacks import public
from corejax.base.trees import TreeDef
from corejax.export import artifact as artifacts, container
from corejax.export.artifact import Artifact
from corejax.export.structures import tree_to_data
from corejax.installed.roles import roles
from corejax.interpreters.leaves import argument_namer, check_callable, values
from corejax.ir.interpret import jaxpr_as_fun
from corejax.xla.runtime import client


@public
def export(fun: Callable[..., Any], *, platforms: Sequence[str] | None = None, vjp_order: int = 0,
           allow_custom_calls: Sequence[str] = ()) -> Callable[..., Exported]:
    """A function that, called with arguments of the types to export `fun` for, returns it as an `Exported`.

    Arguments may be `ShapeDtypeStruct`s. `platforms` are those that it should run on; by default, the default device's.
    `vjp_order`: how many times it can be differentiated in reverse mode after loading. `allow_custom_calls`: functions
    of the runtime that the program may call by name, because they exist wherever it will run; those that packs provide
    in the group `corejax.kernels` are allowed, as the error for a missing one names the pack.

    >>> import corejax as cj
    >>> exported = cj.export.export(lambda x: x * x)(3.0)
    >>> cj.export.deserialize(exported.serialize()).call(4.0)
    Array(16., dtype=float64, weak_type=True)
    """
    check_callable(fun, "export")
    if type(vjp_order) is not int or vjp_order < 0:
        raise CorejaxTypeError("export: vjp_order must be a number of derivatives", where=here(),
                               got=repr(vjp_order)[:80], wanted="an int, 0 or more", todo="write vjp_order=1")
    names = _platforms(platforms)
    allowed = _allowed(allow_custom_calls, "export")
    jitted: Any = fun if hasattr(fun, "trace") and hasattr(fun, "lower") else jit(fun)

    def export_f(*args: Any, **kwargs: Any) -> Exported:
        return _exported(jitted.trace(*args, **kwargs), names or (client.default_platform(),), vjp_order, allowed)

    return wraps(fun, export_f)


@public
def deserialize(data: bytes, *, allow_custom_calls: Sequence[str] = ()) -> Exported:
    """Load an exported function from the bytes that `serialize` returned.

    The bytes are checked as far as possible, and nothing in them is run before the function is called. But they are a
    program: only call one from a source that you trust. `allow_custom_calls`: functions of the runtime that it may
    call, other than kernels of installed packs.

    >>> import corejax as cj
    >>> data = cj.export.export(lambda x: {"twice": x + x})(cj.ShapeDtypeStruct((), "float32")).serialize()
    >>> cj.export.deserialize(data)
    Exported(<lambda>: (f32[]) -> (f32[]), for cpu)
    """
    allowed = _allowed(allow_custom_calls, "deserialize")
    following: Exported | None = None
    for artifact, in_tree, out_tree in reversed(container.from_bytes(data)):
        artifacts.check(artifact, allowed)
        following = Exported(artifact, in_tree, out_tree, following)
    assert following is not None  # a container has at least one function
    return following


@public
class Exported:
    """A function as a portable StableHLO program, for arguments of certain types, that can be saved, sent, and called.

    It can be called in this process or another, eagerly, within `jit` and under `vmap`; under `grad` and `vjp` as many
    times as the `vjp_order` that it was exported with.
    """

    def __init__(self, artifact: Artifact, in_tree: TreeDef, out_tree: TreeDef,
                 derivative: Exported | None = None) -> None:
        self._artifact, self.in_tree, self.out_tree, self._derivative = artifact, in_tree, out_tree, derivative

    @property
    def fun_name(self) -> str:
        """The function's name."""
        return self._artifact.name

    @property
    def platforms(self) -> tuple[str, ...]:
        """The platforms that it runs on."""
        return self._artifact.platforms

    @property
    def nr_devices(self) -> int:
        """The number of devices that it runs on, among which it is divided."""
        return self._artifact.devices

    @property
    def in_avals(self) -> tuple[ShapedArray, ...]:
        """The types of the arguments' leaves."""
        return self._artifact.in_avals

    @property
    def out_avals(self) -> tuple[ShapedArray, ...]:
        """The types of the result's leaves."""
        return self._artifact.out_avals

    @property
    def args_info(self) -> Any:
        """The pair `(args, kwargs)`, with a `ShapeDtypeStruct` for each array."""
        return self.in_tree.unflatten(list(map(struct_of, self.in_avals)))

    @property
    def out_info(self) -> Any:
        """The result, with a `ShapeDtypeStruct` for each array."""
        return self.out_tree.unflatten(list(map(struct_of, self.out_avals)))

    @property
    def vjp_order(self) -> int:
        """How many times it can be differentiated in reverse mode."""
        return 0 if self._derivative is None else 1 + self._derivative.vjp_order

    @property
    def stablehlo_version(self) -> str:
        """The version of StableHLO that the program is written in."""
        return artifacts.version_of(self._artifact.modules[0][1])

    @property
    def custom_calls(self) -> tuple[str, ...]:
        """The functions that it calls by name, as they aren't part of the program: kernels of packs, and others."""
        return self._artifact.custom_calls

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Call it with arguments of the types that it was exported for."""
        dynamic = args, kwargs
        leaves, in_tree = trees.flatten(dynamic)
        check_arguments(leaves, in_tree, dynamic, self.in_tree, self.in_avals, self.fun_name, "exported")
        xs = values(leaves, self.fun_name, argument_namer(*dynamic))
        return self.out_tree.unflatten(self._flat(*xs))

    def vjp(self) -> Exported:
        """Its reverse-mode derivative, exported: a function of its arguments, followed by a cotangent.

        It returns the tuple of the arguments' cotangents; if there are keyword arguments, the pair of that and a dict.
        """
        if self._derivative is None:
            raise CorejaxValueError(f"{self.fun_name} was exported without its derivative", got="vjp_order=0",
                                    wanted="vjp_order=1 or more", where=here(),
                                    todo="export it with vjp_order=1, where the source is")
        return self._derivative

    def serialize(self) -> bytes:
        """Everything as bytes, for `deserialize`."""
        functions = []
        one: Exported | None = self
        while one is not None:
            functions.append((one._artifact, one.in_tree, one.out_tree))
            one = one._derivative
        return container.to_bytes(functions)

    def portable_artifact(self, platform: str | None = None) -> bytes:
        """Just the program, as a portable StableHLO artifact that other tools can read.

        Its function `main` takes the leaves of the arguments and returns those of the result.
        """
        return self._artifact.module_for(self.platforms[0] if platform is None else platform)

    def as_text(self, platform: str | None = None) -> str:
        """The program's text."""
        return str(artifacts.read_module(_jaxlib.mlir_context(), self.portable_artifact(platform)))

    @cached_property
    def _flat(self) -> Callable[..., Sequence[Any]]:
        """The function as a function of leaves."""
        artifact, derivative = self._artifact, self._derivative

        def call(*xs: Any) -> Sequence[Any]:
            return roles.exported_call(*xs, program=artifact)  # type: ignore[no-any-return]

        if derivative is None:
            return call

        def backward(xs: Sequence[object], cts: Sequence[object]) -> tuple[Any, ...]:
            args, kwargs = self.in_tree.unflatten(xs)
            return tuple(trees.flatten(derivative.call(*args, self.out_tree.unflatten(cts), **kwargs))[0])

        call.__name__ = self.fun_name
        differentiable = roles.custom_vjp(call, ())
        # `differentiable` itself, not `call`, so that another derivative uses the rule again.
        differentiable.defvjp(lambda *xs: (differentiable(*xs), xs), backward)
        return differentiable  # type: ignore[no-any-return]

    def __reduce__(self) -> tuple[object, ...]:
        return deserialize, (self.serialize(),)

    def __repr__(self) -> str:
        ins, outs = (", ".join(map(str, avals)) for avals in (self.in_avals, self.out_avals))
        return f"Exported({self.fun_name}: ({ins}) -> ({outs}), for {' and '.join(self.platforms)})"


def _exported(traced: Traced | Lowered, platforms: Sequence[str], order: int, allowed: frozenset[str]) -> Exported:
    one = traced.traced if isinstance(traced, Lowered) else traced
    closed, wanted = one.jaxpr, one.wanted
    for treedef, what in ((traced.in_tree, "(args, kwargs)"), (traced.out_tree, "the result")):
        tree_to_data(treedef, what)  # raises if it can't be serialized
    artifact = artifacts.make(closed, traced.fun_name, platforms, allowed, wanted)
    derivative = None
    if order:
        derivative = _exported(_backward(closed, traced), platforms, order - 1, allowed)
    return Exported(artifact, traced.in_tree, traced.out_tree, derivative)


def _backward(closed: Any, traced: Any) -> Traced:
    """The reverse-mode derivative, traced: a function of the arguments, followed by a cotangent."""
    flat, out_tree = jaxpr_as_fun(closed), traced.out_tree

    def fun(args: object, kwargs: object) -> Any:
        return out_tree.unflatten(flat(*trees.flatten((args, kwargs))[0]))

    def backward(*args_and_ct: Any, **kwargs: Any) -> Any:
        *args, ct = args_and_ct
        of_args, of_kwargs = vjp(fun, tuple(args), kwargs)[1](ct)
        return (of_args, of_kwargs) if kwargs else of_args

    backward.__name__ = f"vjp_of_{traced.fun_name}"
    args, kwargs = traced.args_info
    ct = out_tree.unflatten([struct_of(aval.tangent) for aval in traced.out_avals])
    return jit(backward).trace(*args, ct, **kwargs)


def _platforms(platforms: Any) -> tuple[str, ...]:
    if platforms is None:
        return ()
    names = (platforms,) if isinstance(platforms, str) else tuple(platforms)
    for name in names:
        if not isinstance(name, str) or not name.isidentifier() or name != name.lower() or name == "gpu":
            raise CorejaxValueError("export: a platform must be given by its name", got=repr(name)[:80], where=here(),
                                    wanted="'cpu', 'cuda', 'rocm', 'tpu' or another, in lower case",
                                    todo="say which: 'cuda' or 'rocm'" if name == "gpu" else
                                         "leave it out for the default")
    if not names or len(set(names)) < len(names):
        raise CorejaxValueError("export: platforms must be one or more names, each given once", got=names, where=here(),
                                wanted="('cpu',) or ('cpu', 'cuda')", todo="leave it out for the default")
    return names


def _allowed(targets: Any, what: str) -> frozenset[str]:
    if isinstance(targets, str) or not all([isinstance(target, str) for target in targets]):
        raise CorejaxTypeError(f"{what}: allow_custom_calls must be names", got=f"{kind_of(targets)}: {targets!r:.80}",
                               wanted="a sequence of strings", where=here(), todo="write ('name',)")
    return frozenset(targets)
