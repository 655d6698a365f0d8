"""Units that wait for each other's banks: sums in parts leave STORE time for the results."""

from dataclasses import replace

import numpy as np

from dovetail.compiler.driver import compile_model
from dovetail.isa.instructions import Gemm, Store
from dovetail.isa.program import program_from_bytes
from dovetail.runtime.accelerator.part import AcceleratorPart
from tests.end_to_end.models import Network
from tests.kept_costs import check_costs

from .programs import TINY
from .test_stream import assert_exact

CRAMPED = replace(TINY, name="cramped", act_depth=256, act_banks=4)


def test_results_in_a_bank_of_inputs_are_stored_between_parts_of_the_sums() -> None:
    """Two rows of 16 blocks fill 224 words of 256; results lie in what is left of their banks."""
    net = Network(np.random.default_rng(2))
    x = net.conv(net.conv(net.input(3, 7, 7), 64, (1, 1)), 16, (1, 1))
    model = net.model(net.conv(x, 4, (1, 1)))
    (part,) = compile_model(model, CRAMPED).parts
    assert isinstance(part, AcceleratorPart)
    check_costs([part])
    code = part.dram[part.program_address :][: part.program_bytes]
    layer = [
        each
        for each, number in zip(program_from_bytes(code), part.layer_of, strict=True)
        if number == 1
    ]
    stored = {each.act_read_banks for each in layer if isinstance(each, Store)}
    read = {each.act_read_banks for each in layer if isinstance(each, Gemm)}
    assert stored
    assert all(any(not banks & held for held in read) for banks in stored)
    assert_exact(model, CRAMPED, 3)
