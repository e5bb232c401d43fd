"""Axes with names: those that enclosing maps have, by which collectives refer to them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple, TypeAlias


class NamedAxis(NamedTuple):
    """An axis that is mapped over, as functions in the map see it.

    If it is an axis of a mesh of devices, each of its positions is computed by a device of its own. It may then be
    `tracked`: types say which values vary along it (`aval.varying`).
    """

    name: Hashable
    size: int
    mesh: Any = None
    tracked: bool = False


#: The axes that enclosing maps have named, outermost first. An inner one hides an outer one of the same name.
AxisEnv: TypeAlias = tuple[NamedAxis, ...]
