"""On which CPUs the pool's threads run, in LLVM's assembly.

The caller stays where it is; the others may run on every CPU that the caller may, but not on the
one it is on.  A thread that sleeps is otherwise woken on its caller's CPU, where it waits until the
kernel evens loads out: milliseconds.  Which of the other CPUs, the kernel decides: it knows
what other processes do.

``dovetail.pool.places(pool)``, once: how many CPUs there are, and whether to settle at all.
``dovetail.pool.settle(pool, cpu)``, when the caller is on another CPU than the last time.
A caller that may run on one CPU alone changes nothing.
"""

from ..arch.arch import Arch
from .pool_layout import FIELD_BYTES, OWN, THREAD_BYTES, fields

__all__ = ["SWITCH", "places_text"]

SWITCH = "DOVETAIL_SETTLE_THREADS"
"""The environment variable that, when it begins with 0, leaves the threads to the kernel."""
_WORDS = 16
"""Words of a mask of 1,024 CPUs.  On a larger machine the calls fail, and threads stay put."""


def places_text(arch: Arch) -> str:
    """The functions.

    Source of the calls: sched_getaffinity(2), sched_setaffinity(2), getcpu(3).
    """
    setting, getting = arch.system.sched_setaffinity, arch.system.sched_getaffinity
    return f"""
@dovetail.pool.switch = internal constant [{len(SWITCH) + 1} x i8] c"{SWITCH}\\00"
declare ptr @getenv(ptr)
declare i64 @llvm.ctpop.i64(i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define internal i64 @dovetail.pool.mask(ptr %mask) {{
entry:
  call void @llvm.memset.p0.i64(ptr align 8 %mask, i8 0, i64 {8 * _WORDS}, i1 false)
  %got = call i64 (i64, ...) @syscall(i64 {getting}, i32 0, i64 {8 * _WORDS}, ptr %mask)
  %failed = icmp slt i64 %got, 1
  br i1 %failed, label %none, label %word
none:
  ret i64 0
word:
  %number = phi i64 [ 0, %entry ], [ %next, %word ]
  %sum = phi i64 [ 0, %entry ], [ %total, %word ]
  %at = getelementptr i64, ptr %mask, i64 %number
  %bits = load i64, ptr %at
  %ones = call i64 @llvm.ctpop.i64(i64 %bits)
  %total = add i64 %sum, %ones
  %next = add i64 %number, 1
  %more = icmp slt i64 %next, {_WORDS}
  br i1 %more, label %word, label %end
end:
  ret i64 %total
}}

define internal void @dovetail.pool.places(ptr %pool) {{
entry:
  %mask = alloca [{_WORDS} x i64], align 8
{fields("home", "threads", "cpus")}
  %count = call i64 @dovetail.pool.mask(ptr %mask)
  %known = icmp sgt i64 %count, 0
  %all = load i64, ptr %threads
  %room = select i1 %known, i64 %count, i64 %all
  store i64 %room, ptr %cpus
  %text = call ptr @getenv(ptr @dovetail.pool.switch)
  %unset = icmp eq ptr %text, null
  br i1 %unset, label %end, label %read
read:
  %letter = load i8, ptr %text
  %off = icmp eq i8 %letter, 48
  br i1 %off, label %leave, label %end
leave:
  store i32 -2, ptr %home
  br label %end
end:
  ret void
}}

define internal void @dovetail.pool.settle(ptr %pool, i32 %cpu) {{
entry:
  %mask = alloca [{_WORDS} x i64], align 8
{fields("home", "threads", "cpus")}
  %before = load i32, ptr %home
  %off = icmp eq i32 %before, -2
  %unknown = icmp uge i32 %cpu, {64 * _WORDS}
  %leave = or i1 %off, %unknown
  br i1 %leave, label %end, label %look
look:
  %count = call i64 @dovetail.pool.mask(ptr %mask)
  %several = icmp sgt i64 %count, 1
  br i1 %several, label %exclude, label %settled
exclude:
  store i64 %count, ptr %cpus
  %wide = zext i32 %cpu to i64
  %number = lshr i64 %wide, 6
  %place = and i64 %wide, 63
  %bit = shl i64 1, %place
  %others = xor i64 %bit, -1
  %word = getelementptr i64, ptr %mask, i64 %number
  %bits = load i64, ptr %word
  %rest = and i64 %bits, %others
  store i64 %rest, ptr %word
  %all = load i64, ptr %threads
  br label %thread
thread:
  %own = phi i64 [ 1, %exclude ], [ %next, %set ]
  %more = icmp slt i64 %own, %all
  br i1 %more, label %ask, label %settled
ask:
  %offset = mul i64 %own, {THREAD_BYTES}
  %base = getelementptr i8, ptr %pool, i64 %offset
  %id.at = getelementptr i8, ptr %base, i64 {FIELD_BYTES + OWN["id"]}
  %id = load atomic i32, ptr %id.at seq_cst, align 4
  %started = icmp ne i32 %id, 0
  br i1 %started, label %set, label %end
set:
  call i64 (i64, ...) @syscall(i64 {setting}, i32 %id, i64 {8 * _WORDS}, ptr %mask)
  %next = add i64 %own, 1
  br label %thread
settled:
  store i32 %cpu, ptr %home
  br label %end
end:
  ret void
}}
"""
