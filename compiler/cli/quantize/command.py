"""The command ``dovetail quantize``."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..arrays import dimensions_option, read_dimensions
from ..limits import limits_options
from ..output import clear_errors, human, json_option, print_json, progress, require_folder
from ..paths import PATH
from .data import Given, data_options

if TYPE_CHECKING:
    from ...front.onnx.quantize import QuantizedModel

__all__ = ["quantize"]

FEW = 4
"""Samples by which losses are measured, unless --loss-samples says otherwise."""


class _Share(click.ParamType):
    """``1%`` or ``0.01``."""

    name = "share"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        text = str(value)
        try:
            found = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
        except ValueError:
            found = -1
        if not 0 <= found <= 1:
            self.fail(f"{value!r}; required a share from 0 to 1, or in %", param, ctx)
        return found


@click.command()
@click.argument("model", type=PATH)
@click.option("-o", "--output", type=PATH, required=True, help="FILE.onnx")
@data_options
@click.option(
    "--method",
    type=click.Choice(["minmax", "percentile", "entropy", "mse"]),
    default="minmax",
    show_default=True,
    help="How to choose ranges from the data.",
)
@click.option(
    "--percentile", default=99.99, show_default=True, help="Share of values inside the range, in %."
)
@click.option(
    "--samples",
    type=click.IntRange(1),
    default=256,
    show_default=True,
    help="Most samples that determine the ranges, evenly spread.",
)
@click.option("--unsigned", is_flag=True, help="uint8 activations instead of int8.")
@click.option(
    "--weights",
    "weight_bits",
    type=click.Choice(["8", "4"]),
    default="8",
    show_default=True,
    help="Bits of a weight; with 4, groups of 16 share a factor.",
)
@click.option(
    "--per-tensor", is_flag=True, help="One weight scale for each layer, not for each channel."
)
@click.option(
    "--correct",
    "corrections",
    multiple=True,
    type=click.Choice(["equalize", "bias", "rounding", "all"]),
    help="Correct ranges of channels, biases, or rounding of weights; may be repeated.",
)
@click.option(
    "--correct-samples",
    type=click.IntRange(1),
    default=16,
    show_default=True,
    help="Most samples to correct with; they are held in memory.",
)
@click.option(
    "--keep", multiple=True, metavar="NODE", help="A node that stays float; may be repeated."
)
@click.option(
    "--max-drop",
    type=_Share(),
    help="Keep layers float until at most this accuracy (without labels: agreement) is lost.",
)
@click.option("--metric", help="package.module:function of outputs and labels, for accuracy.")
@click.option("--judge-samples", type=click.IntRange(1), help="Most samples for accuracy.")
@click.option("--compare", "compares", is_flag=True, help="Report the error of each tensor.")
@click.option("--losses", "shows_losses", is_flag=True, help="Report what each layer loses alone.")
@click.option(
    "--loss-samples",
    type=click.IntRange(1),
    default=FEW,
    show_default=True,
    help="Most samples for the loss of each layer.",
)
@dimensions_option
@limits_options
@click.option("--target", help="vta or vta:CONFIG: report the cycles of both models there.")
@json_option
@clear_errors
def quantize(
    model: Path,
    output: Path,
    given: Given,
    method: str,
    percentile: float,
    samples: int,
    unsigned: bool,
    weight_bits: str,
    per_tensor: bool,
    corrections: tuple[str, ...],
    correct_samples: int,
    keep: tuple[str, ...],
    max_drop: float | None,
    metric: str | None,
    judge_samples: int | None,
    compares: bool,
    shows_losses: bool,
    loss_samples: int,
    dims: tuple[str, ...],
    most_compile_seconds: float | None,
    most_memory: float | None,
    target: str | None,
    as_json: bool,
) -> None:
    """Quantise MODEL, a float model of any front end, to int8: ONNX in QDQ form.

    The data is a folder of pictures, of WAV files or of arrays, or one file of arrays.  A decoder,
    as generate runs it, reads texts (.txt), token by token.  A folder may have a folder for each
    class.  An archive has one array for each input, under its name; for
    a model with one input any name will do.  An array is one sample, or has samples along its first
    dimension.

    With labels or a metric, the command reports the accuracy of both models.
    """
    from dataclasses import asdict

    from dovetail.runtime.files import write_whole

    from ...front.onnx.quantize import Method, QuantizeOptions, compare, float_model
    from ...front.source import Normalized
    from ...front.table import open_model
    from ...options import CompileOptions
    from ...pipeline.limits import Budget, Watch
    from .report import accuracy_json, accuracy_table, comparison_table, loss_json, loss_table
    from .runners import load_metric
    from .work import Work

    if not 50 < percentile <= 100:
        raise click.UsageError(f"--percentile {percentile}; required above 50, at most 100")
    if weight_bits == "4" and per_tensor:
        raise click.UsageError("--weights 4 with --per-tensor; leave one of them out")
    require_folder(output)
    if target:
        from ...targets.table import find_target

        find_target(target)  # What is wrong with it is said before anything is quantised.
    rated = load_metric(metric) if metric else None
    equalizes, corrects, rounds = (
        not {"all", each}.isdisjoint(corrections) for each in ("equalize", "bias", "rounding")
    )
    limits = CompileOptions.from_environment().limits.within(most_compile_seconds, most_memory)
    options = QuantizeOptions(
        Method(method),
        percentile,
        unsigned,
        not per_tensor,
        int(weight_bits),
        keep=frozenset(keep),
        equalize=equalizes,
        correct_bias=corrects,
        adaptive=rounds,
        held=correct_samples,
        limits=limits,
    )
    figures: dict[str, Any] = {
        "output": str(output),
        "method": method,
        "corrections": sorted(set(corrections)),
    }
    with progress(f"quantising {model.name}"):
        source = open_model(model, Budget(Watch(limits))).bind(read_dimensions(dims))
        own = source.normalization if isinstance(source, Normalized) else None
        work = Work(float_model(source), given, options, samples, loss_samples, own)
        judged = None
        if rated is not None or work.data.labels is not None or max_drop is not None:
            bound = float("inf") if max_drop is None else max_drop
            judged = work.judged(bound, rated, judge_samples)
            figures["accuracy"] = accuracy_json(judged.accuracy)
            figures["accuracy_int8"] = accuracy_json(judged.whole_accuracy)
            figures["kept_for_accuracy"] = sorted(judged.keep)
        quantized = work.plain() if judged is None else judged.model
    write_whole(output, quantized.model.SerializeToString())
    figures |= {
        "samples": quantized.samples,
        "integer": quantized.integer,
        "float": dict(quantized.kept),
        "bytes": output.stat().st_size,
    }
    if work.data.classes and given.classes is None:
        counted = ", ".join(f"{name} is {n}" for n, name in enumerate(work.data.classes))
        human.print(f"note: classes counted in the order of their names: {counted}")
    if own is not None and not given.normalizes and given.data.is_dir():
        human.print(
            f"note: by the model's metadata, pictures are less {_listed(own.mean)}, and "
            f"divided by {_listed(own.std)}"
        )
        figures["normalization"] = asdict(own)
    if judged is not None:
        human.print(accuracy_table(judged.accuracy, judged.whole_accuracy))
    if shows_losses:
        with progress("measuring what each layer loses"):
            figures["losses"] = loss_json(work.losses)
        human.print(loss_table(work.losses))
    if compares:
        with progress(f"comparing with {model.name}"):
            found = compare(work.model, quantized.model, work.calibration)
        figures["comparison"] = asdict(found)
        human.print(comparison_table(found))
    if target:
        with progress(f"compiling for {target}"):
            whole = judged.whole if judged is not None and judged.keep else None
            figures["cost"] = _costs(target, quantized, whole)
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


def _listed(values: tuple[float, ...]) -> str:
    return ", ".join(f"{each:g}" for each in values)


def _costs(
    target: str, quantized: "QuantizedModel", whole: "QuantizedModel | None"
) -> dict[str, Any]:
    """Cost of the model on ``target``, and of ``whole``, all of it in int8."""
    from .cost import cost_of

    cost = cost_of(quantized.model, target)
    human.print(f"{target}: {cost}")
    found = {"target": target, **cost.as_json()}
    if whole is not None:
        alone = cost_of(whole.model, target)
        human.print(f"{target}, all in int8: {alone}")
        found["int8"] = alone.as_json()
    return found
