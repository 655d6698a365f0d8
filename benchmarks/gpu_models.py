"""The models that ``gpu.py`` measures: rows of products or attentions, networks for many images."""

import sys
from pathlib import Path

import numpy as np
import onnx
from cpu_models import model_file
from onnx import TensorProto, helper, numpy_helper

__all__ = ["CHAIN", "ROWS", "fewer_rows", "gpu_model"]

CHAIN, HEADS, DEPTH = 8, 16, 64
BASE, BASE_LAYERS = "bert_base_", 12
ELEMENTS = {"fp16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16}
ROWS = ("gemm_", "attention_")
"""How the names of rows begin."""


def gpu_model(name: str, folder: Path) -> Path:
    """The file of ``gemm_N``, ``gemm_KIND_N``, ``attention_N``, or of a network; ``bert_base_N`` is
    BERT's twelve layers on N tokens, ``NETWORK:N`` is of N images or texts a run.

    Raises UsageError for another name.
    """
    path = folder / f"{name}.onnx"
    if name.startswith(ROWS):
        _, *kind, size = name.split("_")
        build = products(int(size), "".join(kind)) if name[0] == "g" else attentions(int(size))
        onnx.save(build, path)
        return path
    network, _, count = name.partition(":")
    path = folder / f"{network}.onnx"
    if not network.startswith(BASE):
        path = model_file(network, folder)
    elif not path.is_file():
        onnx.save(base(int(network.removeprefix(BASE))), path)
    if count:
        onnx.save(batched(onnx.load(path), int(count)), folder / f"{network}_{count}.onnx")
        path = folder / f"{network}_{count}.onnx"
    return path


def base(tokens: int) -> onnx.ModelProto:
    """BERT's base model, with random weights."""
    sys.path.append(str(Path(__file__).resolve().parents[1] / "examples"))
    from networks import bert

    return bert(BASE_LAYERS, tokens)


def fewer_rows(model: onnx.ModelProto, count: int) -> onnx.ModelProto:
    """A row of products or attentions with the first rows of its input alone: what comes of one
    needs no other.
    """
    found = onnx.ModelProto()
    found.CopyFrom(model)
    for value in (*found.graph.input, *found.graph.output):
        value.type.tensor_type.shape.dim[-2].dim_value = count
    return found


def batched(model: onnx.ModelProto, count: int) -> onnx.ModelProto:
    """A network of one image or text, for several at a time."""
    graph = model.graph
    weights = {each.name for each in graph.initializer}
    for value in (*graph.input, *graph.output):
        if value.name not in weights:
            value.type.tensor_type.shape.dim[0].dim_value = count
    reshapes = {node.input[1] for node in graph.node if node.op_type == "Reshape"}
    for each in graph.initializer:
        shape = numpy_helper.to_array(each)
        if each.name in reshapes and shape[0] == 1:
            each.CopyFrom(numpy_helper.from_array(np.array([count, *shape[1:]]), each.name))
    del graph.value_info[:]
    onnx.checker.check_model(model, full_check=True)
    return model


def products(size: int, kind: str) -> onnx.ModelProto:
    """``x @ w0 @ w1 ...``, [size, size] each, of float32, fp16, bf16 or int8."""
    rng = np.random.default_rng(0)
    shape, names = (size, size), [f"w{number}" for number in range(CHAIN)]
    if kind == "int8":
        return quantized_products(size, rng)
    element = ELEMENTS.get(kind, TensorProto.FLOAT)
    dtype = helper.tensor_dtype_to_np_dtype(element)
    weights = [
        numpy_helper.from_array(
            (rng.standard_normal(shape, np.float32) / size**0.5).astype(dtype), name
        )
        for name in names
    ]
    values = ["x", *(f"y{number}" for number in range(CHAIN))]
    nodes = [
        helper.make_node("MatMul", [values[number], names[number]], [values[number + 1]])
        for number in range(CHAIN)
    ]
    return model(nodes, values[-1], element, shape, weights)


def quantized_products(size: int, rng: np.random.Generator) -> onnx.ModelProto:
    """The row of int8, with a scale for all of each matrix."""
    scale = np.float32(1 / 74)
    weights = [
        numpy_helper.from_array(np.asarray(value), name)
        for name, value in (
            ("s", scale),
            ("z", np.int8(0)),
            ("sw", np.float32(scale / size**0.5)),
            *(
                (f"w{number}", rng.integers(-127, 128, (size, size), np.int8))
                for number in range(CHAIN)
            ),
        )
    ]
    nodes, value = [], "x"
    for number in range(CHAIN):
        names = [f"{stem}{number}" for stem in ("xd", "wd", "m", "y")]
        nodes += [
            helper.make_node("DequantizeLinear", [value, "s", "z"], names[:1]),
            helper.make_node("DequantizeLinear", [f"w{number}", "sw", "z"], names[1:2]),
            helper.make_node("MatMul", names[:2], names[2:3]),
            helper.make_node("QuantizeLinear", [names[2], "s", "z"], names[3:]),
        ]
        value = names[3]
    return model(nodes, value, TensorProto.INT8, (size, size), weights)


def attentions(size: int) -> onnx.ModelProto:
    """``x = softmax(x @ k.T / 8) @ v``, again and again, of float32[16, size, 64]."""
    rng = np.random.default_rng(0)
    shape = (HEADS, size, DEPTH)
    k, v = (rng.standard_normal(shape, np.float32) for _ in range(2))
    weights = {"k": k.swapaxes(1, 2).copy(), "v": v, "scale": np.float32(DEPTH**-0.5)}
    nodes = []
    for number in range(CHAIN):
        names = [f"{stem}{number}" for stem in ("s", "d", "p")]
        nodes += [
            helper.make_node("MatMul", [f"y{number - 1}" if number else "x", "k"], names[:1]),
            helper.make_node("Mul", [names[0], "scale"], names[1:2]),
            helper.make_node("Softmax", names[1:2], names[2:]),
            helper.make_node("MatMul", [names[2], "v"], [f"y{number}"]),
        ]
    constants = [numpy_helper.from_array(np.asarray(each), name) for name, each in weights.items()]
    return model(nodes, f"y{CHAIN - 1}", TensorProto.FLOAT, shape, constants)


def model(
    nodes: list[onnx.NodeProto],
    result: str,
    kind: int,
    shape: tuple[int, ...],
    weights: list[onnx.TensorProto],
) -> onnx.ModelProto:
    """The nodes from ``x`` to ``result``, both of one type."""
    ends = (helper.make_tensor_value_info(name, kind, shape) for name in ("x", result))
    given, last = ends
    graph = helper.make_graph(nodes, "products", [given], [last], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
