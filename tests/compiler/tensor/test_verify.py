"""The verifier accepts what is lowered and scheduled, and refuses kernels without one meaning."""

import pytest

from dovetail.compiler.errors import GraphError
from dovetail.compiler.graph.fuse import fuse
from dovetail.compiler.schedule.defaults import Limits, default_schedule
from dovetail.compiler.tensor.activation import plan_activations
from dovetail.compiler.tensor.lower import lower
from dovetail.compiler.tensor.parse import parse_text
from dovetail.compiler.tensor.verify import verify

from ..graph.graphs import convolution, image_builder

GOOD = """
kernel "k" macs 0
buffer "x": int8[6, 4] in act
buffer "w": int8[2, 4] in tap
buffer "bias": int32[1, 4] in par
buffer "scale": float32[1, 4] in par
buffer "acc": int32[4, 4] in acc
buffer "y": int8[4, 4] in act
buffer "t": int8[256, 4] in tab
stage "sum"
for i in 4 serial
for k in 2 hardware reduces
for l in 4 lane
"acc"[i, l] = sum("x"[i + k, l] * "w"[k, l])
stage "finish"
for i in 4 serial
for l in 4 lane
"y"[i, l] = lookup "t" of requantize("bias"[0, l], "scale"[0, l], 0, -128, 127) of "acc"[i, l]
"""


def test_lowered_and_scheduled_layers_pass() -> None:
    builder = image_builder()
    y = convolution(builder, convolution(builder, "x", 9), 5)
    graph = builder.build((y,))
    partition = fuse(graph)
    activations = plan_activations(graph, partition, 4)
    for layer in partition.layers:
        kernel = lower(graph, layer, activations).kernel
        verify(kernel)
        verify(default_schedule(kernel, Limits(64, 64)).kernel)


def test_the_good_kernel_passes() -> None:
    verify(parse_text(GOOD))


def test_a_buffer_of_one_tile_may_be_written_anew_by_every_tile() -> None:
    verify(parse_text(GOOD.replace('"acc"[i, l]', '"acc"[0, l]')))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("int8[6, 4] in act", "int32[6, 4] in act", "'x' is int32 in act, which holds int8"),
        ("int32[4, 4] in acc", "int8[4, 4] in dram", "is int8; required int32, the value's type"),
        ('"y": int8[4, 4] in act', '"y": int32[4, 4] in acc', "is int32; required int8"),
        ("float32[1, 4]", "int32[1, 4]", "is int32; required float32"),
        ('buffer "w": int8[2, 4] in tap', 'buffer "w": int32[2, 4] in acc', "factor .* is int32"),
        ("int8[256, 4]", "int8[16, 4]", r"table int8\[16, 4\]; required int8\[256, 4\]"),
        ("0, -128, 127", "0, 5, -5", r"limits 5\.\.-5"),
        ("0, -128, 127", "200, -128, 127", "zero point 200"),
        ("hardware reduces", "hardware", "fold sum over no loop"),
        ('sum("x"[i + k, l] * "w"[k, l])', '"x"[i, l] * "w"[k, l]', "fold none over k"),
        ('"acc"[i, l] = sum', '"acc"[i + k, l] = sum', "runs from 0 to 4"),
        ('"acc"[i, l] = sum', '"acc"[k, l] = sum', "moves with folded loop k"),
        ("for i in 4 serial\n", "for i in 4 serial\nfor q in 0 serial\n", "q runs 0 times"),
        ('stage "finish"\nfor i in 4', 'stage "finish"\nfor i in 2', "as in the stages before"),
        ('stage "finish"', 'stage "sum"', "have a name twice"),
        ('"y"[i, l] = lookup', '"y"[i, 0] = lookup', "may be written twice, over loop l"),
        ('sum("x"[i + k, l]', 'sum("y"[i, l]', "'y' is read before finish writes it"),
    ],
)
def test_a_kernel_without_one_meaning_is_refused(old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(GraphError, match=message):
        verify(parse_text(GOOD.replace(old, new, 1)))


def test_a_second_writer_of_a_buffer_is_refused() -> None:
    last = GOOD[GOOD.index('stage "finish"') :].replace("finish", "again")
    with pytest.raises(GraphError, match="'y' is written a second time, after finish"):
        verify(parse_text(GOOD + last))
