"""`shard_map`: a function of the parts that devices hold, applied by each device of a mesh to its own.

The primitive carries the function as a program of parts. Each rule transforms that program, with the mesh's axes bound,
and applies the primitive to the result. With `check_vma`, types say along which axes values vary, so that programs
know by themselves which cotangents to add up; without it, a rule adds them up where parts are copies.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial, wraps
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from corejax import lax
from corejax.core import (
    AnyMesh,
    Jaxpr,
    JaxprEqn,
    Mesh,
    NamedAxis,
    PartitionSpec,
    ShapedArray,
    aval_of,
    binding,
    check_callable,
    eval_jaxpr,
    flatten,
    jvp_jaxpr,
    namer,
    stage,
    stage_closed,
    stage_function,
    transpose_jaxpr,
    values,
    vmap_jaxpr,
)
from corejax.plugin import Sample, carrying, define, devices, hookimpl, public
from corejax_collectives import _specs
from corejax_collectives.reducing import psum

__all__ = ["shard_map", "shard_map_p"]

#: These are `cj.NAME`.
AT_TOP = ("shard_map",)

Flags = carrying.Flags
Specs: TypeAlias = tuple[PartitionSpec, ...]
Axes: TypeAlias = tuple[NamedAxis, ...]


class _Program(NamedTuple):
    """A program of parts, and how each of its operands and results is divided."""

    jaxpr: Jaxpr
    in_specs: Specs
    out_specs: Specs


class ShardMap:
    """`shard_map(*operands, jaxpr, axes, mesh, in_specs, out_specs)`: run a program on each device of a mesh.

    The program is of parts of the operands, and has no constvars. `axes` are those axes of the mesh along which each
    device has its own part.

    >>> import numpy as np, corejax as cj
    >>> mesh = cj.make_mesh((1,), ("i",))
    >>> run = cj.shard_map(lax.sin, mesh=mesh, in_specs=cj.P("i"), out_specs=cj.P("i"))
    >>> [eqn.primitive for eqn in cj.make_jaxpr(run)(np.ones(1)).eqns]
    [shard_map]
    """

    name = "shard_map"
    operands = ("*operands",)
    multiple_results = True
    symbolic_zeros = True
    tracks_varying = True
    structural = True

    @hookimpl
    def abstract_eval(self, avals: Any, *, jaxpr: Jaxpr, axes: Axes, mesh: AnyMesh, in_specs: Specs, out_specs: Specs
                      ) -> list[ShapedArray]:
        carrying.check_operands(self.name, jaxpr, [_specs.part_of(aval, spec, axes) for aval, spec in
                                                   zip(avals, in_specs, strict=True)])
        return [_specs.whole_of(aval, spec, axes) for aval, spec in zip(jaxpr.out_avals, out_specs, strict=True)]

    @hookimpl
    def jvp(self, primals: Any, tangents: Any, *, jaxpr: Jaxpr, axes: Axes, mesh: AnyMesh, in_specs: Specs,
            out_specs: Specs) -> Any:
        def forward(nonzero: Flags) -> tuple[_Program, Flags]:
            with binding(axes):
                dual, nonzero_out = jvp_jaxpr(jaxpr, nonzero)
            return _Program(dual, (*in_specs, *carrying.marked(in_specs, nonzero)),
                            (*out_specs, *carrying.marked(out_specs, nonzero_out))), nonzero_out

        return carrying.jvp(primals, tangents, forward, partial(_bind, axes, mesh))

    @hookimpl
    def transpose(self, cotangents: Any, args: Any, *, jaxpr: Jaxpr, axes: Axes, mesh: AnyMesh, in_specs: Specs,
                  out_specs: Specs) -> Any:
        def backward(linear: Flags, nonzero: Flags) -> tuple[_Program, Flags]:
            with binding(axes):
                back, nonzero_in = transpose_jaxpr(jaxpr, linear, nonzero)
            ins = (*carrying.marked(in_specs, [not flag for flag in linear]), *carrying.marked(out_specs, nonzero))
            outs = tuple(carrying.marked(carrying.marked(in_specs, linear), nonzero_in))
            n_values = list(linear).count(False)
            if not _tracked(axes):
                back = _added_up(back, axes, n_values, ins, outs)
            return _Program(back, ins, outs), nonzero_in

        return carrying.transpose(cotangents, args, backward, partial(_bind, axes, mesh))

    @hookimpl
    def vmap(self, axis: Any, args: Any, dims: Any, *, jaxpr: Jaxpr, axes: Axes, mesh: AnyMesh, in_specs: Specs,
             out_specs: Specs) -> Any:
        along = _specs.divided_along(axis, axes, in_specs)
        names = _names(along)
        with binding(axes):
            if _tracked(along):
                jaxpr = carrying.retyped(jaxpr, [() if dim is None else names for dim in dims])
            mapped, out_dims = vmap_jaxpr(jaxpr, axis.size // prod([own.size for own in along]), axis.name, tuple(dims))
        ins = [spec if dim is None else _specs.inserted(spec, dim, names or None)
               for spec, dim in zip(in_specs, dims, strict=True)]
        outs = [spec if dim is None else _specs.inserted(spec, dim, names or None)
                for spec, dim in zip(out_specs, out_dims, strict=True)]
        return _bind(axes, mesh, _Program(mapped, tuple(ins), tuple(outs)), args), out_dims

    @hookimpl
    def xla_translation(self, ctx: Any, args: Any, *, jaxpr: Jaxpr, axes: Axes, mesh: AnyMesh, in_specs: Specs,
                        out_specs: Specs) -> Any:
        with binding(axes):  # rules may be lowered by staging them again
            return ctx.on_devices(jaxpr, args, mesh, frozenset(_names(axes)), in_specs, out_specs)

    @hookimpl
    def partial_eval(self, eqn: Any, unknown_in: Any) -> Any:
        axes, in_specs, out_specs = eqn.params["axes"], eqn.params["in_specs"], eqn.params["out_specs"]
        with binding(axes):
            split = carrying.split_jaxpr(eqn.params["jaxpr"], unknown_in)
            fresh = [_specs.varying_names(aval, axes) for aval in split.fresh_avals]
            known, staged = _passing(split.known, split.staged, tuple(fresh),
                                     [i for i, (where, _) in enumerate(split.residuals) if where == "fresh"],
                                     [i for where, i in split.residuals if where == "fresh"])
        stacked, avals = _between(split.fresh_avals, fresh, axes)
        specs: dict[str, Sequence[PartitionSpec]] = {"operand": in_specs, "result": out_specs, "fresh": stacked}
        known_out = [*carrying.marked(out_specs, [not unknown for unknown in split.unknown_out]), *stacked]
        programs = carrying.Split(
            _Program(known, tuple([in_specs[i] for i in split.known_operands]), tuple(known_out)),
            _Program(staged, tuple([specs[where][i] for where, i in split.places]),
                     tuple(carrying.marked(out_specs, split.unknown_out))),
            *split[2:])
        return carrying.divide(eqn, programs, partial(_with_program, eqn), avals)

    @hookimpl
    def recompute(self, eqn: Any, unknown_in: Any, saved_by: carrying.Policy) -> Any:
        axes, in_specs, out_specs = eqn.params["axes"], eqn.params["in_specs"], eqn.params["out_specs"]
        with binding(axes):
            saving = carrying.split_saving(eqn.params["jaxpr"], unknown_in, saved_by)
            fresh = [_specs.varying_names(aval, axes) for aval in saving.fresh_avals]
            known, staged = _passing(saving.known, saving.staged, tuple(fresh),
                                     [i for i, (where, _) in enumerate(saving.saved) if where == "fresh"],
                                     [i for where, i in saving.saved if where == "fresh"])
        stacked, avals = _between(saving.fresh_avals, fresh, axes)
        specs: dict[str, Sequence[PartitionSpec]] = {"result": out_specs, "fresh": stacked}
        known_in = carrying.marked(in_specs, [not unknown for unknown in unknown_in])
        known_out = [*carrying.marked(out_specs, [not unknown for unknown in saving.unknown_out]), *stacked]
        programs = carrying.Saving(
            _Program(known, tuple(known_in), tuple(known_out)),
            _Program(staged, (*[specs[where][i] for where, i in saving.saved], *in_specs), tuple(out_specs)),
            *saving[2:])
        return carrying.recompute(eqn, programs, unknown_in, partial(_with_program, eqn), avals)

    @hookimpl
    def dce(self, eqn: Any, used_out: Any) -> Any:
        found = carrying.without_dead_code(eqn.params["jaxpr"], used_out)
        if found is not None:
            program = _Program(found.program, tuple(carrying.marked(eqn.params["in_specs"], found.used_in)),
                               tuple(carrying.marked(eqn.params["out_specs"], found.kept_out)))
            found = found._replace(program=program)  # type: ignore[arg-type]
        return carrying.shorten(eqn, used_out, found, partial(_with_program, eqn))

    @hookimpl
    def effects(self, avals: Any, *, jaxpr: Jaxpr) -> frozenset[Any]:
        return jaxpr.effects

    @hookimpl
    def carry(self, lift: Any, args: Any, *, jaxpr: Jaxpr, axes: Axes, mesh: AnyMesh, in_specs: Specs,
              out_specs: Specs) -> Any:
        forms = lift.forms(args)
        with binding(axes):
            program, out_forms = lift.program(jaxpr, forms)
        lift.check_pointwise("what each device does", (*forms, *out_forms))
        ins, outs = lift.sides(in_specs, out_specs, forms, out_forms)
        return lift.results(_bind(axes, mesh, _Program(program, tuple(ins), tuple(outs)), lift.parts(args)), out_forms)

    def axes_within(self, *, axes: Axes, **params: Any) -> Axes:
        """The axes that the program may name."""
        return axes

    def widened(self, axes: Sequence[Any], **params: Any) -> dict[str, Any]:
        """The program for operands that vary along these axes, of a mesh that is mapped over around it."""
        with binding(params["axes"]):
            return {"jaxpr": carrying.retyped(params["jaxpr"], axes)}

    @hookimpl
    def pretty(self, *, jaxpr: Jaxpr, axes: Axes, mesh: AnyMesh, in_specs: Specs, out_specs: Specs
               ) -> Mapping[str, Any]:
        return {"check_vma": _tracked(axes), "in_specs": in_specs, "jaxpr": jaxpr, "manual_axes": _names(axes),
                "mesh": mesh, "out_specs": out_specs}

    @hookimpl
    def samples(self, rng: Any) -> Iterator[Sample]:
        mesh = Mesh(devices()[:1], ("i",))  # one device is what everybody has
        whole, divided = PartitionSpec(), PartitionSpec("i")
        x, y = rng.standard_normal(3), rng.standard_normal((2, 3))

        def params(fun: Any, in_specs: Specs, out_specs: Specs, *args: Any, tracked: bool = True) -> dict[str, Any]:
            axes = (NamedAxis("i", 1, mesh, tracked),)
            with binding(axes):
                jaxpr = stage(fun, [_specs.part_of(aval_of(x), spec, axes)
                                    for x, spec in zip(args, in_specs, strict=True)], "f").jaxpr
            return {"jaxpr": jaxpr, "axes": axes, "mesh": mesh, "in_specs": in_specs, "out_specs": out_specs}

        total = params(lambda x, y: [lax.psum(lax.sin(y) * x, "i"), y + x], (whole, divided), (whole, divided), x, y)
        yield Sample([x, y], total, results=[np.sin(y) * x, y + x])
        yield Sample([x, y], params(lambda x, y: [lax.psum(y * x, "i")], (whole, divided), (whole,), x, y,
                                    tracked=False), results=[y * x])
        yield Sample([x], params(lambda x: [lax.sin(x), x], (divided,), (divided, divided), x))
        yield Sample([rng.standard_normal(2), y], total, error=TypeError)


shard_map_p: Any = define(ShardMap())


def _names(axes: Axes) -> tuple[Hashable, ...]:
    return tuple([axis.name for axis in axes])


def _tracked(axes: Axes) -> bool:
    """Whether types say along which axes values vary."""
    return axes[0].tracked if axes else True


def _bind(axes: Axes, mesh: AnyMesh, program: _Program, args: Sequence[Any]) -> list[Any]:
    return shard_map_p.primitive.bind(  # type: ignore[no-any-return]
        *args, jaxpr=_declared(program, axes), axes=axes, mesh=mesh, in_specs=program.in_specs,
        out_specs=program.out_specs)


def _with_program(eqn: JaxprEqn, program: _Program, invars: Any, outvars: Any) -> JaxprEqn:
    return carrying.with_jaxpr(eqn, _declared(program, eqn.params["axes"]), invars, outvars,
                               in_specs=program.in_specs, out_specs=program.out_specs)


def _declared(program: _Program, axes: Axes) -> Jaxpr:
    """The program, with results that vary along the axes by which they are divided, even if all parts are equal.

    Their cotangents are divided, so that those of equal parts have to be added up.
    """
    if not _tracked(axes):
        return program.jaxpr
    with binding(axes):
        return carrying.retyped(program.jaxpr, outputs=[spec.all_names() for spec in program.out_specs])


@carrying.remembered
def _added_up_of(back: Jaxpr, axes: Axes, n_values: int, ins: Specs, outs: Specs) -> Jaxpr:
    def fun(*xs: Any) -> list[Any]:
        cts = [_shared(x, _others(spec, axes)) for x, spec in zip(xs[n_values:], ins[n_values:], strict=True)]
        found = eval_jaxpr(back, (), *xs[:n_values], *cts)
        return [_sum(x, _others(spec, axes)) for x, spec in zip(found, outs, strict=True)]

    return stage_closed(fun, back.in_avals, back.name)


def _added_up(back: Jaxpr, axes: Axes, n_values: int, ins: Specs, outs: Specs) -> Jaxpr:
    """A transposed program whose types don't say what varies.

    A result that isn't divided along an axis was taken from one of the devices there, and they share its cotangent; an
    operand that isn't divided was used by all of them.
    """
    with binding(axes):
        return _added_up_of(back, axes, n_values, ins, outs)


def _others(spec: PartitionSpec, axes: Axes) -> Axes:
    named = spec.all_names()
    return tuple([axis for axis in axes if axis.name not in named])


def _shared(x: Any, axes: Axes) -> Any:
    count = prod([axis.size for axis in axes])
    return x if count == 1 else lax.div(x, lax.full_like(x, count))


def _sum(x: Any, axes: Axes) -> Any:
    return psum.primitive.bind(x, axes=_names(axes), axis_index_groups=None) if axes else x


# What the known part of a program passes to the rest

def _between(avals: Sequence[ShapedArray], fresh: Sequence[tuple[Hashable, ...]], axes: Axes
             ) -> tuple[list[PartitionSpec], list[ShapedArray]]:
    """The specs and the types of the values that pass, given each one's type within and the axes along it varies."""
    specs = [PartitionSpec(names) if names else PartitionSpec() for names in fresh]
    return specs, [_specs.whole_of(aval.update(shape=(1, *aval.shape)) if names else aval, spec, axes)
                   for aval, spec, names in zip(avals, specs, fresh, strict=True)]


def _passing(known: Jaxpr, staged: Jaxpr, fresh: tuple[tuple[Hashable, ...], ...], at: Sequence[int],
             which: Sequence[int]) -> tuple[Jaxpr, Jaxpr]:
    """Both parts, with an axis more for residuals that vary: along it, those of all devices are put together.

    `at` are the residuals' positions among the operands of the second part, and `which` of the fresh ones each is.
    """
    stacks = tuple([bool(names) for names in fresh])
    stacked = tuple([i for i, j in zip(at, which, strict=True) if stacks[j]])
    return _stacking(known, stacks), _unstacking(staged, stacked)


@carrying.remembered
def _stacking(known: Jaxpr, stacks: Flags) -> Jaxpr:
    def fun(*xs: Any) -> list[Any]:
        outs = eval_jaxpr(known, (), *xs)
        start = len(outs) - len(stacks)
        return [*outs[:start], *[lax.expand_dims(x, (0,)) if stack else x
                                 for x, stack in zip(outs[start:], stacks, strict=True)]]

    return stage_closed(fun, known.in_avals, known.name) if True in stacks else known.replace()


@carrying.remembered
def _unstacking(staged: Jaxpr, at: tuple[int, ...]) -> Jaxpr:
    def fun(*xs: Any) -> list[Any]:
        return eval_jaxpr(staged, (), *[lax.squeeze(x, (0,)) if i in at else x for i, x in enumerate(xs)])

    avals = [aval.update(shape=(1, *aval.shape)) if i in at else aval for i, aval in enumerate(staged.in_avals)]
    return stage_closed(fun, avals, staged.name) if at else staged.replace()


# The public function

@public
def shard_map(f: Callable[..., Any] | None = None, /, *, out_specs: Any, in_specs: Any = None,
              mesh: AnyMesh | None = None, axis_names: Any = frozenset(), check_vma: bool = True) -> Any:
    """Map a function over the parts of its arguments that the devices of a mesh hold: each applies it to its own.

    `in_specs` says how each argument is divided, `out_specs` how results are put together: a `PartitionSpec` for each
    argument or result, or for each leaf of it. An array that isn't divided along an axis is the same on all devices
    there. In `f`, functions such as `lax.psum` exchange data along the mesh's axes, by name. `axis_names`: only these
    axes (default: all); the compiler divides along the others. `mesh` may be left out within `with mesh:`.

    With `check_vma`, types say along which axes values vary: a result that varies along an axis of which its spec says
    nothing is an error, and gradients are summed over devices where all of them use a value.

    >>> import numpy as np, corejax as cj
    >>> mesh = cj.make_mesh((1,), ("x",))
    >>> @cj.shard_map(mesh=mesh, in_specs=cj.P("x"), out_specs=cj.P())
    ... def total(part):
    ...     return lax.psum(part.sum(), "x")
    >>> total(np.arange(4.0)).item()
    6.0
    """
    if f is None:
        return partial(shard_map, out_specs=out_specs, in_specs=in_specs, mesh=mesh, axis_names=axis_names,
                       check_vma=check_vma)
    check_callable(f, "shard_map")
    given = _specs.given(mesh, axis_names, in_specs, out_specs) if mesh is not None else None  # else where it is called

    @wraps(f)
    def mapped(*args: Any) -> Any:
        chosen, names, ins, outs = given or _specs.given(mesh, axis_names, in_specs, out_specs)
        axes = _specs.free_axes(chosen, names, bool(check_vma))
        leaves, in_tree = flatten(args)
        xs = values(leaves, "shard_map", namer("args", args))
        specs = _specs.for_arguments(ins, args, xs, axes)
        avals = [_specs.part_of(aval_of(x), spec, axes) for x, spec in zip(xs, specs, strict=True)]
        with binding(axes):
            staged = stage_function(f, avals, in_tree, "shard_map: the function")
        results = _specs.for_results(outs, staged.out_tree, staged.closed.out_avals, axes)
        program = _Program(staged.jaxpr, (*[PartitionSpec()] * len(staged.consts), *specs), results)
        return staged.out_tree.unflatten(_bind(axes, chosen, program, [*staged.consts, *xs]))

    return mapped
