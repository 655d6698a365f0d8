"""Full-size networks on the simulator against ONNX Runtime, byte for byte: ``make
verify-networks``.

Those of ``examples/networks`` at 224x224, quantised, and their programs on symbols, which stand for
every input.  Where ONNX Runtime rounds sums of float32, the CPU target gives the bytes.  Exits with
1 when one differs or is refused.
"""

import sys
import time
from pathlib import Path

import click
import onnxruntime

from dovetail.compiler import compile
from dovetail.compiler.front.onnx.quantize import quantize_model
from dovetail.compiler.front.onnx.source import SourceModel
from dovetail.compiler.translation.module import validate_module
from dovetail.isa.errors import DovetailError
from dovetail.runtime import run
from dovetail.runtime.accelerator.part import accelerator_part

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SAMPLES = 2

ROUNDED = {"LayerNormalization", "Softmax"}
"""Operators whose integers may be a step from what ONNX Runtime rounds (docs/exactness.md)."""


def verify(name: str, target: str, images: int) -> str:
    """One line about ``name``, which ends in "equal" when it is."""
    from networks import Options, build, calibration_images

    pictures = calibration_images(SAMPLES + images, Options().size, seed=1)[:, None]
    samples = [{"image": picture} for picture in pictures[:SAMPLES]]
    model = quantize_model(build(name, Options()), samples).model
    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    begin = time.perf_counter()
    try:
        module = compile(model, target)
        compiled = time.perf_counter()
        known = sum(layer.inexact_pairs for layer in accelerator_part(module).layers)
        if not known:
            list(validate_module(module, SourceModel.of(model)))
    except DovetailError as error:
        return f"{name}: {error}"
    validated = time.perf_counter()
    is_rounded = not ROUNDED.isdisjoint(node.op_type for node in model.graph.node)
    own = compile(model, "cpu") if is_rounded else None
    begin_run = time.perf_counter()
    wrong, apart, total, cycles = 0, 0, 0, 0
    for picture in pictures[SAMPLES:]:
        result = run(module, {"image": picture})
        (found,) = result.outputs.values()
        theirs = session.run(None, {"image": picture})[0]
        (wanted,) = run(own, {"image": picture}).outputs.values() if own else (theirs,)
        wrong, apart = wrong + int((found != wanted).sum()), apart + int((found != theirs).sum())
        total, cycles = total + found.size, result.cycles or 0
    seconds = time.perf_counter() - begin_run
    how = (
        f"not validated ({known} inexact pairs)"
        if known
        else f"validated in {validated - compiled:.1f} s"
    )
    whose = f"{apart} differ from ONNX Runtime's; the CPU target's: " if own else ""
    same = f"{whose}{wrong} of {total} outputs differ" if wrong else f"{whose}equal"
    return (
        f"{name}: compiled in {compiled - begin:.1f} s, "
        f"{how}, "
        f"{images} images in {seconds:.1f} s, "
        f"{cycles:,} cycles each, {total} outputs: {same}"
    )


@click.command()
@click.argument("names", nargs=-1)
@click.option("--target", default="vta:zynq7020", show_default=True)
@click.option("--images", default=2, show_default=True)
def main(names: tuple[str, ...], target: str, images: int) -> None:
    """Verify the networks NAMES, or all that the accelerator runs."""
    sys.path.append(str(EXAMPLES))
    from networks import NETWORKS

    failed = False
    for name in names or NETWORKS:
        line = verify(name, target, images)
        print(line, flush=True)
        failed |= not line.endswith("equal")
    raise SystemExit(int(failed))


if __name__ == "__main__":
    main()
