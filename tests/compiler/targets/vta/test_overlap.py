"""Levels of overlap: the same result, in less and less time."""

from collections.abc import Mapping

import numpy as np
import pytest

from dovetail.compiler import compile
from dovetail.compiler.options import CompileOptions, Overlap
from dovetail.runtime import run
from dovetail.runtime.accelerator.part import accelerator_part
from dovetail.runtime.module import Module
from tests.kept_costs import check_costs

from .test_cascade import deep


@pytest.fixture(scope="module")
def modules() -> Mapping[Overlap, Module]:
    """One model, compiled with each level."""
    model = deep(3, 26)
    return {
        overlap: compile(model, "vta:tiny", options=CompileOptions(overlap=overlap))
        for overlap in Overlap
    }


def test_each_level_hides_more_and_changes_nothing(modules: Mapping[Overlap, Module]) -> None:
    x = {"x": np.random.default_rng(1).integers(-128, 128, (1, 3, 26, 30), np.int8)}
    (wanted,) = run(compile(deep(3, 26), "cpu"), x, "cpu").outputs.values()
    cycles = []
    for module in modules.values():
        check_costs(module.parts)
        result = run(module, x, "sim")
        (found,) = result.outputs.values()
        assert np.array_equal(found, wanted)
        assert result.cycles is not None
        cycles.append(result.cycles)
    assert cycles == sorted(cycles, reverse=True)
    assert len(set(cycles)) == len(cycles)
    assert cycles[-1] < 0.8 * cycles[0]


def test_the_depth_of_the_pipeline_is_in_the_record(modules: Mapping[Overlap, Module]) -> None:
    depths = []
    for overlap in (Overlap.UNITS, Overlap.TILES):
        records = [layer.schedule[-1] for layer in accelerator_part(modules[overlap]).layers]
        assert {(each["step"], each["name"]) for each in records} == {("annotate", "tiles")}
        depths.append({record["value"] for record in records})
    assert depths == [{1}, {2}]
