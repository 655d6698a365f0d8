"""A small decoder of one token with attention over a cache: queries are multiplied by numbers
of the token's position, as rotary positions do, and the mask is made from it.
"""

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper, parser

__all__ = ["CACHE_SHAPE", "SIZE", "attending_model"]

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

    def weights(*shape: int) -> NDArray[np.float32]:
        return (rng.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)

    constants = {
        "E": rng.standard_normal((256, WIDTH)).astype(np.float32),
        "P": rng.standard_normal((SIZE, WIDTH)).astype(np.float32),
        "C": rng.uniform(-1, 1, (SIZE, 1, HEAD, 1)).astype(np.float32),
        "pair_shape": np.array([1, HEADS * ROWS, HEAD, 1]),
        **{f"{name}{n}": weights(WIDTH, WIDTH) for n in range(LAYERS) for name in "QO"},
        **{f"{name}{n}": weights(WIDTH, HEADS * HEAD) for n in range(LAYERS) for name in "KV"},
        **{f"n{n}": np.array(n) for n in range(LAYERS)},
        "W": weights(WIDTH, 256),
        "columns": np.arange(SIZE),
        "always": np.array([True]),
        "hidden": np.float32(-1e4),
        "row_shape": np.array([HEADS, 1, HEAD]),
        "query_shape": np.array([HEADS, ROWS, HEAD]),
        "flat_shape": np.array([1, WIDTH]),
        "new_shape": np.array([1, HEADS, HEAD]),
    }
    layers = [LAYER.replace("#", str(n)).replace("%", str(n + 1)) for n in range(LAYERS)]
    model = parser.parse_model(BEGIN + "".join(layers) + END)
    for name, value in constants.items():
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
    onnx.checker.check_model(model, full_check=True)
    return model
