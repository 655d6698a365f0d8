"""The thread pool, a small program in LLVM's assembly: what its callers do.

``dovetail_pool_run`` does ``extent`` iterations on the pool's threads: each has a range of its own
(``pool_threads``).  Only those that have a range are called.  A pool that is busy, or none, makes
the caller do all itself.  The caller waits for the threads that are inside, not for those that woke
too late to find the pool open.

``dovetail_pool_start`` makes a pool's threads, in memory that is 0, and ``dovetail_pool_stop`` ends
them.
"""

from ..arch.arch import Arch
from .pool_layout import FIELD_BYTES, OWN, THREAD_BYTES, fields, own
from .pool_places import places_text
from .pool_threads import SPINS, pause_call, threads_text

__all__ = ["RUN", "START", "STOP", "pool_text"]

RUN = "dovetail_pool_run"
START, STOP = "dovetail_pool_start", "dovetail_pool_stop"
_REMEMBERED = 512
"""Calls for which another caller that found the pool busy is thought of."""


def _for_others(
    label: str, after: str, then: str, task: str, number: str, more: str, arguments: str = ""
) -> str:
    """Block ``label``: ``dovetail.pool.task`` for each thread but the caller that has a range.

    after, then: the blocks before and behind it.  number, more: names of the thread's number, and
    of whether there is another.  arguments: after the pool and the thread.
    """
    return f"""{label}:
  %{number} = phi i64 [ 1, %{after} ], [ %{number}.next, %{label} ]
  call void @dovetail.pool.{task}(ptr %pool, i64 %{number}{arguments})
  %{number}.next = add i64 %{number}, 1
  %{more} = icmp slt i64 %{number}.next, %used
  br i1 %{more}, label %{label}, label %{then}"""


def pool_text(arch: Arch) -> str:
    """The whole program, for one kind of CPU."""
    name, operands = arch.pause
    kinds = ", ".join(each.split(" ", 1)[0] for each in operands)
    return f"""
declare void @{name}({kinds})
declare i64 @syscall(i64, ...)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
declare i32 @sched_getcpu()
{places_text(arch)}

{threads_text(arch)}
define void @{RUN}(ptr %pool, ptr %code, ptr %data, i64 %count, i64 %most) {{
entry:
  %absent = icmp eq ptr %pool, null
  %few = icmp slt i64 %count, 2
  %alone = or i1 %absent, %few
  br i1 %alone, label %serial, label %ask
ask:
{fields("calls", "busy", "rivals", "home", "threads", "cpus")}
  %pair = cmpxchg ptr %busy, i32 0, i32 1 seq_cst seq_cst
  %got = extractvalue {{ i32, i1 }} %pair, 1
  br i1 %got, label %place, label %refused
refused:
  store atomic i32 {_REMEMBERED}, ptr %rivals monotonic, align 4
  br label %serial
serial:
  call void %code(ptr %data, i64 0, i64 %count, i64 0)
  ret void
place:
  %waiting = load atomic i32, ptr %rivals monotonic, align 4
  %contested = icmp sgt i32 %waiting, 0
  br i1 %contested, label %spare, label %look
spare:
  %waiting.less = sub i32 %waiting, 1
  store atomic i32 %waiting.less, ptr %rivals monotonic, align 4
  br label %choose
look:
  %here = call i32 @sched_getcpu()
  %before = load i32, ptr %home
  %moved = icmp ne i32 %here, %before
  br i1 %moved, label %settle, label %choose
settle:
  call void @dovetail.pool.settle(ptr %pool, i32 %here)
  br label %choose
choose:
  %others = phi i64 [ 1, %spare ], [ 0, %look ], [ 0, %settle ]
  %all = load i64, ptr %threads
  %room.1 = load i64, ptr %cpus
  %room = sub i64 %room.1, %others
  %fewer = icmp slt i64 %most, %all
  %used.1 = select i1 %fewer, i64 %most, i64 %all
  %crowded = icmp slt i64 %room, %used.1
  %used = select i1 %crowded, i64 %room, i64 %used.1
  %single = icmp slt i64 %used, 2
  br i1 %single, label %own, label %share
own:
  store atomic i32 0, ptr %busy seq_cst, align 4
  br label %serial
share:
  %calls.before = load i32, ptr %calls
  %number.of.call = add i32 %calls.before, 1
  store i32 %number.of.call, ptr %calls
  br label %give
give:
  %number = phi i64 [ 0, %share ], [ %number.next, %give ]
{own("number", "taken", "function", "closure", "extent", "parts")}
  store ptr %code, ptr %function
  store ptr %data, ptr %closure
  store i64 %count, ptr %extent
  store i64 %used, ptr %parts
  store atomic i64 0, ptr %taken monotonic, align 8
  %number.next = add i64 %number, 1
  %more.to.give = icmp slt i64 %number.next, %used
  br i1 %more.to.give, label %give, label %notify
{_for_others("notify", "give", "called", "call", "other", "uncalled", ", i32 %number.of.call")}
called:
  fence seq_cst
  br label %rouse
{_for_others("rouse", "called", "work", "rouse", "sleeper", "unseen")}
work:
  call void @dovetail.pool.work(ptr %pool, i64 0)
  br label %close
{_for_others("close", "work", "closed", "close", "shut", "unshut")}
closed:
  fence seq_cst
  br label %next
next:
  %awaited = phi i64 [ 1, %closed ], [ %awaited.next, %gone ]
  %awaited.offset = mul i64 %awaited, {THREAD_BYTES}
  %awaited.record = getelementptr i8, ptr %pool, i64 %awaited.offset
  %inside = getelementptr i8, ptr %awaited.record, i64 {FIELD_BYTES + OWN["inside"]}
  br label %join
join:
  %spins = phi i32 [ 0, %next ], [ %more, %again ], [ 0, %sleep ]
  %rest = load atomic i32, ptr %inside seq_cst, align 4
  %done = icmp eq i32 %rest, 0
  br i1 %done, label %gone, label %wait
wait:
  %tired = icmp sgt i32 %spins, {SPINS}
  br i1 %tired, label %tell, label %again
again:
  %more = add i32 %spins, 1
  {pause_call(arch)}
  br label %join
tell:
  %told = cmpxchg ptr %inside, i32 1, i32 2 seq_cst seq_cst
  br label %sleep
sleep:
  call void @dovetail.pool.wait(ptr %inside, i32 2)
  br label %join
gone:
  %awaited.next = add i64 %awaited, 1
  %left = icmp slt i64 %awaited.next, %used
  br i1 %left, label %next, label %free
free:
  store atomic i32 0, ptr %busy seq_cst, align 4
  ret void
}}

define i64 @{START}(ptr %pool, i64 %wanted) {{
entry:
{fields("threads", "home")}
  store i32 -1, ptr %home
  br label %next
next:
  %number.new = phi i64 [ 1, %entry ], [ %following, %made ]
  %more = icmp slt i64 %number.new, %wanted
  br i1 %more, label %make, label %end
make:
{own("number.new", "number", "handle")}
  %argument = getelementptr i8, ptr %record, i64 {FIELD_BYTES}
  store ptr %pool, ptr %argument
  store i64 %number.new, ptr %number
  %error = call i32 @pthread_create(ptr %handle, ptr null, ptr @dovetail.pool.thread, ptr %argument)
  %failed = icmp ne i32 %error, 0
  br i1 %failed, label %end, label %made
made:
  %following = add i64 %number.new, 1
  br label %next
end:
  store i64 %number.new, ptr %threads
  call void @dovetail.pool.places(ptr %pool)
  ret i64 %number.new
}}

define void @{STOP}(ptr %pool) {{
entry:
{fields("stop", "home", "threads")}
  store i32 -2, ptr %home
  store atomic i32 1, ptr %stop seq_cst, align 4
  %all = load i64, ptr %threads
  br label %next
next:
  %number = phi i64 [ 1, %entry ], [ %following, %join ]
  %more = icmp slt i64 %number, %all
  br i1 %more, label %join, label %end
join:
{own("number", "handle", "call")}
  %old = atomicrmw add ptr %call, i32 1 seq_cst
  call void @dovetail.pool.rouse(ptr %pool, i64 %number)
  %thread = load i64, ptr %handle
  %error = call i32 @pthread_join(i64 %thread, ptr null)
  %following = add i64 %number, 1
  br label %next
end:
  ret void
}}
"""
