"""One engine on one model in a process of its own, for ``cpu.py``; prints JSON.

    python benchmarks/engines.py ENGINE MODEL INPUTS OUTPUTS --runs 20 --threads 1

MODEL is an ONNX file, or for ``dovetail`` a compiled module.  Nothing but NumPy and the engine is
imported, so that times and memory are the engine's.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["ENGINES"]

WARMUP = 3

Arrays = dict[str, NDArray[Any]]
Run = Callable[[Arrays], list[NDArray[Any]]]


def dovetail(path: Path, threads: int) -> Run:
    """This project's module, compiled before."""
    from dovetail.runtime import Session

    session = Session(path, "cpu")
    return lambda inputs: session.run(None, inputs)


def onnxruntime(path: Path, threads: int) -> Run:
    """ONNX Runtime's CPU provider, all optimisations."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda inputs: list(session.run(None, inputs))


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

    def run(inputs: Arrays) -> list[NDArray[Any]]:
        found = machine["main"](*(tvm.runtime.tensor(each) for each in inputs.values()))
        many = [found] if isinstance(found, tvm.runtime.Tensor) else list(found)
        return [each.numpy() for each in many]

    return run


ENGINES: dict[str, Callable[[Path, int], Run]] = {
    "dovetail": dovetail,
    "onnxruntime": onnxruntime,
    "openvino": openvino,
    "tvm": tvm,
}
"""By name; each is also the name of what it imports, and left out where that is not installed."""


def main() -> None:
    """Measure one round."""
    parser = argparse.ArgumentParser()
    parser.add_argument("engine", choices=ENGINES)
    for name in ("model", "inputs", "outputs"):
        parser.add_argument(name, type=Path)
    for name in ("--runs", "--threads"):
        parser.add_argument(name, type=int, default=1)
    given = parser.parse_args()
    inputs = dict(np.load(given.inputs))
    start = time.perf_counter()
    run = ENGINES[given.engine](given.model, given.threads)
    results = run(inputs)
    first = time.perf_counter() - start
    milliseconds = []
    for number in range(WARMUP + given.runs):
        start = time.perf_counter()
        run(inputs)
        if number >= WARMUP:
            milliseconds.append((time.perf_counter() - start) * 1e3)
    status = Path("/proc/self/status").read_text().split()
    peak = int(status[status.index("VmHWM:") + 1]) / 1024
    np.savez(given.outputs, *results)
    print(
        json.dumps(
            {
                "median": statistics.median(milliseconds),
                "best": min(milliseconds),
                "first_seconds": first,
                "megabytes": peak,
            }
        )
    )


if __name__ == "__main__":
    main()
