"""Where the command ``dovetail`` starts: before anything is imported that takes long."""

import sys

__all__ = ["main"]


def main() -> int:
    """The exit code of the command, unless it ends the process; Ctrl-C ends it without a traceback, while it is imported too."""
    try:
        from ..__main__ import main as command

        command()
    except KeyboardInterrupt:
        sys.stderr.write("\nAborted!\n")
        return 1
    return 0
