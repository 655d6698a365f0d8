"""The MLPerf Tiny networks: every golden output, byte for byte, and the cycles they may take."""

from pathlib import Path

import numpy as np
import pytest

from dovetail.compiler import compile
from dovetail.compiler.options import CompileOptions
from dovetail.runtime import run
from dovetail.runtime.accelerator.part import accelerator_part

FOLDER = "mlperf_tiny"
MODELS = [
    ("ic_resnet8_int8", "zynq7020", 0.2, 52_200),
    ("ad01_int8", "zynq7020", 0.2, 35_600),
    ("kws_dscnn_int8", "zynq7020", 0.2, 13_500),
    ("ic_resnet8_int8", "large", 0.05, 31_500),
    ("vww_mbv1_int8", "zynq7020", 0.2, 44_000),
    ("ad01_int8", "tiny", 0.02, 84_000),
]
"""Model, configuration, effort, most cycles."""


@pytest.mark.parametrize(("name", "config", "effort", "most_cycles"), MODELS)
def test_golden_outputs_are_matched_within_the_cycles(
    shared_models: Path, name: str, config: str, effort: float, most_cycles: int
) -> None:
    path = shared_models / FOLDER / f"{name}.onnx"
    if not path.is_file():
        pytest.skip(f"no ../shared/models/{FOLDER}/{path.name}")
    module = compile(path, f"vta:{config}", CompileOptions(effort=effort))
    (signature,) = module.inputs
    with np.load(path.with_suffix(".golden.npz")) as golden:
        inputs, wanted = golden["input"], golden["onnxruntime"]
    cycles = set()
    for x, y in zip(inputs, wanted, strict=True):
        result = run(module, {signature.name: x.reshape(signature.shape)})
        (output,) = result.outputs.values()
        assert np.array_equal(output.reshape(y.shape), y)
        cycles.add(result.cycles)
    assert len(cycles) == 1, "cycles depend on nothing but the program"
    assert cycles.pop() <= most_cycles
    assert all(layer.inexact_pairs == 0 for layer in accelerator_part(module).layers)
