"""A plugin of pytest that ends long tests, and notes of each the lines it reaches and CPU seconds.

    coverage run ... -m pytest -p tests.mutants_code.contexts ...

Lines go to coverage's data, under the test's name as context; seconds, as JSON, to the file named
by TEST_SECONDS: null for a test that fails or is skipped.
"""

import json
import os
import resource
import signal
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from types import FrameType

import pytest
from coverage import Coverage

LONGEST, TOGETHER = 3, 15
"""CPU seconds of the process itself after which a test is ended, as it is none for many faults, and
CPU seconds of all tests after which no other begins."""
BEFORE = 12
"""CPU seconds after which its fixtures are ended, which all tests of a file may need."""
ENOUGH = f"enough after {TOGETHER} CPU seconds"
SECONDS: dict[str, float | None] = defaultdict(float)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Count a test's lines and seconds."""
    measured = Coverage.current()
    if measured is not None:
        measured.switch_context(item.nodeid)
    start = _seconds()
    signal.signal(signal.SIGPROF, _end)
    signal.setitimer(signal.ITIMER_PROF, BEFORE)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        if _seconds() > TOGETHER:
            item.session.shouldstop = ENOUGH
        if SECONDS[item.nodeid] is not None:
            SECONDS[item.nodeid] = round(_seconds() - start, 3)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call() -> None:
    """Limit the test itself."""
    signal.setitimer(signal.ITIMER_PROF, LONGEST)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note a failure."""
    if not report.passed:
        SECONDS[report.nodeid] = None


def pytest_sessionfinish() -> None:
    """Write what was counted."""
    if "TEST_SECONDS" in os.environ:
        Path(os.environ["TEST_SECONDS"]).write_text(json.dumps(SECONDS))


def _end(number: int, frame: FrameType | None) -> None:
    pytest.skip("ended: it takes too many CPU seconds")


def _seconds() -> float:
    used = [resource.getrusage(each) for each in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)
