"""Compiled programs kept from process to process: what a program is known by, and when one is read or written.

A program is known by a hash of all that decides what the compiler makes of it. Nothing that goes wrong with a
directory or an entry stops a compilation: it is reported once, and the program is compiled.
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
from corejax.xla.runtime.client import Place

if TYPE_CHECKING:
    from corejax.base._jaxlib import Module

#: Custom calls into Python by an address or index that means nothing to another process.
_CALLS_PYTHON = re.compile(rb"xla_\w*python_\wpu_callback")

#: What says which instructions a processor has, in /proc/cpuinfo on its several architectures.
_PROCESSOR = ("vendor_id", "cpu family", "model", "model name", "stepping", "flags", "CPU implementer", "CPU variant",
              "CPU part", "Features", "isa", "cpu")


def compiled(path: str, place: Place, module: Module, options: object) -> Any:
    """The loaded executable of a module: from the directory at `path`, else compiled and put there."""
    try:
        program = _jaxlib.program_bytes(module)
    except Exception:  # an invalid program: the compiler says so better
        program = b""
    if not program or _CALLS_PYTHON.search(program):
        return _jaxlib.compile_module(place.client, module, place.device, options)
    faults: list[Fault] = []
    try:
        return _through(path, key_of(program, place, options), place, module, options, faults)
    finally:
        # Last, since a warning may be an error: the entry is repaired by then.
        for fault in faults:
            groups.report(("compilation cache", fault.message, fault.got), str(fault))


def _through(path: str, key: bytes, place: Place, module: Module, options: object, faults: list[Fault]) -> Any:
    try:
        directory = Directory(path)
    except Fault as fault:
        faults.append(fault)
        return _jaxlib.compile_module(place.client, module, place.device, options)
    with directory:
        found = _load(directory, key, place, options, faults)
        if found is not None:
            return found
        loaded = _jaxlib.compile_module(place.client, module, place.device, options)
        _keep(directory, key, place, loaded, faults)
        return loaded


def _load(directory: Directory, key: bytes, place: Place, options: object, faults: list[Fault]) -> Any:
    try:
        program = directory.read(key)
        return None if program is None else _jaxlib.load_executable(place.client, program, place.device, options)
    except Fault as fault:
        faults.append(fault)
    except Exception as error:  # the entry is what was once written, so it is the runtime that changed
        faults.append(fault_of("an entry of the compilation cache can't be loaded by the runtime",
                               directory.where(key), error))
    return None


def _keep(directory: Directory, key: bytes, place: Place, loaded: object, faults: list[Fault]) -> None:
    try:
        program = _jaxlib.executable_bytes(place.client, loaded)
    except Exception as error:  # some backends have no form in which to write a program down
        faults.append(fault_of(f"programs for {place.compiler} can't be kept in the compilation cache",
                               place.compiler, error))
        return
    try:
        directory.write(key, program, config.compilation_cache_max_size)
    except Fault as fault:
        faults.append(fault)


def key_of(program: bytes, place: Place, options: object) -> bytes:
    """The hash of all that decides what becomes of a program: itself, options, compiler, device and processor."""
    parts = [b"1", program, _jaxlib.options_bytes(options)]
    parts += [text.encode() for text in (*_jaxlib.compiler_facts(place.client, place.device), *processor_facts())]
    hashed = sha256()
    for part in parts:
        hashed.update(len(part).to_bytes(8, "little"))  # so that no two lists of parts are the same bytes
        hashed.update(part)
    return hashed.digest()


@cache
def processor_facts() -> tuple[str, ...]:
    """What the compiler asks of the processor: its kind, its instructions, and how many threads may run."""
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
            return  # the others are alike, and the kernel makes each up while it is read
        name, _, value = line.partition(":")
        if name.strip() in _PROCESSOR:
            yield f"{name.strip()}:{' '.join(sorted(value.split()))}"
