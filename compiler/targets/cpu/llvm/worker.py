"""The process that compiles functions for another: loop functions come, object files go back.

python -m dovetail.compiler.targets.cpu.llvm.worker SOCKET
"""

from ....processes.child_process import serve_parent
from .build import build_function

__all__ = ["main"]


def main() -> None:
    """Say that it runs, then compile until the parent closes its end.

    None goes back for what cannot be compiled: the parent does that itself, and has the error.
    """
    with serve_parent() as parent:
        parent.send(None)
        while True:
            try:
                found = build_function(parent.recv())
            except EOFError:
                return
            except Exception:
                found = None
            parent.send(found)


if __name__ == "__main__":
    main()
