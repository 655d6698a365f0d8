"""Whoever makes a constant whose size a model decides asks for its room before."""

from math import prod
from typing import Any

import numpy as np
import pytest
from onnx import parser

from dovetail.compiler.front.emitter import LimitedEmitter
from dovetail.compiler.front.onnx.source import SourceModel

PICTURE = "float[1, 1, 20, 30] x"
CASES = {
    "MaxPool": ("float[9, 11, 4, 4] x", "_, y = MaxPool <kernel_shape = [2, 2]> (x)"),
    "AveragePool": (PICTURE, "y = AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x)"),
    "Col2Im": (
        "float[1, 12, 208] x",
        "e = Constant <value = int64[2] {15, 19}> () b = Constant <value = int64[2] {3, 4}> () "
        "y = Col2Im (x, e, b)",
    ),
    "TfIdfVectorizer": (
        "int64[2, 5] x",
        'y = TfIdfVectorizer <max_gram_length = 1, max_skip_count = 0, min_gram_length = 1, '
        'mode = "TF", ngram_counts = [0], ngram_indexes = [0, 99], pool_int64s = [2, 3]> (x)',
    ),
    "Resize": (PICTURE, 'y = Resize <mode = "cubic"> (x, , , s)'),
    "Resize, nearest": (PICTURE, 'y = Resize <mode = "nearest"> (x, , , s)'),
    "Upsample": (PICTURE, 'y = Upsample <mode = "nearest"> (x, f)'),
    "RoiAlign": (
        "float[1, 1, 8, 8] x, float[1, 4] b, int64[1] i",
        "y = RoiAlign <output_height = 6, output_width = 7, sampling_ratio = 9> (x, b, i)",
    ),
    "DFT": ("float[1, 50, 1] x", "y = DFT (x, n)"),
    "DFT of pairs": ("float[1, 50, 2] x", "y = DFT (x, n)"),
    "DFT, half": ("float[1, 50, 1] x", "y = DFT <onesided = 1> (x, n)"),
    "STFT": ("float[1, 300, 1] x", "y = STFT (x, t, , l)"),
    "STFT, many frames": ("float[1, 900, 1] x", "y = STFT (x, t, , l)"),
    "HannWindow": ("float[1] x", "y = HannWindow (n)"),
    "MelWeightMatrix": (
        "float[1] x",
        "r = Constant <value = int64 {8192}> () a = Constant <value = float {0}> () "
        "z = Constant <value = float {4000}> () y = MelWeightMatrix (l, n, r, a, z)",
    ),
    "DequantizeLinear": (
        "int8[99, 2] x",
        "q = Constant <value = float[50, 2] {" + ", ".join(["0.5"] * 100) + "}> () "
        "y = DequantizeLinear <axis = 0, block_size = 2> (x, q)",
    ),
}  # fmt: skip
"""Inputs, whose values are not known, and nodes."""
KNOWN = (
    "n = Constant <value = int64 {50}> () l = Constant <value = int64 {16}> () "
    "t = Constant <value = int64 {4}> () s = Constant <value = int64[4] {1, 1, 99, 70}> () "
    "f = Constant <value = float[4] {1, 1, 3, 5}> () "
)


@pytest.mark.parametrize("name", CASES)
def test_room_is_asked_for_all_that_is_made(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, int] = {}
    beyond, make = list[str](), LimitedEmitter.constant

    def ask(emitter: LimitedEmitter, *sizes: int) -> None:
        asked[emitter.where] = max(asked.get(emitter.where, 0), prod(sizes))

    def constant(emitter: LimitedEmitter, array: Any, dtype: Any = None) -> Any:
        room = 2 * max(asked.get(emitter.where, 0), 16)
        if "'y'" in emitter.where and np.size(array) > room:
            beyond.append(f"{np.shape(array)} after {room // 2}")
        return make(emitter, array, dtype)

    monkeypatch.setattr(LimitedEmitter, "require_room", ask)
    monkeypatch.setattr(LimitedEmitter, "constant", constant)
    inputs, nodes = CASES[name]
    head = '<ir_version: 10, opset_import: ["": 21]> m'
    SourceModel.of(parser.parse_model(f"{head} ({inputs}) => (y) {{ {KNOWN} {nodes} }}")).to_graph()
    assert asked
    assert not beyond
