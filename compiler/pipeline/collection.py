"""Python's collector of cycles, paused while something makes many objects that have none."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["paused_collection"]


@contextmanager
def paused_collection() -> Iterator[None]:
    """Within this no cycles are looked for: walking over all objects again and again takes time.

    What it was before it is afterwards, whatever happens.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
