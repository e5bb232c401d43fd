"""corejax: composable transformations of numerical functions. All primitives come from packs.

>>> import corejax as cj
>>> cj.grad(lambda x: x * x)(3.0)
Array(6., dtype=float64, weak_type=True)
"""

from difflib import get_close_matches
from sys import _getframe
from types import FrameType
from typing import TYPE_CHECKING, Any

# Before all else, while the stack is shallow. CPython keeps frames in chunks, and a call that crosses the end of one
# maps memory and unmaps it again: in NumPy's imports, reached through rooms of ours, that made 71 ms into 112.
import numpy as _numpy  # noqa: F401

from corejax import core as core, errors as errors, lax as lax, plugins as plugins, tree as tree
from corejax.arrays.array import Array as Array
from corejax.arrays.devices import run_by
from corejax.base import ending
from corejax.base.caches import generation
from corejax.base.config import bring_by, watch_by
from corejax.base.dtypes import bfloat16 as bfloat16, float0 as float0, load_by
from corejax.base.errors import CorejaxError
from corejax.base.facades import find_in, origins
from corejax.base.late import late
from corejax.base.source import error_without, here
from corejax.base.tracebacks import trim
from corejax.config import config as config
from corejax.eager import watched
from corejax.installed import groups, namespaces, registry
from corejax.installed.meanings import Meanings
from corejax.kernel.context import named_scope as named_scope, stand_on
from corejax.kernel.primitive import freeze_by

if TYPE_CHECKING:
    from corejax import (
        dtypes as dtypes,
        experimental as experimental,
        export as export,
        sharding as sharding,
        stages as stages,
        tree_util as tree_util,
        typing as typing,
    )
    from corejax.api import (
        ShapeDtypeStruct as ShapeDtypeStruct,
        block_until_ready as block_until_ready,
        checkpoint as checkpoint,
        clear_caches as clear_caches,
        custom_jvp as custom_jvp,
        custom_vjp as custom_vjp,
        default_backend as default_backend,
        device_count as device_count,
        device_get as device_get,
        device_put as device_put,
        devices as devices,
        disable_jit as disable_jit,
        ensure_compile_time_eval as ensure_compile_time_eval,
        eval_shape as eval_shape,
        from_dlpack as from_dlpack,
        fwd_and_bwd as fwd_and_bwd,
        grad as grad,
        hessian as hessian,
        jacfwd as jacfwd,
        jacobian as jacobian,
        jacrev as jacrev,
        jit as jit,
        jvp as jvp,
        linear_transpose as linear_transpose,
        linearize as linearize,
        local_device_count as local_device_count,
        local_devices as local_devices,
        make_jaxpr as make_jaxpr,
        named_call as named_call,
        process_count as process_count,
        process_index as process_index,
        remat as remat,
        typeof as typeof,
        value_and_grad as value_and_grad,
        vjp as vjp,
        vmap as vmap,
    )
    from corejax.arrays.assembling import (
        make_array_from_callback as make_array_from_callback,
        make_array_from_process_local_data as make_array_from_process_local_data,
        make_array_from_single_device_arrays as make_array_from_single_device_arrays,
    )
    from corejax.arrays.meshes import make_mesh as make_mesh
    from corejax.arrays.partitions import P as P
    from corejax.arrays.shardings import NamedSharding as NamedSharding
    from corejax.arrays.shards import Shard as Shard
    from corejax.installed.distributions import Entry

__version__ = "0.1.0"

# Whatever lower rooms need from higher ones is handed in here, and nowhere else.
ending.serve()
stand_on(watched.bottom)
watch_by(watched.count)
run_by(late("corejax.xla.runtime.client", keep=True), late("corejax.eager.moving", keep=True))
freeze_by(late("corejax.packs.define"))
load_by(registry.load_dtype)
bring_by(registry.installed, registry.load_setting)
namespaces.serve()

_ORIGINS = origins({
    "corejax.api":
        "ShapeDtypeStruct block_until_ready checkpoint clear_caches custom_jvp custom_vjp default_backend device_count "
        "device_get device_put devices disable_jit ensure_compile_time_eval eval_shape from_dlpack fwd_and_bwd grad "
        "hessian jacfwd jacobian jacrev jit jvp linear_transpose linearize local_device_count local_devices "
        "make_jaxpr named_call process_count process_index remat typeof value_and_grad vjp vmap",
    "corejax.arrays.assembling":
        "make_array_from_callback make_array_from_process_local_data make_array_from_single_device_arrays",
    "corejax.arrays.meshes": "make_mesh",
    "corejax.arrays.partitions": "P",
    "corejax.arrays.shardings": "NamedSharding",
    "corejax.arrays.shards": "Shard",
    "corejax.dtypes": "=dtypes",
    "corejax.experimental": "=experimental",
    "corejax.export": "=export",
    "corejax.sharding": "=sharding",
    "corejax.stages": "=stages",
    "corejax.tree_util": "=tree_util",
    "corejax.typing": "=typing",
})

__all__ = sorted({*_ORIGINS, "Array", "bfloat16", "config", "core", "errors", "float0", "lax", "named_scope", "plugins",
                  "tree"})

#: The functions of packs that are among this module's names now.
_kept: set[str] = set()


def _load(entry: "Entry", name: str) -> Any:
    """The object that an entry gives to a name that several packs have."""
    return registry.load_once(entry)


_meanings = Meanings(__name__, _load)


def __getattr__(name: str) -> Any:
    try:
        return _find(name, _getframe(1))
    except Exception as error:
        trim(error)
        raise


def _find(name: str, frame: FrameType) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    if name in _ORIGINS:
        return find_in(_ORIGINS, __name__, name)
    # `from corejax import testing` asks here first, so the lookup of a module must not read what is installed.
    if not namespaces.is_reserved(name):
        since, entries = generation(), registry.installed().at_top(name)
        if len(entries) > 1:
            return _meanings.find(name, entries, frame)
        if entries and entries[0].group == groups.NAMESPACES:
            return namespaces.load(name)
        if entries:
            _kept.add(name)
            return registry.keep(registry.load_once(entries[0]), globals(), name, since)
    raise _unknown(name)


def _forget(function: str | None) -> None:
    while function is None and _kept:  # else it is a function of `lax`
        globals().pop(_kept.pop(), None)


registry.also_forget(_forget)


def _unknown(name: str) -> CorejaxError:
    kind = error_without(__name__, name, 3)
    names = __all__ if namespaces.is_reserved(name) else __dir__()  # for those, what is installed must not be read
    return kind(f"corejax has no {name!r}", got=f"cj.{name}", where=here(), todo=_instead_of(name),
                wanted=f"one of: {', '.join([each for each in names if not each.startswith('_')])}")


def _instead_of(name: str) -> str:
    """What to do about a name that isn't there."""
    names, hint = __all__, "look in cj.lax, which has what the packs provide"
    if not namespaces.is_reserved(name):
        for group, there in ((groups.NAMESPACES, name), (groups.FUNCTIONS, groups.AT_TOP + name)):
            if registry.installed().hidden_provider((group,), there) is not None:
                return registry.install_hint(there, (group,))
        known = registry.brought_by(name)
        if known is not None:
            return known
        if name in dir(lax):
            return f"write cj.lax.{name}"
        names, hint = __dir__(), f"{hint}; or {registry.install_hint(name, (groups.NAMESPACES,))}"
    close = get_close_matches(name, names, 1)
    return f"did you mean {close[0]!r}?" if close else hint


def __dir__() -> list[str]:
    found = registry.installed()
    brought = [name for name in found.names_at("cj") if not namespaces.is_reserved(name)]
    return sorted({*__all__, *brought, "__version__"})
