"""Whether an error speaks to people."""

from __future__ import annotations

import re

_ADDRESS = re.compile(r"0x[0-9a-f]{5,}| object at |<function |<class |<bound method ")
_MLIR = re.compile(r"tensor<|stablehlo|func\.func|%arg\d|loc\(|INVALID_ARGUMENT|PyTreeDef\b.*PyTreeDef")
_ARTICLE = re.compile(r"\b[Aa] [aeioAEIO]\w|\b[Aa]n (?!f\d|i\d|ndarray\b|[aeiouAEIOU])\w")


def unfit(message: str) -> list[str]:
    """What no error may say: addresses, the compiler's language, a wrong article."""
    return [text for wrong in (_ADDRESS, _MLIR, _ARTICLE) for text in wrong.findall(message)]
