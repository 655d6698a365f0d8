"""``dovetail generate``: text on standard output, what it took beside it."""

import json
from pathlib import Path

import onnx
import pytest

from tests.runtime.generate.attending import attending_model
from tests.runtime.generate.step_models import QUANTISED, expected_tokens, step_model

from .commands import invoke, refused


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "step.onnx"
    onnx.save(step_model("row"), path)
    return path


def test_the_text_is_on_standard_output(model: Path) -> None:
    tokens = expected_tokens([0, *b"ab"], 4)
    text = bytes(tokens[1:]).decode(errors="replace")
    done = invoke("generate", model, "--target", "cpu", "--prompt", "ab", "--steps", 4, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["tokens"] == tokens
    assert found["text"] == text
    assert (found["prompt_tokens"], found["runs"], found["ended"]) == (3, 6, False)
    assert "cycles_per_token" not in found
    streamed = invoke("generate", model, "--target", "cpu", "--prompt", "ab", "--steps", 4)
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    assert streamed.stdout == f"{shown}\n"
    assert "7 tokens, 3 of them the prompt's" in streamed.stderr
    drawn = ("generate", model, "--target", "cpu", "--temperature", 400, "--steps", 6, "--json")
    first, again, other = (
        json.loads(invoke(*drawn, "--seed", seed).stdout)["tokens"] for seed in (1, 1, 2)
    )
    assert first == again != other


def test_tensors_can_be_named(model: Path) -> None:
    names = ("--token", "token", "--position", "position", "--logits", "logits", "--steps", 1)
    pair = ("--cache", "past_rows=new_rows:1")
    base = ("generate", model, "--target", "cpu", "--prompt", "ab")
    done = invoke(*base, *names, *pair, "--json")
    assert json.loads(done.stdout)["tokens"] == expected_tokens([0, *b"ab"], 1)
    refused(invoke(*base, "--cache", "past_rows=new_rows:0"), "the shapes do not fit")
    refused(invoke(*base, "--cache", "past_rows"), "required INPUT=OUTPUT", 2)
    refused(invoke(*base, "--token", "word"), "no input 'word'")
    refused(invoke(*base, "--prompt", "a" * 12), "the prompt has 13 tokens; required 1 to 12")
    refused(invoke(*base, "--temperature", "-1"), "temperature -1.0; required 0")


def test_an_accelerator_says_what_a_token_takes(tmp_path: Path) -> None:
    model = tmp_path / "quantised.onnx"
    onnx.save(step_model(QUANTISED), model)
    base = ("generate", model, "--target", "vta:tiny", "--prompt", "ab", "--steps", 3)
    found = json.loads(invoke(*base, "--json").stdout)
    assert found["tokens"] == expected_tokens([0, *b"ab"], 3, quantised=True)
    assert found["runs"] == 5
    assert found["launches_per_token"] == 1
    # The product of int8[1, 8] and int8[8, 256].
    assert found["macs_per_token"] == 8 * 256
    assert found["dram_bytes_per_token"] > 8 * 256
    rate = found["clock_hz"] / found["cycles_per_token"]
    assert found["tokens_per_second"] == pytest.approx(rate)
    streamed = invoke(*base, "--effort", 0.5)
    assert f"each takes {found['cycles_per_token']:,.0f} cycles in one launch" in streamed.stderr


def test_a_prompt_is_read_in_blocks(tmp_path: Path) -> None:
    model, reader = tmp_path / "attending.onnx", tmp_path / "blocks.dvt"
    onnx.save(attending_model(), model)
    base = ("generate", model, "--target", "cpu", "--prompt", "abcdefghijklmnopqrs", "--steps", 4)
    plain = json.loads(invoke(*base, "--json").stdout)
    found = json.loads(invoke(*base, "--blocks", 3, "--json").stdout)
    assert found["tokens"] == plain["tokens"]
    # 20 tokens with that which begins a text; the last one's logits are wanted.
    assert (found["blocks"], found["block_tokens"], found["runs"]) == (2, 19, 4)
    done = invoke("compile", model, "--tokens", 3, "--target", "cpu", "-o", reader)
    assert done.exit_code == 0, done.output
    assert "19 of these read in 2 blocks" in invoke(*base, "--blocks", reader).stderr
    refused(invoke(*base, "--blocks", 40), "blocks of 49 tokens, and caches of 48")
    refused(invoke("generate", reader, "--blocks", 3), "blocks of 3 tokens of the module")


@pytest.mark.parametrize("option", [("--dim", "n=1"), ("--effort", 0)])
def test_sizes_and_efforts_are_for_a_model(tmp_path: Path, option: tuple[str, object]) -> None:
    done = invoke("generate", tmp_path / "step.dvt", "--prompt", "a", *option)
    refused(done, f"{option[0]} with the module")


def test_a_prompt_is_text(model: Path) -> None:
    refused(
        invoke("generate", model, "--prompt", "a\udcff"), "--prompt: it is not text in UTF-8", 2
    )


def test_an_effort_is_for_an_accelerator(tmp_path: Path) -> None:
    done = invoke("generate", tmp_path / "step.onnx", "--target", "cpu", "--effort", 0)
    refused(done, "--effort is for --target vta, not cpu", 2)


def test_a_tokenizer_is_read_before_a_model_is_compiled(tmp_path: Path) -> None:
    model = tmp_path / "none.onnx"
    model.touch()
    refused(invoke("generate", model, "--tokenizer", "none.model"), "tokenizer none.model; requi")


def test_a_model_tells_the_story_that_its_reference_program_tells(shared_models: Path) -> None:
    """The story is that of llama2.c's ``run.c``, of the same weights in float32."""
    folder = shared_models / "stories260k"
    story = json.loads((folder / "texts.json").read_text())["golden"][0]
    model = folder / "stories260k_decode.onnx"
    base = ("--tokenizer", folder / "tok512.bin", "--prompt", story["prompt"])
    done = invoke("generate", model, "--target", "cpu", *base, "--steps", 196)
    assert done.stdout == f"{story['greedy']}\n"
