"""How LOAD and STORE cut their rows into bursts, in machine code.

Source: docs/timing.md, "Reading DRAM".
"""

from .native.language import Int64s
from .plans import Plans

__all__ = ["NEVER", "cut_bursts", "first_outside"]

NEVER = 1 << 62
"""A cycle, or a number of a burst, that is not known to come."""

LAST_ADDRESS = (1 << 32) - 1


def cut_bursts(
    plans: Plans,
    index: int,
    burst_bytes: int,
    bus_bytes: int,
    beats: Int64s,
    addresses: Int64s,
) -> int:
    """Fill in the beats and the address of each burst of an instruction, in order; return how many
    there are.

    A row is cut at multiples of ``burst_bytes``.
    """
    number = 0
    if plans.row_bytes[index] == 0:
        return 0
    for z in range(plans.planes[index]):
        for y in range(plans.rows[index]):
            start = plans.address[index] + z * plans.stride_z[index] + y * plans.stride_y[index]
            room = burst_bytes - (start & (burst_bytes - 1))
            left = plans.row_bytes[index]
            while left > 0:
                size = min(left, room)
                beats[number] = size // bus_bytes
                addresses[number] = (start + plans.row_bytes[index] - left) & LAST_ADDRESS
                number += 1
                left -= size
                room = burst_bytes
    return number


def first_outside(
    plans: Plans, index: int, bus_bytes: int, beats: Int64s, base: int, limit: int
) -> int:
    """Number of the first burst that leaves the window (first and last byte); NEVER for none."""
    across_y = (plans.rows[index] - 1) * plans.stride_y[index]
    across_z = (plans.planes[index] - 1) * plans.stride_z[index]
    lowest = plans.address[index] + min(across_y, 0) + min(across_z, 0)
    highest = plans.address[index] + max(across_y, 0) + max(across_z, 0)
    if plans.row_bytes[index] == 0:
        return NEVER
    if base <= lowest and highest + plans.row_bytes[index] - 1 <= limit:
        return NEVER
    number = 0
    for z in range(plans.planes[index]):
        for y in range(plans.rows[index]):
            start = plans.address[index] + z * plans.stride_z[index] + y * plans.stride_y[index]
            left = plans.row_bytes[index]
            while left > 0:
                size = beats[number] * bus_bytes
                at = start & LAST_ADDRESS
                if at < base or at + size - 1 > limit:
                    return number
                number += 1
                start += size
                left -= size
    return NEVER
