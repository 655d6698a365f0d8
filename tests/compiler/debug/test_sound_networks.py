"""Sound programs of all kinds of layers: every byte that is compared agrees, so all that modules
say about where tensors lie is right; and they say of LOADs of constants which they are.
"""

import numpy as np
import onnx
import pytest

from dovetail.compiler import compile
from dovetail.compiler.cli.arrays import random_inputs
from dovetail.compiler.debug.debugger import Debugger
from dovetail.isa.instructions import Load, Store
from dovetail.isa.memories import Memory
from tests.end_to_end import test_joins, test_networks, test_transposed
from tests.end_to_end.models import Network, random_network
from tests.end_to_end.test_attention import F32, WIDTH, Rows, scores

from .planted import changed_bytes

TARGETS = ["vta:tiny", "vta:zynq7020"]


def check(model: onnx.ModelProto, target: str) -> Debugger:
    """Check the whole run of a model: nothing is found, and no layer, nor any part of one, is left
    out."""
    module = compile(model, target=target)
    debugger = Debugger(module, random_inputs(module), "sim", model)
    found = debugger.check()
    assert found.passes, found
    assert len(found.compared) == len(debugger.layers)
    layers = debugger.reference.partition.layers
    sizes = [debugger.reference.values[layer.output].size for layer in layers]
    for size, (name, compared) in zip(sizes, found.compared.items(), strict=True):
        assert compared >= size, name
    loads = ((index, each) for index, each in enumerate(debugger.program) if isinstance(each, Load))
    constants = {index for index, load in loads if load.memory is not Memory.ACT}
    assert constants >= set(debugger.record.constants)  # those that several share are not known
    return debugger


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("seed", range(4))
def test_random_networks(seed: int, target: str) -> None:
    assert check(random_network(seed), target).record.constants


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", test_networks.NETWORKS)
def test_each_kind_of_layer(name: str, target: str) -> None:
    net = Network(np.random.default_rng(3))
    check(net.model(test_networks.NETWORKS[name](net)), target)


@pytest.mark.parametrize("name", test_joins.NETWORKS)
def test_parts_of_tensors(name: str) -> None:
    net = Network(np.random.default_rng(3))
    check(net.model(test_joins.NETWORKS[name](net)), "vta:tiny")


@pytest.mark.parametrize("name", test_transposed.NETWORKS)
def test_pixels_apart(name: str) -> None:
    size = (8, 8) if "joined" in name else (9, 7)
    check(test_transposed.build(test_transposed.NETWORKS[name], size), "vta:tiny")


@pytest.mark.parametrize("name", ["transposed, grown", "average"])
def test_tensors_that_stay_in_memory(name: str) -> None:
    check(test_transposed.build(test_transposed.NETWORKS[name], (24, 60)), "vta:tiny")


def test_rows_that_are_weights_and_fill_no_block() -> None:
    """Blocks of 10 keys lie as far apart as those of 12."""
    net = Rows(10)
    x = net.dequantize("x", F32(0.02), np.int8(3))
    y = net.quantize(scores(net, x), F32(0.2), np.int8(-9))
    run = check(net.build({"x": ("int8", (1, 10, WIDTH))}, y), "vta:tiny")
    assert [each.spare for each in run.record.tensors if each.spare] == [2]


def test_one_vector_and_one_store_of_two_results() -> None:
    net = Network(np.random.default_rng(3))
    x = net.input(4, 1, 1)
    model = net.model(*(net.dense(x, 4) for _ in range(2)))
    run = check(model, "vta:tiny")
    assert sum(isinstance(each, Store) for each in run.program) == 1
    ((index, frames),) = run.record.frames.items()
    names = [run.record.tensors[frame.tensor].name for frame in frames]
    assert names == [layer.output for layer in run.reference.partition.layers]
    # A wrong bias of the second result is told to what brought it.
    (load,) = (
        (place, each.dram_address)
        for place, each in enumerate(run.program)
        if isinstance(each, Load) and each.memory is Memory.PAR
    )
    second = load[1] + run.config.word_bytes(Memory.PAR)
    module = changed_bytes(compile(model, target="vta:tiny"), second, b"\1\2\3\0")
    found = Debugger(module, random_inputs(module), "sim", model).check()
    assert found.finding is not None
    assert found.cause is not None
    assert (found.finding.instruction.index, found.finding.tensor) == (index, names[1])
    assert found.cause.instruction.index == load[0], found.cause
