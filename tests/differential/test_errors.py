"""Programs that the machine must stop: the simulator and the RTL stop alike, and nothing is written
after.
"""

import numpy as np
import pytest

from dovetail.isa.configs import find_config
from dovetail.isa.encoding import decode
from dovetail.isa.errors import EncodingError
from dovetail.isa.legality import legality_problem
from dovetail.isa.registers import ErrorCode
from tests.differential.compare import compare
from tests.differential.faults import FAULTS, Fault
from tests.differential.generate import generate

CASES = 25
CONFIG = find_config("tiny")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__.strip("_"))
def test_a_fault_stops_simulator_and_rtl_alike(fault: Fault) -> None:
    rng = np.random.default_rng(FAULTS.index(fault))
    cases = [fault(generate(CONFIG, 100, number), rng) for number in range(CASES)]
    found = compare(cases)
    differences = {number: d.first for number, d in enumerate(found) if d}
    assert not differences
    wanted = frozenset[ErrorCode]().union(*(case.outcomes for case in cases)) - {ErrorCode.NONE}
    assert wanted & {ErrorCode(d.error_code) for d in found}


def test_every_rule_of_legality_is_broken_by_some_case() -> None:
    """The random illegal words are of many kinds, not only unknown opcodes."""
    rng = np.random.default_rng(7)
    reasons = set()
    for number in range(120):
        (word,) = FAULTS[0](generate(CONFIG, 5, number % 10), rng).damage.values()
        try:
            reason = legality_problem(decode(word), CONFIG)
        except EncodingError as error:
            reason = str(error)
        assert reason is not None
        reasons.add(reason.partition("=")[0])
    assert len(reasons) > 10, reasons
