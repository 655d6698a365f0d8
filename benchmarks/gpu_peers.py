"""Other engines on a GPU, for ``gpu.py``; each says why it is not there."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from cpu_models import random_inputs
from gpu_models import CHAIN, ROWS
from numpy.typing import NDArray
from onnx import numpy_helper

from dovetail.compiler.options import Precision

__all__ = ["PEERS", "Engine", "UnavailableError"]

Arrays = Mapping[str, NDArray[Any]]
Run = Callable[[Arrays], list[NDArray[Any]]]
Make = Callable[[Path, str, Precision], "Engine"]
FEW = 5
"""Runs, to choose between kernels."""
WORKSPACE_BYTES = 1 << 32


class UnavailableError(Exception):
    """Why an engine does not take part."""


@dataclass(frozen=True, slots=True)
class Engine:
    """run: with copies of inputs and outputs.  seconds: of so many runs, each, without copies."""

    run: Run
    seconds: Callable[[int], float] | None = None
    compile_seconds: float = 0.0


def _require(*packages: str) -> None:
    for each in packages:
        if not find_spec(each):
            raise UnavailableError(f"{each} is not installed")


def of_onnxruntime(path: Path, network: str, precision: Precision) -> Engine:
    """ONNX Runtime's CUDA provider, as the model says."""
    _require("onnxruntime")
    import onnxruntime

    if "CUDAExecutionProvider" not in onnxruntime.get_available_providers():
        raise UnavailableError("this build of onnxruntime has no CUDA provider")
    session = onnxruntime.InferenceSession(str(path), providers=["CUDAExecutionProvider"])
    return Engine(lambda inputs: session.run(None, dict(inputs)))


def of_torch(path: Path, network: str, precision: Precision) -> Engine:
    """A row of products by cuBLAS, or of attentions by the best that PyTorch has in float16.

    Bytes are requantised in float32 after each product.
    """
    if not network.startswith(ROWS):
        raise UnavailableError("it is measured on rows of products and attentions only")
    torch = _torch()
    weights = [
        _tensor(torch, numpy_helper.to_array(each)).cuda()
        for each in onnx.load(path).graph.initializer
        if len(each.dims) > 1
    ]
    if weights[0].dtype == torch.int8:
        # cuBLAS multiplies bytes fastest where columns of the second matrix follow each other.
        weights = [each.t().contiguous().t() for each in weights]
    if weights[0].dim() == 3:
        k, v = weights[0].mT.contiguous().half()[None], weights[1].half()[None]

    from torch.nn.attention import SDPBackend, sdpa_kernel

    kinds = [SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION]

    def step(x: Any, weight: Any) -> Any:
        if weight.dim() == 3:
            with sdpa_kernel(kinds):
                return torch.nn.functional.scaled_dot_product_attention(x, k, v)
        if x.dtype != torch.int8:
            return x @ weight
        scaled = torch._int_mm(x, weight).float() * float(1 / 74 / len(weight) ** 0.5)
        return scaled.round().clamp(-128, 127).to(torch.int8)

    def given(inputs: Arrays) -> Any:
        x = _tensor(torch, inputs["x"]).cuda()
        return x.half()[None] if x.dim() == 3 else x

    def row(x: Any) -> Any:
        for number in range(CHAIN):
            x = step(x, weights[0] if weights[0].dim() == 3 else weights[number])
        return x

    start = given(random_inputs(onnx.load(path)))

    if weights[0].dim() == 3:
        every, times = list(kinds), []
        for kind in every:
            kinds[:] = [kind]
            times.append(_timed(torch, lambda: row(start), FEW))
        kinds[:] = [every[times.index(min(times))]]

    def run(inputs: Arrays) -> list[NDArray[Any]]:
        found = row(given(inputs))
        found = found[0] if found.dim() == 4 else found
        return [(found.float() if found.is_floating_point() else found).cpu().numpy()]

    return Engine(run, lambda runs: _timed(torch, lambda: row(start), runs))


def of_compiled(path: Path, network: str, precision: Precision) -> Engine:
    """A network by ``torch.compile``, whose launches are one graph of CUDA's; all floats as asked
    for.
    """
    if network.startswith(ROWS):
        raise UnavailableError("it is measured on networks only")
    torch = _torch()
    from gpu_torch import as_function

    kinds = {Precision.FP16: torch.float16, Precision.BF16: torch.bfloat16}
    kind = kinds.get(precision, torch.float32)
    model = onnx.load(path)
    try:
        function = as_function(model, "cuda", kind)
    except KeyError as operator:
        raise UnavailableError(f"gpu_torch.py has no operator {operator}") from None
    weights = {each.name for each in model.graph.initializer}
    names = [each.name for each in model.graph.input if each.name not in weights]
    plain = torch.no_grad()(function)
    ready = torch.compile(plain, mode="reduce-overhead")

    def given(inputs: Arrays) -> list[Any]:
        tensors = [_tensor(torch, inputs[name]).cuda() for name in names]
        return [each.to(kind) if each.is_floating_point() else each for each in tensors]

    def run(inputs: Arrays) -> list[NDArray[Any]]:
        return [each.float().cpu().numpy() for each in ready(*given(inputs))]

    begin = time.perf_counter()
    start = given(random_inputs(model))
    try:
        ready(*start)
    except torch._dynamo.exc.BackendCompilerFailed:
        # PyTorch 2.11's patterns of attention do not suit one text with a mask.
        torch._inductor.config.pattern_matcher = False
        torch._dynamo.reset()
        ready = torch.compile(plain, mode="reduce-overhead")
        ready(*start)
    torch.cuda.synchronize()
    seconds = time.perf_counter() - begin
    return Engine(run, lambda runs: _timed(torch, lambda: ready(*start), runs), seconds)


def of_tensorrt(path: Path, network: str, precision: Precision) -> Engine:
    """TensorRT's best kernels, by its own measurements; memory is PyTorch's.

    Source: TensorRT's documentation (NVIDIA), Python API.
    """
    _require("tensorrt")
    torch = _torch()
    import tensorrt

    logger = tensorrt.Logger(tensorrt.Logger.ERROR)
    builder = tensorrt.Builder(logger)
    explicit = getattr(tensorrt.NetworkDefinitionCreationFlag, "EXPLICIT_BATCH", None)
    definition = builder.create_network(0 if explicit is None else 1 << int(explicit))
    parser = tensorrt.OnnxParser(definition, logger)
    if not parser.parse_from_file(str(path)):
        raise UnavailableError(f"it cannot read the model: {parser.get_error(0).desc()}")
    config = builder.create_builder_config()
    config.set_memory_pool_limit(tensorrt.MemoryPoolType.WORKSPACE, WORKSPACE_BYTES)
    flag = {Precision.FP16: "FP16", Precision.BF16: "BF16"}.get(precision)
    if flag:
        if not hasattr(tensorrt.BuilderFlag, flag):
            raise UnavailableError(f"TensorRT {tensorrt.__version__} has no builder flag {flag}")
        config.set_flag(getattr(tensorrt.BuilderFlag, flag))
    begin = time.perf_counter()
    plan = builder.build_serialized_network(definition, config)
    if plan is None:
        raise UnavailableError("it cannot build the model")
    engine = tensorrt.Runtime(logger).deserialize_cuda_engine(plan)
    context, seconds = engine.create_execution_context(), time.perf_counter() - begin
    memory: dict[str, Any] = {}
    names = [engine.get_tensor_name(number) for number in range(engine.num_io_tensors)]
    for name in names:
        kind = np.dtype(tensorrt.nptype(engine.get_tensor_dtype(name)))
        array = np.ones(tuple(engine.get_tensor_shape(name)), kind)
        memory[name] = torch.from_numpy(array).cuda()
        context.set_tensor_address(name, memory[name].data_ptr())
    mode = tensorrt.TensorIOMode.OUTPUT
    outputs = [name for name in names if engine.get_tensor_mode(name) == mode]

    def launch() -> None:
        context.execute_async_v3(torch.cuda.current_stream().cuda_stream)

    def run(inputs: Arrays) -> list[NDArray[Any]]:
        for name, array in inputs.items():
            memory[name].copy_(torch.from_numpy(np.ascontiguousarray(array)))
        launch()
        return [memory[name].cpu().numpy() for name in outputs]

    return Engine(run, lambda runs: _timed(torch, launch, runs), seconds)


PEERS: Mapping[str, Make] = {
    "onnxruntime": of_onnxruntime,
    "torch": of_torch,
    "torch.compile": of_compiled,
    "tensorrt": of_tensorrt,
}


def _torch() -> Any:
    _require("torch")
    import torch

    if not torch.cuda.is_available():
        raise UnavailableError("torch finds no CUDA device")
    return torch


def _tensor(torch: Any, array: NDArray[Any]) -> Any:
    """A tensor of an array's elements; PyTorch reads no bfloat16 from NumPy."""
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(np.ascontiguousarray(array))


def _timed(torch: Any, run: Callable[[], object], runs: int) -> float:
    """Seconds of a run, of so many one after the other."""
    run()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(runs):
        run()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) / runs
