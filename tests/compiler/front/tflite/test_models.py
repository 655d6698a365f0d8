"""Trained models from their files: LiteRT's reference bytes."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dovetail.compiler import compile
from dovetail.compiler.front.table import open_model
from dovetail.compiler.graph.interpreter import run
from dovetail.runtime.session import Session

pytest.importorskip("tflite", reason="tflite, which reads the files, is not installed")

Array = NDArray[Any]


def golden(shared_models: Path, name: str) -> tuple[Path, Array, Array]:
    """A model of MLPerf Tiny, inputs, and what LiteRT's reference kernels give of them."""
    path = shared_models / "mlperf_tiny" / f"{name}.tflite"
    if not path.is_file():
        pytest.skip(f"no ../shared/models/mlperf_tiny/{path.name}")
    arrays = np.load(path.with_suffix(".golden.npz"))
    return path, arrays["input"], arrays["tflite_reference"]


@pytest.mark.parametrize("name", ["ad01_int8", "kws_dscnn_int8"])
def test_machine_code_gives_the_reference_bytes(shared_models: Path, name: str) -> None:
    path, inputs, wanted = golden(shared_models, name)
    module = compile(path, "cpu")
    (x,), (y,) = module.inputs, module.outputs
    with Session(module, device="cpu") as session:
        for given, each in zip(inputs, wanted, strict=True):
            (found,) = session.run(None, {x.name: given.reshape(x.shape)})
            np.testing.assert_array_equal(found, each.reshape(y.shape))


@pytest.mark.parametrize("name", ["ic_resnet8_int8", "vww_mbv1_int8"])
def test_the_graph_gives_the_reference_bytes(shared_models: Path, name: str) -> None:
    path, inputs, wanted = golden(shared_models, name)
    graph = open_model(path).to_graph().graph
    (x,), (y,) = graph.inputs, graph.outputs
    for given, each in list(zip(inputs, wanted, strict=True))[:2]:
        found = run(graph, {x: given.reshape(graph.types[x].shape)})[y]
        np.testing.assert_array_equal(found.reshape(-1), each.reshape(-1))
