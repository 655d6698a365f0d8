"""What a quantised model lost, as a table."""

from rich.table import Table

from ...front.onnx.quantize.compare import Comparison
from ..output import table

__all__ = ["comparison_table"]

WORST = 10
"""Tensors in the table."""


def comparison_table(found: Comparison) -> Table:
    """The outputs, and the tensors that lost most."""
    rows: list[tuple[object, ...]] = [
        ("output", name, f"{error:.2%}") for name, error in found.outputs.items()
    ]
    worst = sorted(found.tensors.items(), key=lambda pair: -pair[1])[:WORST]
    rows += [("tensor", name, f"{error:.2%}") for name, error in worst]
    rows.append(("largest output the same", f"{found.samples} samples", f"{found.agreement:.1%}"))
    return table("What is lost", {"": "left", "name": "left", "error": "right"}, rows)
