"""Compile for every device, and measure."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from dovetail.runtime.errors import InputError

from ...benchmark.measure import Measured, Measurement
from ...benchmark.subjects import ORT, Subject
from ...driver import compile_model
from ...errors import UnsupportedOperatorError
from ...front.onnx.source import SourceModel
from ...front.onnx.write import onnx_model
from ...front.source import Source
from ...front.table import open_model
from ...front.torch.source import TorchModel
from ...options import CompileOptions
from ..building import build_for

__all__ = ["measure_all", "reference_outputs"]

Tell = Callable[[str], None]
"""Is told what goes on."""


def measure_all(
    chosen: Sequence[Subject],
    path: Path,
    model: Source,
    measurement: Measurement,
    options: CompileOptions,
    mhz: float | None,
    tell: Tell,
) -> list[Measured]:
    """All of them, in the order in which they were asked for.

    path: of ``model``.  mhz: the clock of accelerators; None for their own.
    Raises what compiling and running raise.
    """
    found: dict[Subject, Measured] = {}
    files: dict[Subject, Path] = {}
    seconds: dict[Subject, float] = {}
    for subject in chosen:
        if subject.target is None:
            files[subject] = _as_onnx(path, model, measurement.folder / "model.onnx")
            continue
        tell(f"{subject.name}: compiling")
        begin = time.perf_counter()
        dims = {} if subject.is_accelerator else _open_dimensions(model)
        module = compile_model(model, subject.target, options, dims)
        seconds[subject] = time.perf_counter() - begin
        if subject.is_accelerator:
            built = build_for(module, subject.device)
            named = replace(subject, target=module.target)
            found[subject] = measurement.accelerator(named, module, mhz, tell)
            found[subject].build_seconds = built or None
        else:
            files[subject] = measurement.folder / f"{subject.device}.dvt"
            module.save(files[subject])
    found |= measurement.engines(files, tell)
    for subject, taken in seconds.items():
        found[subject].compile_seconds = taken
    return [found[subject] for subject in chosen]


def reference_outputs(
    path: Path, model: Any, measurement: Measurement, options: CompileOptions, tell: Tell
) -> tuple[list[NDArray[Any]], str]:
    """Outputs of the float model, and what it ran on: ONNX Runtime where it is installed.

    Raises InputError for a model with other inputs than ``model``, and as ``_as_onnx``.
    """
    loaded: Any = open_model(path)
    own, others = ([each.dtype for each in one.inputs] for one in (model, loaded))
    if own != others:
        raise InputError(
            f"reference {path} takes {', '.join(others)}; required the model's inputs, as it is "
            f"given the same data: {', '.join(own)}"
        )
    names = [each.name for each in loaded.inputs]
    samples = dict(zip(names, measurement.samples.values(), strict=True))
    if find_spec("onnxruntime"):
        subject, where = Subject(ORT, None), "ONNX Runtime"
        file = _as_onnx(path, loaded, measurement.folder / "reference.onnx")
    else:
        tell(f"compiling {path.name}")
        subject, where = Subject("cpu", "cpu"), "this CPU"
        file = measurement.folder / "reference.dvt"
        compile_model(loaded, "cpu", options, _open_dimensions(loaded)).save(file)
    once = replace(measurement, samples=samples, rounds=1, runs=1)
    return once.engines({subject: file}, tell)[subject].outputs, f"{path} on {where}"


def _as_onnx(path: Path, model: Source, written: Path) -> Path:
    """A file that ONNX Runtime takes: ``path`` itself, or the model as ONNX.

    Raises UnsupportedOperatorError for a model that ONNX cannot say.
    """
    if isinstance(model, SourceModel):
        return path
    try:
        made = onnx_model(model.bind(_open_dimensions(model)))
    except UnsupportedOperatorError as error:
        raise UnsupportedOperatorError(
            f"{ORT!r} runs ONNX, and {path.name} cannot be written as such; leave it out of "
            f"--devices: {error}"
        ) from None
    written.write_bytes(made.SerializeToString())
    return written


def _open_dimensions(model: Source) -> dict[str, int]:
    """Sizes of dimensions that have names, as samples have them."""
    if isinstance(model, TorchModel):
        return dict.fromkeys(model.symbols(), 1)
    if not isinstance(model, SourceModel):
        return {}
    dims = (dim for each in model.proto.graph.input for dim in each.type.tensor_type.shape.dim)
    return {dim.dim_param: 1 for dim in dims if dim.dim_param}
