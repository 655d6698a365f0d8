"""Products by warpgroups of Hopper GPUs: tiles that are tried, and the record of the fastest."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from dovetail.compiler.front.stored import StoredModel
from dovetail.compiler.loops.ir import Invoke
from dovetail.compiler.loops.traverse import walk
from dovetail.compiler.options import CompileOptions
from dovetail.compiler.schedule.record_files import write_entries
from dovetail.compiler.schedule.rules.gpu.choice import Choice, is_group
from dovetail.compiler.targets.gpu.cuda import find_cuda
from dovetail.compiler.tune.gpu_kernel import GpuKernelProblem
from dovetail.compiler.tune.gpu_subject import gpu_subject
from dovetail.compiler.tune.problem import Candidate
from dovetail.compiler.tune.workers import isolated

__all__ = ["CHOICES", "TARGET", "candidates", "name_of", "warpgroup_records"]

TARGET = "cuda:sm_90a"
SECONDS = 120
"""Most seconds for a candidate, including compiling its kernel and the default's."""
CHOICES = tuple(
    Choice(rows=rows, columns=columns, groups=groups, parts=parts, buffers=buffers)
    for rows, columns, groups, parts, buffers in (
        *((256, 192, 2, 1, 4), (128, 256, 2, 1, 4), (256, 128, 2, 1, 4), (128, 192, 2, 1, 4)),
        *((256, 192, 2, 2, 2), (128, 256, 2, 2, 2), (128, 128, 2, 1, 4), (128, 128, 2, 1, 2)),
        *((128, 64, 2, 1, 4), (64, 128, 1, 1, 4), (64, 64, 1, 1, 4)),
    )
)
"""From the tile that reads least to the one that gives most blocks."""


def name_of(choice: Choice) -> str:
    """A tile, for people."""
    tile = f"{choice.rows}x{choice.columns}, {choice.groups} warpgroups"
    return f"{tile}, {choice.buffers} buffers of {128 * choice.parts} bytes a row"


def candidates(problem: GpuKernelProblem) -> Iterator[tuple[Choice, Candidate]]:
    """The tiles that the kernel's sizes allow, where it is a product at all."""
    for choice in CHOICES:
        candidate = Candidate.of(asdict(choice))
        schedule = problem.schedule(candidate)
        if schedule is not None and any(
            isinstance(each, Invoke) and is_group(each.intrinsic)
            for each in walk(schedule.function.body)
        ):
            yield choice, candidate


def warpgroup_records(
    path: Path, device: str, options: CompileOptions, folder: Path
) -> Path | None:
    """A file of records of a model's kernels; None where no tile suits any, with right results.

    Prints what each tile takes, beside the default, or what is wrong with it.
    """
    model = StoredModel(path.suffix, path.read_bytes())
    subject = gpu_subject(model, {}, find_cuda(TARGET.partition(":")[2]), device, options)
    accepted: dict[str, tuple[Candidate, float]] = {}
    costs: dict[str, float] = {}
    for problem in subject.problems():
        for choice, candidate in candidates(problem):
            tile = name_of(choice)
            found = isolated(problem.job(candidate), SECONDS)
            if found.cost is None or found.ratio is None:
                click.echo(f"{problem.title}, wgmma {tile}: refused: {found.error}")
                continue
            click.echo(
                f"{problem.title}, wgmma {tile}: {1e3 * found.cost:.3f} ms, {found.ratio:.2f} of "
                "the default's"
            )
            if found.ratio < min(1.0, accepted.get(problem.key, (candidate, 1.0))[1]):
                accepted[problem.key], costs[problem.key] = (candidate, found.ratio), found.cost
    if not accepted:
        return None
    records = folder / f"{path.stem}.warpgroups.json"
    write_entries(records, [each for group in subject.entries(accepted, costs) for each in group])
    return records
