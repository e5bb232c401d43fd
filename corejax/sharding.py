"""Where arrays are: meshes of devices, and which part of an array is on which device.

>>> from corejax.sharding import AbstractMesh, NamedSharding, PartitionSpec as P
>>> NamedSharding(AbstractMesh((2, 4), ("x", "y")), P("x", "y")).shard_shape((4, 8))
(2, 2)
"""

from typing import TYPE_CHECKING, Any

from corejax.base.late import find_in, homes
from corejax.base.tracebacks import trim

if TYPE_CHECKING:
    from corejax.arrays.meshes import AbstractMesh, AxisType, Mesh
    from corejax.arrays.partitions import PartitionSpec
    from corejax.arrays.shardings import NamedSharding, Sharding, SingleDeviceSharding

_HOME = homes({
    "corejax.arrays.meshes": "AbstractMesh AxisType Mesh",
    "corejax.arrays.partitions": "PartitionSpec",
    "corejax.arrays.shardings": "NamedSharding Sharding SingleDeviceSharding",
})

__all__ = ["AbstractMesh", "AxisType", "Mesh", "NamedSharding", "PartitionSpec", "Sharding", "SingleDeviceSharding"]


if not TYPE_CHECKING:  # so that type checkers refuse names that aren't there
    def __getattr__(name: str) -> Any:
        try:
            return find_in(_HOME, __name__, name)
        except Exception as error:
            trim(error)
            raise


def __dir__() -> list[str]:
    return sorted(__all__)
