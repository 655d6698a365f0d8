"""Comparison of a target's results with ONNX Runtime's.

ONNX Runtime is asked three ways: optimised, optimised with operators of int8, and not optimised.  A
byte is right if one of the three has it.  Where they differ from each other, or where the
documentation allows a step (``SOFT``), layers behind may differ by any number: there the model is
cut, each piece is compared on what ONNX Runtime has in between.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache

import numpy as np
import onnx

from dovetail.compiler.errors import (
    CompileLimitError,
    DoesNotFitError,
    ModelError,
    UnsupportedOperatorError,
)
from dovetail.isa.errors import DovetailError

from .draw import Sample, trimmed
from .memories import DRAWN
from .ready import Ready, Target, make_ready
from .running import REFUSED, Array, compute

__all__ = [
    "KEPT",
    "SOFT",
    "TARGETS",
    "FoundError",
    "RefusedError",
    "check",
    "difference",
    "documented",
    "named",
    "ready",
    "uncertain",
]

TARGETS = ("cpu", "vta:tiny", "vta:zynq7020", "vta:ecp5_85", "vta:large", DRAWN)

SOFT = frozenset((
    "AveragePool", "GlobalAveragePool", "ReduceMean", "ReduceSum", "ConvTranspose", "Resize",
    "Softmax", "LogSoftmax", "InstanceNormalization", "LayerNormalization", "LpNormalization",
    "Gelu", "Sigmoid", "Tanh", "Erf", "Exp", "Softplus", "Mish", "Sin", "Cos", "Elu", "Selu",
    "Celu", "GroupNormalization", "LRN", "LpPool", "LpNormalization", "ReduceL2", "ReduceLogSumExp",
    "ReduceSumSquare", "ReduceL1",
))  # fmt: skip
"""Operators whose quantised results may be a step off: sums of floats, approximations."""

TOLERANCE = 2e-4
"""How far float results may be off, as part of the tensor's largest."""


class FoundError(Exception):
    """A result that the documentation does not allow."""


class RefusedError(Exception):
    """The target does not take the model; the message says why."""


def named(target: Target) -> str:
    """A target in messages."""
    return target if isinstance(target, str) else f"vta:{target.name}"


def check(sample: Sample, target: Target) -> None:
    """Raises FoundError for a wrong result, RefusedError, and what the compiler may not raise."""
    if not _wrong(sample, target):
        return
    _compare_plans(sample, target)
    for piece, steps in _cut(sample):
        try:
            wrong = _wrong(piece, target, steps)
        except RefusedError:  # nothing of this piece is for the target
            continue
        if wrong:
            raise FoundError(f"{named(target)}: {wrong}")


def _wrong(sample: Sample, target: Target, steps: int = 0) -> str:
    """The fault of the results; nothing if there is none.

    A step is allowed where the target says that pairs of a sum's operands give another byte.
    """
    with documented(target):
        made = ready(sample, target)
    steps = max(steps, made.inexact)
    for given, right in zip(sample.inputs, _wanted(sample), strict=True):
        found = made.compute(given)
        for value, wanted in zip(sample.model.graph.output, right, strict=True):
            wrong = difference(found[value.name], wanted, steps)
            if wrong:
                return f"output {value.name}: {wrong}"
    return ""


def _compare_plans(sample: Sample, target: Target) -> None:
    """Raises FoundError where another plan gives other bytes: pieces have plans of their own."""
    both = [ready(sample, target), make_ready(sample.model, target)]
    for given in sample.inputs:
        first, second = (each.compute(given) for each in both)
        for name in (value.name for value in sample.model.graph.output):
            values = first[name]
            if not np.array_equal(values, second[name], equal_nan=values.dtype.kind == "f"):
                raise FoundError(f"{named(target)}: output {name} of two plans differs")


KEPT: dict[Target, tuple[Sample, Ready]] = {}
"""The last sample for each target: a model is compared with two things."""


def ready(sample: Sample, target: Target) -> Ready:
    """A sample made ready, kept while no other is asked for."""
    if target not in KEPT or KEPT[target][0] is not sample:
        KEPT[target] = sample, make_ready(sample.model, target)
    return KEPT[target][1]


@contextmanager
def documented(target: Target) -> Iterator[None]:
    """Tells what a target does not take from errors that the compiler may not raise."""
    try:
        yield
    except (CompileLimitError, DoesNotFitError, ModelError, UnsupportedOperatorError) as error:
        raise RefusedError(f"{type(error).__name__}: {error}") from None
    except DovetailError as error:
        raise FoundError(f"{named(target)}: {type(error).__name__}: {error}") from error


@lru_cache(maxsize=32)
def _wanted(sample: Sample) -> list[list[tuple[Array, ...]]]:
    """ONNX Runtime's results for each input, kept for the other targets."""
    return [references(sample.model, given) for given in sample.inputs]


def references(model: onnx.ModelProto, given: Mapping[str, Array]) -> list[tuple[Array, ...]]:
    """ONNX Runtime's results for each output; not optimised last.

    Raises RefusedError where it does not run the model: rules of shapes that disagree with its own
    pools, rounded up, refuse what stands behind them.
    """
    found = []
    for optimised, integers in ((True, False), (True, True), (False, False)):
        try:
            found.append(compute(model, dict(given), optimised=optimised, integers=integers))
        except REFUSED:
            continue
    if not found:
        raise RefusedError("ONNX Runtime does not run the model")
    return list(zip(*found, strict=True))


def difference(found: Array, wanted: Sequence[Array], steps: int) -> str:
    """How many elements are none of those wanted, within ``steps``; nothing if all are."""
    plain = wanted[-1]
    if found.shape != plain.shape or found.dtype != plain.dtype:
        return f"{found.dtype}{list(found.shape)}; required {plain.dtype}{list(plain.shape)}"
    if found.dtype == np.float32:
        room = TOLERANCE * max(float(np.abs(plain[np.isfinite(plain)]).max(initial=0)), 1e-30)
        right = [np.isclose(found, each, 0, room, equal_nan=True) for each in wanted]
    elif found.dtype.kind in "iu" and found.dtype.itemsize <= 2:
        steps = max(steps, found.dtype.itemsize - 1)  # sums of floats are off by more than 2^-16
        numbers = found.astype(np.int32)
        right = [np.abs(numbers - each.astype(np.int32)) <= steps for each in wanted]
    else:
        right = [found == each for each in wanted]
    wrong = ~np.any(right, axis=0)
    if not wrong.any():
        return ""
    place = tuple(int(n) for n in np.argwhere(wrong)[0])
    values = ", ".join(str(each[place]) for each in wanted)
    return f"{wrong.sum()} of {wrong.size} wrong, at {place} {found[place]}; required {values}"


@lru_cache(maxsize=4)
def _cut(sample: Sample) -> list[tuple[Sample, int]]:
    """The pieces that are compared by themselves, and the steps that each may be off."""
    return _pieces(sample, uncertain(sample))


def uncertain(sample: Sample) -> dict[str, int]:
    """Quantised tensors behind which the model is cut: how many steps they may be off."""
    model = sample.model
    stored = [node.output[0] for node in model.graph.node if _stores(node)]
    makers = {name: node for node in model.graph.node for name in node.output}
    cuts = {name: 1 for name in stored if _is_soft(name, makers)}
    kinds: dict[str, np.dtype] = {}
    for given in sample.inputs:
        whole = with_outputs(model, stored)
        results = dict(zip(stored, references(whole, given), strict=True))
        kinds |= {name: array.dtype for name, array in given.items()}
        kinds |= {name: found[-1].dtype for name, found in results.items()}
        cuts |= {name: 1 for name in stored if _may_tie(name, makers, kinds)}
        for name, found in results.items():
            if any(not np.array_equal(found[-1], each) for each in found):
                cuts.setdefault(name, 0)
            if found[-1].dtype.itemsize == 2:
                cuts.setdefault(name, 1)
    return cuts


def _may_tie(
    name: str, makers: Mapping[str, onnx.NodeProto], kinds: Mapping[str, np.dtype]
) -> bool:
    """True if a tensor is a sum that ONNX Runtime computes in floats.

    It has no operator of bytes for sums of two types, of floats, or of weights of 4 bits, and none
    for differences.  Products may be summed, and a clip may follow.
    """
    if makers[name].op_type != "QuantizeLinear":
        return False
    node = makers.get(makers[name].input[0])
    while node is not None and node.op_type in ("Relu", "Clip"):
        node = makers.get(node.input[0])
    if node is not None and node.op_type == "MatMul":
        weights = makers.get(node.input[1])
        if weights is not None and any(each.name == "block_size" for each in weights.attribute):
            return True
    if node is None or node.op_type not in ("Add", "Sub", "Conv", "Gemm", "MatMul"):
        return False
    operands = node.input[: 1 if node.op_type in ("Conv", "Gemm") else 2]
    read = [makers[each].input[0] for each in operands if each in makers]
    return node.op_type == "Sub" or any(kinds.get(each) != kinds[name] for each in read)


def _stores(node: onnx.NodeProto) -> bool:
    return node.op_type in ("QuantizeLinear", "QGemm") or node.op_type.startswith("QLinear")


def _is_soft(name: str, makers: Mapping[str, onnx.NodeProto]) -> bool:
    """True if a soft operator comes between a tensor and the quantised ones before it."""
    if makers[name].op_type != "QuantizeLinear":
        return makers[name].op_type.removeprefix("QLinear") in SOFT
    pending = list(makers[name].input)
    while pending:
        node = makers.get(pending.pop())
        if node is None or node.op_type == "DequantizeLinear":
            continue
        if not SOFT.isdisjoint(_kinds(node)):
            return True
        pending += node.input
    return False


def _kinds(node: onnx.NodeProto) -> Iterator[str]:
    """The kind of a node, and those of the nodes in its bodies."""
    yield node.op_type
    for attribute in node.attribute:
        for inner in attribute.g.node:
            yield from _kinds(inner)


def _pieces(sample: Sample, cuts: Mapping[str, int]) -> list[tuple[Sample, int]]:
    """The model cut: one piece for each uncertain tensor, and one for the outputs."""
    inner = [
        compute(with_outputs(sample.model, list(cuts)), given) if cuts else []
        for given in sample.inputs
    ]
    known = [
        {**given, **dict(zip(cuts, found, strict=True))}
        for given, found in zip(sample.inputs, inner, strict=True)
    ]
    outputs = [value.name for value in sample.model.graph.output if value.name not in cuts]
    kinds = (kind for node in sample.model.graph.node for kind in _kinds(node))
    soft = not SOFT.isdisjoint(kind.removeprefix("QLinear") for kind in kinds)
    pieces = []
    for wanted, steps in ((outputs, int(soft)), *(([name], each) for name, each in cuts.items())):
        model = with_inputs(
            with_outputs(sample.model, wanted), [n for n in cuts if n not in wanted], known[0]
        )
        names = {value.name for value in model.graph.input}
        given = tuple({n: a for n, a in each.items() if n in names} for each in known)
        if model.graph.node:
            pieces.append((Sample(model, given), steps))
    return pieces


def with_outputs(model: onnx.ModelProto, names: Sequence[str]) -> onnx.ModelProto:
    """The model with other outputs."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    old = {value.name: value for value in model.graph.output}
    del made.graph.output[:]
    made.graph.output.extend(old.get(name, onnx.ValueInfoProto(name=name)) for name in names)
    return trimmed(made)


def with_inputs(
    model: onnx.ModelProto, names: Sequence[str], values: Mapping[str, Array]
) -> onnx.ModelProto:
    """The model with tensors that nodes made as inputs."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    graph = made.graph
    kept = [node for node in graph.node if not set(node.output).intersection(names)]
    del graph.node[:]
    graph.node.extend(kept)
    for name in names:
        array = values[name]
        kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        graph.input.append(onnx.helper.make_tensor_value_info(name, kind, array.shape))
    return trimmed(made)
