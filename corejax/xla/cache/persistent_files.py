"""Files of compiled programs: what makes a directory trusted, and how entries are read, written and dropped.

Whoever can write an entry can make this process run arbitrary code. So nothing is read that another user could have
written: the directory and each entry are checked for their owner and for who may write to them. All access goes
through the open directory, so it doesn't matter if another one is put in its place, or who can write to its parents.

An entry is a magic line, the program's key, a SHA-256 of all the rest, and the executable. The hash guards against
damage and mistakes, the ownership against other users.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from types import TracebackType

from corejax.base.errors import CorejaxRuntimeError
from corejax.base.late import late
from corejax.base.source import here

fcntl = late("fcntl")  # POSIX systems have it

_MAGIC = b"corejax compiled program 1\n"
_HEAD = len(_MAGIC) + 64

_ENTRY = re.compile(r"[0-9a-f]{64}\.xla")
_UNFINISHED = re.compile(r"[0-9a-f]{64}\.(?:[0-9a-f]{16}\.new|lock)")

#: Whether the system can open files relative to an open directory, and has owners.
_POSIX = os.open in os.supports_dir_fd

#: A temporary file older than this many seconds was abandoned: its writer was killed.
_ABANDONED = 3600

#: How long to wait for another process that compiles the same program, and how often to look, in seconds.
_PATIENCE, _LOOK = 300.0, 0.02

#: Bytes that this process has written to a directory since it last checked how full it is.
_written: dict[str, int] = {}


class Fault(CorejaxRuntimeError):
    """Something wrong with a directory or an entry. Users only ever see it as the text of a warning."""


def fault_of(message: str, got: str, error: Exception, todo: str = "nothing: the program is compiled") -> Fault:
    """An error of the system or the runtime as a `Fault`."""
    reason = error.strerror or type(error).__name__ if isinstance(error, OSError) else f"{error!s:.200}"
    return Fault(f"{message}: {reason}", got=got, where=here(), todo=todo)


class Directory:
    """An open directory of entries that was found to be safe; it is created if it doesn't exist."""

    def __init__(self, path: str) -> None:
        self.path = path
        if not _POSIX:
            raise self._refused("this system has no way to tell who could have written it", "a POSIX system")
        try:
            self._fd = self._open()
        except OSError as error:
            if os.path.islink(path):
                raise self._refused("it is a symbolic link", "the directory itself") from None
            raise self._refused(error.strerror or type(error).__name__, "a directory") from None
        wrong = _untrusted(os.fstat(self._fd))
        if wrong:
            os.close(self._fd)
            raise self._refused(wrong, f"a directory of user {os.geteuid()} that nobody else can write to")

    def _open(self) -> int:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
        try:
            return os.open(self.path, flags)
        except FileNotFoundError:
            os.makedirs(self.path, 0o700, exist_ok=True)
            return os.open(self.path, flags)

    def _refused(self, reason: str, wanted: str) -> Fault:
        return Fault(f"the compilation cache is off: {reason}", got=self.path, wanted=wanted, where=here(),
                     todo="chmod 700 a directory of your own, and set config.compilation_cache_dir to it")

    def __enter__(self) -> Directory:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 traceback: TracebackType | None) -> None:
        os.close(self._fd)

    def where(self, key: bytes) -> str:
        """The path of an entry."""
        return os.path.join(self.path, _name(key))

    def read(self, key: bytes, *, used: bool = True) -> bytes | None:
        """The program in an entry, or None if there is no such entry. Raises a `Fault` if it isn't what was written.

        Unless it is only looked at, this is a use of the program, which is kept longer for it.
        """
        try:
            # O_NONBLOCK: opening a pipe would otherwise wait for somebody to write to it.
            fd = os.open(_name(key), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=self._fd)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise self._broken(key, error.strerror or type(error).__name__) from None
        with open(fd, "rb", closefd=True) as file:
            wrong = _untrusted(os.fstat(fd), regular=True)
            if wrong:
                raise self._broken(key, wrong)
            try:
                content = file.read()
            except OSError as error:
                raise self._broken(key, error.strerror or type(error).__name__) from None
            program = self._checked(key, content)
            with suppress(OSError):  # the time of last use decides which entries are dropped
                if used:
                    os.utime(fd)
        return program

    @contextmanager
    def turn(self, key: bytes, look: Callable[[], None]) -> Iterator[None]:
        """Wait while another process compiles this program: until there is an entry, or its turn is over.

        Whoever has the turn holds a lock on a file, which it loses if it dies. Where that isn't possible, and after a
        while, each compiles for itself. `look` is called while waiting, and may raise.
        """
        name = f"{key.hex()}.lock"
        fd = self._lock(name, key, look)
        try:
            yield
        finally:
            if fd is not None:
                self._remove(name)  # while it is locked: who waits for it looks whether it is still there
                os.close(fd)

    def _lock(self, name: str, key: bytes, look: Callable[[], None]) -> int | None:
        """The locked file; None if there is an entry, or no lock to be had."""
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            try:
                fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600, dir_fd=self._fd)
            except OSError:
                return None  # this user can't write here
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is(name, self._fd, fd):
                    return fd
                os.close(fd)
                continue
            except BlockingIOError:
                os.close(fd)
            except OSError:  # a file system without locks
                os.close(fd)
                return None
            if _is(_name(key), self._fd):
                return None
            look()
            time.sleep(_LOOK)
        return None

    def survey(self) -> Iterator[tuple[int, Fault | None]]:
        """The size of each entry, and what is wrong with it. Changes nothing."""
        for _, size, name in self._files(removing=False):
            try:
                self.read(bytes.fromhex(name.partition(".")[0]), used=False)
                yield size, None
            except Fault as fault:
                yield size, fault

    def _checked(self, key: bytes, content: bytes) -> bytes:
        if not content.startswith(_MAGIC):
            raise self._broken(key, "it isn't a compiled program, or it is one of another release")
        found, digest, program = content[len(_MAGIC):_HEAD - 32], content[_HEAD - 32:_HEAD], content[_HEAD:]
        if digest != _digest(found, program):
            raise self._broken(key, "its content is damaged or truncated")
        if found != key:
            raise self._broken(key, "it is the entry of another program")
        return program

    def _broken(self, key: bytes, reason: str) -> Fault:
        return Fault(f"an entry of the compilation cache can't be used: {reason}", got=self.where(key), where=here(),
                     todo="nothing: the program is compiled, and the entry replaced")

    def write(self, key: bytes, program: bytes, limit: int) -> None:
        """Add an entry atomically; if the directory exceeds `limit` bytes, drop the least recently used entries."""
        content = b"".join((_MAGIC, key, _digest(key, program), program))
        if len(content) > limit:
            return
        try:
            self._write(_name(key), content)
            self._drop_some(len(content), limit)
        except OSError as error:
            raise fault_of("the compilation cache can't be written to", self.path, error,
                           "free some space and let this user write there, or set config.compilation_cache_dir to "
                           "another directory; until then programs are compiled and not kept") from None

    def _write(self, name: str, content: bytes) -> None:
        unfinished = f"{name.partition('.')[0]}.{os.urandom(8).hex()}.new"
        fd = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=self._fd)
        try:
            with open(fd, "wb", closefd=True) as file:
                file.write(content)
                file.flush()
                os.fsync(fd)
            os.replace(unfinished, name, src_dir_fd=self._fd, dst_dir_fd=self._fd)
        except BaseException:
            self._remove(unfinished)
            raise
        with suppress(OSError):  # some file systems can't sync a directory
            os.fsync(self._fd)

    def _drop_some(self, added: int, limit: int) -> None:
        # Not after each write: looking at every file costs more than writing a small program. Several processes
        # that write at once stay below the limit together: it is checked after 1/64 and cut to 7/8.
        pending = _written.get(self.path)
        if pending is not None and (pending + added) * 64 < limit:
            _written[self.path] = pending + added
            return
        _written[self.path] = 0
        files = self._files()
        total = sum(size for _, size, _ in files)
        if total <= limit:
            return
        for _, size, name in files[:-1]:
            if total * 8 <= limit * 7:
                return
            self._remove(name)
            total -= size

    def _files(self, removing: bool = True) -> list[tuple[int, int, str]]:
        """(time of last use, size, name) of each entry, oldest first. Abandoned temporary files may be removed."""
        found = []
        with os.scandir(self._fd) as files:
            for file in files:
                unfinished = _UNFINISHED.fullmatch(file.name)
                if not unfinished and not _ENTRY.fullmatch(file.name):
                    continue
                try:
                    status = file.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue  # another process dropped it
                if not unfinished:
                    found.append((status.st_mtime_ns, status.st_size, file.name))
                elif removing and status.st_mtime < time.time() - _ABANDONED:
                    self._remove(file.name)
        return sorted(found)

    def _remove(self, name: str) -> None:
        with suppress(OSError):
            os.unlink(name, dir_fd=self._fd)


def _name(key: bytes) -> str:
    return f"{key.hex()}.xla"


def _is(name: str, folder: int, fd: int | None = None) -> bool:
    """Whether a file is there, and is the open one."""
    try:
        there = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return fd is None or os.path.samestat(there, os.fstat(fd))


def _digest(key: bytes, program: bytes) -> bytes:
    hashed = sha256(_MAGIC)
    hashed.update(key)
    hashed.update(program)
    return hashed.digest()


def _untrusted(status: os.stat_result, regular: bool = False) -> str | None:
    """Why another user could have written this file or directory; None if nobody could."""
    if regular and not stat.S_ISREG(status.st_mode):
        return "it isn't a regular file"
    if status.st_uid != os.geteuid():
        return f"it belongs to another user ({status.st_uid})"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"others can write to it (mode {stat.S_IMODE(status.st_mode):o})"
    return None
