"""A plugin of pytest that ends long tests, and notes of each the lines it reaches and CPU seconds.

    coverage run ... -m pytest -p tests.mutants_code.contexts ...

Lines go to coverage's data, under the test's name as context; those of a fixture that several
tests share, under the fixture's.  The file named by TEST_NOTES gets JSON: the seconds of each test
that passes, and the tests that use each shared fixture.
"""

import json
import os
import resource
import signal
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from coverage import Coverage

LONGEST, BEFORE = 10, 25
"""CPU seconds of the process itself after which a test is ended, as it is none for many faults, and
after which its fixtures are ended, which all tests of a file may need."""
SECONDS: dict[str, float] = {}
SHARING: dict[str, list[str]] = defaultdict(list)
FAILED = set[str]()
CURRENT = [""]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Count a test's lines and seconds."""
    _switch(item.nodeid)
    start = _seconds()
    signal.signal(signal.SIGPROF, _end)
    signal.setitimer(signal.ITIMER_PROF, BEFORE)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        if item.nodeid not in FAILED:
            SECONDS[item.nodeid] = round(_seconds() - start, 3)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Count a shared fixture's lines apart: it is made in the first test that uses it."""
    if fixturedef.scope == "function":
        return (yield)
    before = CURRENT[0]
    _switch(_name(fixturedef))
    try:
        return (yield)
    finally:
        _switch(before)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Function) -> None:
    """Limit the test itself."""
    signal.setitimer(signal.ITIMER_PROF, LONGEST)
    for found in item._fixtureinfo.name2fixturedefs.values():
        if found[-1].scope != "function":
            SHARING[_name(found[-1])].append(item.nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note a failure."""
    if not report.passed:
        FAILED.add(report.nodeid)


def pytest_sessionfinish() -> None:
    """Write what was counted."""
    if "TEST_NOTES" in os.environ:
        Path(os.environ["TEST_NOTES"]).write_text(json.dumps([SECONDS, SHARING]))


def _name(fixture: pytest.FixtureDef[Any]) -> str:
    return f"fixture {fixture.baseid} {fixture.argname}"


def _switch(context: str) -> None:
    CURRENT[0] = context
    measured = Coverage.current()
    if measured is not None:
        measured.switch_context(context)


def _end(number: int, frame: FrameType | None) -> None:
    pytest.skip("ended: it takes too many CPU seconds")


def _seconds() -> float:
    used = [resource.getrusage(each) for each in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)
