"""Where arrays are: meshes of devices, and which part of an array is on which device.

>>> from corejax.sharding import AbstractMesh, NamedSharding, PartitionSpec as P
>>> NamedSharding(AbstractMesh((2, 4), ("x", "y")), P("x", "y")).shard_shape((4, 8))
(2, 2)
"""

from typing import TYPE_CHECKING

from corejax.base.facades import facade

if TYPE_CHECKING:
    from corejax.arrays.drawing import (
        Drawing as Drawing,
        visualize_array_sharding as visualize_array_sharding,
        visualize_sharding as visualize_sharding,
    )
    from corejax.arrays.meshes import AbstractMesh as AbstractMesh, AxisType as AxisType, Mesh as Mesh
    from corejax.arrays.partitions import PartitionSpec as PartitionSpec
    from corejax.arrays.shardings import (
        NamedSharding as NamedSharding,
        Sharding as Sharding,
        SingleDeviceSharding as SingleDeviceSharding,
    )
else:  # so that type checkers refuse names that aren't there
    __all__, __getattr__, __dir__ = facade(__name__, {
        "corejax.arrays.drawing": "Drawing visualize_array_sharding visualize_sharding",
        "corejax.arrays.meshes": "AbstractMesh AxisType Mesh",
        "corejax.arrays.partitions": "PartitionSpec",
        "corejax.arrays.shardings": "NamedSharding Sharding SingleDeviceSharding",
    })
