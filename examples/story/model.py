"""The story model as ONNX: one character a run, with caches that the host keeps.

A decoder of two layers, 32 wide, with two heads of 16 channels and up to 256 positions.  Positions
are learned, norms are RMSNorm without a gain, feed-forward layers have ReLU, and the classifier is
the embedding.  Characters are bytes.
"""

from collections.abc import Mapping

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper, parser

__all__ = ["HEADS", "INNER", "LAYERS", "POSITIONS", "WIDTH", "step_model"]

LAYERS, WIDTH, HEADS, INNER, POSITIONS = 2, 32, 2, 64, 256
HEAD = WIDTH // HEADS
CACHE = f"float[{LAYERS}, {HEADS}, {POSITIONS}, {HEAD}]"
NEW = f"float[{LAYERS}, {HEADS}, {HEAD}]"
SIGNATURE = f"""<ir_version: 8, opset_import: ["" : 17]>
story (int64[1] token, int64[1] position, {CACHE} past_keys, {CACHE} past_values)
  => (float[1, 256] logits, {NEW} new_keys, {NEW} new_values)"""
BEFORE = """
  letter = Gather(embedding, token)
  place = Gather(positions, position)
  x_0 = Add(letter, place)
  past = Less(places, position)
  seen = Concat<axis = 2>(past, always)
"""
NORM = """
  {y}_square = Mul({x}, {x})
  {y}_mean = ReduceMean<axes = [1], keepdims = 1>({y}_square)
  {y}_sum = Add({y}_mean, epsilon)
  {y}_root = Sqrt({y}_sum)
  {y} = Div({x}, {y}_root)
"""
LAYER = (
    NORM.format(x="x_{n}", y="a_{n}")
    + """
  q_row_{n} = MatMul(a_{n}, wq_{n})
  k_row_{n} = MatMul(a_{n}, wk_{n})
  v_row_{n} = MatMul(a_{n}, wv_{n})
  q_{n} = Reshape(q_row_{n}, heads)
  k_{n} = Reshape(k_row_{n}, heads)
  v_{n} = Reshape(v_row_{n}, heads)
  past_k_{n} = Gather<axis = 0>(past_keys, index_{n})
  past_v_{n} = Gather<axis = 0>(past_values, index_{n})
  keys_{n} = Concat<axis = 1>(past_k_{n}, k_{n})
  values_{n} = Concat<axis = 1>(past_v_{n}, v_{n})
  turned_{n} = Transpose<perm = [0, 2, 1]>(keys_{n})
  scores_{n} = MatMul(q_{n}, turned_{n})
  scaled_{n} = Mul(scores_{n}, scale)
  masked_{n} = Where(seen, scaled_{n}, hidden)
  shares_{n} = Softmax<axis = -1>(masked_{n})
  mixed_{n} = MatMul(shares_{n}, values_{n})
  mix_{n} = Reshape(mixed_{n}, row)
  o_{n} = MatMul(mix_{n}, wo_{n})
  y_{n} = Add(x_{n}, o_{n})
"""
    + NORM.format(x="y_{n}", y="b_{n}")
    + """
  up_{n} = MatMul(b_{n}, w1_{n})
  up_relu_{n} = Relu(up_{n})
  down_{n} = MatMul(up_relu_{n}, w2_{n})
  x_{m} = Add(y_{n}, down_{n})
"""
)
AFTER = f"""
{NORM.format(x=f"x_{LAYERS}", y="last")}
  logits = MatMul(last, classifier)
  all_keys = Concat<axis = 0>({", ".join(f"k_{n}" for n in range(LAYERS))})
  all_values = Concat<axis = 0>({", ".join(f"v_{n}" for n in range(LAYERS))})
  new_keys = Reshape(all_keys, new)
  new_values = Reshape(all_values, new)
"""


def step_model(parameters: Mapping[str, NDArray[np.float32]]) -> onnx.ModelProto:
    """The float model; parameters: as ``train.py`` names them."""
    layers = "".join(LAYER.format(n=n, m=n + 1) for n in range(LAYERS))
    model = parser.parse_model(f"{SIGNATURE} {{ {BEFORE} {layers} {AFTER} }}")
    constants = {
        **parameters,
        "classifier": parameters["embedding"].T,
        "places": np.arange(POSITIONS)[None, None],
        "always": np.ones((1, 1, 1), bool),
        "epsilon": np.float32(1e-5),
        "scale": np.float32(HEAD**-0.5),
        "hidden": np.float32(-1e4),
        "heads": np.array([HEADS, 1, HEAD]),
        "row": np.array([1, WIDTH]),
        "new": np.array([LAYERS, HEADS, HEAD]),
        **{f"index_{n}": np.array(n) for n in range(LAYERS)},
    }
    for name, value in constants.items():
        array = np.ascontiguousarray(value).reshape(np.shape(value))
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    for node in model.graph.node:
        node.name = node.output[0]
    onnx.checker.check_model(model, full_check=True)
    return model
