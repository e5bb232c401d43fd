"""Starting the service at which processes meet, in a process of its own: `_server` is what runs there."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from contextlib import suppress
from typing import Final

from corejax.errors import CorejaxRuntimeError
from corejax_processes._environment import split_address

#: How long Python may take to start, in seconds.
_START_SECONDS: Final = 120.0


class ServiceProcess:
    """A service that runs, and where it listens. Keep it: the service ends once nobody has it and no client is left."""

    def __init__(self, process: subprocess.Popen[bytes], address: str) -> None:
        self._process = process
        self.address = address

    @property
    def pid(self) -> int:
        return self._process.pid

    def alive(self) -> bool:
        """Whether it still runs. If it doesn't, its clients have been ended."""
        return self._process.poll() is None

    def release(self) -> None:
        """Let it end by itself, a second after its last client has gone. It may outlive this process."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()

    def end(self, seconds: float) -> None:
        """Let it end by itself, and see to it that it does within so many seconds."""
        self.release()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        self.stop()

    def stop(self) -> None:
        """End it now, and so every client that is still connected."""
        self.release()
        self._process.kill()  # it keeps nothing
        self._process.wait()


def start_service(address: str, count: int) -> ServiceProcess:
    """Start a service for so many processes that listens at this address, `host:port`; port 0 is any free one."""
    split_address(address, "the address of the service", least_port=0)
    command = [sys.executable, "-P", "-m", "corejax_processes._server", address, str(count)]
    # A session of its own: no Ctrl-C in a terminal ends it before its clients.
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
                               env={"TF_CPP_MIN_LOG_LEVEL": "3", **os.environ})  # it warns of what is intended
    assert process.stdout is not None
    try:
        readable, _, _ = select.select([process.stdout], [], [], _START_SECONDS)
        answer = process.stdout.readline().decode(errors="replace").strip() if readable else "no answer"
        ready, _, where = answer.partition(" ")
        if ready != "ready":
            raise CorejaxRuntimeError(f"the service that processes meet at can't start at {address}",
                                      got=answer or f"it ended with exit code {process.wait()}",
                                      wanted="an address of this machine, and a free port",
                                      todo="choose another port, or end what listens there")
    except BaseException:
        process.kill()
        process.wait()
        raise
    finally:
        process.stdout.close()
    return ServiceProcess(process, where)
