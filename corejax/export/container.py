"""Exported functions as bytes.

    8 bytes   magic number
    4 bytes   version of the format           (integers are little-endian)
    8 bytes   total length
    8 bytes   length of the description
    ...       description: JSON, in ASCII
    ...       the modules that it lists, one after the other
    32 bytes  SHA-256 of everything before it

The digest detects damage. It doesn't tell who wrote the bytes.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from corejax.base import _jaxlib
from corejax.base.errors import CorejaxKeyError, CorejaxTypeError, CorejaxValueError, kind_of
from corejax.base.source import here
from corejax.export.artifact import Artifact
from corejax.export.structures import Malformed, aval_from_data, aval_to_data, tree_from_data, tree_to_data

#: It has a non-ASCII byte and both kinds of line endings, so treating the file as text changes it.
_MARK = b"\x93CJEX\r\n\n"
_VERSION = 1
_PREFIX = struct.Struct("<8sIQQ")
_DIGEST = 32

#: A function, with the structures of its arguments and its result.
Function = tuple[Artifact, Any, Any]


def to_bytes(functions: Sequence[Function]) -> bytes:
    """A function and its derivatives as bytes."""
    described, modules = [], []
    for artifact, in_tree, out_tree in functions:
        described.append({
            "name": artifact.name,
            "in_tree": tree_to_data(in_tree, "(args, kwargs)"), "out_tree": tree_to_data(out_tree, "the result"),
            "in_avals": list(map(aval_to_data, artifact.in_avals)),
            "out_avals": list(map(aval_to_data, artifact.out_avals)),
            "modules": [[list(platforms), len(module)] for platforms, module in artifact.modules],
            **({"devices": artifact.devices} if artifact.devices > 1 else {})})
        modules += [module for _, module in artifact.modules]
    text = json.dumps({"jaxlib": _jaxlib.version, "functions": described}, separators=(",", ":")).encode("ascii")
    body = b"".join([text, *modules])
    whole = _PREFIX.pack(_MARK, _VERSION, _PREFIX.size + len(body) + _DIGEST, len(text)) + body
    return whole + hashlib.sha256(whole).digest()


def from_bytes(data: object) -> list[Function]:
    """Read a function and its derivatives from bytes."""
    text, modules = _parts(_as_bytes(data))
    try:
        described = json.loads(text)["functions"]
        functions = []
        for entry in described:
            function, modules = _function(entry, modules)
            functions.append(function)
        if modules or not functions:
            raise Malformed("its modules are not the ones that it lists")
    except (Malformed, KeyError, TypeError, ValueError, RecursionError) as error:
        if isinstance(error, (CorejaxTypeError, CorejaxKeyError)):  # what it needs isn't there
            raise
        detail = str(error) if isinstance(error, Malformed) else f"no description: {type(error).__name__}"
        raise CorejaxValueError("these bytes don't describe an exported function", got=detail, where=here(),
                                wanted="what Exported.serialize() returned",
                                todo="export the function again") from error
    return functions


def _as_bytes(data: object) -> bytes:
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise CorejaxTypeError("deserialize takes bytes", got=f"{kind_of(data)}: {data!r:.60}", where=here(),
                               wanted="what Exported.serialize() returned",
                               todo="read a file in binary mode: pathlib.Path(name).read_bytes()")
    return bytes(data)


def _parts(data: bytes) -> tuple[bytes, bytes]:
    """The description and the modules, after checking the bytes for everything that can be wrong."""
    if data[: len(_MARK)] != _MARK[: len(data)]:
        raise CorejaxValueError(
            "these bytes are not an exported function of corejax", got=f"{data[:8]!r}...", where=here(),
            wanted=f"{_MARK!r} first",
            todo="the file was written or copied as text: use binary mode" if b"CJEX" in data[:8] else
                 "for what jax has exported, use jax.export")
    if len(data) < _PREFIX.size:
        raise _truncated(len(data), _PREFIX.size)
    _, version, total, n_text = _PREFIX.unpack_from(data)
    if version != _VERSION:
        raise CorejaxValueError("the exported function is in a different format", got=f"format {version}",
                                wanted=f"format {_VERSION}", where=here(),
                                todo="install a newer corejax" if version > _VERSION else "export it again")
    if len(data) < total:
        raise _truncated(len(data), total)
    whole, digest = data[:-_DIGEST], data[-_DIGEST:]
    if len(data) > total or hashlib.sha256(whole).digest() != digest:
        raise CorejaxValueError("the exported function is damaged", where=here(),
                                got=f"{len(data)} bytes whose digest isn't the one that they end with",
                                wanted="the bytes as they were written", todo="get another copy from their source")
    return whole[_PREFIX.size: _PREFIX.size + n_text], whole[_PREFIX.size + n_text:]


def _truncated(got: int, wanted: int) -> CorejaxValueError:
    return CorejaxValueError("the exported function is truncated", got=f"{got} bytes",
                             wanted=f"{wanted} bytes at least",
                             where=here(), todo="get a complete copy from its source")


def _function(entry: Mapping[str, Any], modules: bytes) -> tuple[Function, bytes]:
    """The function for an entry, and the remaining modules."""
    name, in_tree, out_tree = entry["name"], tree_from_data(entry["in_tree"]), tree_from_data(entry["out_tree"])
    in_avals, out_avals = (list(map(aval_from_data, entry[side])) for side in ("in_avals", "out_avals"))
    if type(name) is not str or (in_tree.num_leaves, out_tree.num_leaves) != (len(in_avals), len(out_avals)):
        raise Malformed("its structures don't fit its types")
    found = []
    for platforms, size in entry["modules"]:
        if type(size) is not int or not 0 < size <= len(modules) or not all([type(p) is str for p in platforms]):
            raise Malformed("it lists modules that aren't there")
        found.append((tuple(platforms), modules[:size]))
        modules = modules[size:]
    devices = entry.get("devices", 1)
    if type(devices) is not int or devices < 1:
        raise Malformed("it says that it is for no devices")
    return (Artifact(name, in_avals, out_avals, found, devices), in_tree, out_tree), modules
