"""The thread pool, a small program in LLVM's assembly.

A pool is a block of memory, and ``dovetail_pool_run`` does ``extent`` iterations on its threads:
each has a range of its own, takes it piece by piece, and then pieces of the others' ranges.
Threads wait for work by spinning for a bounded time, then in the kernel; only those that have a
range are called.  A pool that is busy, or none, makes the caller do all itself.  The caller waits
for the threads that are inside, not for those that woke too late to find the pool open.

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

from .pool_places import PLACES_TEXT

__all__ = ["FIELD_BYTES", "POOL_TEXT", "RUN", "START", "STOP", "THREAD_BYTES"]

RUN = "dovetail_pool_run"
START, STOP = "dovetail_pool_start", "dovetail_pool_stop"
FIELD_BYTES, THREAD_BYTES = 128, 128
_SPINS = 4000
_REMEMBERED = 512
"""Calls for which another caller that found the pool busy is thought of."""
_PIECES = 16
"""Of each thread's range."""

_FIELDS = {"busy": 0, "calls": 4, "rivals": 8, "stop": 64, "home": 68, "threads": 72, "cpus": 80}
_OWN = {
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


def _fields(*names: str) -> str:
    return "\n".join(
        f"  %{name} = getelementptr i8, ptr %pool, i64 {_FIELDS[name]}" for name in names
    )


def _own(number: str, *names: str) -> str:
    """Addresses of what the thread of this number has."""
    lines = [f"  %own.offset = mul i64 %{number}, {THREAD_BYTES}"]
    lines.append("  %record = getelementptr i8, ptr %pool, i64 %own.offset")
    lines += [
        f"  %{name} = getelementptr i8, ptr %record, i64 {FIELD_BYTES + _OWN[name]}"
        for name in names
    ]
    return "\n".join(lines)


POOL_TEXT = f"""
declare void @llvm.x86.sse2.pause()
declare i64 @syscall(i64, ...)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
declare i32 @sched_getcpu()
{PLACES_TEXT}

define internal void @dovetail.pool.wait(ptr %word, i32 %value) {{
  call i64 (i64, ...) @syscall(i64 202, ptr %word, i32 128, i32 %value, ptr null, ptr null, i32 0)
  ret void
}}

define internal void @dovetail.pool.wake(ptr %word) {{
  call i64 (i64, ...) @syscall(i64 202, ptr %word, i32 129, i32 1, ptr null, ptr null, i32 0)
  ret void
}}

define internal void @dovetail.pool.call(ptr %pool, i64 %thread, i32 %value) {{
{_own("thread", "call", "open")}
  store atomic i32 1, ptr %open release, align 4
  store atomic i32 %value, ptr %call release, align 4
  ret void
}}

define internal void @dovetail.pool.close(ptr %pool, i64 %thread) {{
{_own("thread", "open")}
  store atomic i32 0, ptr %open release, align 4
  ret void
}}

define internal void @dovetail.pool.rouse(ptr %pool, i64 %thread) {{
entry:
{_own("thread", "call", "asleep")}
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
{_own("thread", "function", "closure", "extent", "parts")}
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
  %taken = getelementptr i8, ptr %owner.record, i64 {FIELD_BYTES + _OWN["taken"]}
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
  %number.at = getelementptr i8, ptr %argument, i64 {_OWN["number"]}
  %thread = load i64, ptr %number.at
{_own("thread", "call", "open", "inside", "asleep", "id")}
{_fields("stop")}
  %id.1 = call i64 (i64, ...) @syscall(i64 186)
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
  %tired = icmp sgt i32 %spins, {_SPINS}
  br i1 %tired, label %sleep, label %again
again:
  %more = add i32 %spins, 1
  call void @llvm.x86.sse2.pause()
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

define void @{RUN}(ptr %pool, ptr %code, ptr %data, i64 %count, i64 %most) {{
entry:
  %absent = icmp eq ptr %pool, null
  %few = icmp slt i64 %count, 2
  %alone = or i1 %absent, %few
  br i1 %alone, label %serial, label %ask
ask:
{_fields("calls", "busy", "rivals", "home", "threads", "cpus")}
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
{_own("number", "taken", "function", "closure", "extent", "parts")}
  store ptr %code, ptr %function
  store ptr %data, ptr %closure
  store i64 %count, ptr %extent
  store i64 %used, ptr %parts
  store atomic i64 0, ptr %taken monotonic, align 8
  %number.next = add i64 %number, 1
  %more.to.give = icmp slt i64 %number.next, %used
  br i1 %more.to.give, label %give, label %notify
notify:
  %other = phi i64 [ 1, %give ], [ %other.next, %notify ]
  call void @dovetail.pool.call(ptr %pool, i64 %other, i32 %number.of.call)
  %other.next = add i64 %other, 1
  %uncalled = icmp slt i64 %other.next, %used
  br i1 %uncalled, label %notify, label %called
called:
  fence seq_cst
  br label %rouse
rouse:
  %sleeper = phi i64 [ 1, %called ], [ %sleeper.next, %rouse ]
  call void @dovetail.pool.rouse(ptr %pool, i64 %sleeper)
  %sleeper.next = add i64 %sleeper, 1
  %unseen = icmp slt i64 %sleeper.next, %used
  br i1 %unseen, label %rouse, label %work
work:
  call void @dovetail.pool.work(ptr %pool, i64 0)
  br label %close
close:
  %shut = phi i64 [ 1, %work ], [ %shut.next, %close ]
  call void @dovetail.pool.close(ptr %pool, i64 %shut)
  %shut.next = add i64 %shut, 1
  %unshut = icmp slt i64 %shut.next, %used
  br i1 %unshut, label %close, label %closed
closed:
  fence seq_cst
  br label %next
next:
  %awaited = phi i64 [ 1, %closed ], [ %awaited.next, %gone ]
  %awaited.offset = mul i64 %awaited, {THREAD_BYTES}
  %awaited.record = getelementptr i8, ptr %pool, i64 %awaited.offset
  %inside = getelementptr i8, ptr %awaited.record, i64 {FIELD_BYTES + _OWN["inside"]}
  br label %join
join:
  %spins = phi i32 [ 0, %next ], [ %more, %again ], [ 0, %sleep ]
  %rest = load atomic i32, ptr %inside seq_cst, align 4
  %done = icmp eq i32 %rest, 0
  br i1 %done, label %gone, label %wait
wait:
  %tired = icmp sgt i32 %spins, {_SPINS}
  br i1 %tired, label %tell, label %again
again:
  %more = add i32 %spins, 1
  call void @llvm.x86.sse2.pause()
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
{_fields("threads", "home")}
  store i32 -1, ptr %home
  br label %next
next:
  %number.new = phi i64 [ 1, %entry ], [ %following, %made ]
  %more = icmp slt i64 %number.new, %wanted
  br i1 %more, label %make, label %end
make:
{_own("number.new", "number", "handle")}
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
{_fields("stop", "home", "threads")}
  store i32 -2, ptr %home
  store atomic i32 1, ptr %stop seq_cst, align 4
  %all = load i64, ptr %threads
  br label %next
next:
  %number = phi i64 [ 1, %entry ], [ %following, %join ]
  %more = icmp slt i64 %number, %all
  br i1 %more, label %join, label %end
join:
{_own("number", "handle", "call")}
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
"""The whole program.  Source of the futex calls: futex(2), private waits and wakes on x86-64."""
