"""Python processes that live no longer than this one: started again, never forked.

A fork of a process with threads hangs when one of them just then multiplies matrices (OpenBLAS),
and copies locks that others hold (llvmlite's).
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from dovetail.isa.frozen import frozen

__all__ = ["ChildProcess", "Raised", "Ready", "serve_parent"]

WORKER = f"{__package__}.worker"
_PR_SET_PDEATHSIG = 1


@frozen
class Ready:
    """The first answer of a process: it has started."""


@frozen
class Raised:
    """The answer to an argument that could not be read, or for which the function raised."""

    kind: str
    message: str


@frozen
class ChildProcess:
    """A process that calls a function, and the socket to it: arguments go in, results come out."""

    process: "subprocess.Popen[bytes]"
    socket: "Connection[Any, Any]"

    @classmethod
    def start(cls, function: Callable[[Any], Any]) -> "ChildProcess":
        """Start it, without input and output, NumPy on one thread.

        function: of a module, by whose name the process finds it.
        It ends at the latest with the thread that starts it.
        """
        own, child = Pipe()
        single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        with child:
            process = subprocess.Popen(
                [sys.executable, "-m", WORKER, str(child.fileno())],
                pass_fds=(child.fileno(),),
                env={**os.environ, **single},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        with contextlib.suppress(OSError):
            own.send(function)
        return cls(process, own)

    def end(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.wait()
        self.socket.close()


def serve_parent() -> "Connection[Any, Any]":
    """In the child: its end of the socket.  Interrupts are the parent's; it ends with it."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return Connection(int(sys.argv[1]))
