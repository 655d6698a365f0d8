"""The code that a pool's threads run, in LLVM's assembly.

``dovetail.pool.thread(record)`` is a thread's life: it waits for calls, by spinning for a bounded
time, then in the kernel, and works on those that it is still in time for.
``dovetail.pool.work(pool, thread)`` takes the thread's range piece by piece, and then pieces of the
others' ranges; the caller does it too.
``dovetail.pool.call``, ``rouse`` and ``close`` are how a caller tells a thread that there is work,
wakes it if it sleeps, and lets it in no longer.
"""

from ..arch.arch import Arch
from .pool_layout import FIELD_BYTES, OWN, THREAD_BYTES, fields, own

__all__ = ["SPINS", "pause_call", "threads_text"]

SPINS = 4000
"""Times that a thread looks before it sleeps."""
_PIECES = 16
"""Pieces that each thread's range is cut into."""


def pause_call(arch: Arch) -> str:
    """Tells the CPU that a loop waits."""
    name, operands = arch.pause
    return f"call void @{name}({', '.join(operands)})"


def threads_text(arch: Arch) -> str:
    """The functions.  Source of the futex calls: futex(2), private waits and wakes."""
    call = f"call i64 (i64, ...) @syscall(i64 {arch.system.futex}, ptr %word"
    return f"""define internal void @dovetail.pool.wait(ptr %word, i32 %value) {{
  {call}, i32 128, i32 %value, ptr null, ptr null, i32 0)
  ret void
}}

define internal void @dovetail.pool.wake(ptr %word) {{
  {call}, i32 129, i32 1, ptr null, ptr null, i32 0)
  ret void
}}

define internal void @dovetail.pool.call(ptr %pool, i64 %thread, i32 %value) {{
{own("thread", "call", "open")}
  store atomic i32 1, ptr %open release, align 4
  store atomic i32 %value, ptr %call release, align 4
  ret void
}}

define internal void @dovetail.pool.close(ptr %pool, i64 %thread) {{
{own("thread", "open")}
  store atomic i32 0, ptr %open release, align 4
  ret void
}}

define internal void @dovetail.pool.rouse(ptr %pool, i64 %thread) {{
entry:
{own("thread", "call", "asleep")}
  %sleeping = load atomic i32, ptr %asleep seq_cst, align 4
  %any = icmp ne i32 %sleeping, 0
  br i1 %any, label %rouse, label %end
rouse:
  call void @dovetail.pool.wake(ptr %call)
  br label %end
end:
  ret void
}}

define internal void @dovetail.pool.work(ptr %pool, i64 %thread) {{
entry:
{own("thread", "function", "closure", "extent", "parts")}
  %count = load i64, ptr %extent
  %code = load ptr, ptr %function
  %data = load ptr, ptr %closure
  %all = load i64, ptr %parts
  br label %range
range:
  %visited = phi i64 [ 0, %entry ], [ %more, %following ]
  %sum = add i64 %thread, %visited
  %past = icmp sge i64 %sum, %all
  %back = select i1 %past, i64 %all, i64 0
  %owner = sub i64 %sum, %back
  %next.owner = add i64 %owner, 1
  %low.1 = mul i64 %count, %owner
  %low = sdiv i64 %low.1, %all
  %high.1 = mul i64 %count, %next.owner
  %high = sdiv i64 %high.1, %all
  %size = sub i64 %high, %low
  %piece.1 = sdiv i64 %size, {_PIECES}
  %piece.2 = icmp slt i64 %piece.1, 1
  %piece = select i1 %piece.2, i64 1, i64 %piece.1
  %owner.offset = mul i64 %owner, {THREAD_BYTES}
  %owner.record = getelementptr i8, ptr %pool, i64 %owner.offset
  %taken = getelementptr i8, ptr %owner.record, i64 {FIELD_BYTES + OWN["taken"]}
  br label %look
look:
  %seen = load atomic i64, ptr %taken monotonic, align 8
  %some = icmp slt i64 %seen, %size
  br i1 %some, label %take, label %following
take:
  %begin = atomicrmw add ptr %taken, i64 %piece seq_cst
  %left = icmp slt i64 %begin, %size
  br i1 %left, label %run, label %following
run:
  %after = add i64 %begin, %piece
  %inside = icmp slt i64 %after, %size
  %stop = select i1 %inside, i64 %after, i64 %size
  %first = add i64 %low, %begin
  %last = add i64 %low, %stop
  call void %code(ptr %data, i64 %first, i64 %last, i64 %thread)
  br label %look
following:
  %more = add i64 %visited, 1
  %others = icmp slt i64 %more, %all
  br i1 %others, label %range, label %end
end:
  ret void
}}

define internal ptr @dovetail.pool.thread(ptr %argument) {{
entry:
  %pool = load ptr, ptr %argument
  %number.at = getelementptr i8, ptr %argument, i64 {OWN["number"]}
  %thread = load i64, ptr %number.at
{own("thread", "call", "open", "inside", "asleep", "id")}
{fields("stop")}
  %id.1 = call i64 (i64, ...) @syscall(i64 {arch.system.gettid})
  %id.2 = trunc i64 %id.1 to i32
  store atomic i32 %id.2, ptr %id seq_cst, align 4
  br label %idle
idle:
  %seen = phi i32 [ 0, %entry ], [ %now, %leave ], [ %now, %last ]
  br label %spin
spin:
  %spins = phi i32 [ 0, %idle ], [ %more, %again ], [ 0, %sleep ]
  %now = load atomic i32, ptr %call seq_cst, align 4
  %changed = icmp ne i32 %now, %seen
  br i1 %changed, label %go, label %still
still:
  %tired = icmp sgt i32 %spins, {SPINS}
  br i1 %tired, label %sleep, label %again
again:
  %more = add i32 %spins, 1
  {pause_call(arch)}
  br label %spin
sleep:
  %slept = atomicrmw xchg ptr %asleep, i32 1 seq_cst
  call void @dovetail.pool.wait(ptr %call, i32 %seen)
  %woken = atomicrmw xchg ptr %asleep, i32 0 seq_cst
  br label %spin
go:
  %stopped = load atomic i32, ptr %stop seq_cst, align 4
  %over = icmp ne i32 %stopped, 0
  br i1 %over, label %end, label %enter
enter:
  %entered = atomicrmw xchg ptr %inside, i32 1 seq_cst
  %state = load atomic i32, ptr %open seq_cst, align 4
  %opened = icmp ne i32 %state, 0
  br i1 %opened, label %work, label %leave
work:
  call void @dovetail.pool.work(ptr %pool, i64 %thread)
  br label %leave
leave:
  %before = atomicrmw xchg ptr %inside, i32 0 seq_cst
  %awaited = icmp eq i32 %before, 2
  br i1 %awaited, label %last, label %idle
last:
  call void @dovetail.pool.wake(ptr %inside)
  br label %idle
end:
  ret ptr null
}}
"""
