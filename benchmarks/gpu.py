"""Networks and products of matrices on a GPU, beside ONNX Runtime and PyTorch if they can use it.

Latencies are medians of single runs at batch 1, after a few that are not counted, with the copies
of inputs and outputs; engines take turns.  Errors are the largest difference from this project's
CPU target, over its largest output.  ``gemm_N`` is a row of eight products of N x N matrices, so
that copies count little, in float32; ``gemm_fp16_N`` in float16, and ``gemm_int8_N`` of quantised
bytes, requantised after each product.  ``attention_N`` is a row of eight attentions of 16 heads of
64, N queries and N keys.  A network may be a model's file.  ``@fp16`` behind a name compiles a
float32 model so; the others compute as the model says.  Prints a table, and with ``--json FILE``
writes the figures.
"""

import json
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
import numpy as np
import onnx
from cpu_models import model_file, random_inputs
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from rich.console import Console
from rich.table import Table

from dovetail.compiler import compile
from dovetail.compiler.options import CompileOptions, Precision
from dovetail.isa.errors import DovetailError
from dovetail.runtime.devices import open_device
from dovetail.runtime.session import Session

NETWORKS = (
    *("resnet18", "mobilenet_v2", "squeezenet", "bert", "gemm_1024", "gemm_2048"),
    *("resnet50@fp16", "bert@fp16", "attention_1024@fp16", "attention_4096@fp16"),
    *("gemm_fp16_4096", "gemm_fp16_8192", "gemm_int8_4096", "gemm_int8_8192"),
)
CHAIN, HEADS, DEPTH = 8, 16, 64
WARM = 3

Arrays = Mapping[str, NDArray[Any]]
Run = Callable[[Arrays], list[NDArray[Any]]]


@dataclass(slots=True)
class Measured:
    """One engine on one network: milliseconds of single runs, and the error."""

    network: str
    engine: str
    milliseconds: list[float] = field(default_factory=list)
    error: float = 0.0
    compile_seconds: float = 0.0

    @property
    def median(self) -> float:
        """The median of all runs."""
        return statistics.median(self.milliseconds)


def products(size: int, kind: str) -> onnx.ModelProto:
    """``x @ w0 @ w1 ...``, [size, size] each, of float32, fp16 or int8."""
    rng = np.random.default_rng(0)
    shape, names = (size, size), [f"w{number}" for number in range(CHAIN)]
    if kind == "int8":
        return quantized_products(size, rng)
    dtype = np.float16 if kind == "fp16" else np.float32
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
    kind_of = TensorProto.FLOAT16 if kind == "fp16" else TensorProto.FLOAT
    return model(nodes, values[-1], kind_of, shape, weights)


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


def of_dovetail(
    path: Path, target: str, device: str, precision: Precision = Precision.FP32
) -> tuple[Run, float]:
    """This project's run, and the seconds that compiling took."""
    begin = time.perf_counter()
    options = replace(CompileOptions.from_environment(), precision=precision)
    session = Session(compile(path, target, options), device)
    seconds = time.perf_counter() - begin
    return lambda inputs: session.run(None, inputs), seconds


def of_onnxruntime(path: Path) -> Run | None:
    """ONNX Runtime's run on a GPU; None where it cannot."""
    if not find_spec("onnxruntime"):
        return None
    import onnxruntime

    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        return None
    session = onnxruntime.InferenceSession(str(path), providers=["CUDAExecutionProvider"])
    return lambda inputs: session.run(None, dict(inputs))


def of_torch(path: Path) -> Run | None:
    """PyTorch's run of a row of products or attentions, which is cuBLAS's, or the best that its
    attention chooses in float16; None without a GPU for it.

    Of int8 it requantises in float32 after each.
    """
    if not find_spec("torch"):
        return None
    import torch

    if not torch.cuda.is_available():
        return None
    weights = [
        torch.from_numpy(numpy_helper.to_array(each).copy()).cuda()
        for each in onnx.load(path).graph.initializer
        if len(each.dims) > 1
    ]
    if weights[0].dim() == 3:
        k, v = weights[0].mT.contiguous().half()[None], weights[1].half()[None]

        def attend(inputs: Arrays) -> list[NDArray[Any]]:
            x = torch.from_numpy(inputs["x"]).cuda().half()[None]
            for _ in range(CHAIN):
                x = torch.nn.functional.scaled_dot_product_attention(x, k, v)
            return [x[0].float().cpu().numpy()]

        return attend

    def run(inputs: Arrays) -> list[NDArray[Any]]:
        x = torch.from_numpy(inputs["x"]).cuda()
        for weight in weights:
            if x.dtype != torch.int8:
                x = x @ weight
                continue
            scaled = torch._int_mm(x, weight).float() * float(1 / 74 / len(weight) ** 0.5)
            x = scaled.round().clamp(-128, 127).to(torch.int8)
        return [x.cpu().numpy()]

    return run


def measure(
    network: str, target: str, device: str, precision: Precision, runs: int, folder: Path
) -> list[Measured]:
    """Every engine that there is, in turn."""
    name = network
    network, _, own_precision = network.partition("@")
    precision = Precision(own_precision) if own_precision else precision
    rows = network.startswith(("gemm_", "attention_"))
    _, *kind, size = network.split("_") if rows else ("", "0")
    path = folder / f"{network}.onnx"
    if network.startswith("attention_"):
        onnx.save(attentions(int(size)), path)
    elif int(size):
        onnx.save(products(int(size), "".join(kind) or "float32"), path)
    else:
        path = model_file(network, folder)
    inputs = random_inputs(onnx.load(path))
    own, seconds = of_dovetail(path, target, device, precision)
    engines: dict[str, Run | None] = {
        f"dovetail {device} {precision.value}": own,
        "onnxruntime": of_onnxruntime(path),
        "torch": of_torch(path) if int(size) else None,
    }
    reference, _ = of_dovetail(path, "cpu", "cpu")
    exact = reference(inputs)[0].astype(float)
    found = []
    for engine, run in engines.items():
        if run is None:
            continue
        for _ in range(WARM):
            outputs = run(inputs)
        error = np.abs(outputs[0].astype(float) - exact).max() / np.abs(exact).max()
        found.append(Measured(name, engine, [], float(error), seconds if run is own else 0.0))
    for _ in range(runs):
        for each in found:
            run = engines[each.engine]
            assert run is not None
            begin = time.perf_counter()
            run(inputs)
            each.milliseconds.append(1e3 * (time.perf_counter() - begin))
    return found


@click.command()
@click.argument("networks", nargs=-1)
@click.option("--device", default="cuda", show_default=True, help="cuda, cuda:1, opencl, ...")
@click.option("--target", help="By default the device's kind: cuda:sm_90a, for example.")
@click.option("--precision", type=click.Choice([each.value for each in Precision]), default="fp32")
@click.option("--runs", default=50, show_default=True)
@click.option("--json", "output", type=click.Path(path_type=Path), help="For the figures.")
def main(
    networks: tuple[str, ...],
    device: str,
    target: str | None,
    precision: str,
    runs: int,
    output: Path | None,
) -> None:
    """Measure NETWORKS."""
    try:
        open_device(device)
    except DovetailError as error:
        raise click.ClickException(str(error)) from None
    table = Table("network", "engine", "ms", "error", "ratio", "compiled in s")
    every = []
    with tempfile.TemporaryDirectory() as folder:
        for network in networks or NETWORKS:
            kind = target or device.partition(":")[0]
            found = measure(network, kind, device, Precision(precision), runs, Path(folder))
            every += found
            best = min((each.median for each in found[1:]), default=None)
            for each in found:
                ratio = f"{each.median / best:.2f}" if best else ""
                table.add_row(
                    *(network, each.engine, f"{each.median:.3f}", f"{each.error:.1e}", ratio),
                    f"{each.compile_seconds:.1f}" if each.compile_seconds else "",
                )
    Console().print(table)
    if output:
        rows = [{**asdict(each), "median": each.median} for each in every]
        output.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
