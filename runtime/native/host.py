"""Features of this computer's CPU, by Linux's names."""

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from ..errors import DeviceError

__all__ = ["host_flags", "require_flags"]


@cache
def host_flags() -> frozenset[str]:
    """The flags of the first processor; empty where there is no such list."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return frozenset()
    for line in text.splitlines():
        if line.startswith("flags"):
            return frozenset(line.partition(":")[2].split())
    return frozenset()


def require_flags(flags: Iterable[str], cpu: str) -> None:
    """Raises DeviceError, naming what is missing, unless this CPU has all of ``flags``.

    cpu: the name of the one that code was made for.
    """
    missing = sorted(set(flags) - host_flags())
    if missing:
        raise DeviceError(
            f"this CPU lacks {', '.join(missing)}, which the code for {cpu} uses; compile it "
            "here, or for a lower level (--cpu-level)"
        )
