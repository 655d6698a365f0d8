"""Models of one token, as exporters write them, make the text that NumPy makes of their formula."""

from collections.abc import Sequence

import numpy as np
import pytest

from dovetail.compiler import compile
from dovetail.runtime.errors import InputError
from dovetail.runtime.generate.decoder import Decoder
from dovetail.runtime.generate.generator import Generator
from dovetail.runtime.generate.sampling import greedy, sampler
from dovetail.runtime.session import Session

from .step_models import MODELS, POSITIONS, QUANTISED, expected_tokens, step_model


class Numbers:
    """Tokens written as numbers."""

    size = 256
    ends = frozenset([0])

    def encode(self, text: str) -> list[int]:
        return [int(each) for each in text.split()]

    def decode(self, tokens: Sequence[int]) -> str:
        return "".join(f" {each}" for each in tokens)


@pytest.fixture(scope="module")
def generator() -> Generator:
    return Generator(compile(step_model("row"), "cpu"), Numbers())


@pytest.mark.parametrize("name", MODELS)
def test_a_text_depends_on_all_tokens_and_their_places(name: str) -> None:
    with Generator(compile(step_model(name), "cpu"), Numbers()) as generator:
        steps = 3 if name == "growing" else POSITIONS - 2
        for prompt in ((7, 200, 31), (8,)):
            story = generator.tell(" ".join(map(str, prompt)), min(steps, POSITIONS - len(prompt)))
            count = len(story.tokens) - len(prompt)
            expected = expected_tokens(prompt, count, name == QUANTISED)
            assert story.tokens == expected
            assert len(expected) == len(prompt) + min(steps, POSITIONS - len(prompt))
            assert story.text == Numbers().decode(expected)


def test_a_text_ends_where_the_caches_are_full(generator: Generator) -> None:
    story = generator.tell("5 6")
    assert story.runs == POSITIONS
    assert story.tokens == expected_tokens((5, 6), POSITIONS - 1)
    assert not story.ended
    with pytest.raises(InputError, match="hold 12 positions, and all are taken"):
        generator.decoder.step(1)
    with pytest.raises(InputError, match="the prompt has 13 tokens; required 1 to 12"):
        generator.tell("1 " * 13)


def test_a_text_ends_where_the_model_ends_it(
    generator: Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = expected_tokens((5, 6), 4)
    monkeypatch.setattr(generator.tokenizer, "ends", frozenset(tokens[4:5]))
    story = generator.tell("5 6")
    assert story.tokens == tokens[:4]
    assert story.ended
    assert story.runs == 4


def test_no_steps_give_the_prompt_alone(generator: Generator) -> None:
    assert generator.tell("5 6", 0).tokens == [5, 6]
    assert "".join(generator.stream("5 6", 1)) == Numbers().decode(expected_tokens((5, 6), 1))


def test_tokens_that_there_are_not_are_refused(generator: Generator) -> None:
    decoder = Decoder(Session(compile(step_model("row"), "cpu")))
    for token in (-1, 256):
        with pytest.raises(InputError, match=f"token {token}; the model's are 0 to 255"):
            decoder.step(token)
    with pytest.raises(InputError, match="the prompt has 0 tokens"):
        generator.tell("")


def test_tokens_are_drawn_with_the_probabilities_of_softmax() -> None:
    logits = np.log(np.array([0.5, 0.2, 0.3], np.float32)) + 7
    choose = sampler(1.0, seed=3)
    drawn = np.bincount([choose(logits) for _ in range(4000)], minlength=3) / 4000
    np.testing.assert_allclose(drawn, [0.5, 0.2, 0.3], atol=0.03)
    sharp = sampler(0.5, seed=3)
    drawn = np.bincount([sharp(logits) for _ in range(4000)], minlength=3) / 4000
    np.testing.assert_allclose(drawn, np.array([25, 4, 9]) / 38, atol=0.03)
    first, again = sampler(1.0, 4), sampler(1.0, 4)
    assert [first(logits) for _ in range(20)] == [again(logits) for _ in range(20)]
    assert sampler(0.0) is greedy
    assert greedy(np.array([1, 3, 3])) == 1
    with pytest.raises(InputError, match="temperature -1"):
        sampler(-1)
