"""Where the command ``dovetail`` starts: before anything is imported that takes long."""

import sys

__all__ = ["main"]


def main() -> int:
    """Run the command, which ends the process; 1, an exit code, where Ctrl-C is pressed before."""
    try:
        from ..__main__ import main as command

        command()
    except KeyboardInterrupt:
        sys.stderr.write("\nAborted!\n")
        return 1
    return 0
