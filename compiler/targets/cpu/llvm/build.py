"""Loop functions to object files: from the cache, or by LLVM, in several processes at a time."""

import multiprocessing
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from ....loops.ir import Function
from ....options import CpuOptions
from ....processes.shared_work import build_with_workers
from ....schedule.records import NO_RECORDS, Records
from .cache import BuiltFunction, content_key, fetch, keep
from .emitter import ModuleText
from .functions import write_function
from .optimize import to_object
from .target import CpuTarget

__all__ = ["LlvmOptions", "build_function", "build_functions"]

Task = tuple[str, Function, CpuTarget, int]
"""Key, function, the CPU it is for, and the threads that parallel loops run on."""

_FUNCTIONS_OF_A_PROCESS = 8
"""A process is worth its start for as many functions."""


@dataclass(frozen=True, slots=True)
class LlvmOptions(CpuOptions):
    """What code is made for, and how.

    jobs: processes that compile; None for one on every core.
    cache: the folder machine code is kept in; None for none.
    records: of schedules that were found by search.  verify: check every loop program.
    check: called before each kernel is lowered or compiled, with words for where this is; raises
    CompileLimitError.
    """

    jobs: int | None = None
    cache: Path | None = None
    records: Records = field(default=NO_RECORDS, hash=False)
    verify: bool = False
    check: Callable[[str], None] = field(default=lambda where: None, compare=False)

    @classmethod
    def of(cls, cpu: CpuOptions, **others: Any) -> "LlvmOptions":
        """With what ``cpu`` says, and ``others``."""
        return cls(**{each.name: getattr(cpu, each.name) for each in fields(CpuOptions)}, **others)

    @property
    def cpu(self) -> CpuOptions:
        """What code is made for, alone."""
        return CpuOptions(**{each.name: getattr(self, each.name) for each in fields(CpuOptions)})


def build_functions(
    functions: Sequence[Function], target: CpuTarget, options: LlvmOptions
) -> list[BuiltFunction]:
    """The object file of each; equal functions of different names have one and the same.

    Raises GraphError for what a CPU cannot run.
    """
    keys = [content_key(function, target, options.threads) for function in functions]
    known: dict[str, BuiltFunction] = {}
    missing: dict[str, Function] = {}
    for key, function in zip(keys, functions, strict=True):
        if key in known or key in missing:
            continue
        found = None if options.cache is None else fetch(options.cache, key, _symbol(key))
        if found is None:
            missing[key] = function
        else:
            known[key] = found
    for key, built in zip(missing, _build_all(missing, target, options), strict=True):
        known[key] = built
        if options.cache is not None:
            keep(options.cache, key, built)
    return [known[key] for key in keys]


def _symbol(key: str) -> str:
    return f"dovetail_{key}"


def _build_all(
    missing: dict[str, Function], target: CpuTarget, options: LlvmOptions
) -> list[BuiltFunction]:
    work = [(key, function, target, options.threads) for key, function in missing.items()]
    cores = options.jobs or len(os.sched_getaffinity(0))
    processes = min(cores, len(work) // _FUNCTIONS_OF_A_PROCESS)
    daemonic = multiprocessing.current_process().daemon
    count = 0 if daemonic else max(processes - 1, 0)

    def build_here(task: Task) -> BuiltFunction:
        options.check(f"llvm, {task[1].name}")
        return build_function(task)

    return build_with_workers(work, build_here, count, build_function)


def build_function(task: Task) -> BuiltFunction:
    """The object file of a function.  Raises GraphError for what a CPU cannot run."""
    key, function, target, threads = task
    module = ModuleText(target)
    signature = write_function(module, function, _symbol(key), threads)
    return BuiltFunction(
        signature.symbol,
        signature.workspace_bytes,
        to_object(module.text(), target, signature.effort),
    )
