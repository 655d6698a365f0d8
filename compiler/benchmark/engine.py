"""One engine on one model in a process of its own; prints JSON.

    python -m dovetail.compiler.benchmark.engine cpu MODULE SAMPLES --runs 20 --threads 1

Nothing but NumPy and the engine is imported, so that times and memory are the engine's.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["ENGINES", "Array", "Arrays", "Run", "main"]

WARMUP = 3

Array = NDArray[Any]
Arrays = dict[str, Array]
Run = Callable[[Arrays], list[Array]]
Engine = Callable[[Path, int], Run]


def dovetail(path: Path, threads: int) -> Run:
    """This project's module, compiled before, for as many threads as it was compiled for."""
    from dovetail.runtime.session import Session

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


ENGINES: dict[str, Engine] = {"cpu": dovetail, "ort": onnxruntime}
"""By device."""


def main(engines: Mapping[str, Engine] = ENGINES) -> None:
    """Measure one round.

    SAMPLES is an archive with an array for each input, samples along its first dimension; runs
    take one sample after the other.  ``--outputs`` writes such an archive of all outputs.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("engine", choices=engines)
    for name in ("model", "samples"):
        parser.add_argument(name, type=Path)
    for name in ("--runs", "--threads"):
        parser.add_argument(name, type=int, default=1)
    parser.add_argument("--outputs", type=Path)
    given = parser.parse_args()
    arrays = dict(np.load(given.samples))
    count = len(next(iter(arrays.values())))
    samples = [{name: array[place] for name, array in arrays.items()} for place in range(count)]
    start = time.perf_counter()
    run = engines[given.engine](given.model, given.threads)
    results = [run(samples[0])]
    first = time.perf_counter() - start
    milliseconds = []
    for number in range(-WARMUP, given.runs):
        start = time.perf_counter()
        run(samples[number % count])
        if number >= 0:
            milliseconds.append((time.perf_counter() - start) * 1e3)
    peak = _peak_megabytes()
    if given.outputs:
        results += [run(sample) for sample in samples[1:]]
        np.savez(given.outputs, *(np.stack(each) for each in zip(*results, strict=True)))
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


def _peak_megabytes() -> float:
    """The largest that this process has been in memory."""
    status = Path("/proc/self/status").read_text().split()
    return int(status[status.index("VmHWM:") + 1]) / 1024


if __name__ == "__main__":
    main()
