"""A trained language model in int8 is as good as ONNX Runtime's run of the same file."""

import json
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest
from numpy.typing import NDArray

from dovetail.compiler import compile
from dovetail.runtime.session import Session

Run = Callable[[dict[str, NDArray[np.generic]]], Sequence[NDArray[np.generic]]]
NAMES = ["logits", "new_keys", "new_values"]


def surprises(run: Run, tokens: Sequence[int]) -> list[float]:
    """Negative log likelihood of each token but the first, given those before it."""
    keys, values = np.zeros((2, 5, 4, 256, 8), np.float32)
    found = []
    for position, (token, following) in enumerate(pairwise(tokens)):
        feed = {"token": np.array([token]), "position": np.array([position])}
        logits, key, value = run({**feed, "past_keys": keys, "past_values": values})
        keys[:, :, position], values[:, :, position] = key, value
        found.append(float(np.logaddexp.reduce(logits.astype(np.float64)) - logits[following]))
    return found


def test_texts_surprise_it_as_much_as_in_onnx_runtime(shared_models: Path) -> None:
    """Their perplexities are within 0.5 % of one another over three texts, 600 positions."""
    folder = shared_models / "stories260k"
    texts = json.loads((folder / "texts.json").read_text())["golden"]
    model = folder / "stories260k_decode_int8.onnx"
    options = ort.SessionOptions()
    options.add_session_config_entry("session.qdqisint8allowed", "1")
    options.intra_op_num_threads = 1
    peer = ort.InferenceSession(model, options)
    with Session(compile(model, "cpu")) as session:

        def own(feed: dict[str, NDArray[np.generic]]) -> list[NDArray[np.generic]]:
            outputs = session.run(feed).outputs
            return [outputs[each] for each in NAMES]

        ours = [each for text in texts for each in surprises(own, text["tokens"])]
    theirs = [
        each
        for text in texts
        for each in surprises(lambda feed: peer.run(NAMES, feed), text["tokens"])
    ]
    assert len(ours) == len(theirs) == 600
    assert np.exp(np.mean(ours)) == pytest.approx(np.exp(np.mean(theirs)), rel=0.005)
