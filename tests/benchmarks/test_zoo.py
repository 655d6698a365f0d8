"""The zoo: what it counts, and that a failure becomes a row of its table."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks" / "zoo"))

import measure
from architectures import ZOO, Source


def network() -> onnx.ModelProto:
    """A convolution to 4 channels of 6x6, a transposed one to 3 of 12x12."""
    weights = {
        "w": np.full((4, 3, 3, 3), 0.1, np.float32),
        "v": np.full((4, 3, 2, 2), 0.1, np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["image", "w"], ["c"]),
        helper.make_node("ConvTranspose", ["c", "v"], ["y"], strides=[2, 2]),
    ]
    graph = helper.make_graph(
        nodes, "small",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 8, 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 3, 12, 12])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def test_products_are_counted_where_they_are_made() -> None:
    assert measure.macs_of(network()) == 4 * 36 * 27 + 4 * 36 * 3 * 4


def test_there_are_forty_architectures_and_more_each_named_once() -> None:
    assert len(ZOO) >= 40
    assert len({each.family for each in ZOO.values()}) >= 20
    assert ZOO["inception_v3"].image(64) == 80
    assert ZOO["ultraface"].source is Source.FILE


def measured(folder: Path, model: onnx.ModelProto) -> dict[str, object]:
    onnx.save(model, folder / "m.onnx")
    words = ["m.onnx", "q.onnx", "dovetail", "cpu", "r.json"]
    subprocess.run([sys.executable, measure.__file__, *words], cwd=folder, check=True)
    return json.loads((folder / "r.json").read_text())


def test_a_network_is_compared_and_a_refusal_is_told(tmp_path: Path) -> None:
    model = network()
    figures = measured(tmp_path, model)
    assert figures["where"] == figures["refused"] == ""
    assert figures["elements"] == 3 * 144
    assert figures["differing"]["default"] == 0
    (tmp_path / "q.onnx").unlink()
    del model.graph.node[:]
    figures = measured(tmp_path, model)
    assert figures["where"] == "quantise"
    assert figures["refused"]


def test_rows_tell_sizes_and_whether_weights_are_made_for_one() -> None:
    first, other = ZOO["coat_lite_tiny"], ZOO["alexnet"]
    assert (first.size, first.smallest, first.fixed) == (224, 32, True)
    assert (other.size, other.smallest, other.fixed) == (224, 64, False)
