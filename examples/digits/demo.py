"""Compile the digits network, classify the test split, and show where the time goes: ``make demo``.

The whole test split runs on the cycle-exact simulator, some of it on the RTL under Verilator too;
both must give the same bytes in the same number of cycles, and the bytes of the graph interpreter.
Exits with 1 when they do not.  The timeline of one inference is written as a picture.
"""

import argparse
import sys
import time
from pathlib import Path

import numpy as np
from data import load
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from dovetail import compiler
from dovetail.compiler.cli.report import layer_table, unit_table
from dovetail.compiler.cli.timeline import timeline_svg
from dovetail.isa.errors import DovetailError
from dovetail.runtime import run
from dovetail.runtime.accelerator.part import accelerator_part
from dovetail.runtime.files import write_whole
from dovetail.runtime.module import Module
from dovetail.runtime.profile.layers import profile_layers
from dovetail.runtime.result import RunResult

MODEL = Path(__file__).parent / "digits_int8.onnx"
TIMELINE = Path("build/demo/timeline.svg")
ROOT = Path(__file__).resolve().parents[2]

screen = Console(width=None if sys.stdout.isatty() else 110, highlight=False)


def classify(module: Module, images: NDArray[np.float32], device: str) -> list[RunResult]:
    """One run for each image, float32[N, 1, 8, 8]."""
    shown = track(images, f"{len(images)} images on {device}", console=screen, transient=True)
    return [run(module, {"image": image[None]}, device=device) for image in shown]


def logits(results: list[RunResult]) -> NDArray[np.float32]:
    """float32[N, 10]."""
    return np.concatenate([result.outputs["logits"] for result in results])


def cycles(results: list[RunResult]) -> set[int | None]:
    """Every number of cycles that a run took."""
    return {result.cycles for result in results}


def show(module: Module, result: RunResult) -> None:
    """Tables of layers and units, and the picture."""
    part = accelerator_part(module)
    profile = profile_layers(result, part.layers, part.configuration)
    screen.print(layer_table(profile, result))
    screen.print(unit_table(result))
    (ROOT / TIMELINE).parent.mkdir(parents=True, exist_ok=True)
    names = [layer.name for layer in part.layers]
    picture = timeline_svg(result.timeline, names, result.cycles or 0)
    write_whole(ROOT / TIMELINE, picture.encode())


def demonstrate(config: str, rtl_images: int) -> bool:
    """Run everything; whether all results agree.

    Raises DovetailError when a step fails.
    """
    digits = load()
    images = np.ascontiguousarray(digits.test_images.transpose(0, 3, 1, 2))
    begin = time.perf_counter()
    module = compiler.compile(MODEL, target=f"vta:{config}")
    screen.print(f"compiled {MODEL.name} for vta:{config} in {time.perf_counter() - begin:.2f} s")

    simulated = classify(module, images, "sim")
    reference = classify(compiler.compile(MODEL, target="cpu"), images, "cpu")
    with screen.status("building the RTL simulation, the first time"):
        run(module, {"image": images[:1]}, device="rtl")
    hardware = classify(module, images[:rtl_images], "rtl")

    show(module, simulated[0])
    found = logits(simulated)
    right = int((found.argmax(axis=1) == digits.test_labels).sum())
    same = int((found == logits(reference)).all(axis=1).sum())
    same_rtl = int((found[:rtl_images] == logits(hardware)).all(axis=1).sum())
    first = simulated[0]
    milliseconds = 1e3 * (first.cycles or 0) / accelerator_part(module).configuration.clock_hz
    lines = (
        f"accuracy on the test split: {right / len(images):.2%} ({right} of {len(images)})",
        f"equal to the graph interpreter: {same} of {len(images)} on the simulator",
        f"equal to the simulator: {same_rtl} of {rtl_images} on RTL",
        f"cycles: simulator {_listed(simulated)}, RTL {_listed(hardware)} ({milliseconds:.3f} ms)",
        f"utilisation of the matrix core: {first.gemm_utilization:.1%}",
        f"timeline: {TIMELINE}",
    )
    screen.print("\n".join(lines))
    agree = same == len(images) and same_rtl == rtl_images
    return agree and cycles(simulated) == cycles(hardware)


def _listed(results: list[RunResult]) -> str:
    return ", ".join(f"{count:,}" for count in sorted(c or 0 for c in cycles(results)))


def main() -> int:
    """Run the demonstration; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--config", default="zynq7020", help="hardware configuration")
    parser.add_argument("--rtl-images", type=int, default=5, help="images that run on RTL too")
    options = parser.parse_args()
    try:
        agree = demonstrate(options.config, max(1, options.rtl_images))
    except DovetailError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    if not agree:
        print("error: simulator, RTL and interpreter do not agree", file=sys.stderr)
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
