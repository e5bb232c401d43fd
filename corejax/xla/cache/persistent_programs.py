"""Compiled programs kept between processes: a program's key, and when an entry is read or written.

The key is a hash of everything that the compiler's output depends on. A problem with a directory or an entry never
stops a compilation: it is reported once, and the program is compiled.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from corejax.base import _jaxlib
from corejax.base.config import config
from corejax.installed import groups
from corejax.xla.cache.persistent_files import Directory, Fault, fault_of
from corejax.xla.runtime import peers
from corejax.xla.runtime.places import Group, Place

if TYPE_CHECKING:
    from corejax.base._jaxlib import Module

#: Custom calls into Python, by an address or index that means nothing in another process.
_CALLS_PYTHON = re.compile(rb"xla_\w*python_\wpu_callback")

#: The lines of /proc/cpuinfo, on various architectures, that tell which instructions a processor has.
_PROCESSOR = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags", "CPU implementer", "CPU variant",
              "CPU part", "Features", "isa", "cpu")


def compiled(path: str, place: Place | Group, module: Module, options: object) -> Any:
    """The loaded executable of a module: read from the directory at `path`, or compiled and written there."""
    try:
        program = _jaxlib.program_bytes(module)
    except Exception:  # an invalid program: the compiler's own error is better
        program = b""
    if not program or _CALLS_PYTHON.search(program):
        return _jaxlib.compile_module(place.client, module, place.devices, options)
    faults: list[Fault] = []
    try:
        return _through(path, key_of(program, place, options), place, module, options, faults)
    finally:
        # Last, since a warning may be turned into an error; the entry has been repaired by now.
        for fault in faults:
            groups.report(("compilation cache", fault.message, fault.got), str(fault))


def _through(path: str, key: bytes, place: Place | Group, module: Module, options: object, faults: list[Fault]) -> Any:
    try:
        directory = Directory(path)
    except Fault as fault:
        faults.append(fault)
        return _jaxlib.compile_module(place.client, module, place.devices, options)
    with directory:
        found = _load(directory, key, place, options, faults)
        if found is not None:
            return found
        with directory.turn(key, peers.check):
            found = _load(directory, key, place, options, []) if not faults else None
            if found is not None:
                return found
            return _compiled(directory, key, place, module, options, faults)


def _compiled(directory: Directory, key: bytes, place: Place | Group, module: Module, options: object,
              faults: list[Fault]) -> Any:
    loaded = _jaxlib.compile_module(place.client, module, place.devices, options)
    _keep(directory, key, place, loaded, faults)
    return loaded


def _load(directory: Directory, key: bytes, place: Place | Group, options: object, faults: list[Fault]) -> Any:
    try:
        program = directory.read(key)
        return None if program is None else _jaxlib.load_executable(place.client, program, place.devices, options)
    except Fault as fault:
        faults.append(fault)
    except Exception as error:  # the entry is intact, so it is the runtime that has changed
        if _jaxlib.missing_function(error) is not None:
            return None  # compiling fails for the same reason, and says so
        faults.append(fault_of("an entry of the compilation cache can't be loaded by the runtime",
                               directory.where(key), error))
    return None


def _keep(directory: Directory, key: bytes, place: Place | Group, loaded: object, faults: list[Fault]) -> None:
    try:
        program = _jaxlib.executable_bytes(place.client, loaded)
    except Exception as error:  # some backends can't serialize a program
        faults.append(fault_of(f"programs for {place.compiler} can't be kept in the compilation cache",
                               place.compiler, error))
        return
    try:
        directory.write(key, program, config.compilation_cache_max_size)
    except Fault as fault:
        faults.append(fault)


def key_of(program: bytes, place: Place | Group, options: object) -> bytes:
    """The hash of everything that the executable depends on: program, options, compiler, device and processor."""
    parts = [b"1", program, _jaxlib.options_bytes(options)]
    parts += [text.encode() for text in (*_jaxlib.compiler_facts(place.client, place.devices), *processor_facts())]
    hashed = sha256()
    for part in parts:
        hashed.update(len(part).to_bytes(8, "little"))  # different lists of parts must not be the same bytes
        hashed.update(part)
    return hashed.digest()


@cache
def processor_facts() -> tuple[str, ...]:
    """The facts about the processor that the compiler uses: its kind, its instructions, its number of threads."""
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return platform.system(), platform.machine(), str(threads), *(_from_cpuinfo() or (platform.processor(),))


def _from_cpuinfo() -> tuple[str, ...]:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            return tuple(_first_processor(lines))
    except OSError:
        return ()


def _first_processor(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        if not line.strip():
            return  # the other cores are alike, and the kernel generates each one's text as it is read
        name, _, value = line.partition(":")
        if name.strip() in _PROCESSOR:
            yield f"{name.strip()}:{' '.join(sorted(value.split()))}"
