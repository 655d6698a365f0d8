"""The process that measures: jobs come through a socket, results go back.

    python -m dovetail.compiler.tune.worker SOCKET

It ends with its parent.
"""

from ..processes.child_process import serve_parent
from .problem import Job, Measured

__all__ = ["main"]


def main() -> None:
    """Measure until the parent closes its end."""
    with serve_parent() as parent:
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
