"""Programs in several processes by corejax and by jax: equal values, types and divisions on each device."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from together import together

pytest.importorskip("jax")

SCRIPT = Path(__file__).with_name("programs_of_both.py")

#: What jax doesn't say, or says otherwise, and why.
DIVIDED_OTHERWISE: dict[str, str] = {}


@cache
def said(by: str) -> list[dict[str, Any]]:
    outcomes = together(SCRIPT, 2, 2, [by])
    for outcome in outcomes:
        assert 0 == outcome.code, outcome.error[-3000:]
    return [outcome.results for outcome in outcomes]


def names() -> list[str]:
    import re
    return re.findall(r'^    "([^"]+)": lambda', SCRIPT.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("name", names())
def test_processes_have_what_those_of_jax_have(name: str) -> None:
    for theirs, ours in zip(said("jax"), said("corejax"), strict=True):
        assert not isinstance(theirs[name], str), theirs[name]
        assert not isinstance(ours[name], str), ours[name]
        for wanted, got in zip(theirs[name], ours[name], strict=True):
            assert wanted[:3] == got[:3]
            if name not in DIVIDED_OTHERWISE:
                assert wanted[3] == got[3]
            assert wanted[4].keys() == got[4].keys()
            for key, part in wanted[4].items():
                np.testing.assert_allclose(part.astype("complex128"), got[4][key].astype("complex128"),
                                           rtol=1e-12, atol=1e-12)
