"""Tokenizers: files made here by hand, and the real ones of story models."""

import json
import struct
from pathlib import Path

import pytest

from dovetail.runtime.errors import InputError
from dovetail.runtime.generate.tokenizer import Bytes, TextReader, open_tokenizer

SINGLES = [b"<unk>", b"\n<s>\n", b"\n</s>\n", *(f"<0x{each:02X}>".encode() for each in range(256))]


def write_llama2(path: Path, merged: dict[bytes, float]) -> Path:
    """A file with these pieces behind the special ones, from token 259 on."""
    content = struct.pack("<I", 16)
    for piece, score in (dict.fromkeys(SINGLES, 0.0) | merged).items():
        content += struct.pack("<fi", score, len(piece)) + piece
    path.write_bytes(content)
    return path


@pytest.fixture
def llama2(tmp_path: Path) -> Path:
    pieces = {b" ": -1.0, b"a": -2.0, b"b": -3.0, b"ab": -4.0, b" a": -5.0, b"aba": -9.0}
    return write_llama2(tmp_path / "own.bin", pieces)


def test_llama2_merges_the_best_pair_first(llama2: Path) -> None:
    tokenizer = open_tokenizer(llama2)
    assert tokenizer.size == 265
    assert tokenizer.ends == {1, 2}
    # " abab": (ab) twice, the first first; then "aba" is no pair of two tokens.
    assert tokenizer.encode("abab") == [1, 259, 262, 262]
    assert tokenizer.encode("aa") == [1, 263, 260]
    assert tokenizer.encode("") == [1]
    # What the vocabulary does not have are bytes of UTF-8, 3 and on.
    assert tokenizer.encode("é") == [1, 259, 3 + 0xC3, 3 + 0xA9]
    for text in ("abab", "é\n", "  b"):
        assert tokenizer.decode(tokenizer.encode(text)) == text
    # The space behind the beginning of a text is no part of it; any other is.
    assert tokenizer.decode([1, 263, 263]) == "a a"


def test_parts_of_characters_wait_for_the_rest(llama2: Path) -> None:
    reader = TextReader(open_tokenizer(llama2))
    assert reader.add([1, 263]) == "a"
    assert [reader.add([each]) for each in (3 + 0xC3, 3 + 0xA9, 263)] == ["", "é", " a"]
    assert reader.add([3 + 0xC3]) == ""
    assert reader.rest() == "\N{REPLACEMENT CHARACTER}"


def test_damaged_files_are_refused(llama2: Path, tmp_path: Path) -> None:
    llama2.write_bytes(llama2.read_bytes()[:-2])
    with pytest.raises(InputError, match="within token 264; required a tokenizer"):
        open_tokenizer(llama2)
    (tmp_path / "few.bin").write_bytes(struct.pack("<Ifi", 4, 0.0, 1) + b"a")
    with pytest.raises(InputError, match="a vocabulary of 1 tokens; required <unk>"):
        open_tokenizer(tmp_path / "few.bin")
    with pytest.raises(InputError, match=r"cannot read tokenizer .*none\.bin"):
        open_tokenizer(tmp_path / "none.bin")
    with pytest.raises(InputError, match=r"own\.model; required a file of llama2\.c"):
        open_tokenizer(tmp_path / "own.model")


def test_bytes_are_tokens_between_zeros() -> None:
    tokenizer = open_tokenizer(None)
    assert isinstance(tokenizer, Bytes)
    assert tokenizer.encode("é") == [0, 0xC3, 0xA9]
    assert tokenizer.decode([0, 0xC3, 0xA9, 65]) == "éA"
    assert tokenizer.ends == {0}


def test_the_tokens_of_stories_are_those_of_the_c_program(shared_models: Path) -> None:
    folder = shared_models / "stories260k"
    tokenizer = open_tokenizer(folder / "tok512.bin")
    for story in json.loads((folder / "texts.json").read_text())["golden"]:
        assert tokenizer.encode(story["greedy"])[: len(story["tokens"])] == story["tokens"]
        assert tokenizer.decode(story["tokens"]) == story["greedy"]


def test_hugging_face_files_are_read_by_their_package(tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers", reason="no package tokenizers")
    words = {"<s>": 0, "</s>": 1, "a": 2, "b": 3, "Ġ": 4, "ab": 5, "Ġab": 6}
    made = tokenizers.Tokenizer(tokenizers.models.BPE(words, [("a", "b"), ("Ġ", "ab")]))
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    made.add_special_tokens(["<s>", "</s>"])
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 1)]
    )
    path = tmp_path / "tokenizer.json"
    made.save(str(path))
    tokenizer = open_tokenizer(path)
    assert tokenizer.size == 7
    assert tokenizer.ends == {1}
    assert tokenizer.encode("ab ab") == [0, 5, 6]
    reader = TextReader(tokenizer)
    assert [reader.add([0, 5]), reader.add([6]), reader.add([2])] == ["ab", " ab", "a"]
    path.write_text("{}")
    with pytest.raises(InputError, match="cannot read tokenizer"):
        open_tokenizer(path)
