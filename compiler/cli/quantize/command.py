"""The command ``dovetail quantize``."""

from pathlib import Path

import click

from ..output import clear_errors, human, print_json, progress, require_folder
from .data import Given, data_options

__all__ = ["quantize"]


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="FILE.onnx")
@data_options
@click.option(
    "--method",
    type=click.Choice(["minmax", "percentile", "entropy", "mse"]),
    default="minmax",
    show_default=True,
    help="How ranges follow from the data.",
)
@click.option(
    "--percentile", default=99.99, show_default=True, help="Values inside the range, in %."
)
@click.option(
    "--samples",
    type=click.IntRange(1),
    default=256,
    show_default=True,
    help="At most this many, evenly spread.",
)
@click.option("--unsigned", is_flag=True, help="uint8 activations instead of int8.")
@click.option("--per-tensor", is_flag=True, help="One weight scale a layer, not one a channel.")
@click.option("--compare", "compares", is_flag=True, help="Say how much of each tensor is lost.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
@clear_errors
def quantize(
    model: Path,
    output: Path,
    given: Given,
    method: str,
    percentile: float,
    samples: int,
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

    from dovetail.runtime.files import write_whole

    from ...front.onnx.quantize import Method, QuantizeOptions, compare, quantize_model
    from ...front.onnx.quantize.model import signatures
    from ...front.onnx.source import SourceModel
    from .comparison import comparison_table

    if not 50 < percentile <= 100:
        raise click.UsageError(f"--percentile {percentile}; required above 50, at most 100")
    require_folder(output)
    options = QuantizeOptions(Method(method), percentile, unsigned, not per_tensor)
    with progress(f"quantising {model.name}"):
        loaded = SourceModel.load(model).proto
        data = given.read(signatures(loaded)).spread(samples)
        quantized = quantize_model(loaded, data, options)
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
            found = compare(loaded, quantized.model, data)
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
