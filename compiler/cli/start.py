"""Where the command ``dovetail`` starts: before anything is imported that takes long."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command; Ctrl-C ends it without a traceback, while it is imported too."""
    try:
        from ..__main__ import main as command

        command()
    except KeyboardInterrupt:
        sys.stderr.write("\nAborted!\n")
        raise SystemExit(1) from None
