"""Every rule of the pack keeps the laws that the conformance kit knows."""

from __future__ import annotations

from corejax.testing import pack_tests

test_rules = pack_tests("corejax-rational")
