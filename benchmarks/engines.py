"""One engine on one model in a process of its own, for ``cpu.py``; prints JSON.

    python benchmarks/engines.py ENGINE MODEL SAMPLES --outputs OUTPUTS --runs 20 --threads 1

MODEL is an ONNX file, or for ``dovetail`` a compiled module.  Nothing but NumPy and the engine is
imported, so that times and memory are the engine's.
"""

import os
from pathlib import Path

import numpy as np

from dovetail.compiler.benchmark import engine
from dovetail.compiler.benchmark.engine import Array, Arrays, Run

__all__ = ["ENGINES"]


def openvino(path: Path, threads: int) -> Run:
    """OpenVINO in float32, its compiled model kept beside the file."""
    import openvino

    properties = {
        "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": "f32",
        "CACHE_DIR": str(path.with_suffix(f".openvino{threads}")),
    }
    compiled = openvino.Core().compile_model(str(path), "CPU", properties)
    return lambda inputs: [np.array(each) for each in compiled(inputs).values()]


def tvm(path: Path, threads: int) -> Run:
    """TVM as it compiles for this CPU without tuning, each time anew."""
    os.environ["TVM_NUM_THREADS"] = str(threads)
    import onnx
    import tvm
    from tvm import relax
    from tvm.relax.frontend.onnx import from_onnx
    from tvm.target.codegen import llvm_get_system_cpu

    cpu = {"kind": "llvm", "mcpu": llvm_get_system_cpu(), "num-cores": threads}
    target = tvm.target.Target(cpu)
    model = from_onnx(onnx.load(path), keep_params_in_input=False)
    machine = relax.VirtualMachine(tvm.compile(model, target=target), tvm.cpu())

    def run(inputs: Arrays) -> list[Array]:
        found = machine["main"](*(tvm.runtime.tensor(each) for each in inputs.values()))
        many = [found] if isinstance(found, tvm.runtime.Tensor) else list(found)
        return [each.numpy() for each in many]

    return run


ENGINES = {
    "dovetail": engine.ENGINES["cpu"],
    "onnxruntime": engine.ENGINES["ort"],
    "openvino": openvino,
    "tvm": tvm,
}
"""By name; each is also the name of what it imports, and left out where that is not installed."""


if __name__ == "__main__":
    engine.main(ENGINES)
