"""A small decoder of one token in the form of exporters: its mask is given and tells the position,
its caches come back with a row more, two heads of queries share each of keys and values, and each
head of queries has a bias that rises with the position (ALiBi, as BLOOM has).
"""

import numpy as np
import onnx

from .attending import decoder_of, weights

__all__ = ["exported_model"]

SIZE = 48
"""Positions of its caches."""
LAYERS, HEADS, SHARED, HEAD = 2, 2, 2, 2
"""A head is half a block of ``tiny``."""
WIDTH = HEADS * SHARED * HEAD
PAST = f"float[1, {HEADS}, {SIZE}, {HEAD}]"
PRESENT = f"float[1, {HEADS}, {SIZE + 1}, {HEAD}]"
KINDS = [f"{n}_{kind}" for n in range(LAYERS) for kind in ("key", "value")]
BEGIN = f"""
<ir_version: 8, opset_import: ["" : 17]>
exported (int64[1, 1] input_ids, int64[1, {SIZE + 1}] attention_mask,
  {", ".join(f"{PAST} past_{kind}" for kind in KINDS)})
  => (float[1, 1, 256] logits, {", ".join(f"{PRESENT} present_{kind}" for kind in KINDS)})
{{
  word = Gather(E, input_ids)
  ages = CumSum(attention_mask, one)
  count = ReduceMax<axes = [1]>(ages)
  position = Sub(count, one)
  place = Gather(P, position)
  x0 = Add(word, place)
  seen = Cast<to = 9>(attention_mask)
  seen_rows = Unsqueeze(seen, rows)
  bias = Where(seen_rows, nothing, hidden)
  ages_real = Cast<to = 1>(ages)
  ages_rows = Unsqueeze(ages_real, rows)
  rises = Mul(ages_rows, slopes)
"""
LAYER = """
  q# = MatMul(x#, Q#)
  k# = MatMul(x#, K#)
  v# = MatMul(x#, V#)
  q_heads# = Reshape(q#, query_shape)
  k_heads# = Reshape(k#, row_shape)
  v_heads# = Reshape(v#, row_shape)
  q_rows# = Transpose<perm = [0, 2, 1, 3]>(q_heads#)
  k_rows# = Transpose<perm = [0, 2, 1, 3]>(k_heads#)
  v_rows# = Transpose<perm = [0, 2, 1, 3]>(v_heads#)
  present_#_key = Concat<axis = 2>(past_#_key, k_rows#)
  present_#_value = Concat<axis = 2>(past_#_value, v_rows#)
  k_apart# = Unsqueeze(present_#_key, groups)
  v_apart# = Unsqueeze(present_#_value, groups)
  k_groups# = Expand(k_apart#, groups_shape)
  v_groups# = Expand(v_apart#, groups_shape)
  keys# = Reshape(k_groups#, all_shape)
  values# = Reshape(v_groups#, all_shape)
  turned# = Transpose<perm = [0, 1, 3, 2]>(keys#)
  scores# = MatMul(q_rows#, turned#)
  risen# = Add(scores#, rises)
  masked# = Add(risen#, bias)
  shares# = Softmax<axis = 3>(masked#)
  mixed# = MatMul(shares#, values#)
  back# = Transpose<perm = [0, 2, 1, 3]>(mixed#)
  flat# = Reshape(back#, flat_shape)
  out# = MatMul(flat#, O#)
  x% = Add(x#, out#)
"""
END = """
  logits = MatMul(x2, W)
}
"""


def exported_model() -> onnx.ModelProto:
    """The float model, with random weights."""
    rng = np.random.default_rng(11)
    constants = {
        **weights(rng, LAYERS, SIZE, WIDTH, HEADS * HEAD),
        "one": np.array(1),
        "rows": np.array([1, 2]),
        "groups": np.array([2]),
        "nothing": np.float32(0),
        "hidden": np.float32(-1e9),
        "slopes": np.float32(2.0 ** -np.arange(2, 6)).reshape(1, -1, 1, 1),
        "query_shape": np.array([1, 1, HEADS * SHARED, HEAD]),
        "row_shape": np.array([1, 1, HEADS, HEAD]),
        "groups_shape": np.array([1, HEADS, SHARED, SIZE + 1, HEAD]),
        "all_shape": np.array([1, HEADS * SHARED, SIZE + 1, HEAD]),
        "flat_shape": np.array([1, 1, WIDTH]),
    }
    return decoder_of((BEGIN, LAYER, END), LAYERS, constants)
