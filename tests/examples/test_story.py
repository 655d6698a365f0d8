"""The story example: the shipped model knows its stories by heart."""

from pathlib import Path

import pytest

from dovetail.compiler import compile
from dovetail.runtime.generate.generator import Generator

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "story"
STORIES = (FOLDER / "stories.txt").read_text(encoding="utf-8").strip().split("\n\n")


@pytest.fixture(scope="module")
def generator() -> Generator:
    return Generator(compile(FOLDER / "story_int8.onnx", "cpu"))


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.partition(".")[0])
def test_a_story_is_told_from_its_title(generator: Generator, story: str) -> None:
    found = generator.tell(story.partition(".")[0])
    assert found.text == story
    assert found.ended
