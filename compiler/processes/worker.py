"""The process that calls a function for another.

    python -m dovetail.compiler.processes.worker SOCKET

The function comes first, then arguments; each gets an answer.
"""

from collections.abc import Callable
from typing import Any

from .child_process import Raised, Ready, serve_parent

__all__ = ["main"]


def main() -> None:
    """Answer until the parent closes its end."""
    with serve_parent() as parent:
        function = parent.recv()
        parent.send(Ready())
        while True:
            try:
                argument = parent.recv()
            except EOFError:
                return
            except Exception as error:
                parent.send(Raised(type(error).__name__, str(error)))
                continue
            parent.send(_called(function, argument))


def _called(function: Callable[[Any], Any], argument: object) -> object:
    try:
        return function(argument)
    except Exception as error:
        return Raised(type(error).__name__, str(error))


if __name__ == "__main__":
    main()
