"""Detections of equal score: they alone may come in another order than from ONNX Runtime."""

import numpy as np
import onnx
import onnxruntime
import pytest

from dovetail.compiler.targets.cpu.executor.executor import Executor

ANCHORS, CLASSES, KEPT = 200, 3, 60


def _detector() -> onnx.ModelProto:
    """The end of an SSDLite: scores of 8 bits, boxes by exp, suppression, and the best of all."""
    count = f"k = Constant <value = int64[1] {{{KEPT}}}> ()"
    return onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["": 18]> m '
        f"(float[1, {CLASSES}, {ANCHORS}] logits, float[1, {ANCHORS}, 2] size, "
        f"float[1, {ANCHORS}, 2] at) => (float[i] scores, int64[j, 3] rows) "
        "<float s = {0.0625}, uint8 z = {128}, float half = {0.5}, int64 most = {40}, "
        "float overlap = {0.5}, float least = {0.2}> { "
        "q = QuantizeLinear (logits, s, z) l = DequantizeLinear (q, s, z) p = Sigmoid (l) "
        "e = Exp (size) h = Mul (e, half) low = Sub (at, h) high = Add (at, h) "
        "boxes = Concat <axis = 2> (low, high) "
        "found = NonMaxSuppression (boxes, p, most, overlap, least) "
        f"all = GatherND (p, found) {count} scores, places = TopK (all, k) "
        "rows = Gather (found, places) }"
    )


@pytest.mark.parametrize("seed", range(4))
def test_detections_differ_only_in_rows_of_equal_scores(seed: int) -> None:
    rng = np.random.default_rng(seed)
    inputs = {
        "logits": rng.normal(0, 2, (1, CLASSES, ANCHORS)).astype(np.float32),
        "size": rng.normal(-2, 0.3, (1, ANCHORS, 2)).astype(np.float32),
        "at": rng.uniform(0, 1, (1, ANCHORS, 2)).astype(np.float32),
    }
    model = _detector()
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    scores, rows = session.run(["scores", "rows"], inputs)
    found = Executor(model).run(inputs)
    np.testing.assert_allclose(found["scores"], scores, rtol=1e-6)
    groups = np.cumsum(np.diff(scores, prepend=scores[:1]) < -1e-6)
    assert len(set(groups)) < len(groups), "no two scores are equal: the test shows nothing"
    for group in set(groups[:-1]) - {groups[-1]}:
        of_group = groups == group
        np.testing.assert_array_equal(
            np.unique(np.asarray(found["rows"])[of_group], axis=0),
            np.unique(rows[of_group], axis=0),
        )
