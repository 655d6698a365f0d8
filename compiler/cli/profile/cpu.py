"""Where the time of a model goes on this CPU."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from dovetail.isa.cache import cache_directory
from dovetail.runtime.profile.cpu import (
    CpuProfile,
    KernelProfile,
    cache_misses,
    cache_sizes,
    measure_calls,
)

from ...errors import ModelError
from ...front.table import open_model
from ...options import CompileOptions
from ...targets.cpu.llvm.build import LlvmOptions
from ...targets.cpu.native import import_fixed
from ...targets.cpu.timed import timed_part
from ..arrays import random_arrays
from ..output import table

__all__ = ["kernel_table", "profile_cpu"]

RUNS = 30


def profile_cpu(
    path: Path, given: Mapping[str, NDArray[Any]], dims: Mapping[str, int], threads: int
) -> CpuProfile:
    """Compile a model with clocks, and run it.

    given: inputs; random ones for those missing.  dims: of open sizes, by name.

    Raises what compiling raises, and ModelError for a model whose sizes stay open.
    """
    imported = import_fixed(open_model(path).bind(dims))
    if imported is None:
        raise ModelError(
            f"{path.name} has open sizes, and is compiled as it runs; required fixed ones for a "
            "profile on the CPU: bind them (--dim)"
        )
    cpu = replace(CompileOptions.from_environment().cpu, threads=threads)
    options = LlvmOptions.of(cpu, cache=cache_directory())
    timed = timed_part(imported, options)
    inputs = random_arrays(timed.part.inputs) | dict(given)
    seconds = measure_calls(timed.part, inputs, len(timed.calls), RUNS)
    low, middle, high = np.quantile(seconds, (0.25, 0.5, 0.75), axis=0)
    caches = cache_sizes()
    touched = [call.touched for call in timed.calls]
    misses = [cache_misses(touched, size) for size in caches]
    kernels = tuple(
        KernelProfile(
            call.kernel,
            call.nodes,
            float(middle[n]),
            float(low[n]),
            float(high[n]),
            sum(end - begin for _, begin, end in call.touched),
            tuple(each[n] for each in misses),
        )
        for n, call in enumerate(timed.calls)
    )
    whole = float(middle.sum())
    return CpuProfile(path.name, timed.part.cpu, options.threads, RUNS, whole, caches, kernels)


def kernel_table(found: CpuProfile) -> Table:
    """Kernels, and the sum of them."""
    rows: list[tuple[object, ...]] = [
        (
            number,
            ", ".join(each.nodes) or "(copies)",
            f"{1e6 * each.seconds:,.2f}",
            f"{each.seconds / found.seconds:.1%}",
            f"{each.touched:,}",
            *(f"{missed:,}" for missed in each.misses),
        )
        for number, each in enumerate(found.kernels)
    ]
    rows.append(("", "all", f"{1e6 * found.seconds:,.2f}", "", "", "", ""))
    columns = {
        "#": "right",
        "nodes": "left",
        "us": "right",
        "share": "right",
        "bytes": "right",
        "L1 misses": "right",
        "L2 misses": "right",
    }
    return table(f"Kernels on {found.cpu}, threads: {found.threads}", columns, rows)
