"""Loop functions to object files: from the cache, or by LLVM, in several processes at a time."""

import multiprocessing
import os
from collections.abc import Callable, Sequence
from dataclasses import field, fields
from pathlib import Path
from typing import Any

from dovetail.isa.frozen import frozen

from ....loops.ir import Function
from ....options import CpuOptions
from ....processes.shared_work import SharedWork
from ....schedule.records import NO_RECORDS, Records
from .cache import BuiltFunction, content_key, fetch, keep
from .emitter import ModuleText
from .functions import write_function
from .optimize import to_object
from .target import CpuTarget

__all__ = ["FunctionBuilds", "LlvmOptions", "build_function", "build_functions"]

Task = tuple[str, Function, CpuTarget, int]
"""Key, function, the CPU it is for, and the threads that parallel loops run on."""

_FUNCTIONS_OF_A_PROCESS = 8
"""A process is worth its start for as many functions."""


@frozen
class LlvmOptions(CpuOptions):
    """Options of code generation: the CPU's, and how to compile.

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
        """The options of the CPU alone."""
        return CpuOptions(**{each.name: getattr(self, each.name) for each in fields(CpuOptions)})


class FunctionBuilds:
    """Object files of functions, each made from when it is started on, while others are scheduled.

    Equal functions of different names have one and the same.
    """

    def __init__(self, options: LlvmOptions) -> None:
        """Raises TargetError for no such level."""
        self._target, self._options = CpuTarget.at_level(options.level), options
        self._keys: dict[int, tuple[Function, str]] = {}
        self._known: dict[str, BuiltFunction] = {}
        self._missing: list[str] = []
        self._work = SharedWork(self._build, self._workers, build_function)

    def __enter__(self) -> "FunctionBuilds":
        return self

    def __exit__(self, *given: object) -> None:
        self._work.__exit__(*given)

    def start(self, function: Function) -> str:
        """Have it made, unless it is known; returns its key."""
        if id(function) in self._keys:
            return self._keys[id(function)][1]
        options = self._options
        key = content_key(function, self._target, options.threads)
        self._keys[id(function)] = function, key
        if key in self._known or key in self._missing:
            return key
        found = None if options.cache is None else fetch(options.cache, key, _symbol(key))
        if found is None:
            self._missing.append(key)
            self._work.add((key, function, self._target, options.threads))
        else:
            self._known[key] = found
        return key

    def finish(self, functions: Sequence[Function]) -> list[BuiltFunction]:
        """The object file of each.  Raises GraphError for what a CPU cannot run."""
        keys = [self.start(function) for function in functions]
        for key, built in zip(self._missing, self._work.results(), strict=True):
            self._known[key] = built
            if self._options.cache is not None:
                keep(self._options.cache, key, built)
        return [self._known[key] for key in keys]

    def _build(self, task: Task) -> BuiltFunction:
        self._options.check(f"llvm, {task[1].name}")
        return build_function(task)

    def _workers(self, functions: int) -> int:
        cores = self._options.jobs or len(os.sched_getaffinity(0))
        daemonic = multiprocessing.current_process().daemon
        return 0 if daemonic else min(cores, functions // _FUNCTIONS_OF_A_PROCESS) - 1


def build_functions(functions: Sequence[Function], options: LlvmOptions) -> list[BuiltFunction]:
    """The object file of each.  Raises GraphError for what a CPU cannot run."""
    with FunctionBuilds(options) as builds:
        return builds.finish(functions)


def _symbol(key: str) -> str:
    return f"dovetail_{key}"


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
