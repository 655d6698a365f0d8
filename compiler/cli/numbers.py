"""Numbers that options give."""

import math
from typing import Any

import click

__all__ = ["LARGEST", "NOT_NEGATIVE", "POSITIVE"]

LARGEST = 1 << 62
"""No number of bytes, seconds or steps that is meant is larger."""


class _Number(click.FloatRange):
    """A number of a range that is not NaN, and no larger than LARGEST."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """As ``click.ParamType``."""
        found = float(super().convert(value, param, ctx))
        if math.isnan(found) or found > LARGEST:
            self.fail(f"{value}; required a number of at most {LARGEST}", param, ctx)
        return found


POSITIVE = _Number(0, min_open=True)
"""The type of times, amounts of memory and of work."""
NOT_NEGATIVE = _Number(0)
"""The type of differences."""
