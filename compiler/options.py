"""What the user may ask of the compiler beside model and target."""

import os
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CompileOptions", "cache_directory"]


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """dump: folder that gets the text of every intermediate form; None for none.

    verify: check the graph after every pass, not only at the beginning and the end.
    time: print the time each step took to standard error.
    """

    dump: Path | None = None
    verify: bool = False
    time: bool = False

    @classmethod
    def from_environment(cls) -> "CompileOptions":
        """``DOVETAIL_DUMP=<folder>``, ``DOVETAIL_VERIFY=1``, ``DOVETAIL_TIME=1``."""
        folder = os.environ.get("DOVETAIL_DUMP")
        return cls(
            dump=Path(folder) if folder else None,
            verify=os.environ.get("DOVETAIL_VERIFY", "0") not in ("", "0"),
            time=os.environ.get("DOVETAIL_TIME", "0") not in ("", "0"),
        )


def cache_directory() -> Path:
    """Where compiled code is kept: ``DOVETAIL_CACHE``, or the user's cache folder."""
    chosen = os.environ.get("DOVETAIL_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "dovetail"
