"""Policies of `cj.checkpoint`: which values are saved for reverse mode, rather than computed again.

A policy is a function `policy(primitive, *avals, **params)`, which is asked about each operation; it returns whether
its results are saved. Public as `corejax.checkpoint_policies`.

>>> import numpy as np, corejax as cj
>>> from corejax.checkpoint_policies import save_only_these_names
>>> @cj.checkpoint(policy=save_only_these_names("angle"))
... def f(x):
...     return lax.cos(cj.ad_checkpoint.checkpoint_name(lax.exp(lax.exp(x)), "angle"))
>>> print(cj.saved_residuals(f, 1.0))
~f64[]  8 B  the argument x
~f64[]  8 B  checkpoint_name 'angle', ...
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from corejax import lax as lax  # for the examples
from corejax.core import here
from corejax.errors import CorejaxTypeError, kind_of
from corejax.plugin import carrying, public

__all__ = [
    "checkpoint_dots", "checkpoint_dots_with_no_batch_dims", "dots_saveable", "dots_with_no_batch_dims_saveable",
    "everything_saveable", "nothing_saveable", "offload_dot_with_no_batch_dims", "save_and_offload_only_these_names",
    "save_any_names_but_these", "save_anything_except_these_names", "save_from_both_policies", "save_only_these_names",
]

NAMESPACE = "checkpoint_policies"

Policy = carrying.Policy
Decision = carrying.Decision

_PRODUCTS = frozenset(("dot_general", "conv_general_dilated"))


def everything_saveable(*_: Any, **__: Any) -> bool:
    """Everything is saved, as without `checkpoint`."""
    return True


def nothing_saveable(*_: Any, **__: Any) -> bool:
    """Nothing is saved but arguments, as without a policy."""
    return False


def dots_saveable(primitive: Any, *_: Any, **__: Any) -> bool:
    """Matrix products and convolutions are saved: they take most of the time. Also called `checkpoint_dots`."""
    return primitive.name in _PRODUCTS


def dots_with_no_batch_dims_saveable(primitive: Any, *_: Any, **params: Any) -> bool:
    """Products without batch axes are saved, as those with weights; also `checkpoint_dots_with_no_batch_dims`."""
    return _has_no_batch(primitive, params)


checkpoint_dots = dots_saveable
checkpoint_dots_with_no_batch_dims = dots_with_no_batch_dims_saveable


def _has_no_batch(primitive: Any, params: Any) -> bool:
    if primitive.name != "dot_general":
        return False
    _, (lhs, rhs) = params["dimension_numbers"]
    return not lhs and not rhs


@public
def save_anything_except_these_names(*names_not_to_save: str) -> Policy:
    """Everything is saved but values with these names, given by `checkpoint_name`."""
    return _Named("save_anything_except_these_names", left_out=_names("names_not_to_save", names_not_to_save),
                  others=True, named=True)


@public
def save_any_names_but_these(*names_not_to_save: str) -> Policy:
    """Values with names are saved, but for those with one of these names."""
    return _Named("save_any_names_but_these", left_out=_names("names_not_to_save", names_not_to_save), named=True)


@public
def save_only_these_names(*names_which_can_be_saved: str) -> Policy:
    """Values with one of these names, given by `checkpoint_name`, are saved, and nothing else."""
    return _Named("save_only_these_names", saved=_names("names_which_can_be_saved", names_which_can_be_saved))


@public
def save_and_offload_only_these_names(*, names_which_can_be_saved: Any, names_which_can_be_offloaded: Any,
                                      offload_src: str, offload_dst: str) -> Policy:
    """Values with some names are saved where they are, and values with others in memory of another kind.

    On devices without memory of the kind `offload_dst`, these are saved where they are, too.
    """
    saved, moved = [_names(name, names) for name, names in (
        ("names_which_can_be_saved", names_which_can_be_saved),
        ("names_which_can_be_offloaded", names_which_can_be_offloaded))]
    if saved & moved:
        raise CorejaxTypeError("save_and_offload_only_these_names: a name is either saved or offloaded", where=here(),
                               got=f"{sorted(saved & moved)} in both", wanted="names in one of the lists",
                               todo="leave it out of one")
    return _Named("save_and_offload_only_these_names", saved=saved, moved=moved,
                  to=_offloadable("save_and_offload_only_these_names", offload_src, offload_dst))


@public
def offload_dot_with_no_batch_dims(offload_src: str, offload_dst: str) -> Policy:
    """Products without batch axes are saved in memory of the kind `offload_dst`, where the device has some."""
    return _offloading(_offloadable("offload_dot_with_no_batch_dims", offload_src, offload_dst))


@lru_cache(maxsize=64)
def _offloading(to: Decision) -> Policy:
    def offload_dot(primitive: Any, *_: Any, **params: Any) -> Any:
        return to if _has_no_batch(primitive, params) else carrying.Recompute
    return offload_dot


@public
def save_from_both_policies(policy_1: Policy, policy_2: Policy) -> Policy:
    """What either policy saves is saved."""
    for name, policy in (("policy_1", policy_1), ("policy_2", policy_2)):
        if not callable(policy):
            raise CorejaxTypeError(f"save_from_both_policies: {name} must be a policy",
                                   got=f"{kind_of(policy)}: {policy!r:.60}", wanted="a function", where=here(),
                                   todo="pass those of corejax.checkpoint_policies, or functions of your own")
    return _Either(policy_1, policy_2)


class _Either:
    """Saves what one of two policies saves. Equal to another one of the same policies, so programs are found again."""

    def __init__(self, first: Policy, second: Policy) -> None:
        self.policies = first, second

    def __call__(self, primitive: Any, *avals: Any, **params: Any) -> Any:
        first, second = self.policies
        return first(primitive, *avals, **params) or second(primitive, *avals, **params)

    def __eq__(self, other: object) -> bool:
        return type(other) is _Either and self.policies == other.policies

    def __hash__(self) -> int:
        return hash((_Either, self.policies))


class _Named:
    """A policy by the names of values. Equal to another one of the same names."""

    def __init__(self, title: str, *, saved: frozenset[str] = frozenset(), left_out: frozenset[str] = frozenset(),
                 moved: frozenset[str] = frozenset(), to: Decision | None = None, named: bool = False,
                 others: bool = False) -> None:
        self._title, self._parts = title, (saved, left_out, moved, to, named, others)

    def __call__(self, primitive: Any, *avals: Any, **params: Any) -> Any:
        saved, left_out, moved, to, named, others = self._parts
        if primitive.name != "checkpoint_name":
            return others
        name = params["name"]
        return to if name in moved else name in saved or (named and name not in left_out)

    def __eq__(self, other: object) -> bool:
        return type(other) is _Named and self._parts == other._parts

    def __hash__(self) -> int:
        return hash((_Named, self._parts))

    def __repr__(self) -> str:
        saved, left_out, moved, *_ = self._parts
        return f"{self._title}({', '.join(map(repr, sorted(saved | left_out | moved)))})"


def _names(argument: str, names: Any) -> frozenset[str]:
    names = [names] if isinstance(names, str) else names
    for name in names:
        if not isinstance(name, str):
            raise CorejaxTypeError(f"checkpoint_policies: {argument} are names", got=f"{kind_of(name)}: {name!r:.60}",
                                   wanted="strings, as checkpoint_name(x, 'attention') gives them", where=here(),
                                   todo="pass the names themselves, one after the other")
    return frozenset(names)


def _offloadable(what: str, src: Any, dst: Any) -> Decision:
    for name, kind in (("offload_src", src), ("offload_dst", dst)):
        if not isinstance(kind, str):
            raise CorejaxTypeError(f"{what}: {name} is a kind of memory", got=f"{kind_of(kind)}: {kind!r:.60}",
                                   wanted="'device' or 'pinned_host'", where=here(), todo="pass its name")
    return carrying.Offloadable(src, dst)
