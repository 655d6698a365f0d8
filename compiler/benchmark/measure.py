"""Rounds: everything that is measured takes its turn in each of them."""

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import frozen
from dovetail.runtime.accelerator.part import AcceleratorPart
from dovetail.runtime.module import Module
from dovetail.runtime.result import RunResult
from dovetail.runtime.session import Session

from ..errors import CompilerError
from .subjects import Subject

__all__ = ["BenchmarkError", "Measured", "Measurement", "quartiles"]

Array = NDArray[Any]


class BenchmarkError(CompilerError):
    """An engine that is measured stops."""


@dataclass(slots=True)
class Measured:
    """Measurements of one subject.

    milliseconds: latency of one inference, the median of each round; on an accelerator its cycles
    at ``mhz``.  cycles: of each sample; none on CPUs.  host_milliseconds: on an accelerator, what
    this machine does before, between and after, median.  megabytes: of the process, at its largest;
    of an accelerator its DRAM.  first_seconds: from the start of an engine to its first result.
    outputs: each as [samples, ...].
    """

    subject: Subject
    milliseconds: list[float] = field(default_factory=list)
    first_seconds: list[float] = field(default_factory=list)
    megabytes: float = 0.0
    compile_seconds: float | None = None
    build_seconds: float | None = None
    cycles: list[int] = field(default_factory=list)
    mhz: float | None = None
    host_milliseconds: float | None = None
    outputs: list[Array] = field(default_factory=list)

    @property
    def latency(self) -> float:
        """The median of all rounds, in milliseconds."""
        return statistics.median(self.milliseconds)

    def ratios(self, other: "Measured") -> list[float]:
        """Ratios of this one's time to the other's, round by round."""
        return [a / b for a, b in zip(self.milliseconds, other.milliseconds, strict=True)]


def quartiles(values: Sequence[float]) -> tuple[float, float]:
    """The lower and the upper one."""
    low, high = np.quantile(values, (0.25, 0.75))
    return float(low), float(high)


@frozen
class Measurement:
    """How engines are measured: rounds, each of ``runs`` runs in a fresh process.

    folder: for files.  samples: one array for each input, [samples, *shape].
    """

    folder: Path
    samples: Mapping[str, Array]
    rounds: int
    runs: int
    threads: int

    def engines(
        self, files: Mapping[Subject, Path], tell: Callable[[str], None]
    ) -> dict[Subject, Measured]:
        """Machine code and ONNX Runtime, in turns.

        files: the module or the model of each.  tell: is told what goes on.
        Raises BenchmarkError when an engine stops.
        """
        given = self.folder / "samples.npz"
        np.savez(given, allow_pickle=False, **dict(self.samples))
        found = {subject: Measured(subject) for subject in files}
        for number in range(self.rounds):
            for subject, own in found.items():
                tell(f"{subject.name}: round {number + 1} of {self.rounds}")
                outputs = None if number else self.folder / f"{subject.device}.npz"
                figures = self._round(subject, files[subject], given, outputs)
                own.milliseconds.append(figures["median"])
                own.first_seconds.append(figures["first_seconds"])
                own.megabytes = max(own.megabytes, figures["megabytes"])
                if outputs:
                    own.outputs = list(np.load(outputs).values())
        return found

    def accelerator(
        self, subject: Subject, module: Module, mhz: float | None, tell: Callable[[str], None]
    ) -> Measured:
        """Each sample once: cycles do not vary from run to run.

        mhz: the clock; None for the configuration's.
        """
        parts = [part for part in module.parts if isinstance(part, AcceleratorPart)]
        config: HardwareConfig = parts[0].configuration
        clock = mhz or config.clock_hz / 1e6
        results: list[RunResult] = []
        count = len(next(iter(self.samples.values())))
        with Session(module, subject.device) as session:
            for place in range(count):
                tell(f"{subject.name}: sample {place + 1} of {count}")
                one = {name: array[place] for name, array in self.samples.items()}
                results.append(session.run(one))
        cycles = [result.cycles or 0 for result in results]
        return Measured(
            subject,
            milliseconds=[statistics.median(cycles) / clock / 1e3] * self.rounds,
            megabytes=sum(len(part.dram) for part in parts) / 1e6,
            cycles=cycles,
            mhz=clock,
            host_milliseconds=1e3 * statistics.median(each.host_seconds for each in results),
            outputs=[
                np.stack([each.outputs[tensor.name] for each in results])
                for tensor in module.outputs
            ],
        )

    def _round(
        self, subject: Subject, model: Path, samples: Path, outputs: Path | None
    ) -> dict[str, float]:
        command = [sys.executable, "-m", f"{__package__}.engine", subject.device]
        command += [str(model), str(samples), f"--runs={self.runs}", f"--threads={self.threads}"]
        command += [f"--outputs={outputs}"] if outputs else []
        environment = {**os.environ, "OMP_NUM_THREADS": str(self.threads)}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            said = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
            raise BenchmarkError(f"{subject.name} cannot run the model: {said[-1]}")
        figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        return figures
