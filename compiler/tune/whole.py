"""A network as a whole, with and without records: what kernels gain separately may be lost."""

import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.isa.frozen import frozen
from dovetail.runtime.session import Session

from ..driver import compile_model
from ..front.stored import StoredModel
from ..options import CompileOptions, CpuOptions
from ..schedule.record_files import write_entries
from .kernel import Setting
from .problem import Measured

__all__ = ["WholeJob"]

SECONDS = 4.0
"""Seconds of runs of both."""
LEAST_BLOCKS = 5
BLOCK = 4
"""Consecutive runs, the fastest of which counts: one may find the other's data in caches,
and other work on the machine only adds to their times.
"""
QUANTILE = 0.25
"""The quantile of the blocks' times that counts."""
ERROR = 1e-4
"""Largest difference of results, over the largest."""


@frozen
class WholeJob:
    """See Job.  before, after: records, of the baseline and of what is tried."""

    model: StoredModel
    dims: Mapping[str, int]
    setting: Setting
    winograd: bool
    before: Sequence[Mapping[str, object]] = ()
    after: Sequence[Mapping[str, object]] = ()

    def run(self) -> Measured:
        """Seconds of one run."""
        default, tuned = self._session(self.before), self._session(self.after)
        inputs = _inputs(default)
        error = _difference(_outputs(tuned, inputs), _outputs(default, inputs))
        if not error <= ERROR:
            return Measured(None, error=f"results differ by {error:.1e} of the largest")
        times: tuple[list[float], list[float]] = ([], [])
        until = time.perf_counter() + SECONDS
        while len(times[0]) < LEAST_BLOCKS or time.perf_counter() < until:
            for session, own in zip((tuned, default), times, strict=True):
                own.append(min(_seconds(session, inputs) for _ in range(BLOCK)))
        cost, baseline = (float(np.quantile(own, QUANTILE)) for own in times)
        return Measured(cost, baseline)

    def _session(self, entries: Sequence[Mapping[str, object]]) -> Session:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "records.json"
            write_entries(file, entries)
            options = CompileOptions(
                cpu=CpuOptions(self.setting.level, self.setting.threads, winograd=self.winograd),
                records=(file,),
            )
            return Session(compile_model(self.model, "cpu", options, self.dims), "cpu")


def _seconds(session: Session, inputs: Mapping[str, NDArray[Any]]) -> float:
    start = time.perf_counter()
    session.run(inputs)
    return time.perf_counter() - start


def _outputs(session: Session, inputs: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
    return session.run(inputs).outputs


def _inputs(session: Session) -> dict[str, NDArray[Any]]:
    """Normal numbers, or 0 and 1."""
    rng = np.random.default_rng(0)
    found: dict[str, NDArray[Any]] = {}
    for each in session.inputs:
        values = rng.standard_normal(each.shape)
        if np.dtype(each.dtype).kind in "iub":
            values = (values > 0).astype(np.float64)
        found[each.name] = np.asarray(values, each.dtype)
    return found


def _difference(found: Mapping[str, NDArray[Any]], expected: Mapping[str, NDArray[Any]]) -> float:
    largest = 0.0
    for name, array in expected.items():
        wanted = array.astype(np.float64)
        scale = float(np.abs(wanted).max(initial=0)) or 1.0
        distance = np.abs(found[name].astype(np.float64) - wanted).max(initial=0)
        largest = max(largest, float(distance) / scale)
    return largest
