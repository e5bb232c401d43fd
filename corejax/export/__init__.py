"""Compiled functions as bytes, to be saved, shipped, and called without their source.

>>> import corejax as cj
>>> exported = cj.export.export(cj.jit(lambda x: x * x))(cj.ShapeDtypeStruct((2,), "float64"))
>>> exported
Exported(<lambda>: (f64[2]) -> (f64[2]), for cpu)
>>> data = exported.serialize()
>>> cj.export.deserialize(data).call(cj.lax.full((2,), 3.0))
Array([9., 9.], dtype=float64)
"""

from corejax.export.functions import Exported, deserialize, export
from corejax.export.structures import register_namedtuple

__all__ = ["Exported", "deserialize", "export", "register_namedtuple"]


def __dir__() -> list[str]:
    return sorted(__all__)
