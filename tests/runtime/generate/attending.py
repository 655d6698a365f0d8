"""A small decoder of one token with attention over a cache: queries are multiplied by numbers
of the token's position, as rotary positions do, and the mask is made from it.
"""

from collections.abc import Mapping

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper, parser

__all__ = ["CACHE_SHAPE", "SIZE", "attending_model", "decoder_of", "weights"]

SIZE = 48
"""Positions of its caches."""
LAYERS, HEADS, ROWS, HEAD = 2, 2, 2, 2
"""A head is half a block of ``tiny``."""
WIDTH = HEADS * ROWS * HEAD
CACHE_SHAPE = LAYERS, HEADS, SIZE, HEAD
CACHE = f"float[{LAYERS}, {HEADS}, {SIZE}, {HEAD}]"
NEW = f"float[{LAYERS}, {HEADS}, {HEAD}]"
BEGIN = f"""
<ir_version: 8, opset_import: ["" : 17]>
attending (int64[1] token, int64[1] position, {CACHE} past_keys, {CACHE} past_values)
  => (float[1, 256] logits, {NEW} new_keys, {NEW} new_values)
{{
  word = Gather(E, token)
  place = Gather(P, position)
  x0 = Add(word, place)
  turn = Gather(C, position)
  before = Less(columns, position)
  seen = Concat<axis = 0>(before, always)
"""
LAYER = """
  past_k# = Gather(past_keys, n#)
  past_v# = Gather(past_values, n#)
  q# = MatMul(x#, Q#)
  k# = MatMul(x#, K#)
  v# = MatMul(x#, V#)
  q_pairs# = Reshape(q#, pair_shape)
  q_turned# = Mul(q_pairs#, turn)
  q_rows# = Reshape(q_turned#, query_shape)
  k_rows# = Reshape(k#, row_shape)
  v_rows# = Reshape(v#, row_shape)
  keys# = Concat<axis = 1>(past_k#, k_rows#)
  values# = Concat<axis = 1>(past_v#, v_rows#)
  turned# = Transpose<perm = [0, 2, 1]>(keys#)
  scores# = MatMul(q_rows#, turned#)
  masked# = Where(seen, scores#, hidden)
  shares# = Softmax<axis = 2>(masked#)
  mixed# = MatMul(shares#, values#)
  flat# = Reshape(mixed#, flat_shape)
  out# = MatMul(flat#, O#)
  x% = Add(x#, out#)
  new_k# = Reshape(k_rows#, new_shape)
  new_v# = Reshape(v_rows#, new_shape)
"""
END = """
  new_keys = Concat<axis = 0>(new_k0, new_k1)
  new_values = Concat<axis = 0>(new_v0, new_v1)
  logits = MatMul(x2, W)
}
"""


def attending_model() -> onnx.ModelProto:
    """The float model, with random weights."""
    rng = np.random.default_rng(7)
    constants = {
        **weights(rng, LAYERS, SIZE, WIDTH, HEADS * HEAD),
        "C": rng.uniform(-1, 1, (SIZE, 1, HEAD, 1)).astype(np.float32),
        "pair_shape": np.array([1, HEADS * ROWS, HEAD, 1]),
        **{f"n{n}": np.array(n) for n in range(LAYERS)},
        "columns": np.arange(SIZE),
        "always": np.array([True]),
        "hidden": np.float32(-1e4),
        "row_shape": np.array([HEADS, 1, HEAD]),
        "query_shape": np.array([HEADS, ROWS, HEAD]),
        "flat_shape": np.array([1, WIDTH]),
        "new_shape": np.array([1, HEADS, HEAD]),
    }
    return decoder_of((BEGIN, LAYER, END), LAYERS, constants)


def weights(
    rng: np.random.Generator, layers: int, positions: int, width: int, rows: int
) -> dict[str, NDArray[np.float32]]:
    """Random embeddings ``E`` and ``P``, projections ``Q``, ``O``, ``K`` and ``V`` of each layer,
    and ``W`` of the logits.  width: of the decoder; rows: of its keys and values.
    """

    def drawn(*shape: int) -> NDArray[np.float32]:
        return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

    return {
        "E": rng.standard_normal((256, width)).astype(np.float32),
        "P": rng.standard_normal((positions, width)).astype(np.float32),
        **{f"{name}{n}": drawn(width, width) for n in range(layers) for name in "QO"},
        **{f"{name}{n}": drawn(width, rows) for n in range(layers) for name in "KV"},
        "W": drawn(width, 256),
    }


def decoder_of(
    texts: tuple[str, str, str], layers: int, constants: Mapping[str, object]
) -> onnx.ModelProto:
    """The model of a beginning, a layer (``#`` is its number, ``%`` the next one), and an end."""
    begin, layer, end = texts
    between = [layer.replace("#", str(n)).replace("%", str(n + 1)) for n in range(layers)]
    model = parser.parse_model(begin + "".join(between) + end)
    for name, value in constants.items():
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    onnx.checker.check_model(model, full_check=True)
    return model
