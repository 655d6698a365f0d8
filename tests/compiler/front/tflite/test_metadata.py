"""How pictures are prepared, by the metadata of files."""

import random
from pathlib import Path

import pytest

from dovetail.compiler.errors import ModelError

pytest.importorskip("tflite", reason="tflite, which reads the files, is not installed")

from dovetail.compiler.front.source import Normalization
from dovetail.compiler.front.tflite.metadata import read_normalization
from dovetail.compiler.front.tflite.source import TfliteModel

from .metadata import metadata
from .networks import mobile_net


def test_numbers_are_read_from_the_first_input() -> None:
    content = mobile_net(metadata=metadata([1.5, 2.5, 3.5], [4.0]))
    found = TfliteModel.of(content).normalization
    assert found == Normalization((1.5, 2.5, 3.5), (4.0,))
    assert TfliteModel.of(mobile_net()).normalization is None


def test_a_network_of_others_says_what_it_is_known_for(shared_models: Path) -> None:
    path = shared_models / "mobilenet_v2" / "mobilenet_v2_int8.tflite"
    if not path.exists():
        pytest.skip(f"no {path.name}")
    assert TfliteModel.of(path).normalization == Normalization((127.5,), (127.5,))


@pytest.mark.parametrize("std", [[0.0], [], [float("nan")]])
def test_numbers_without_meaning_are_refused(std: list[float]) -> None:
    with pytest.raises(ModelError, match="required finite numbers"):
        read_normalization(metadata([1.0], std))


def test_damaged_bytes_are_an_error_or_an_answer() -> None:
    content, draw, wrong = metadata([127.5], [127.5]), random.Random(3), 0
    for _ in range(2000):
        changed = bytearray(content[: draw.randrange(8, len(content) + 1)])
        for _ in range(draw.randrange(3)):
            changed[draw.randrange(8, len(content)) % len(changed)] = draw.randrange(256)
        try:
            read_normalization(bytes(changed))
        except ModelError:
            wrong += 1
    assert wrong > 100
