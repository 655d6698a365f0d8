"""The command ``dovetail``.

Packages that take long to import are imported by the commands that need them.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .cli.arrays import read_dimensions, read_inputs, write_outputs
from .cli.bitstream import bitstream
from .cli.check import check
from .cli.debug.command import debug
from .cli.devices import devices
from .cli.explore.command import explore
from .cli.output import clear_errors, human, print_json, progress, require_folder, table
from .cli.profile.command import profile
from .cli.records import record_paths, records_option
from .cli.tune.command import tune

if TYPE_CHECKING:
    from dovetail.runtime.module import Module

__all__ = ["main"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="dovetail")
def main() -> None:
    """Quantise networks, compile them for the Dovetail accelerator or CPUs, and run them."""


@main.command("compile")
@click.argument("model", type=click.Path(path_type=Path))
@click.option("--target", default="vta", help="vta, vta:CONFIG or cpu.", show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="FILE.dvt")
@click.option("--dump", type=click.Path(path_type=Path), help="Folder for every intermediate form.")
@click.option(
    "--dim", "dims", multiple=True, metavar="NAME=SIZE", help="Size of a symbolic dimension (cpu)."
)
@click.option(
    "--threads", type=click.IntRange(1, 1024), default=1, help="Threads of the code (cpu)."
)
@click.option("--cpu-level", default="native", help="The CPU the code is for (cpu).")
@click.option(
    "--most-work", type=float, metavar="NUMBER", help="Elements a run may read and write (cpu)."
)
@click.option(
    "--plans",
    type=click.Path(path_type=Path),
    help="File of plans (vta): known ones are used again, new ones added.",
)
@click.option("--no-winograd", is_flag=True, help="Only direct convolutions: more exact (cpu).")
@records_option
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
@clear_errors
def compile_command(
    model: Path,
    target: str,
    output: Path,
    dump: Path | None,
    dims: tuple[str, ...],
    threads: int,
    cpu_level: str,
    most_work: float | None,
    plans: Path | None,
    no_winograd: bool,
    records: tuple[str, ...],
    as_json: bool,
) -> None:
    """Compile MODEL, an ONNX file, to a module."""
    from dataclasses import replace

    from .driver import compile_model
    from .options import CompileOptions

    require_folder(output)
    with progress(f"compiling {model.name}"):
        options = replace(CompileOptions.from_environment(), threads=threads, cpu_level=cpu_level)
        options = replace(options, dump=dump) if dump else options
        options = replace(options, plans=plans) if plans else options
        options = replace(options, most_work=int(most_work)) if most_work else options
        options = replace(options, winograd=False) if no_winograd else options
        options = replace(options, records=record_paths(records))
        module = compile_model(model, target, options, read_dimensions(dims))
    module.save(output)
    if module.target == "cpu":
        _report_cpu(module, output, as_json)
        return
    placement = module.details.get("placement", [])
    if placement and not as_json:
        rows = [tuple(each.values()) for each in placement]
        human.print(table("Placement", dict.fromkeys(placement[0], "left"), rows))
    layers = module.details.get("layers", [])
    figures = {
        "output": str(output),
        "target": module.target,
        "layers": len(layers),
        "instructions": module.details.get("program_bytes", 0) // 64,
        "macs": sum(layer["macs"] for layer in layers),
        "bytes": output.stat().st_size,
        **({"placement": placement} if placement else {}),
    }
    inexact = sum(layer["inexact_pairs"] for layer in layers)
    if inexact:
        human.print(f"note: {inexact} operand pairs of residual adds differ from the float formula")
    if as_json:
        print_json(figures)
    else:
        human.print(
            f"{output}: {figures['target']}, {figures['layers']} layers, "
            f"{figures['instructions']} instructions, {figures['bytes']:,} bytes"
        )


def _report_cpu(module: "Module", output: Path, as_json: bool) -> None:
    """What a module for CPUs holds: machine code, a model to specialise, or an integer graph."""
    size = output.stat().st_size
    figures: dict[str, object] = {"output": str(output), "target": module.target, "bytes": size}
    if "code" in module.sections:
        figures |= {
            "holds": "machine code",
            "kernels": len(module.details["kernels"]),
            "memory_bytes": module.details["memory_bytes"],
            "cpu": module.details["cpu"],
        }
        said = f"{figures['kernels']} kernels for {figures['cpu']}"
    elif "model" in module.sections:
        figures["holds"] = said = "a model that is compiled for each shape as it runs"
    else:
        figures["holds"] = said = "an integer graph"
    if as_json:
        print_json(figures)
    else:
        human.print(f"{output}: cpu, {said}, {size:,} bytes")


@main.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="FILE.onnx")
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    required=True,
    help="Real inputs: FILE.npz, FILE.npy, or a folder of them.",
)
@click.option(
    "--method",
    type=click.Choice(["minmax", "percentile", "entropy", "mse"]),
    default="minmax",
    show_default=True,
    help="How ranges follow from the data.",
)
@click.option("--percentile", default=99.99, show_default=True, help="Of values inside the range.")
@click.option("--samples", type=click.IntRange(1), help="At most this many; default: all.")
@click.option("--unsigned", is_flag=True, help="uint8 activations instead of int8.")
@click.option("--per-tensor", is_flag=True, help="One weight scale a layer, not one a channel.")
@click.option("--compare", "compares", is_flag=True, help="Say how much of each tensor is lost.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
@clear_errors
def quantize(
    model: Path,
    output: Path,
    data: Path,
    method: str,
    percentile: float,
    samples: int | None,
    unsigned: bool,
    per_tensor: bool,
    compares: bool,
    as_json: bool,
) -> None:
    """Quantise MODEL, a float ONNX file, to int8 in QDQ form.

    An archive has one array for each input, under its name; for a model with one input any name
    will do.  An array is one sample, or has samples along its first dimension.
    """
    from dataclasses import asdict
    from itertools import islice

    from dovetail.runtime.module import write_whole

    from .cli.comparison import comparison_table
    from .importers.onnx import load_onnx
    from .quantize import Method, QuantizeOptions, compare, quantize_model
    from .quantize.data import read_samples
    from .quantize.model import signatures

    if not 50 < percentile <= 100:
        raise click.UsageError(f"--percentile {percentile}; required above 50, at most 100")
    require_folder(output)
    options = QuantizeOptions(Method(method), percentile, unsigned, not per_tensor, samples)
    with progress(f"quantising {model.name}"):
        loaded = load_onnx(model)
        quantized = quantize_model(loaded, read_samples(data, signatures(loaded)), options)
        write_whole(output, quantized.model.SerializeToString())
    figures: dict[str, object] = {
        "output": str(output),
        "method": method,
        "samples": quantized.samples,
        "integer": quantized.integer,
        "float": dict(quantized.kept),
        "bytes": output.stat().st_size,
    }
    if compares:
        with progress(f"comparing with {model.name}"):
            again = islice(read_samples(data, signatures(loaded)), samples)
            found = compare(loaded, quantized.model, again)
        figures["comparison"] = asdict(found)
        human.print(comparison_table(found))
    for node, reason in quantized.kept:
        human.print(f"note: {node} stays float: {reason}")
    if as_json:
        print_json(figures)
    else:
        human.print(
            f"{output}: {sum(quantized.integer.values())} integer operators, "
            f"{len(quantized.kept)} float, {quantized.samples} samples, "
            f"{output.stat().st_size:,} bytes"
        )


@main.command()
@click.argument("module", type=click.Path(path_type=Path))
@click.option("--target", default="vta", help="For a MODULE that is a model.", show_default=True)
@records_option
@click.option(
    "--device", default="sim", help="sim, rtl or cpu; sim:CONFIG pins one.", show_default=True
)
@click.option(
    "--input", "inputs", multiple=True, metavar="NAME=FILE.npy", help="One for each input."
)
@click.option("--output-dir", type=click.Path(path_type=Path), default=Path(), help="For NAME.npy.")
@click.option(
    "--config", "config_name", help="For a program instead of a module: .s or .bin, input 'dram'."
)
@click.option(
    "--check",
    "checked",
    type=click.Path(path_type=Path),
    metavar="MODEL.onnx",
    help="The model that MODULE was compiled from: compare its layers with the interpreter.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
@clear_errors
def run(
    module: Path,
    target: str,
    records: tuple[str, ...],
    device: str,
    inputs: tuple[str, ...],
    output_dir: Path,
    config_name: str | None,
    checked: Path | None,
    as_json: bool,
) -> None:
    """Run MODULE (.dvt, or .onnx, which is compiled first) once and write its outputs.

    With --config, MODULE is a program by itself, assembly (.s) or bytes.  It runs on a machine
    that was just reset, with the uint8 array of input 'dram' from address 0 on; output 'dram' is
    what the program left there.
    """
    from .cli.programs import open_module, run_file

    arrays = read_inputs(inputs)
    with progress(f"running {module.name} on {device}"):
        if config_name:
            result = run_file(module, config_name, arrays, device)
        else:
            loaded = open_module(module, target, record_paths(records))
            result = loaded.run(arrays, device=device)
    figures = {"outputs": write_outputs(output_dir, result.outputs), **result.figures()}
    if checked and config_name:
        raise click.UsageError("--check compares the layers of a model; a program has none")
    if checked:
        from .cli.layer_check import check_layers

        figures["checks"] = check_layers(checked, loaded, device, arrays, result.outputs)
    if as_json:
        print_json(figures)
    else:
        rows: list[tuple[object, ...]] = [(n, v) for n, v in figures.items() if n != "checks"]
        human.print(table(f"{module.name} on {device}", {"figure": "left", "value": "right"}, rows))


@main.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Default: standard output.")
@clear_errors
def disassemble(file: Path, output: Path | None) -> None:
    """Print the program of FILE (.dvt, or the bytes of instructions) as assembly."""
    from dovetail.isa.assembly import disassemble as to_text
    from dovetail.isa.program import program_from_bytes
    from dovetail.runtime.module import write_whole

    from .cli.programs import read_code

    text = to_text(program_from_bytes(read_code(file)))
    if output:
        write_whole(output, text.encode())
    else:
        click.echo(text, nl=False)


@main.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--config", "config_name", default="zynq7020", show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True)
@clear_errors
def assemble(file: Path, config_name: str, output: Path) -> None:
    """Assemble FILE to the bytes of its instructions."""
    from dovetail.isa.config import INSTRUCTION_BYTES
    from dovetail.isa.configs import find_config
    from dovetail.runtime.module import write_whole

    from .cli.programs import assemble_file

    require_folder(output)
    config = find_config(config_name)
    code = assemble_file(file, config)
    write_whole(output, code)
    human.print(f"{output}: {len(code) // INSTRUCTION_BYTES} instructions for {config.name}")


@main.command()
@click.option("--config", "config_name", default="zynq7020", show_default=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="FILE.v")
@clear_errors
def verilog(config_name: str, output: Path) -> None:
    """Write the accelerator as Verilog."""
    from dovetail.isa.configs import find_config
    from dovetail.runtime.module import write_whole
    from dovetail.vta_hw.verilog import emit_verilog

    require_folder(output)
    config = find_config(config_name)
    with progress(f"generating {config.name}"):
        text = emit_verilog(config)
    write_whole(output, text.encode())
    human.print(f"{output}: top module dovetail_{config.name}, {text.count(chr(10)):,} lines")


main.add_command(bitstream)
main.add_command(check)
main.add_command(debug)
main.add_command(devices)
main.add_command(explore)
main.add_command(profile)
main.add_command(tune)

if __name__ == "__main__":
    main()
