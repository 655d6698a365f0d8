"""Losses of a quantised model, as tables and as plain values."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table

from ..output import table

if TYPE_CHECKING:
    from ...front.onnx.quantize.compare import Comparison
    from ...quantize.accuracy import Accuracy
    from ...quantize.loss import Loss

__all__ = ["accuracy_json", "accuracy_table", "comparison_table", "loss_json", "loss_table"]

WORST = 10
"""Rows in a table."""


def comparison_table(found: "Comparison") -> Table:
    """The outputs, and the tensors that lost most."""
    rows: list[tuple[object, ...]] = [
        ("output", name, f"{error:.2%}") for name, error in found.outputs.items()
    ]
    worst = sorted(found.tensors.items(), key=lambda pair: -pair[1])[:WORST]
    rows += [("tensor", name, f"{error:.2%}") for name, error in worst]
    rows.append(("largest output the same", f"{found.samples} samples", f"{found.agreement:.1%}"))
    return table("What is lost", {"": "left", "name": "left", "error": "right"}, rows)


def accuracy_table(found: "Accuracy", whole: "Accuracy") -> Table:
    """Each metric of the float model, of ``whole``, all in int8, and of ``found``, if another."""
    models = {"int8": whole} if found is whole else {"int8": whole, "with float layers": found}
    rows: list[tuple[object, ...]] = []
    for name, value in found.exact.items():
        rows.append((name, _figure(value), *(_figure(m.quantized[name]) for m in models.values())))
    agreement = (f"{each.agreement:.2%}" for each in models.values())
    rows.append(("largest output the same", "", *agreement))
    rows.append(("error of the outputs", "", *(f"{each.error:.2%}" for each in models.values())))
    headings = {"": "left", **dict.fromkeys(("float", *models), "right")}
    return table(f"Accuracy, {found.samples} samples", headings, rows)


def accuracy_json(found: "Accuracy") -> dict[str, Any]:
    """Plain values."""
    return {
        "samples": found.samples,
        "float": dict(found.exact),
        "int8": dict(found.quantized),
        "agreement": found.agreement,
        "error": found.error,
        "drop": found.drop,
    }


def loss_table(losses: Sequence["Loss"]) -> Table:
    """Layers and tensors that lose most alone: the outputs' error, and their signal to noise."""
    worst = sorted(losses, key=lambda loss: -loss.output)[:WORST]
    rows: list[tuple[object, ...]] = [
        (loss.kind, loss.name, f"{loss.signal_to_noise:.1f} dB", f"{loss.output:.3%}")
        for loss in worst
    ]
    headings = {"": "left", "name": "left", "signal to noise": "right", "outputs": "right"}
    return table("What each loses, if it alone is int8", headings, rows)


def loss_json(losses: Sequence["Loss"]) -> list[dict[str, Any]]:
    """Plain values, in the order of the model."""
    return [
        {
            "kind": str(loss.kind),
            "name": loss.name,
            "layers": sorted(loss.layers),
            "own": loss.own,
            "output": loss.output,
        }
        for loss in losses
    ]


def _figure(value: float) -> str:
    return f"{value:.2%}" if abs(value) <= 1 else f"{value:.4g}"
