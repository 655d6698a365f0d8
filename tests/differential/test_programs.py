"""A sample of random programs on all three: ``make differential`` runs as many as you like."""

import pytest

from dovetail.isa.configs import find_config
from tests.differential.compare import compare
from tests.differential.generate import generate


@pytest.mark.parametrize(("config", "programs"), [("tiny", 60)])
def test_semantics_simulator_and_rtl_agree(config: str, programs: int) -> None:
    hardware = find_config(config)
    cases = [generate(hardware, 1, number) for number in range(programs)]
    differences = {number: d.first for number, d in enumerate(compare(cases)) if d}
    assert not differences, f"{differences}; see: make differential CONFIG={config}"


def test_a_case_is_the_same_every_time() -> None:
    hardware = find_config("tiny")
    assert generate(hardware, 5, 3).instructions == generate(hardware, 5, 3).instructions
