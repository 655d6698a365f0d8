"""``dovetail run --check``: the layers of a model against the graph interpreter."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from dovetail.runtime.errors import RunError
from dovetail.runtime.module import Module

from .output import human, progress, table

__all__ = ["CheckError", "check_layers"]


class CheckError(RunError):
    """A layer's result is not the interpreter's."""


def check_layers(
    model: Path,
    module: Module,
    device: str,
    inputs: Mapping[str, NDArray[Any]],
    outputs: Mapping[str, NDArray[Any]],
) -> list[dict[str, Any]]:
    """Print a table of all layers of ``model``, compiled as ``module`` was; return its rows.

    Raises CheckError naming the first layer that differs, or the output of ``module`` that is not
    that of ``model``.
    """
    from dovetail.runtime.accelerator.part import AcceleratorPart
    from dovetail.vta_sim.timing import time_program

    from ..checking.layers import check_layers as check
    from ..front.table import open_model

    own = (each.configuration for each in module.parts if isinstance(each, AcceleratorPart))
    target = next(own, module.target)
    with progress(f"checking {model.name}"):
        found = list(check(open_model(model), target, device, inputs, time_program))
    rows: list[tuple[object, ...]] = [
        (
            each.layer if len(each.layer) <= 40 else f"…{each.layer[-39:]}",
            each.where,
            each.difference.dtype,
            each.difference.elements,
            each.difference.unequal,
            f"{each.difference.largest:.3g}",
            f"{each.difference.relative:.1e}",
        )
        for each in found
    ]
    headings = ("layer", "where", "dtype", "elements", "unequal", "largest", "relative")
    human.print(table("Against the interpreter", dict.fromkeys(headings, "left"), rows))
    wrong = next((each for each in found if not each.passes), None)
    if wrong is not None:
        raise CheckError(
            f"layer {wrong.layer!r} on {wrong.where}: {wrong.difference.unequal} of "
            f"{wrong.difference.elements} elements differ from the interpreter's, by up to "
            f"{wrong.difference.largest:g}; all layers before it agree"
        )
    missing = sorted(set(outputs) - {each.difference.tensor for each in found})
    if missing:
        raise CheckError(
            f"{model} has no output {missing[0]!r}; required the model that the module was "
            "compiled from"
        )
    return [
        {"layer": each.layer, "where": each.where, "passes": each.passes, **asdict(each.difference)}
        for each in found
    ]
