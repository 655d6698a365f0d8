"""The thread pool, a small program in LLVM's assembly.

A pool is a block of memory, and ``dovetail_pool_run`` does ``extent`` iterations on its threads:
each takes the next chunk until none is left.  Threads wait for work by spinning for a bounded time,
then in the kernel.  A pool that is busy, or none, makes the caller do all itself.  The caller waits
for the threads that entered the gate, not for those that woke too late to find it open.

    fields: generation i32 at 0 | gate i32 at 64: threads inside, plus 2**30 while it is open
            next i64 at 128 | extent i64 at 192 | chunk i64 at 200 | function ptr at 208
            closure ptr at 216 | limit i64 at 224
            busy i32 at 256 | sleepers i32 at 320 | stop i32 at 384 | threads i64 at 392
            from 448 on, for each thread: pool ptr, number i64, handle i64, unused
"""

__all__ = ["FIELD_BYTES", "POOL_TEXT", "RUN", "START", "STOP", "THREAD_BYTES"]

RUN = "dovetail_pool_run"
START, STOP = "dovetail_pool_start", "dovetail_pool_stop"
FIELD_BYTES, THREAD_BYTES = 448, 32
_SPINS = 4000
_ALL = (1 << 31) - 1
_OPEN = 1 << 30

_GENERATED = {
    "generation": 0,
    "gate": 64,
    "next": 128,
    "extent": 192,
    "chunk": 200,
    "function": 208,
    "closure": 216,
    "limit": 224,
    "busy": 256,
    "sleepers": 320,
    "stop": 384,
    "threads": 392,
}


def _fields(*names: str) -> str:
    return "\n".join(
        f"  %{name} = getelementptr i8, ptr %pool, i64 {_GENERATED[name]}" for name in names
    )


POOL_TEXT = f"""
declare void @llvm.x86.sse2.pause()
declare i64 @syscall(i64, ...)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)

define internal void @dovetail.pool.wait(ptr %word, i32 %value) {{
  call i64 (i64, ...) @syscall(i64 202, ptr %word, i32 128, i32 %value, ptr null, ptr null, i32 0)
  ret void
}}

define internal void @dovetail.pool.wake(ptr %word) {{
  call i64 (i64, ...) @syscall(i64 202, ptr %word, i32 129, i32 {_ALL}, ptr null, ptr null, i32 0)
  ret void
}}

define internal void @dovetail.pool.work(ptr %pool, i64 %thread) {{
entry:
{_fields("next", "extent", "chunk", "function", "closure", "limit")}
  %most = load i64, ptr %limit
  %wanted = icmp slt i64 %thread, %most
  br i1 %wanted, label %start, label %end
start:
  %count = load i64, ptr %extent
  %step = load i64, ptr %chunk
  %code = load ptr, ptr %function
  %data = load ptr, ptr %closure
  br label %take
take:
  %first = atomicrmw add ptr %next, i64 %step seq_cst
  %left = icmp slt i64 %first, %count
  br i1 %left, label %run, label %end
run:
  %after = add i64 %first, %step
  %inside = icmp slt i64 %after, %count
  %last = select i1 %inside, i64 %after, i64 %count
  call void %code(ptr %data, i64 %first, i64 %last, i64 %thread)
  br label %take
end:
  ret void
}}

define internal ptr @dovetail.pool.thread(ptr %argument) {{
entry:
  %pool = load ptr, ptr %argument
  %number.at = getelementptr i8, ptr %argument, i64 8
  %thread = load i64, ptr %number.at
{_fields("generation", "gate", "sleepers", "stop")}
  br label %idle
idle:
  %seen = phi i32 [ 0, %entry ], [ %now, %leave ], [ %now, %last ]
  br label %spin
spin:
  %spins = phi i32 [ 0, %idle ], [ %more, %again ], [ 0, %sleep ]
  %now = load atomic i32, ptr %generation seq_cst, align 4
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
  %slept = atomicrmw add ptr %sleepers, i32 1 seq_cst
  call void @dovetail.pool.wait(ptr %generation, i32 %seen)
  %woken = atomicrmw sub ptr %sleepers, i32 1 seq_cst
  br label %spin
go:
  %stopped = load atomic i32, ptr %stop seq_cst, align 4
  %over = icmp ne i32 %stopped, 0
  br i1 %over, label %end, label %enter
enter:
  %inside = atomicrmw add ptr %gate, i32 1 seq_cst
  %open.bit = and i32 %inside, {_OPEN}
  %open = icmp ne i32 %open.bit, 0
  br i1 %open, label %work, label %leave
work:
  call void @dovetail.pool.work(ptr %pool, i64 %thread)
  br label %leave
leave:
  %before = atomicrmw sub ptr %gate, i32 1 seq_cst
  %final = icmp eq i32 %before, 1
  br i1 %final, label %last, label %idle
last:
  call void @dovetail.pool.wake(ptr %gate)
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
{
    _fields(
        *("generation", "gate", "next", "extent", "chunk", "function", "closure", "limit"),
        *("busy", "sleepers", "threads"),
    )
}
  %all = load i64, ptr %threads
  %single = icmp slt i64 %all, 2
  br i1 %single, label %serial, label %lock
lock:
  %pair = cmpxchg ptr %busy, i32 0, i32 1 seq_cst seq_cst
  %got = extractvalue {{ i32, i1 }} %pair, 1
  br i1 %got, label %share, label %serial
serial:
  call void %code(ptr %data, i64 0, i64 %count, i64 0)
  ret void
share:
  %fewer = icmp slt i64 %most, %all
  %used = select i1 %fewer, i64 %most, i64 %all
  %parts = shl i64 %used, 2
  %size = sdiv i64 %count, %parts
  %tiny = icmp slt i64 %size, 1
  %step = select i1 %tiny, i64 1, i64 %size
  store i64 %count, ptr %extent
  store i64 %step, ptr %chunk
  store ptr %code, ptr %function
  store ptr %data, ptr %closure
  store i64 %used, ptr %limit
  store atomic i64 0, ptr %next seq_cst, align 8
  %opened = atomicrmw or ptr %gate, i32 {_OPEN} seq_cst
  %old = atomicrmw add ptr %generation, i32 1 seq_cst
  %asleep = load atomic i32, ptr %sleepers seq_cst, align 4
  %any = icmp ne i32 %asleep, 0
  br i1 %any, label %rouse, label %work
rouse:
  call void @dovetail.pool.wake(ptr %generation)
  br label %work
work:
  call void @dovetail.pool.work(ptr %pool, i64 0)
  %closed = atomicrmw and ptr %gate, i32 {_OPEN - 1} seq_cst
  br label %join
join:
  %spins = phi i32 [ 0, %work ], [ %more, %again ], [ 0, %sleep ]
  %rest = load atomic i32, ptr %gate seq_cst, align 4
  %done = icmp eq i32 %rest, 0
  br i1 %done, label %free, label %wait
wait:
  %tired = icmp sgt i32 %spins, {_SPINS}
  br i1 %tired, label %sleep, label %again
again:
  %more = add i32 %spins, 1
  call void @llvm.x86.sse2.pause()
  br label %join
sleep:
  call void @dovetail.pool.wait(ptr %gate, i32 %rest)
  br label %join
free:
  store atomic i32 0, ptr %busy seq_cst, align 4
  ret void
}}

define i64 @{START}(ptr %pool, i64 %wanted) {{
entry:
{_fields("threads")}
  br label %next
next:
  %number = phi i64 [ 1, %entry ], [ %following, %made ]
  %more = icmp slt i64 %number, %wanted
  br i1 %more, label %make, label %end
make:
  %offset.1 = mul i64 %number, {THREAD_BYTES}
  %offset = add i64 %offset.1, {FIELD_BYTES}
  %argument = getelementptr i8, ptr %pool, i64 %offset
  %number.at = getelementptr i8, ptr %argument, i64 8
  %handle = getelementptr i8, ptr %argument, i64 16
  store ptr %pool, ptr %argument
  store i64 %number, ptr %number.at
  %error = call i32 @pthread_create(ptr %handle, ptr null, ptr @dovetail.pool.thread, ptr %argument)
  %failed = icmp ne i32 %error, 0
  br i1 %failed, label %end, label %made
made:
  %following = add i64 %number, 1
  br label %next
end:
  store i64 %number, ptr %threads
  ret i64 %number
}}

define void @{STOP}(ptr %pool) {{
entry:
{_fields("generation", "stop", "threads")}
  store atomic i32 1, ptr %stop seq_cst, align 4
  %old = atomicrmw add ptr %generation, i32 1 seq_cst
  call void @dovetail.pool.wake(ptr %generation)
  %all = load i64, ptr %threads
  br label %next
next:
  %number = phi i64 [ 1, %entry ], [ %following, %join ]
  %more = icmp slt i64 %number, %all
  br i1 %more, label %join, label %end
join:
  %offset.1 = mul i64 %number, {THREAD_BYTES}
  %offset = add i64 %offset.1, {FIELD_BYTES + 16}
  %handle.at = getelementptr i8, ptr %pool, i64 %offset
  %handle = load i64, ptr %handle.at
  %error = call i32 @pthread_join(i64 %handle, ptr null)
  %following = add i64 %number, 1
  br label %next
end:
  ret void
}}
"""
"""The whole program.  Source of the futex calls: futex(2), private waits and wakes on x86-64."""
