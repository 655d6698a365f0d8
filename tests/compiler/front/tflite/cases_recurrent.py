"""Models of recurrent layers of bytes, or of floats with weights of bytes."""

from collections.abc import Iterator

import numpy as np

from .case import Case, Const, F, In, Operands, Out, State, case, floats, rng

__all__ = ["hybrid_layers", "integer_layers"]


def _bytes(*shape: int, scale: float = 0.01, dtype: str = "int8") -> Const:
    low = -127 if dtype == "int8" else -3000
    return Const(rng().integers(low, -low, shape, endpoint=True).astype(dtype), (scale,), (0,))


def _bias(size: int) -> Const:
    return Const(rng().integers(-900, 900, size).astype(np.int32), (0.0002,), (0,))


def hybrid_layers() -> Iterator[Case]:
    for asymmetric in (False, True):
        own = {"FusedActivationFunction": 4, "AsymmetricQuantizeInputs": asymmetric}
        weights: Operands = [_bytes(5, 3), _bytes(5, 5), floats(5), State((2, 5))]
        yield case("RNN", [In((2, 3)), *weights], [F], "RNNOptions", own, "hybrid")
        sequence = [In((2, 4, 3)), *weights]
        kind = "UNIDIRECTIONAL_SEQUENCE_RNN"
        yield case(kind, sequence, [F], "SequenceRNNOptions", own, "hybrid")
        factors: Operands = [_bytes(8, 3), _bytes(8, 6), floats(4), State((2, 48))]
        options = {**own, "Rank": 2, "FusedActivationFunction": 1}
        yield case("SVDF", [In((2, 3)), *factors], [F], "SVDFOptions", options, "hybrid")
        for variant in ("plain", "peephole", "projected"):
            outputs = 4 if variant == "projected" else 5
            given: Operands = [
                *(_bytes(5, 3) for _ in range(4)),
                *(_bytes(5, outputs) for _ in range(4)),
                *(_bytes(5) if variant == "peephole" else None for _ in range(3)),
                *(floats(5) for _ in range(4)),
                *([_bytes(4, 5), floats(4)] if variant == "projected" else [None, None]),
                *(State((2, outputs)), State((2, 5))),
            ]
            for kind, shape in (("LSTM", (2, 3)), ("UNIDIRECTIONAL_SEQUENCE_LSTM", (2, 4, 3))):
                table = "LSTMOptions" if kind == "LSTM" else "UnidirectionalSequenceLSTMOptions"
                yield case(kind, [In(shape), *given], [F], table, own, "hybrid")


def integer_layers() -> Iterator[Case]:
    for variant in ("plain", "peephole", "coupled", "projected", "normalised"):
        for steps in (1, 4):
            yield _integer_lstm(variant, steps)
    for rank in (1, 2):
        bias = Const(rng().integers(-900, 900, 8 // rank).astype(np.int32), (0.0001,), (0,))
        operands: Operands = [
            In((2, 5), "int8", scale=0.02, zero=3),
            *(_bytes(8, 5), _bytes(8, 6, scale=0.0005, dtype="int16"), bias),
            State((2, 48), "int16", 0.0002),
        ]
        yield case(
            "SVDF",
            operands,
            [Out("int8", 0.007, -5)],
            "SVDFOptions",
            {"Rank": rank, "FusedActivationFunction": 1},
        )


def _integer_lstm(variant: str, steps: int) -> Case:
    """Cells of 11 fraction bits; the intermediate tensors are quantised, and have no values."""
    outputs = 4 if variant == "projected" else 5
    normal = variant == "normalised"
    entry: Operands = [_bytes(5, 3) for _ in range(4)]
    back: Operands = [_bytes(5, outputs) for _ in range(4)]
    peephole: Operands = [
        _bytes(5, scale=0.0002, dtype="int16") if variant == "peephole" else None for _ in range(3)
    ]
    biases: Operands = [_bias(5) for _ in range(4)]
    projection: Operands = [_bytes(4, 5), _bias(4)] if variant == "projected" else [None, None]
    if variant == "coupled":
        entry[0] = back[0] = biases[0] = None
    operands: Operands = [
        *(*entry, *back, *peephole, *biases, *projection),
        *(State((2, outputs), "int8", 0.009, 7), State((2, 5), "int16", 2.0**-11)),
        *(_bytes(5, scale=0.0003, dtype="int16") if normal else None for _ in range(4)),
    ]
    between = [Out("int16", 0.0011 if normal else 2.0**-12)] * 4
    between.append(Out("int8", 0.009, 5 if variant == "projected" else 7))
    sequence = steps > 1
    return case(
        "UNIDIRECTIONAL_SEQUENCE_LSTM" if sequence else "LSTM",
        [In((2, steps, 3) if sequence else (2, 3), "int8", scale=0.03, zero=-4), *operands],
        [Out("int8", 0.009, 7)],
        "UnidirectionalSequenceLSTMOptions" if sequence else "LSTMOptions",
        {"FusedActivationFunction": 4, "CellClip": 6.0 if variant == "plain" else 0.0},
        version=3,
        between=between,
    )
