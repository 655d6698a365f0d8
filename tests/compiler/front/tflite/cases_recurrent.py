"""Models of recurrent layers of bytes, or of floats with weights of bytes."""

from collections.abc import Iterator

import numpy as np

from .case import Case, Const, F, In, Operands, Out, State, case, floats, rng

__all__ = ["hybrid_layers", "integer_layers"]


def _bytes(*shape: int, scale: float = 0.01, dtype: str = "int8") -> Const:
    low = -127 if dtype == "int8" else -3000
    return Const(rng().integers(low, -low, shape, endpoint=True).astype(dtype), (scale,), (0,))


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
