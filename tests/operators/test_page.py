"""Every line of the page of operators is true: where it runs, and how exactly."""

import pytest

from .cases import CASES, Case
from .model import outcome_of
from .page import PAGE, TARGET, lines_of, row


@pytest.mark.parametrize("case", CASES, ids=[case.title for case in CASES])
def test_a_line_of_the_page(case: Case) -> None:
    outcome = outcome_of(case, TARGET)
    assert row(case, outcome) in lines_of(PAGE.read_text())
    assert outcome.off <= case.off


def test_the_page_has_no_other_lines() -> None:
    found = [line for line in lines_of(PAGE.read_text()) if line.startswith("| ")]
    titles = {line.split(" | ")[0].removeprefix("| ") for line in found}
    assert titles == {case.title for case in CASES} | {"between two convolutions"}
