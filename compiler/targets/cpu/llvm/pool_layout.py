"""Where the thread pool keeps what it knows, and addresses of it in LLVM's assembly.

A pool is a block of memory: fields of its own, then a record for each of its threads.

    fields: busy i32 at 0 | calls i32 at 4 | rivals i32 at 8: above 0 for some calls after another
                caller found the pool busy; one CPU is left to it
            stop i32 at 64 | home i32 at 68: the CPU that the others keep off; -1: none yet,
                -2: they stay as they are
            threads i64 at 72 | cpus i64 at 80: that they may run on
    from 128 on, for each thread:
            pool ptr at 0 | number i64 at 8 | handle i64 at 16 | asleep i32 at 24 | id i32 at 28
            call i32 at 64: changes when there is work | open i32 at 68
            inside i32 at 72: 1, or 2 when the caller sleeps until it is 0
            taken i64 at 80: iterations of its range
            function ptr at 88 | closure ptr at 96 | extent i64 at 104 | parts i64 at 112

What a call needs is in one line of the cache for each thread.
"""

from collections.abc import Mapping

__all__ = ["FIELD_BYTES", "OWN", "THREAD_BYTES", "fields", "own"]

FIELD_BYTES, THREAD_BYTES = 128, 128

FIELDS: Mapping[str, int] = {
    "busy": 0,
    "calls": 4,
    "rivals": 8,
    "stop": 64,
    "home": 68,
    "threads": 72,
    "cpus": 80,
}
OWN: Mapping[str, int] = {
    "number": 8,
    "handle": 16,
    "asleep": 24,
    "id": 28,
    "call": 64,
    "open": 68,
    "inside": 72,
    "taken": 80,
    "function": 88,
    "closure": 96,
    "extent": 104,
    "parts": 112,
}
"""Offsets in a thread's record, in bytes."""


def fields(*names: str) -> str:
    """Addresses of the pool's own fields, each in a value of its name."""
    return "\n".join(
        f"  %{name} = getelementptr i8, ptr %pool, i64 {FIELDS[name]}" for name in names
    )


def own(number: str, *names: str) -> str:
    """The same of what the thread has whose number is in the value ``number``."""
    lines = [f"  %own.offset = mul i64 %{number}, {THREAD_BYTES}"]
    lines.append("  %record = getelementptr i8, ptr %pool, i64 %own.offset")
    lines += [
        f"  %{name} = getelementptr i8, ptr %record, i64 {FIELD_BYTES + OWN[name]}"
        for name in names
    ]
    return "\n".join(lines)
