"""Compiling and running: from a jaxpr to an `Executable`.

Programs are shared by structure. The key is the jaxpr's canonical form with its types, the constants baked into it,
and where and how it is compiled, but not the Python function it came from. Each is compiled once, however many threads
ask for it at the same time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from corejax.arrays.array import Array, as_array
from corejax.arrays.storage import is_on_device, to_numpy
from corejax.base import _jaxlib, dtypes, ending
from corejax.base.avals import ShapedArray
from corejax.base.caches import SharedCache, generation
from corejax.kernel.checks import failed_lowering
from corejax.kernel.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var, subjaxprs
from corejax.kernel.keys import compiled_key, param_key
from corejax.xla.cache import persistent, progress
from corejax.xla.lowering.nesting import check_depth
from corejax.xla.lowering.partitioning import Wanted
from corejax.xla.lowering.programs import Lowering, bake, lower_module
from corejax.xla.lowering.targets import first_calling, targets_of
from corejax.xla.runtime import client, kernels
from corejax.xla.runtime.execution import make_calls
from corejax.xla.runtime.failures import no_such_analysis, refused_program
from corejax.xla.runtime.options import settings_of, wrong_option
from corejax.xla.runtime.peers import Program
from corejax.xla.runtime.placement import home_at
from corejax.xla.runtime.places import Division, Place, Request, Spread
from corejax.xla.runtime.transfers import Divided

if TYPE_CHECKING:
    from corejax.arrays.devices import Device


class Executable:
    """A compiled program. Calling it with a sequence of arrays returns the list of results without waiting for them.

    Arguments are trusted to have the types in `in_avals`; those not on the device are put there. `calls` has other ways
    to run it.
    """

    __slots__ = ("in_avals", "out_avals", "loaded", "at", "donated", "callbacks", "calls", "_shared", "__weakref__")

    def __init__(self, loaded: Any, at: Place | Division, in_avals: Sequence[ShapedArray],
                 out_avals: Sequence[ShapedArray], donated: Sequence[int] = (), callbacks: Sequence[Any] = (),
                 consts: Sequence[Any] = ()) -> None:
        self.loaded, self.at, self.donated, self.callbacks = loaded, at, tuple(donated), tuple(callbacks)
        self.in_avals, self.out_avals = tuple(in_avals), tuple(out_avals)
        self.calls = make_calls(loaded, at, self.in_avals, self.out_avals, self.donated, self.callbacks, list(consts))
        self._shared: Executable | None = None

    @property
    def device(self) -> Device:
        """The device that it runs on, or the first of several."""
        return self.at.group.device if type(self.at) is Division else self.at.device

    def instead(self, at: Place | Division, consts: Sequence[object]) -> Executable:
        """The same program with other values for the constants that are passed as arguments, or results that stay."""
        other = Executable(self.loaded, at, self.in_avals, self.out_avals, self.donated, self.callbacks, consts)
        other._shared = self  # keeps it in the cache
        return other

    def __call__(self, args: Sequence[object]) -> list[Array]:
        return self.calls.call(args)

    def as_text(self) -> str:
        """The optimized program, in HLO."""
        return "\n\n".join(module.to_string() for module in self.loaded.hlo_modules())

    def cost_analysis(self) -> dict[str, float]:
        """The compiler's estimates: `flops`, `bytes accessed` and others."""
        try:
            return dict(self.loaded.cost_analysis())
        except _jaxlib.RuntimeFailure as error:
            raise no_such_analysis(error) from error

    def memory_analysis(self) -> Any:
        """What memory the program takes: arguments, outputs, temporaries, its code."""
        try:
            return self.loaded.get_compiled_memory_stats()
        except _jaxlib.RuntimeFailure as error:
            raise no_such_analysis(error) from error


class _OncePerKey:
    """A cache that computes a missing value in one thread while others that need it wait.

    A failed computation leaves nothing behind: the next thread in line tries again. So it does after one that was
    going on when all was forgotten.
    """

    def __init__(self, maxsize: int) -> None:
        self._cache: SharedCache[Any, Any] = SharedCache(maxsize)
        self._pending: dict[Any, tuple[int, threading.Event]] = {}
        self._lock = threading.Lock()

    @ending.holds_lock
    def get(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        me = threading.get_ident()
        while True:
            found = self._cache.get(key)
            if found is not None:
                return found
            with self._lock:
                owner, done = self._pending.setdefault(key, (me, threading.Event()))
                mine = owner == me
            if mine:
                break
            done.wait()
        try:
            # The last owner may have finished between the look-up and the claim.
            found, since = self._cache.get(key), generation()
            return found if found is not None else self._cache.put(key, compute(), since)
        finally:
            with self._lock:
                self._pending.pop(key, None)
            done.set()


ending.doors(_OncePerKey, "get")
ending.doors(Executable, "as_text", "memory_analysis")

#: Programs die with the functions that use them. The newest are kept a while, for functions made anew in a loop.
_executables = _OncePerKey(128)


def compile_jaxpr(closed: ClosedJaxpr, *, donated: Sequence[int] = (), name: str = "fn",
                  options: Mapping[str, Any] | None = None, at: Place | Request | None = None) -> Executable:
    """Compile a closed jaxpr for a place, the default one for None, or for a group of devices.

    `donated` are the indices of arguments that it may overwrite.
    """
    at = at or client.place_of()
    baked = bake(closed.consts)
    settings = settings_of(options)
    where: Place | Request
    if type(at) is Place:
        where = at.twin if at.fixed else at
    else:
        where = with_consts(at, closed, baked)
    key = (compiled_key(closed.jaxpr), tuple(None if c is None else (c.dtype, c.tobytes()) for c in baked),
           tuple(donated), param_key(dict(settings)), where)

    def make() -> Executable:
        place = where if type(where) is Place else where.group
        wanted = None if type(where) is Place else wanted_by(where)
        lowered = lower_module(closed.jaxpr, baked, name, place.compiler, donated, wanted=wanted)
        return compile_lowered(lowered, closed, where, donated, settings)

    shared: Executable = _executables.get(key, make)
    hoisted = hoisted_consts(closed, baked, shared.at)
    if hoisted or at is not where:
        return shared.instead(at if type(at) is Place else shared.at, hoisted)
    return shared


def wanted_by(request: Request) -> Wanted:
    """What the module says of a request."""
    arguments = [None if spread is None else spread.user_sharding for spread in request.arguments]
    return Wanted(tuple(request.group.devices), arguments, request.results)


def with_consts(request: Request, closed: ClosedJaxpr, baked: Sequence[object]) -> Request:
    """The request with the constants that are passed as arguments, divided as they are already."""
    homes = [home_at(const) for const, host in zip(closed.consts, baked, strict=True) if host is None]
    spreads = [home if type(home) is Spread and home.group is request.group else None for home in homes]
    return request._replace(arguments=(*spreads, *request.arguments))


def hoisted_consts(closed: ClosedJaxpr, baked: Sequence[object], at: Place | Division) -> list[Any]:
    """The constants that are passed as arguments, as buffers where the program runs."""
    arrays = [as_array(const, copy=True) for const, host in zip(closed.consts, baked, strict=True) if host is None]
    if type(at) is Division:
        return Divided(at.arguments[: len(arrays)], [x.aval for x in arrays]).start(arrays)[0]
    return [x._buffer if is_on_device(x) else at.put_shared(x.aval, to_numpy(x)) if x.aval.dtype != dtypes.float0
            else at.put_shared(x.aval.stored, np.zeros(x.aval.shape, np.bool_)) for x in arrays]


def compile_lowered(lowered: Lowering, closed: ClosedJaxpr, at: Place | Request, donated: Sequence[int] = (),
                    settings: Sequence[tuple[str, object]] = (), consts: Sequence[object] = ()) -> Executable:
    """Compile a lowered module for a place or a group."""
    check_depth(lowered.depth, closed.jaxpr.name or "fn")
    place = at if type(at) is Place else at.group
    ids, overrides = [device.id for device in place.devices], (*place.options, *settings)
    first = _jaxlib.first_id(place.client)
    if type(at) is Request:
        options = _jaxlib.compile_options(ids, overrides, True, [spread is None for spread in at.arguments] or [False],
                                          at.open_results or [False], first=first)
    else:
        options = _jaxlib.compile_options(ids, overrides, first=first)
    with lowered.context, lowered._location:
        targets = targets_of(lowered.module)
        if targets:
            kernels.register(targets, place)
        try:
            with progress.told(closed.jaxpr.name or "a program"):
                loaded = persistent.compile_module(place, lowered.module, options, lowered.callbacks)
        except _jaxlib.RuntimeFailure as error:
            wrong = wrong_option(error, settings) if settings else None
            if wrong is not None:
                raise wrong from error
            absent = _jaxlib.missing_function(error)
            if absent is not None:
                by = first_calling(absent, closed.jaxpr, place.compiler)
                raise kernels.missing(absent, place.compiler, by) from error
            eqn = _first_invalid(closed.jaxpr, place.compiler)
            raise (refused_program(error) if eqn is None else failed_lowering(eqn, error)) from error
    divided = at if type(at) is Place else _divided(loaded, at, lowered, closed, options)
    return Executable(loaded, divided, closed.in_avals, closed.out_avals, donated, lowered.callbacks, consts)


def _divided(loaded: Any, request: Request, lowered: Lowering, closed: ClosedJaxpr, options: object) -> Division:
    """How a program was divided: as requested, and as the compiler has decided elsewhere."""
    group, mesh, results = request.group, request.mesh, closed.out_avals
    ins: list[Any] = [None] * len(request.arguments)
    outs: list[Any] = [None] * len(results)
    if len(group.places) > 1 and (None in request.arguments or True in request.open_results):
        ins, outs = _jaxlib.shardings_of(loaded)  # of one thing, where there are none
        ins, outs = ins[:len(request.arguments)], outs[:len(results)]
    arguments = [spread if spread is not None else group.spread_by(tiles, aval.stored.ndim, mesh)
                 for spread, tiles, aval in zip(request.arguments, ins, lowered.arguments, strict=True)]
    divided = [group.spread_by(tiles, aval.stored.ndim, mesh) if wanted is None or is_open else
               group.spread(wanted, aval.stored.ndim)
               for wanted, is_open, tiles, aval in zip(request.results, request.open_results, outs, results,
                                                       strict=True)]
    exchanges = _jaxlib.exchanges(loaded)
    program = None
    if group.meets:
        program = Program(closed.jaxpr.name or "fn", _jaxlib.program_bytes(lowered.module),
                          _jaxlib.options_bytes(options), group.processes, exchanges)
    return Division(group, tuple(map(client.registered, arguments)), tuple(map(client.registered, divided)), exchanges,
                    program)


def _first_invalid(jaxpr: Jaxpr, platform: str) -> JaxprEqn | None:
    """The first equation that, lowered by itself, doesn't give a valid program."""
    for eqn in jaxpr.eqns:
        for inner in subjaxprs(eqn.params):
            found = _first_invalid(inner, platform)
            if found is not None:
                return found
        operands = list(dict.fromkeys([x for x in eqn.invars if type(x) is Var]))
        try:
            alone = Jaxpr((), operands, eqn.outvars, (eqn,), eqn.effects)
            lower_module(alone, (), "one", platform).module.operation.verify()
        except Exception:  # whatever is wrong, this is the equation
            return eqn
    return None
