"""What one configuration takes and another refuses."""

from dovetail.isa.configs import find_config
from dovetail.isa.instructions import Load
from dovetail.isa.legality import legality_problem
from dovetail.isa.memories import Memory


def test_dram_addresses_are_whole_words_of_the_configuration() -> None:
    load = Load(memory=Memory.ACT, sram_address=0, dram_address=8)
    assert legality_problem(load, find_config("tiny")) is None
    assert "required a multiple of 16" in str(legality_problem(load, find_config("zynq7020")))
