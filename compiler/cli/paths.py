"""Places that options and arguments name."""

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

__all__ = ["PATH"]


class _Place(click.Path):
    """A path, of a file or folder that is there or not: but no device, which may never end."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """As ``click.ParamType``."""
        found = Path(os.fsdecode(super().convert(value, param, ctx)))
        with suppress(OSError, ValueError):
            mode = os.stat(found).st_mode
            if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
                self.fail(f"{found} is a device; required a file or a folder", param, ctx)
        return found


PATH = _Place(path_type=Path)
"""The type of all of them."""
