"""`export`, `deserialize`, and the exported function that both give."""

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
from corejax.export import artifact as artifacts
from corejax.export import container
from corejax.export.artifact import Artifact
from corejax.export.structures import tree_to_data
from corejax.installed.roles import roles
from corejax.interpreters.leaves import argument_namer, check_callable, values
from corejax.ir.interpret import jaxpr_as_fun
from corejax.xla.runtime import client


@public
def export(fun: Callable[..., Any], *, platforms: Sequence[str] | None = None, vjp_order: int = 0,
           allow_custom_calls: Sequence[str] = ()) -> Callable[..., Exported]:
    """A function of the same arguments that returns `fun`, for arguments of these types, as an `Exported`.

    Arguments may be `ShapeDtypeStruct`s. `platforms` are those on which it is to run; the default device's by default.
    `vjp_order`: how many times it can be differentiated in reverse mode where it is loaded. `allow_custom_calls`:
    functions of the runtime that the program may call by name, as they are there wherever it is to run.

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
    """The exported function that was serialised to these bytes.

    What can be told of the bytes is checked, and nothing in them runs before it is called. Yet they are a program:
    call those only that come from where you trust. `allow_custom_calls`: functions of the runtime that it may call.

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
    assert following is not None  # the container holds one or more
    return following


@public
class Exported:
    """A function as a program in portable StableHLO, for arguments of certain types: to be kept, sent, and called.

    It is called in this process or another, eagerly, within `jit` and under `vmap`; under `grad` and `vjp` as often as
    the `vjp_order` with which it was exported says.
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
        """The platforms on which it runs."""
        return self._artifact.platforms

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
        """The version of StableHLO in which the program is written."""
        return artifacts.version_of(self._artifact.modules[0][1])

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Its result for arguments of the types that it was exported for."""
        dynamic = args, kwargs
        leaves, in_tree = trees.flatten(dynamic)
        check_arguments(leaves, in_tree, dynamic, self.in_tree, self.in_avals, self.fun_name, "exported")
        xs = values(leaves, self.fun_name, argument_namer(*dynamic))
        return self.out_tree.unflatten(self._flat(*xs))

    def vjp(self) -> Exported:
        """Its derivative in reverse mode, exported: a function of its arguments and, after them, a cotangent.

        It returns the tuple of the arguments' cotangents; if there are keyword arguments, the pair of that and a dict.
        """
        if self._derivative is None:
            raise CorejaxValueError(f"{self.fun_name} was exported without its derivative", got="vjp_order=0",
                                    wanted="vjp_order=1 or more", where=here(),
                                    todo="export it with vjp_order=1, where the source is")
        return self._derivative

    def serialize(self) -> bytes:
        """All of it as bytes, for `deserialize`."""
        functions = []
        one: Exported | None = self
        while one is not None:
            functions.append((one._artifact, one.in_tree, one.out_tree))
            one = one._derivative
        return container.to_bytes(functions)

    def portable_artifact(self, platform: str | None = None) -> bytes:
        """The program alone, as other tools read it: a portable artifact of StableHLO.

        Its function `main` takes the leaves of the arguments and returns those of the result.
        """
        return self._artifact.module_for(self.platforms[0] if platform is None else platform)

    def as_text(self, platform: str | None = None) -> str:
        """The program's text."""
        return str(artifacts.read_module(_jaxlib.mlir_context(), self.portable_artifact(platform)))

    @cached_property
    def _flat(self) -> Callable[..., Sequence[Any]]:
        """The function of leaves."""
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
        # The function itself, not `call`: another derivative goes through the rule again.
        differentiable.defvjp(lambda *xs: (differentiable(*xs), xs), backward)
        return differentiable  # type: ignore[no-any-return]

    def __reduce__(self) -> tuple[object, ...]:
        return deserialize, (self.serialize(),)

    def __repr__(self) -> str:
        ins, outs = (", ".join(map(str, avals)) for avals in (self.in_avals, self.out_avals))
        return f"Exported({self.fun_name}: ({ins}) -> ({outs}), for {' and '.join(self.platforms)})"


def _exported(traced: Traced | Lowered, platforms: Sequence[str], order: int, allowed: frozenset[str]) -> Exported:
    closed = (traced.traced if isinstance(traced, Lowered) else traced).jaxpr
    for treedef, what in ((traced.in_tree, "(args, kwargs)"), (traced.out_tree, "the result")):
        tree_to_data(treedef, what)  # refuses what can't be written down
    artifact = artifacts.make(closed, traced.fun_name, platforms, allowed)
    derivative = None
    if order:
        derivative = _exported(_backward(closed, traced), platforms, order - 1, allowed)
    return Exported(artifact, traced.in_tree, traced.out_tree, derivative)


def _backward(closed: Any, traced: Any) -> Traced:
    """The derivative in reverse mode, traced: a function of the arguments and a cotangent after them."""
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
    return jit(backward).trace(*args, ct, **kwargs)  # type: ignore[no-any-return]


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
