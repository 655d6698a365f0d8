"""BERT's encoder: normalisations behind the residual sums, and a mask of tokens.

Source: J. Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers", 2018; for the
sizes of BERT-mini, I. Turc et al., "Well-Read Students Learn Better", 2019.
"""

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from .rows import RowBuilder

__all__ = ["bert", "bert_mini", "calibration_tokens"]

VOCABULARY = 30522
EPSILON = 1e-12


def bert_mini(tokens: int = 128, seed: int = 0) -> onnx.ModelProto:
    """4 layers, 256 wide, with 4 heads; otherwise as ``bert``."""
    return bert(4, tokens, seed, width=256, heads=4)


def bert(
    layers: int = 4,
    tokens: int = 128,
    seed: int = 0,
    *,
    width: int = 768,
    heads: int = 12,
    vocabulary: int = VOCABULARY,
) -> onnx.ModelProto:
    """The base model, with fewer layers; inner layers are four times as wide.

    Inputs ``ids`` and ``mask``, int64[1, tokens]; output ``hidden``, float32[1, tokens, width].
    """
    net = RowBuilder(tokens, width, heads, seed, EPSILON)
    words = net.node("Gather", net.constant(net.normal(0.5, vocabulary, width)), "ids", axis=0)
    places = net.constant(net.normal(0.3, 1, tokens, width))
    x, mask = net.normalized(net.node("Add", words, places)), _mask(net)
    for _ in range(layers):
        x = net.normalized(net.node("Add", x, net.attention(x, mask)))
        x = net.normalized(net.node("Add", x, net.feed_forward(x, 4 * width)))
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, (1, tokens))
        for name in ("ids", "mask")
    ]
    output = helper.make_tensor_value_info("hidden", TensorProto.FLOAT, (1, tokens, width))
    return net.model("bert", inputs, [x], [output])


def calibration_tokens(count: int, tokens: int, seed: int = 0) -> dict[str, NDArray[np.int64]]:
    """``ids`` and ``mask``, int64[count, tokens]: random texts of at least a quarter of the tokens.

    The frequency of a word falls with its rank (G. Zipf, 1935).
    """
    rng = np.random.default_rng(seed)
    ids = np.minimum(rng.zipf(1.3, (count, tokens)), VOCABULARY) - 1
    lengths = rng.integers(tokens // 4, tokens + 1, (count, 1))
    return {"ids": ids, "mask": (np.arange(tokens) < lengths).astype(np.int64)}


def _mask(net: RowBuilder) -> str:
    """0 for tokens that count, a large negative number for others."""
    mask = net.node("Unsqueeze", "mask", net.constant(np.array([1, 2])))
    mask = net.node("Cast", mask, to=TensorProto.FLOAT)
    return net.node("Mul", net.node("Sub", net.scalar(1.0), mask), net.scalar(-1e4))
