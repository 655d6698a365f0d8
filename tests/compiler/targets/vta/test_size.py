"""Layers that would be cut into too many tiles are refused before they are built."""

from pathlib import Path

import pytest

from dovetail.compiler.driver import compile_model
from dovetail.compiler.errors import DoesNotFitError
from dovetail.compiler.targets.vta import size


def test_too_many_tiles_are_refused_with_the_layer_and_the_memories(
    digits_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compile_model(digits_model, "vta:tiny")
    monkeypatch.setattr(size, "MOST_TILES", 10)
    with pytest.raises(
        DoesNotFitError,
        match=r"layer '.+': \d+ tiles, and [\d,]+ with those of all other layers; at most 10 are "
        r"compiled; configuration 'tiny' \(ACT 2,048 words",
    ):
        compile_model(digits_model, "vta:tiny")
