"""A plugin of pytest that notes of each test file the lines that it reaches, and its CPU seconds.

    coverage run ... -m pytest -p tests.mutants_code.contexts ...

Lines go to coverage's data, under the file's path as context; seconds and failures, as JSON, to the
file named by TEST_SECONDS, if there is one.
"""

import json
import os
import resource
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest
from coverage import Coverage

SECONDS: dict[str, float] = defaultdict(float)
FAILED: set[str] = set()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Count a test's lines and seconds for its file."""
    name, measured = item.nodeid.split("::")[0], Coverage.current()
    if measured is not None:
        measured.switch_context(name)
    start = _seconds()
    try:
        return (yield)
    finally:
        SECONDS[name] += _seconds() - start


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note a failure."""
    if report.failed:
        FAILED.add(report.nodeid.split("::")[0])


def pytest_sessionfinish() -> None:
    """Write what was counted."""
    if "TEST_SECONDS" in os.environ:
        found = {name: None if name in FAILED else each for name, each in SECONDS.items()}
        Path(os.environ["TEST_SECONDS"]).write_text(json.dumps(found))


def _seconds() -> float:
    used = [resource.getrusage(each) for each in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)
