"""Rights that this process gives up before it runs foreign machine code; the kernel enforces it.

Of the system's calls those stay that computing takes: memory, threads of its own, clocks, and the
pipes that it has already.  All others fail with EPERM: it opens no file, makes no socket, starts no
program, and signals no process.
"""

import errno
import resource
from collections.abc import Sequence

from ..errors import DeviceError

__all__ = ["confine", "limit"]

CALLS = (
    *("brk", "madvise", "mmap", "mprotect", "mremap", "munmap"),
    *("close", "fstat", "lseek", "read", "readv", "write", "writev"),
    *("clock_gettime", "clock_nanosleep", "gettimeofday", "nanosleep", "restart_syscall"),
    *("exit", "exit_group", "futex", "gettid", "getpid", "membarrier", "rseq", "set_robust_list"),
    *("getcpu", "getrandom", "sched_getaffinity", "sched_setaffinity", "sched_yield"),
    *("rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack"),
)
"""Calls that are allowed, whatever they are given."""
CLONE_THREAD = 0x10000


def limit(memory_bytes: int, cpu_seconds: int) -> None:
    """Bound memory and processor time of this process, let it write no file and dump no core."""
    for which, soft, hard in (
        (resource.RLIMIT_CPU, cpu_seconds, cpu_seconds + 1),
        (resource.RLIMIT_AS, memory_bytes, memory_bytes),
        (resource.RLIMIT_FSIZE, 0, 0),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        # What is bounded to less already stays so.
        _, present = resource.getrlimit(which)
        most = hard if present == resource.RLIM_INFINITY else min(hard, present)
        resource.setrlimit(which, (min(soft, most), most))


def confine(calls: Sequence[str] = CALLS) -> None:
    """Allow ``calls`` alone from now on, and new threads.

    Raises DeviceError for want of the package ``pyseccomp``, the system's libseccomp, or a kernel
    that has filters of calls.
    """
    try:
        import pyseccomp
    except (ImportError, RuntimeError, OSError) as error:
        raise DeviceError(
            "a sandbox needs Linux, libseccomp (Debian: libseccomp2) and pyseccomp: "
            f"pip install 'dovetail[sandbox]' ({error})"
        ) from None
    try:
        rules = pyseccomp.SyscallFilter(pyseccomp.ERRNO(errno.EPERM))
        for name in calls:
            rules.add_rule(pyseccomp.ALLOW, name)
        threads = pyseccomp.Arg(0, pyseccomp.MASKED_EQ, CLONE_THREAD, CLONE_THREAD)
        rules.add_rule(pyseccomp.ALLOW, "clone", threads)
        # The C library then falls back to clone, whose flags can be seen.
        rules.add_rule(pyseccomp.ERRNO(errno.ENOSYS), "clone3")
        rules.load()
    except (OSError, RuntimeError) as error:
        raise DeviceError(f"this kernel has no filter of system calls: {error}") from None
