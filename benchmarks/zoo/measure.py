"""One quantised network: compiled, run, and compared with ONNX Runtime.

A process of its own, since it may take too long:
``python measure.py MODEL.onnx QUANTISED.onnx QUANTISER TARGET RESULT.json``.
"""

import json
import sys
import time
from dataclasses import asdict, dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from quantise import QUANTISERS, inputs_of

from dovetail.compiler import compile
from dovetail.isa.errors import DovetailError
from dovetail.runtime import run
from dovetail.runtime.accelerator.part import AcceleratorPart
from dovetail.runtime.module import Module
from dovetail.runtime.result import RunResult

__all__ = ["Figures", "measure"]

Array = NDArray[Any]
INPUT_SEED = 99
REFERENCES = {
    "default": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
    "off": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
}
"""With ONNX Runtime's optimisations QDQ forms become its integer operators; without, it computes
between quantisations in float.
"""


PRODUCTS = ("Conv", "ConvTranspose", "Gemm", "MatMul")


@dataclass(slots=True)
class Figures:
    """One inference of one network.

    macs: of the model; accelerated: of these, on the accelerator.  parts: of the module;
    cpu_parts: of these, for the CPU.  roof: cycles that no plan goes below (docs/planner.md).
    differing: output elements that differ from ONNX Runtime's, by its optimisation level, of
    ``elements``; largest: the largest difference, over the largest output.
    refused: why there is no module; where: "quantise", "compile", "run" or "reference".
    """

    model: str
    quantiser: str
    target: str
    macs: int = 0
    accelerated: int = 0
    parts: int = 0
    cpu_parts: int = 0
    cycles: int = 0
    roof: int = 0
    elements: int = 0
    differing: dict[str, int] = field(default_factory=dict)
    largest: dict[str, float] = field(default_factory=dict)
    quantise_seconds: float = 0.0
    compile_seconds: float = 0.0
    refused: str = ""
    where: str = ""


def measure(path: Path, quantised: Path, figures: Figures) -> None:
    """Fill in ``figures``; the quantised model is kept in ``quantised``."""
    begin = time.process_time()
    figures.where = "quantise"
    if not quantised.is_file():
        onnx.save(QUANTISERS[figures.quantiser](onnx.load(path)), quantised)
    figures.quantise_seconds = time.process_time() - begin
    model = onnx.load(quantised)
    figures.macs = macs_of(model)
    figures.where = "reference"
    inputs = inputs_of(model, INPUT_SEED)
    expected = {name: reference(model, inputs, name) for name in REFERENCES}
    figures.where = "compile"
    begin = time.process_time()
    module = compile(model, figures.target)
    figures.compile_seconds = time.process_time() - begin
    figures.parts = len(module.parts)
    figures.cpu_parts = sum(part.target == "cpu" for part in module.parts)
    figures.where = "run"
    result = run(module, inputs)
    _count(figures, module, result)
    outputs = [result.outputs[each.name] for each in model.graph.output]
    figures.elements = sum(each.size for each in outputs)
    for name, wanted in expected.items():
        figures.differing[name] = sum(
            int((a != b).sum()) for a, b in zip(outputs, wanted, strict=True)
        )
        figures.largest[name] = max(map(_difference, outputs, wanted))
    figures.where = ""


def reference(model: onnx.ModelProto, inputs: dict[str, Array], level: str) -> list[Array]:
    """ONNX Runtime's outputs."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = REFERENCES[level]
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return session.run(None, inputs)


def macs_of(model: onnx.ModelProto) -> int:
    """Multiply-accumulates of convolutions and matrix products."""
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    shapes = {each.name: list(each.dims) for each in inferred.initializer}
    for value in (*inferred.input, *inferred.value_info, *inferred.output):
        shapes[value.name] = [dim.dim_value or 1 for dim in value.type.tensor_type.shape.dim]
    total = 0
    for node in inferred.node:
        if node.op_type not in PRODUCTS:
            continue
        x, weights, out = (shapes.get(name, [0]) for name in (*node.input[:2], node.output[0]))
        match node.op_type:
            case "Conv":
                total += prod(out) * prod(weights[1:])
            case "ConvTranspose":
                total += prod(x) * prod(weights[1:])
            case _:
                total += prod(out) * x[-1]
    return total


def _difference(found: Array, wanted: Array) -> float:
    largest = float(np.abs(wanted).max(initial=0.0)) or 1.0
    return float(np.abs(found.astype(np.float64) - wanted).max(initial=0.0)) / largest


def _count(figures: Figures, module: Module, result: RunResult) -> None:
    """Add the accelerator's figures, if a part is for it.  Its own counter of products also counts
    those that move channels.
    """
    if result.cycles is None:
        return
    elsewhere = sum(each.macs for each in module.placement if each.where == "cpu")
    figures.cycles, figures.accelerated = result.cycles, figures.macs - elsewhere
    figures.roof = sum(
        part.roof_cycles for part in module.parts if isinstance(part, AcceleratorPart)
    )


def main() -> None:
    """Measure, and write the figures whatever comes of it."""
    path, quantised, result = (Path(each) for each in (*sys.argv[1:3], sys.argv[5]))
    figures = Figures(path.stem, *sys.argv[3:5])
    try:
        measure(path, quantised, figures)
    except DovetailError as error:
        figures.refused = str(error)
    except Exception as error:
        # A traceback is a finding too, whatever its class.
        figures.refused = f"{type(error).__name__}: {error}"
    result.write_text(json.dumps(asdict(figures), indent=1) + "\n")


if __name__ == "__main__":
    main()
