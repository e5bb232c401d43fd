"""Dtypes: of which kind they are, what they promote to, and those that packs bring.

>>> import numpy as np
>>> from corejax import dtypes
>>> dtypes.issubdtype("bfloat16", np.floating), dtypes.promote_types("int8", "uint8")
(True, dtype('int16'))
>>> dtypes.issubdtype("float32", dtypes.extended)
False
"""

from typing import TYPE_CHECKING, Any

from corejax.base.facades import facade
from corejax.base.tracebacks import trim
from corejax.installed import groups, registry

if TYPE_CHECKING:
    from corejax.base.dtypes import bfloat16 as bfloat16, float0 as float0
    from corejax.base.elements import extended as extended
    from corejax.base.kinds import (
        canonicalize_dtype as canonicalize_dtype,
        finfo as finfo,
        iinfo as iinfo,
        issubdtype as issubdtype,
        promote_types as promote_types,
        result_type as result_type,
        scalar_type_of as scalar_type_of,
    )

    def __getattr__(name: str) -> Any: ...  # what packs bring
else:
    __all__, _find, _names = facade(__name__, {
        "corejax.base.dtypes": "bfloat16 float0",
        "corejax.base.elements": "extended",
        "corejax.base.kinds": "canonicalize_dtype finfo iinfo issubdtype promote_types result_type scalar_type_of",
    })

    def __getattr__(name: str) -> Any:
        if not name.startswith("_") and name not in __all__:
            try:
                found = registry.load_dtype(name)
            except Exception as error:
                trim(error)
                raise
            if found is not None:
                return found
        return _find(name)

    def __dir__() -> list[str]:
        brought = [name for name in registry.installed().names(groups.DTYPES) if name.isidentifier()]
        return sorted({*_names(), *brought})
