"""Writes the generated part of ``docs/operators.md``: ``python -m tests.operators``."""

from .cases import CASES
from .model import outcome_of
from .page import TARGET, write_page

write_page({case.title: outcome_of(case, TARGET) for case in CASES})
