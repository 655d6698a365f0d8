"""Models of at most 2 kB that ask for nodes, calls, iterations, elements or memory without end."""

from collections.abc import Callable, Mapping

import numpy as np
import onnx
from onnx import helper, numpy_helper, parser

__all__ = ["HOSTILE"]

HEAD = '<ir_version: 9, opset_import: ["": 18{}]> m '
PLAIN = "float[2] x"
KNOWN = "c = Constant <value = float[2] {1, 2}> ()"
CUBE = "float[1, 1, 8] x"


def _model(body: str, inputs: str = PLAIN, more: str = "") -> onnx.ModelProto:
    rank = 1 if inputs == PLAIN else 3
    output = "float[" + ", ".join("ijk"[:rank]) + "] y"
    return parser.parse_model(f"{HEAD.format(more)} ({inputs}) => ({output}) {{ {body} }}")


def _number(name: str, value: object, kind: str = "int64") -> str:
    return f"{name} = Constant <value = {kind} {{{value}}}> ()"


def _shape(*sizes: int) -> str:
    return f"s = Constant <value = int64[{len(sizes)}] {{{', '.join(map(str, sizes))}}}> ()"


def _again(step: str, times: int, first: str) -> onnx.ModelProto:
    """A step from ``a0`` to ``a1``, and so on."""
    steps = (step.format(n, n + 1) for n in range(times))
    return _model(" ".join([first, *steps, f"y = Add (x, a{times})"]))


def _product(doublings: int) -> onnx.ModelProto:
    """The product of a doubled matrix and itself."""
    steps = [
        f"a{n + 1} = Concat <axis = {n % 2}> (a{n}, a{n}) b{n + 1} = Transpose (a{n + 1})"
        for n in range(doublings)
    ]
    last = f"p = MatMul (a{doublings}, b{doublings}) t = ReduceSum (p) y = Add (x, t)"
    return _model(" ".join(["a0 = Constant <value = float[1, 2] {1, 2}> ()", *steps, last]))


def _calls(depth: int, leaf: str) -> onnx.ModelProto:
    """Functions each of which calls the one before twice."""
    head = '<domain: "l", opset_import: ["": 18, "l": 1]>'
    text = HEAD.format(', "l": 1') + f"(float[2] x) => (float[n] y) {{ y = l.f{depth} (x) }}"
    text += f" {head} f0 (a) => (b) {{ {leaf} }}"
    for n in range(1, depth + 1):
        text += f" {head} f{n} (a) => (b) {{ c = l.f{n - 1} (a) b = l.f{n - 1} (c) }}"
    return parser.parse_model(text)


def _loop(count: object, step: str, start: str, kind: str = "float[2]") -> onnx.ModelProto:
    limit = _number("k", count) if count else ""
    body = f"(int64 i, bool g, {kind} s) => (bool h, {kind} r) {{ {step} }}"
    loop = f"z = Loop ({'k' if count else ''}, t, {start}) <body = b {body}> y = ReduceSum (z)"
    return _model(" ".join([KNOWN, limit, _number("t", 1, "bool"), loop]))


def _nested(depth: int, count: int) -> onnx.ModelProto:
    """Loops of known values in loops."""
    inner = "r0 = Add (s0, s0)"
    for n in range(depth):
        body = f"(int64 i{n}, bool g{n}, float[2] s{n}) => (bool h{n}, float[2] r{n})"
        body += f" {{ {inner} h{n} = Identity (g{n}) }}"
        loop = f"r{n + 1} = Loop (k{n}, t{n}, s{n + 1}) <body = b{n} {body}>"
        inner = " ".join([_number(f"k{n}", count), _number(f"t{n}", 1, "bool"), loop])
    first = KNOWN.replace("c =", f"s{depth} =")
    return _model(f"{first} {inner} y = Add (x, r{depth})")


def _sparse(size: int) -> onnx.ModelProto:
    model = _model("y = Add (x, w)")
    values = numpy_helper.from_array(np.ones(1, np.float32), "w")
    places = numpy_helper.from_array(np.zeros(1, np.int64), "w_places")
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [size]))
    return model


SUM, GOING = "r = Add (s, s)", "h = Identity (g)"
TWICE = "a{1} = Concat <axis = 0> (a{0}, a{0})"
SCALE = "q = Constant <value = int8[2] {1, 2}> () f = Constant <value = float {1}> ()"
INDICES = "i = Constant <value = int64[4] {0, 1, 0, 1}> ()"

HOSTILE: Mapping[str, Callable[[], onnx.ModelProto]] = {
    "doubling": lambda: _again(TWICE, 40, "a0 = Constant <value = float[2] {1, 2}> ()"),
    "doubling what is dequantised": lambda: _again(
        TWICE, 34, f"{SCALE} a0 = DequantizeLinear (q, f)"
    ),
    "doubling by Gather": lambda: _again(
        "a{1} = Gather (a{0}, i{0}) i{1} = Concat <axis = 0> (i{0}, i{0})",
        30,
        f"{INDICES.replace('i =', 'i0 =')} a0 = Constant <value = float[2] {{1, 2}}> ()",
    ),
    "product of large constants": lambda: _product(24),
    "calls of sums": lambda: _calls(30, "b = Add (a, a)"),
    "calls of nothing": lambda: _calls(30, "b = Identity (a)"),
    "known loop": lambda: _loop(1 << 40, f"{SUM} {GOING}", "c"),
    "loop": lambda: _loop(1 << 40, f"{SUM} {GOING}", "x"),
    "known loop that grows": lambda: _loop(
        10_000, f"r = Concat <axis = 0> (s, s) {GOING}", "c", "float[m]"
    ),
    "loop that grows": lambda: _loop(
        10_000, f"r = Concat <axis = 0> (s, s) {GOING}", "x", "float[m]"
    ),
    "loop without end": lambda: _loop(
        None, "r = Abs (s) q = ReduceSum <keepdims = 0> (r) e = Sub (q, q) h = Less (e, q)", "c"
    ),
    "loops in loops": lambda: _nested(6, 1000),
    "ConstantOfShape": lambda: _model(f"{_shape(1 << 40)} y = ConstantOfShape (s)"),
    "Expand": lambda: _model(
        f"{_shape(8 << 30, 2)} e = Expand (c, s) y = Add (x, e)".replace("c,", "x,")
    ),
    "Tile": lambda: _model(f"{_shape(8 << 30)} y = Tile (x, s)"),
    "Range": lambda: _model(
        " ".join(
            _number(name, value, "float") for name, value in (("a", 0), ("b", 3e38), ("d", 1e-38))
        )
        + " y = Range (a, b, d)"
    ),
    "OneHot": lambda: _model(
        f"{INDICES} {_number('d', 1 << 40)} {KNOWN} o = OneHot (i, d, c) y = ReduceSum (o)"
    ),
    "sparse constant": lambda: _sparse(1 << 34),
    "RandomNormal": lambda: _model("y = RandomNormal <shape = [1000000, 1000000]> ()"),
    "DFT": lambda: _model(
        f"{_shape(1, 2_000_000, 1)} e = Expand (x, s) {_number('n', 2_000_000)} y = DFT (e, n)",
        "float[1, 1, 1] x",
    ),
    "STFT": lambda: _model(
        f"{_shape(1, 2_000_000, 1)} e = Expand (x, s) {_number('n', 1)} {_number('l', 1_000_000)} "
        "f = STFT (e, n, , l) y = ReduceSum (f)",
        "float[1, 1, 1] x",
    ),
    "HannWindow": lambda: _model(f"{_number('n', 4_000_000_000)} y = HannWindow (n)"),
    "MelWeightMatrix": lambda: _model(
        f"{_number('b', 100_000)} {_number('l', 10_000_000)} {_number('r', 8192)} "
        f"{_number('f', 0, 'float')} {_number('u', 4096, 'float')} "
        "w = MelWeightMatrix (b, l, r, f, u) y = ReduceSum (w)"
    ),
    "Resize": lambda: _model(
        f'{_shape(1, 1, 4_000_000_000)} y = Resize <mode = "linear"> (x, , , s)', CUBE
    ),
    "Upsample": lambda: _model(
        "s = Constant <value = float[3] {1, 1, 4e9}> () y = Upsample (x, s)", CUBE
    ),
    "SplitToSequence": lambda: _model(
        f"{_shape(4_000_000_000)} e = Expand (x, s) q = SplitToSequence (e) y = SequenceAt (q, z)",
        "float[1] x, int64 z",
    ),
    "MaxPool": lambda: _model(
        "y = MaxPool <kernel_shape = [1000000000], pads = [999999999, 999999999]> (x)", CUBE
    ),
    "AveragePool": lambda: _model(
        "y = AveragePool <kernel_shape = [1000000000], pads = [999999999, 999999999]> (x)", CUBE
    ),
    "ConvTranspose": lambda: _model(
        "y = ConvTranspose <strides = [1000000000]> (x, w)", f"{CUBE}, float[1, 1, 3] w"
    ),
    "Col2Im": lambda: _model(
        "s = Constant <value = int64[2] {100000, 100000}> () "
        "b = Constant <value = int64[2] {1, 1}> () i = Col2Im (x, s, b) y = ReduceSum (i)",
        "float[1, 1, 10000000000] x",
    ),
    "RoiAlign": lambda: _model(
        "r = RoiAlign <output_height = 1000000, output_width = 1000000, sampling_ratio = 1000> "
        "(x, b, n) y = ReduceSum (r)",
        "float[1, 1, 8, 8] x, float[1, 4] b, int64[1] n",
    ),
    "LSTM": lambda: _model(
        f"{_shape(100_000_000, 1, 1)} e = Expand (x, s) _, y = LSTM <hidden_size = 1> (e, w, r)",
        "float[1, 1, 1] x, float[1, 4, 1] w, float[1, 4, 1] r",
    ),
    "Scan": lambda: _model(
        f"{_shape(1_000_000_000, 2)} e = Expand (x, s) y = Scan <num_scan_inputs = 1, body = b "
        "(float[2] a, float[2] c) => (float[2] d) { d = Add (a, c) }> (x, e)"
    ),
    "Hardmax": lambda: _model("y = Hardmax <axis = 2> (x)", "float[1, 1, 8589934592] x"),
}
"""By what asks for much; each has an output ``y``."""
