"""Models of ONNX's tests, and some that ask for much, damaged: bytes, names, attributes, types."""

import os
import random
import warnings
from functools import cache

import onnx

from .hostile import HOSTILE

__all__ = ["models", "mutant"]

LARGEST_MODEL = 20_000
"""Bytes; small models are mutated in more places."""

NUMBERS = (0, -1, 1, 2, 7, 1 << 31, -(1 << 40), 1 << 62)
SIZES = (0, 1, 2, 3, 5, 1 << 20, 1 << 40, -1)
KINDS = ("Add", "Concat", "Conv", "Foo", "Gather", "Loop", "MatMul", "Pad", "Reshape", "Resize")
OPSETS = (1, 7, 9, 11, 13, 18, 22, 26, 0, -1, 99)


@cache
def models() -> tuple[bytes, ...]:
    """The models that are mutated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.loader import load_model_tests

        found = []
        for kind in ("node", "simple", "pytorch-operator"):
            for test in load_model_tests(kind=kind):
                model = test.model
                if model is None and test.model_dir:
                    model = onnx.load(os.path.join(test.model_dir, "model.onnx"))
                if model is not None and model.ByteSize() <= LARGEST_MODEL:
                    found.append(model.SerializeToString())
    return tuple(found)


@cache
def hostile() -> tuple[bytes, ...]:
    """The small models that ask for much."""
    return tuple(make().SerializeToString() for make in HOSTILE.values())


def mutant(seed: int) -> bytes:
    """One damaged model."""
    draw = random.Random(seed)
    data = draw.choice(hostile() if draw.random() < 0.1 else models())
    return _damage_bytes(draw, data) if draw.random() < 0.4 else _damage_model(draw, data)


def _damage_bytes(draw: random.Random, data: bytes) -> bytes:
    damaged = bytearray(data)
    for _ in range(draw.choice((1, 1, 2, 5))):
        if not damaged:
            break
        place = draw.randrange(len(damaged))
        match draw.randrange(4):
            case 0:
                damaged[place] = draw.randrange(256)
            case 1:
                del damaged[place : place + draw.randrange(1, 9)]
            case 2:
                damaged[place:place] = draw.randbytes(draw.randrange(1, 5))
            case _:
                del damaged[place:]
    return bytes(damaged)


def _damage_model(draw: random.Random, data: bytes) -> bytes:
    model = onnx.ModelProto()
    model.ParseFromString(data)
    for _ in range(draw.choice((1, 1, 2, 3))):
        if model.graph.node:
            _damage_once(draw, model)
    return model.SerializeToString()


def _damage_once(draw: random.Random, model: onnx.ModelProto) -> None:
    graph = model.graph
    node = draw.choice(graph.node)
    names = [each.name for each in graph.input]
    names += [name for each in graph.node for name in (*each.input, *each.output)]
    match draw.randrange(11):
        case 0 if node.input:
            node.input[draw.randrange(len(node.input))] = draw.choice([*names, "", "nowhere"])
        case 1 if node.output:
            node.output[draw.randrange(len(node.output))] = draw.choice([*names, ""])
        case 2 if node.attribute:
            _damage_attribute(draw, draw.choice(node.attribute))
        case 3 if node.attribute:
            del node.attribute[draw.randrange(len(node.attribute))]
        case 4 if graph.input:
            dims = draw.choice(graph.input).type.tensor_type.shape.dim
            if dims:
                draw.choice(dims).dim_value = draw.choice(SIZES)
        case 5 if graph.input:
            draw.choice(graph.input).type.tensor_type.elem_type = draw.randrange(24)
        case 6:
            node.op_type = draw.choice([*(each.op_type for each in graph.node), *KINDS])
        case 7 if graph.initializer:
            sizes = draw.choice(graph.initializer).dims
            if sizes:
                sizes[draw.randrange(len(sizes))] = draw.choice(SIZES)
        case 8 if node.input:
            del node.input[draw.randrange(len(node.input))]
        case 9:
            graph.node.append(node)
        case _ if model.opset_import:
            model.opset_import[0].version = draw.choice(OPSETS)
        case _:
            pass


def _damage_attribute(draw: random.Random, attribute: onnx.AttributeProto) -> None:
    number = draw.choice(NUMBERS)
    match attribute.type:
        case onnx.AttributeProto.INT:
            attribute.i = number
        case onnx.AttributeProto.INTS if attribute.ints:
            attribute.ints[draw.randrange(len(attribute.ints))] = number
        case onnx.AttributeProto.FLOAT:
            attribute.f = draw.choice((0.0, -1.0, float("nan"), float("inf"), 1e30))
        case onnx.AttributeProto.STRING:
            attribute.s = draw.choice((b"", b"xx", b"\xff"))
        case _:
            attribute.type = draw.choice((1, 2, 3, 7))
