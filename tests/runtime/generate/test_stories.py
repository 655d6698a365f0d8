"""A trained language model in int8 is as good as ONNX Runtime's run of the same file."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from numpy.typing import NDArray

from dovetail.compiler import compile
from dovetail.compiler.front.onnx.prompts.model import prompt_model
from dovetail.runtime.generate.decoder import Decoder
from dovetail.runtime.session import Session

NAMES = ["logits", "new_keys", "new_values"]


def surprise(logits: NDArray[np.float32], following: int) -> float:
    """Negative log likelihood of a token."""
    return float(np.logaddexp.reduce(logits.astype(np.float64)) - logits[following])


def test_texts_surprise_it_as_much_as_onnx_runtime_and_go_on_alike(shared_models: Path) -> None:
    """Over three texts, 600 positions, both with ONNX Runtime's caches: a byte that differs would
    stay in the own one, and move every later row.
    """
    folder = shared_models / "stories260k"
    texts = json.loads((folder / "texts.json").read_text())["golden"]
    model = folder / "stories260k_decode_int8.onnx"
    options = ort.SessionOptions()
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    options.intra_op_num_threads = 1
    peer = ort.InferenceSession(model, options)
    ours, theirs, alike = list[float](), list[float](), list[bool]()
    with Session(compile(model, "cpu")) as session:
        for text in texts:
            keys, values = np.zeros((2, 5, 4, 256, 8), np.float32)
            for position, (token, following) in enumerate(pairwise(text["tokens"])):
                feed = {"token": np.array([token]), "position": np.array([position])}
                feed |= {"past_keys": keys, "past_values": values}
                own = session.run(feed).outputs["logits"]
                logits, key, value = peer.run(NAMES, feed)
                keys[:, :, position], values[:, :, position] = key, value
                ours.append(surprise(own, following))
                theirs.append(surprise(logits, following))
                alike.append(bool(own.argmax() == logits.argmax()))
    assert len(alike) == 600
    assert np.exp(np.mean(ours)) == pytest.approx(np.exp(np.mean(theirs)), rel=0.005)
    assert np.mean(alike) >= 0.97


def test_its_prompts_may_be_read_in_blocks(shared_models: Path) -> None:
    """Rotary positions are fixed point for several tokens too, so every byte is the same."""
    folder = shared_models / "stories260k"
    tokens = json.loads((folder / "texts.json").read_text())["golden"][0]["tokens"][:30]
    model = onnx.load(folder / "stories260k_decode_int8.onnx")
    modules = compile(model, "cpu"), compile(prompt_model(model, 17), "cpu")
    with Session(modules[0]) as session, Session(modules[1]) as reading:
        single, blocks = Decoder(session), Decoder(session, blocks=reading)
        for token in tokens[:-1]:
            single.step(token)
        while blocks.position < len(tokens) - 1:
            assert blocks.read(tokens[blocks.position : -1])
        np.testing.assert_array_equal(blocks.step(tokens[-1]), single.step(tokens[-1]))
