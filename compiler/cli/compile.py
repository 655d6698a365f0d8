"""The command ``dovetail compile``."""

from collections.abc import Sequence, Sized
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .arrays import dimensions_option, read_dimensions
from .limits import limits_options
from .numbers import POSITIVE
from .output import (
    clear_errors,
    human,
    json_option,
    print_json,
    progress_line,
    require_folder,
    table,
)
from .paths import PATH
from .records import record_paths, records_option
from .target_options import GPUS, effort_option, require_cpu_code, require_target

if TYPE_CHECKING:
    from dovetail.runtime.module import Module, Placement

__all__ = ["compile_command"]

FOLLOWING = ("it is part of another", "it reads the ", "it converts ", "runs on the host")
"""How the reasons of nodes begin that run on the CPU because others do, or on the host."""


@click.command("compile")
@click.argument("model", type=PATH)
@click.option(
    "--target",
    default="vta",
    help="vta, vta:CONFIG, cpu, opencl, opencl:spirv, webgpu, cuda or cuda:ARCHITECTURE.",
    show_default=True,
)
@click.option("-o", "--output", type=PATH, required=True, help="FILE.dvt")
@click.option("--dump", type=PATH, help="Folder that every intermediate form is written to.")
@dimensions_option
@click.option(
    "--threads", type=click.IntRange(1, 1024), default=1, help="Threads of the code (cpu)."
)
@click.option(
    "--batch", type=click.IntRange(1, 1024), default=1, help="Images that a run computes at once."
)
@click.option(
    "--tokens",
    type=click.IntRange(2, 1024),
    help="Tokens of a prompt that a decoder (ONNX) reads at once (17, 33, ...), for generate "
    "--blocks.",
)
@click.option("--cpu-level", default="native", help="CPU that the code is for (cpu).")
@click.option(
    "--most-work",
    type=POSITIVE,
    metavar="NUMBER",
    help="Elements that a run may read and write (cpu).",
)
@click.option(
    "--plans",
    type=PATH,
    help="File of plans (vta): those in it are used again, new ones are added.",
)
@effort_option
@click.option(
    "--no-winograd", is_flag=True, help="Use only direct convolutions, which are more exact (cpu)."
)
@limits_options
@click.option(
    "--precision",
    type=click.Choice(["fp32", "fp16", "bf16"]),
    default="fp32",
    help="Type of a float32 model's floats in memory and in products (opencl, cuda, webgpu).",
    show_default=True,
)
@click.option("--gpu", default="", help="Part of the name of the GPU whose records to use.")
@records_option
@json_option
@clear_errors
def compile_command(
    model: Path,
    target: str,
    output: Path,
    dump: Path | None,
    dims: tuple[str, ...],
    threads: int,
    batch: int,
    tokens: int | None,
    cpu_level: str,
    most_work: float | None,
    plans: Path | None,
    effort: float,
    no_winograd: bool,
    most_compile_seconds: float | None,
    most_memory: float | None,
    precision: str,
    gpu: str,
    records: tuple[str, ...],
    as_json: bool,
) -> None:
    """Compile MODEL, a file of any front end, to a module."""
    from dataclasses import replace

    from dovetail.runtime.accelerator.part import AcceleratorPart
    from dovetail.runtime.trust.origin import note_own

    from ..driver import compile_model
    from ..options import CompileOptions, Precision
    from .programs import block_model

    require_folder(output)
    require_target(target)
    with progress_line(f"compiling {model.name}") as tell:
        options = CompileOptions.from_environment()
        cpu = replace(options.cpu, threads=threads, level=cpu_level)
        cpu = replace(cpu, most_work=int(most_work)) if most_work else cpu
        options = replace(options, cpu=replace(cpu, winograd=False) if no_winograd else cpu)
        limits = options.limits.within(most_compile_seconds, most_memory)
        options = replace(options, dump=dump or options.dump, limits=limits)
        options = replace(options, plans=plans) if plans else options
        options = replace(options, records=record_paths(records), batch=batch, effort=effort)
        options = replace(options, precision=Precision(precision), gpu=gpu)
        options = replace(options, look=lambda where: tell(f"compiling {model.name}: {where}"))
        sizes = read_dimensions(dims)
        if tokens:
            module = compile_model(block_model(model, tokens, dims=sizes), target, options)
        else:
            module = compile_model(model, target, options, sizes)
    require_cpu_code({part.target for part in module.parts})
    module.save(output)
    note_own(output)
    if all(part.target == "cpu" for part in module.parts):
        _report_cpu(module, output, as_json)
        return
    if module.target.partition(":")[0] in GPUS:
        _report_gpu(module, output, as_json)
        return
    placement = [each._asdict() for each in module.placement]
    beside = [each for each in module.placement if each.where == "cpu"]
    if not as_json:
        _report_beside(beside)
    asked = sum(each.macs for each in module.placement)
    own = asked - sum(each.macs for each in beside)
    parts = [part for part in module.parts if isinstance(part, AcceleratorPart)]
    layers = [layer for part in parts for layer in part.layers]
    cycles = sum(part.expected_cycles for part in parts)
    figures = {
        "output": str(output),
        "target": module.target,
        "layers": len(layers),
        "instructions": sum(part.instruction_count for part in parts),
        "macs": sum(part.macs for part in parts),
        "expected_cycles": cycles,
        "images": batch,
        "cycles_per_image": cycles / batch,
        "images_per_second": batch * parts[0].configuration.clock_hz / cycles,
        "bytes": output.stat().st_size,
        "parts": [part.target for part in module.parts],
        "macs_on_accelerator": own / asked if asked else 1.0,
        "placement": placement,
    }
    inexact = sum(layer.inexact_pairs for layer in layers)
    if inexact:
        human.print(f"note: {inexact} operand pairs of residual adds differ from the float formula")
    if as_json:
        print_json(figures)
    else:
        human.print(
            f"{output}: {figures['target']}, {_count(module.parts, 'part')}, "
            f"{_count(layers, 'layer')}, {figures['instructions']:,} instructions, "
            f"{figures['macs_on_accelerator']:.1%} of the MACs on the accelerator, "
            f"{figures['bytes']:,} bytes"
        )
        human.print(
            f"{cycles:,} cycles a run{f' of {batch} images' * (batch > 1)}: "
            f"{figures['images_per_second']:,.1f} images a second"
            f"{', parts of the CPU not counted' * (len(parts) < len(module.parts))}"
        )


def _report_beside(beside: Sequence["Placement"]) -> None:
    """Nodes that run on the CPU for a reason of their own, and how many go with them."""
    own = [each for each in beside if each.macs or not each.reason.startswith(FOLLOWING)]
    headings = {"node": "left", "operator": "left", "reason": "left", "MACs": "right"}
    rows: list[tuple[object, ...]] = [
        (each.node, each.operator, each.reason, f"{each.macs:,}") for each in own
    ]
    if not rows:
        return
    human.print(table("On the CPU", headings, rows))
    if len(own) < len(beside):
        human.print(
            f"{len(beside) - len(own)} more nodes there, or on the host, convert, move or follow "
            "what others compute (--json lists them)"
        )


def _count(things: Sized, what: str) -> str:
    return f"{len(things)} {what}" + ("s" if len(things) != 1 else "")


def _report_cpu(module: "Module", output: Path, as_json: bool) -> None:
    """Contents of a module for CPUs: machine code, or a model that is compiled as it runs."""
    from dovetail.runtime.native.part import CpuPart

    (part,) = module.parts
    size = output.stat().st_size
    figures: dict[str, object] = {"output": str(output), "target": module.target, "bytes": size}
    if isinstance(part, CpuPart):
        figures |= {
            "holds": "machine code",
            "kernels": len(part.kernels),
            "memory_bytes": part.program.memory_bytes,
            "cpu": part.cpu,
        }
        said = f"{figures['kernels']} kernels for {figures['cpu']}"
    else:
        figures["holds"] = said = "a model that is compiled for each shape as it runs"
    if as_json:
        print_json(figures)
    else:
        human.print(f"{output}: cpu, {said}, {size:,} bytes")


def _report_gpu(module: "Module", output: Path, as_json: bool) -> None:
    """Contents of a module of kernels."""
    from dovetail.runtime.gpu.part import GpuPart, Launch

    (part,) = module.parts
    assert isinstance(part, GpuPart)
    size = output.stat().st_size
    launches = sum(isinstance(each, Launch) for each in part.steps)
    figures = {
        "output": str(output),
        "target": module.target,
        "bytes": size,
        "kernels": len(part.kernels),
        "launches": launches,
        "memory_bytes": part.memory_bytes,
    }
    if as_json:
        print_json(figures)
    else:
        human.print(
            f"{output}: {module.target}, {len(part.kernels)} kernels, {launches} launches, "
            f"{part.memory_bytes:,} bytes of memory, {size:,} bytes"
        )
