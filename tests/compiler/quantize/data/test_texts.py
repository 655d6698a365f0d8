"""Texts that a decoder reads as samples."""

from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

from dovetail.compiler import compile
from dovetail.compiler.errors import CalibrationError
from dovetail.compiler.quantize.data import Dataset, read_data
from dovetail.compiler.quantize.data import texts as reading
from dovetail.compiler.quantize.data.texts import text_source
from dovetail.compiler.quantize.signature import Sample
from dovetail.runtime.generate.decoder import Decoder
from dovetail.runtime.generate.tokenizer import Bytes
from dovetail.runtime.session import Session
from tests.runtime.generate.exported import SIZE, exported_model
from tests.runtime.generate.step_models import step_model

TEXT = "A text that is longer than forty-eight positions, so that it is read in two pieces."
LENGTH = 1 + len(TEXT) + 1
"""Each of two pieces begins with 0."""


def data(path: Path, decoder: Decoder) -> Dataset:
    return read_data(path, (), texts=lambda name, file: text_source(name, file, decoder, Bytes()))


@pytest.fixture(scope="module")
def decoder() -> Decoder:
    return Decoder(Session(compile(exported_model(), "cpu")))


def expected() -> list[Sample]:
    """The inputs of ONNX Runtime's runs along the text."""
    session = ort.InferenceSession(exported_model().SerializeToString())
    pasts = {each.name: each.shape for each in session.get_inputs() if "past" in each.name}
    samples, tokens = list[Sample](), list(TEXT.encode())
    for piece in (tokens[: SIZE - 1], tokens[SIZE - 1 :]):
        caches = {name: np.zeros(shape, np.float32) for name, shape in pasts.items()}
        for position, token in enumerate((0, *piece)):
            mask = [[int(place < position or place == SIZE) for place in range(SIZE + 1)]]
            sample = {"input_ids": np.array([[token]]), "attention_mask": np.array(mask), **caches}
            samples.append({name: each.copy() for name, each in sample.items()})
            names = [name.replace("past", "present") for name in caches]
            for past, new in zip(caches.values(), session.run(names, sample), strict=True):
                past[:, :, position] = new[:, :, -1]
    return samples


def test_a_sample_is_what_the_decoder_reads_with_a_token(tmp_path: Path, decoder: Decoder) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    found = data(tmp_path, decoder)
    wanted = expected()
    assert len(found) == len(wanted) == LENGTH
    for sample, other in zip(found, wanted, strict=True):
        assert sample.keys() == other.keys()
        for name, values in other.items():
            np.testing.assert_allclose(sample[name], values, atol=1e-5, err_msg=name)
    # Some of them are those of all, though the decoder goes from the first to the last.
    some = list(found.spread(3))
    assert [int(each["input_ids"][0, 0]) for each in some] == [
        int(wanted[place]["input_ids"][0, 0]) for place in (0, LENGTH // 3, 2 * LENGTH // 3)
    ]


def test_of_a_long_text_pieces_are_read(
    tmp_path: Path, decoder: Decoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MOST_TOKENS", 3 * SIZE)
    path = tmp_path / "long.txt"
    path.write_text("".join(chr(97 + n) * (SIZE - 1) for n in range(6)))
    letters = [int(each["input_ids"][0, 0]) for each in data(path, decoder)]
    assert letters == [each for n in (0, 2, 4) for each in (0, *[97 + n] * (SIZE - 1))]


def test_texts_that_do_not_fit_are_refused(tmp_path: Path, decoder: Decoder) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(CalibrationError, match="required a file in UTF-8"):
        data(path, decoder)
    path.write_text("")
    with pytest.raises(CalibrationError, match=r"a\.txt has no tokens"):
        data(path, decoder)
    path.write_text("a")
    with pytest.raises(CalibrationError, match="no decoder to read it"):
        read_data(path, ())
    growing = Decoder(Session(compile(step_model("growing"), "cpu")))
    with pytest.raises(CalibrationError, match="required fixed ones: --dim"):
        data(path, growing)

    class Many(Bytes):
        def encode(self, text: str) -> list[int]:
            return [0, *(256 for _ in text)]

    with pytest.raises(CalibrationError, match=r"has token 256, and the model 256 tokens"):
        text_source("a", path, decoder, Many())
