"""Programs of ``torch.export`` in files, compiled where there is no torch, against its results.

``make.py`` writes the files and torch's results beside them.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dovetail.compiler import compile
from dovetail.compiler.errors import ModelError
from dovetail.compiler.front.table import open_model
from dovetail.compiler.front.torch.source import TorchModel
from dovetail.compiler.graph.passes.integer_layers.recognition import recognise
from dovetail.runtime.session import run
from tests.kept import check_kept
from tests.kept_forms import form

from .mutate import packed, unpacked

FOLDER = Path(__file__).parent / "models"
KEPT = Path(__file__).with_name("kept_forms.json")
CLOSE = {"rtol": 1e-5, "atol": 1e-5}
PLAIN = ("pictures", "pictures_core", "regions", "sequences", "words", "words_core")


def arrays(name: str, kind: str) -> list[np.ndarray[Any, Any]]:
    with np.load(FOLDER / f"{name}.npz") as archive:
        return [archive[each] for each in sorted(archive) if each.startswith(kind)]


def results(model: TorchModel, **given: np.ndarray[Any, Any]) -> dict[str, Any]:
    return dict(run(compile(model, "cpu"), given).outputs)


def test_lists_of_rows_are_those_of_torch() -> None:
    """Offsets are inputs: some lists are empty, some have only padding."""
    model = TorchModel.of(FOLDER / "bags.pt2")
    given = [each for each in model.inputs if each.name not in model.state()]
    inputs = {each.name: x for each, x in zip(given, arrays("bags", "input"), strict=True)}
    found = list(results(model, **inputs, **model.state()).values())
    for own, torchs in zip(found, arrays("bags", "output"), strict=False):
        np.testing.assert_allclose(own, torchs, **CLOSE)
    assert len(found) == len(arrays("bags", "output")) + 1


@pytest.mark.parametrize("name", PLAIN)
def test_a_program_gives_the_results_of_torch(name: str) -> None:
    model = TorchModel.of(FOLDER / f"{name}.pt2")
    given = {each.name: x for each, x in zip(model.inputs, arrays(name, "input"), strict=True)}
    found = list(results(model, **given).values())
    for own, torchs in zip(found, arrays(name, "output"), strict=True):
        assert own.dtype == torchs.dtype
        np.testing.assert_allclose(own, torchs, **CLOSE)
    assert "torch" not in sys.modules
    check_kept(KEPT, name, form(model.to_graph().graph))


def test_names_inside_a_region_are_its_own(tmp_path: Path) -> None:
    """A tensor inside is called as one outside that is computed later."""
    members = unpacked((FOLDER / "regions.pt2").read_bytes())
    name = next(each for each in members if "/models/" in each)
    assert b'"name":"tanh"' in members[name]
    members[name] = members[name].replace(b'"tanh"', b'"add"')
    path = tmp_path / "model.pt2"
    path.write_bytes(packed(members))
    model = TorchModel.of(path)
    (x,) = arrays("regions", "input")
    found = list(results(model, x=x).values())
    for own, torchs in zip(found, arrays("regions", "output"), strict=True):
        np.testing.assert_allclose(own, torchs, **CLOSE)


def test_a_buffer_that_is_written_to_is_an_input_and_an_output() -> None:
    model = TorchModel.of(FOLDER / "counter.pt2").bind({"s77": 3})
    (x,), (scaled, seen) = arrays("counter", "input"), arrays("counter", "output")
    assert [each.name for each in model.inputs] == ["x", "count"]
    found = results(model, x=x, **model.state())
    assert list(found) == ["mul", "mul_1", "count.updated"]
    np.testing.assert_allclose(found["mul"], scaled, **CLOSE)
    np.testing.assert_allclose(found["mul_1"], seen, **CLOSE)
    again = results(model, x=x, count=found["count.updated"])
    np.testing.assert_array_equal(again["count.updated"], [2])
    np.testing.assert_allclose(again["mul_1"], 2 * seen, **CLOSE)


def test_an_open_size_is_bound_by_its_name_within_its_range() -> None:
    model = TorchModel.of(FOLDER / "counter.pt2")
    assert [each.shape for each in model.open_sizes()] == [(None, 6)]
    with pytest.raises(ModelError, match=r"input 'x' has shape \[\?, 6\]; .*--dim.*names: s77"):
        compile(model, "cpu")
    with pytest.raises(ModelError, match=r"no input has a dimension 'n'; .* 's77'"):
        model.bind({"n": 2})
    with pytest.raises(ModelError, match="'s77' is 65; the model takes 1 to 64"):
        model.bind({"s77": 65})
    (x,), (scaled, _) = arrays("counter", "input"), arrays("counter", "output")
    bound = model.bind({"s77": 1})
    found = results(bound, x=x[:1], **bound.state())
    np.testing.assert_allclose(found["mul"], scaled[:1], **CLOSE)


def test_a_file_is_opened_by_its_suffix(tmp_path: Path) -> None:
    path = tmp_path / "MODEL.PT2"
    path.write_bytes((FOLDER / "words.pt2").read_bytes())
    assert isinstance(open_model(str(path)), TorchModel)
    with pytest.raises(ModelError, match="no model file"):
        open_model(tmp_path / "none.pt2")


def test_a_quantised_program_is_integer_layers_with_the_same_bytes_everywhere() -> None:
    model = TorchModel.of(FOLDER / "quantised.pt2")
    (x,), (torchs,) = arrays("quantised", "input"), arrays("quantised", "output")
    imported = model.to_graph()
    assert model.quantizes
    assert recognise(imported.graph, imported.kinds).problem is None
    (on_cpu,) = results(model, x=x).values()
    module = compile(model, "vta:tiny")
    assert [part.target for part in module.parts] == ["vta:tiny"]
    heavy = [each for each in module.placement if each.operator in ("aten.conv2d", "aten.linear")]
    assert [each.where for each in heavy] == ["accelerator"] * 3
    np.testing.assert_array_equal(run(module, {"x": x}).outputs[module.outputs[0].name], on_cpu)
    step = np.diff(np.unique(torchs)).min()
    assert np.abs(np.rint((on_cpu - torchs) / step)).max() <= 1
