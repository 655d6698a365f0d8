"""Attention over a cache as exporters write decoders: caches of four dimensions, heads of keys
repeated for those of queries, all projections in one, heads turned in part, heads normalised.
"""

from itertools import pairwise

import numpy as np
import onnx
import pytest
from networks.rows import RowBuilder
from onnx import TensorProto, helper

from dovetail.compiler import compile
from dovetail.compiler.front.onnx.quantize import quantize_model
from dovetail.compiler.graph.interpreter import run as interpret
from dovetail.compiler.graph.ir import Array
from dovetail.compiler.options import CompileOptions, Overlap
from dovetail.compiler.targets.vta.passes.cached_attention import CachedAttention
from dovetail.compiler.targets.vta.passes.shared_heads import SHARED_HEADS
from dovetail.isa.configs import find_config
from dovetail.runtime import run

from .test_cached_attention import counted, integer_graph, part_of

TINY = find_config("tiny")
PAST, HEADS = 9, 4
"""One position more than blocks of ``tiny`` have."""
OUTPUTS = "y", "key", "value"


class Exported(RowBuilder):
    """One attention of rows float32[1, 1, width]."""

    def __init__(self, size: int, kept: int, turned: int, values: int = 0) -> None:
        """kept, values: heads of keys, and of values if these are others."""
        super().__init__(1, HEADS * size, HEADS, 3, 1e-5)
        self.size, self.kept, self.turned = size, kept, turned
        self.width, self.values = HEADS * size, values or kept

    def build(
        self,
        *,
        fused: bool = False,
        normalised: bool = False,
        risen: bool = False,
        shared: bool = False,
    ) -> onnx.ModelProto:
        """fused: one product makes queries, keys and values.  normalised: queries and keys.
        risen: each head's scores have a bias of their own, and a mask that hides none.
        shared: products repeat one head.
        """
        sizes = [self.width, self.kept * self.size, self.values * self.size]
        if fused:
            whole = self.dense("x", self.width, sum(sizes))
            ends = np.cumsum([0, *sizes]).tolist()
            parts = [self.part(whole, *pair) for pair in pairwise(ends)]
        else:
            parts = [self.dense("x", self.width, size) for size in sizes]
        q, k, v = (self.heads(part, n // self.size) for part, n in zip(parts, sizes, strict=True))
        if normalised:
            q, k = self.normal_rows(q), self.normal_rows(k)
        keys = self.node("Concat", "past_key", self.rotated(k), axis=2)
        values = self.node("Concat", "past_value", v, axis=2)
        all_keys = keys if shared else self.repeated(keys, self.kept)
        columns = self.node("Transpose", all_keys, perm=[0, 1, 3, 2])
        scores = self.node("MatMul", self.rotated(q), columns)
        scores = self.node("Mul", scores, self.scalar(self.size**-0.5))
        if risen:
            every = self.constant(np.ones((1, 1, 1, PAST + 1), bool))
            scores = self.node("Where", every, scores, self.scalar(-1e9))
            slopes = self.constant(2.0 ** -np.arange(HEADS, dtype=np.float32).reshape(1, -1, 1, 1))
            scores = self.shaped(scores, HEADS, 1, PAST + 1)
            rises = self.shaped(self.node("Mul", "ages", slopes), HEADS, 1, PAST + 1)
            scores = self.shaped(self.node("Add", scores, rises), 1, HEADS, 1, PAST + 1)
        share = self.node("Softmax", self.node("Add", scores, "mask"), axis=-1)
        all_values = values if shared else self.repeated(values, self.values)
        mixed = self.node("MatMul", share, all_values)
        mixed = self.node("Transpose", mixed, perm=[0, 2, 1, 3])
        mixed = self.shaped(mixed, 1, 1, self.width)
        y = self.node("Add", "x", self.dense(mixed, self.width, self.width))
        shapes = self.shapes()
        inputs = [_info(name, shape) for name, shape in shapes.items()]
        made = [(1, count, PAST + 1, self.size) for count in (self.kept, self.values)]
        outputs = [_info(*each) for each in zip(OUTPUTS, (shapes["x"], *made), strict=True)]
        return self.model("attention", inputs, (y, keys, values), outputs)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the inputs."""
        turn = 1, 1, 1, self.turned
        keys, values = ((1, count, PAST, self.size) for count in (self.kept, self.values))
        return {
            "x": (1, 1, self.width), "cos": turn, "sin": turn, "past_key": keys,
            "past_value": values, "mask": (1, 1, 1, PAST + 1), "ages": (1, 1, 1, PAST + 1),
        }  # fmt: skip

    def samples(self, count: int, seed: int) -> list[dict[str, Array]]:
        """Random inputs, the first positions of each masked."""
        rng, found = np.random.default_rng(seed), []
        for _ in range(count):
            sample = {
                n: rng.standard_normal(s).astype(np.float32) for n, s in self.shapes().items()
            }
            sample["mask"] = np.where(np.arange(PAST + 1) < rng.integers(PAST), -1e4, 0)
            sample["mask"] = sample["mask"].astype(np.float32).reshape(1, 1, 1, -1)
            found.append(sample)
        return found

    def part(self, x: str, start: int, end: int) -> str:
        """Elements of the last dimension."""
        rank = self.constant(np.array([-1]))
        return self.node("Slice", x, *(self.constant(np.array([n])) for n in (start, end)), rank)

    def shaped(self, x: str, *shape: int) -> str:
        """The same elements in another shape."""
        return self.node("Reshape", x, self.constant(np.array(shape)))

    def heads(self, x: str, count: int) -> str:
        """[1, 1, heads * size] as [1, heads, 1, size]."""
        return self.node("Transpose", self.shaped(x, 1, 1, count, self.size), perm=[0, 2, 1, 3])

    def normal_rows(self, x: str) -> str:
        """RMSNorm of each head."""
        mean = self.node("ReduceMean", self.node("Mul", x, x), axes=[-1])
        root = self.node("Sqrt", self.node("Add", mean, self.scalar(1e-5)))
        gain = self.constant(1 + self.normal(0.1, self.size))
        return self.node("Mul", self.node("Div", x, root), gain)

    def rotated(self, x: str) -> str:
        """The first elements of each head turned, halves of them by each other."""
        first, half = self.part(x, 0, self.turned), self.turned // 2
        low, high = self.part(first, 0, half), self.part(first, half, self.turned)
        other = self.node("Concat", self.node("Neg", high), low, axis=-1)
        turned = self.node("Add", self.node("Mul", first, "cos"), self.node("Mul", other, "sin"))
        rest = self.part(x, self.turned, self.size)
        return self.node("Concat", turned, rest, axis=-1)

    def repeated(self, x: str, count: int) -> str:
        """``count`` heads of keys or values for all heads of queries."""
        rows = PAST + 1, self.size
        x = self.shaped(x, 1, count, 1, *rows)
        wanted = self.constant(np.array([1, count, HEADS // count, *rows]))
        return self.shaped(self.node("Expand", x, wanted), 1, HEADS, *rows)


def _info(name: str, shape: tuple[int, ...]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


@pytest.mark.parametrize(
    ("size", "kept", "turned", "how"),
    [
        (8, 2, 8, {}),
        (8, 1, 8, {"fused": True}),
        (8, 2, 4, {}),
        (8, 4, 8, {"normalised": True}),
        (4, 2, 4, {"risen": True}),
        (4, 2, 4, {"normalised": True}),
        (4, 1, 4, {"shared": True}),
    ],
    ids=[
        *("repeated", "fused", "turned-in-part", "normalised", "risen"),
        *("normalised-halves", "one-head-of-halves"),
    ],
)
def test_an_exported_attention_is_a_product_for_each_block_of_heads(
    size: int, kept: int, turned: int, how: dict[str, bool]
) -> None:
    net = Exported(size, kept, turned)
    graph = integer_graph(quantize_model(net.build(**how), net.samples(6, 0)).model)
    found = CachedAttention(TINY.block).run(SHARED_HEADS.run(graph))
    assert counted(found)["Append"] > 0
    (sample,) = net.samples(1, 1)
    expected, own = interpret(graph, sample), interpret(found, sample)
    for name in OUTPUTS:
        np.testing.assert_array_equal(own[name], expected[name])


def test_keys_and_values_of_different_heads_stay_as_they_are() -> None:
    net = Exported(8, 2, 8, HEADS)
    graph = SHARED_HEADS.run(integer_graph(quantize_model(net.build(), net.samples(6, 0)).model))
    assert CachedAttention(TINY.block).run(graph) is graph


def test_an_exported_attention_is_one_launch_with_the_bytes_of_the_cpu() -> None:
    net = Exported(4, 1, 4)
    model = quantize_model(net.build(shared=True, risen=True), net.samples(6, 0)).model
    module = compile(model, "vta:tiny", options=CompileOptions(overlap=Overlap.TILES))
    assert [part.target for part in module.parts] == ["cpu", "vta:tiny", "cpu"]
    for sample in net.samples(2, 2):
        simulated, own = run(module, sample), run(compile(model, "cpu"), sample)
        assert simulated.cycles == part_of(module).expected_cycles
        for name in OUTPUTS:
            np.testing.assert_array_equal(simulated.outputs[name], own.outputs[name])
