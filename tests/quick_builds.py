"""Simulations of RTL for tests: built quickly, as they take longer to build than to run."""

import fcntl
import hashlib
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import distributions
from pathlib import Path

import pytest

from dovetail.isa.cache import cache_directory, has_whole, keep_file
from dovetail.vta_hw import build

__all__ = ["SHORT_FUNCTIONS", "quickly_built"]

SHORT_FUNCTIONS = ("--output-split-cfuncs", "1000")
"""Options of Verilator that cut what it makes of the design into functions.

It and the C++ compiler look at all pairs of statements of one that has thousands, for half of their
time.  Such a simulation takes half as long again for a cycle.
"""

OPTIONS = ("-Og", "-fno-tree-dce", "-fno-tree-fre")
"""Without passes that find little in functions of this kind, and look at all of it for each."""

DEFINED = ("VERILATOR=1", *(f"VM_{name}=0" for name in ("COVERAGE", "SC", "TIMING", "TRACE")))
FORMATS = ("VM_TRACE_FST=0", "VM_TRACE_VCD=0", "VM_TRACE_SAIF=0")
"""Macros of Verilator's makefile where no waveforms are written.  A compiler that is given others
leaves the precompiled header aside.
"""


@contextmanager
def quickly_built() -> Iterator[None]:
    """Inside, simulations are built so; Verilator's header is compiled once, ahead of the first."""
    versions = [each.version for each in distributions(name="verilator")]
    digest = hashlib.sha256(f"{versions}{OPTIONS}{DEFINED}{FORMATS}".encode()).hexdigest()[:20]
    header = cache_directory().resolve() / f"header-{digest}" / "first.h"
    shared = build.shared_objects

    @contextmanager
    def with_header(cache: Path, folder: Path, names: Sequence[str]) -> Iterator[None]:
        _precompile(header)
        with shared(cache, folder, names):
            yield

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "MAKE_FLAGS", "VM_PARALLEL_BUILDS=0 OPT_GLOBAL=-O0")
        patch.setattr(build, "EVERY_CYCLE", r"\ ".join((*OPTIONS, "-include", str(header))))
        patch.setattr(build, "VERILATOR_FLAGS", (*build.VERILATOR_FLAGS, *SHORT_FUNCTIONS))
        patch.setattr(build, "shared_objects", with_header)
        yield


def _precompile(header: Path) -> None:
    """Write ``header``, which includes Verilator's, and what the compiler makes of it beside it."""
    folder, compiled = header.parent, f"{header.name}.gch"
    folder.mkdir(mode=0o700, exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if has_whole(folder, compiled):
            return
        header.write_text('#include "verilated.h"\n')
        include = build.verilator_directory().parent / "include"
        macros = [f"-D{each}" for each in (*DEFINED, *FORMATS)]
        with tempfile.TemporaryDirectory(dir=folder) as work:
            made = Path(work) / compiled
            command = ["c++", *OPTIONS, *macros, f"-I{include}", f"-I{include / 'vltstd'}"]
            command += ["-x", "c++-header", str(header), "-o", str(made)]
            subprocess.run(command, check=True)
            keep_file(folder, compiled, made)
