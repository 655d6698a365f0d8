"""The notebook's cells run in their order, and show what it has kept."""

import json
from xml.etree import ElementTree

from .notebook import NOTEBOOK, lasting, shown


def test_every_cell_shows_what_is_kept() -> None:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert notebook["nbformat"] == 4
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    found = shown(notebook)
    for cell, outputs in zip(code, found, strict=True):
        kept = [lasting(each) for each in cell["outputs"]]
        assert kept == [lasting(each) for each in outputs], (
            f"{''.join(cell['source'])}\n\nmake notebook keeps what is shown"
        )
    graph, module, run, same, layers, timeline = (one["data"] for (one,) in found[1:])
    assert "Conv2d" in "".join(graph["text/html"])
    assert "vta:zynq7020" in "".join(module["text/plain"])
    assert "cycles" in "".join(run["text/html"])
    assert "".join(same["text/plain"]).startswith("(True, [")
    assert "".join(layers["text/html"]).count("<tr>") == 1 + 9
    picture = ElementTree.fromstring("".join(timeline["image/svg+xml"]))
    assert len(list(picture.iter("{http://www.w3.org/2000/svg}title"))) > 50
