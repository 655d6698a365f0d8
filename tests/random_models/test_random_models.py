"""A few random models; ``make fuzz-graphs`` runs many more."""

import warnings
from pathlib import Path
from typing import Any

import pytest

from dovetail.runtime import run
from dovetail.runtime.result import RunResult

from . import compare
from .compare import FoundError, RefusedError, check
from .draw import Sample, draw
from .minimise import minimised


@pytest.mark.parametrize("target", ["cpu", "vta:tiny"])
@pytest.mark.parametrize("first", [0, 10])
def test_targets_give_what_onnx_runtime_gives(
    first: int, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOVETAIL_CACHE", str(tmp_path))
    run = 0
    for seed in range(first, first + 10):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                check(draw(seed), target)
            run += 1
        except RefusedError:
            pass
    assert run >= 4


def test_a_model_is_the_same_each_time() -> None:
    assert all(draw(seed).model == draw(seed).model for seed in range(10))


def test_a_wrong_byte_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(*arguments: Any) -> RunResult:
        result = run(*arguments)
        for array in result.outputs.values():
            array.reshape(-1)[0] += 2
        return result

    monkeypatch.setattr(compare, "run", damaged)
    with pytest.raises(FoundError, match=r"1 of .* wrong"):
        check(draw(1), "cpu")


def test_a_failing_model_is_made_small() -> None:
    def fails(sample: Sample) -> bool:
        return any(node.op_type == "Conv" for node in sample.model.graph.node)

    sample = next(each for seed in range(1, 99) if fails(each := draw(seed)))
    small = minimised(sample, fails)
    assert [node.op_type for node in small.model.graph.node] == ["Conv"]
