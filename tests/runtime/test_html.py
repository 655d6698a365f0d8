"""Notebooks' views of modules, results, profiles, graphs and loop programs."""

from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import onnx

from dovetail.compiler import compile
from dovetail.compiler.front.integer import integer_graph
from dovetail.compiler.front.table import open_model
from dovetail.runtime import run
from dovetail.runtime.accelerator.part import accelerator_part
from dovetail.runtime.html import listing, table
from dovetail.runtime.profile.profile import make_profile


class Cells(HTMLParser):
    """The texts of a fragment whose tags must nest."""

    def __init__(self, fragment: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(fragment)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_names_are_no_markup() -> None:
    assert Cells(table("<a>", ("b",), [("</td>", 1234567)])).texts == [
        "<a>",
        "b",
        "</td>",
        "1,234,567",
    ]
    assert Cells(listing("<", "1 < 2")).texts == ["<", "1 < 2"]


def test_a_model_tells_what_it_is_at_every_step(digits_model: Path) -> None:
    model = onnx.load(digits_model)
    graph = integer_graph(open_model(model))
    assert repr(graph).startswith("<Graph (image: float32[1, 1, 8, 8]) -> (logits: float32[1, 10])")
    assert "Conv2d" in "".join(Cells(graph._repr_html_()).texts)
    module = compile(model, "vta:tiny")
    assert repr(module).startswith("<Module vta:tiny: (image: float32[1, 1, 8, 8]) -> (logits")
    names = [layer.name for layer in accelerator_part(module).layers]
    assert set(names) <= set(Cells(module._repr_html_()).texts)
    result = run(module, {"image": np.zeros((1, 1, 8, 8), np.float32)})
    assert f"{result.cycles:,}" in Cells(result._repr_html_()).texts
    assert repr(result) == (f"<RunResult of sim: logits: float32[1, 10], {result.cycles:,} cycles>")
    profile = make_profile("digits", module, result)
    shown = Cells(profile._repr_html_()).texts
    assert {f"{layer.cycles:,}" for layer in profile.layers} <= set(shown)
    assert repr(profile).startswith(f"<Profile of digits on tiny: {result.cycles:,} cycles")
