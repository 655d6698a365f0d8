"""The process that measures: jobs come through a socket, results go back.

    python -m dovetail.compiler.tune.worker SOCKET

It ends with its parent.
"""

import ctypes
import signal
import sys
from multiprocessing.connection import Connection

from .problem import Job, Measured

__all__ = ["main"]

PR_SET_PDEATHSIG = 1


def main() -> None:
    """Measure until the parent closes its end."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Connection(int(sys.argv[1])) as parent:
        while True:
            try:
                job = parent.recv()
            except EOFError:
                return
            except Exception as error:
                parent.send(_failed(error))
                continue
            parent.send(_measured(job))


def _measured(job: Job) -> Measured:
    try:
        return job.run()
    except MemoryError:
        return Measured(None, error="no memory for it")
    except Exception as error:
        return _failed(error)


def _failed(error: Exception) -> Measured:
    return Measured(None, error=f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
