"""Expensive things that several tests need: made once in a run of the suite."""

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from dovetail.compiler.options import Overlap
from dovetail.compiler.targets.vta import emit, last_changes, search
from dovetail.compiler.targets.vta.draft import Draft, make_draft
from dovetail.compiler.targets.vta.last_changes import without_waits
from dovetail.compiler.targets.vta.layers.activation import Activation
from dovetail.compiler.targets.vta.plan_key import plan_key
from dovetail.compiler.targets.vta.plan_record import recorded_plan, to_plan_record
from dovetail.compiler.targets.vta.planner import Planner
from dovetail.compiler.targets.vta.search import fastest
from dovetail.compiler.targets.vta.timing import Timing
from dovetail.runtime.files import write_whole
from dovetail.vta_sim.timing import time_program

__all__ = ["made_once", "plans_kept", "short_searches"]

ROUNDS = 0
"""Programs that are made near the best of the first ones, for a network of a test."""

LAST_CHANGES = 6
"""Last changes of each kind that are tried on it, at most."""


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """The file ``name``, written by ``make`` in whichever worker asks first; the others wait."""
    folder = _folder_of_run(factory)
    path = folder / name
    with open(folder / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            unfinished = folder / f"unfinished-{name}"
            make(unfinished)
            unfinished.rename(path)
    return path


@contextmanager
def short_searches() -> Iterator[None]:
    """Faster plans are searched for in few ways: any plan has to give the right bytes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "MOST_ROUNDS", ROUNDS)
        patch.setattr(search, "MOST_NEAR", 0)
        patch.setattr(search, "FEW_INSTRUCTIONS", 0)
        for kind in ("MERGED", "OVERTAKEN", "EXCHANGED"):
            patch.setattr(last_changes, f"MOST_{kind}", LAST_CHANGES)
        yield


@contextmanager
def plans_kept(factory: pytest.TempPathFactory) -> Iterator[None]:
    """Networks that are compiled again, by whichever worker, run by the plan of the first time.

    The search for it is most of a compilation.  Plans that are kept give the same program:
    ``tests/compiler/targets/vta/test_plan_record.py``.
    """
    folder = _folder_of_run(factory) / "plans"
    folder.mkdir(exist_ok=True)

    def known(
        planner: Planner,
        activations: Mapping[str, Activation],
        overlap: Overlap,
        timing: Timing,
        effort: float,
    ) -> Draft:
        key = plan_key(planner.layers, planner.ends, planner.config, overlap)
        path = folder / f"{key}-{search.MOST_ROUNDS}-{effort}"
        if timing is not time_program or overlap is not Overlap.LAYERS:
            return fastest(planner, activations, overlap, timing, effort)
        if path.exists():
            plan = recorded_plan(planner, json.loads(path.read_text()))
            draft = make_draft(planner, plan, activations, overlap, timing)
            return without_waits(draft, planner.config, timing, effort)
        found = fastest(planner, activations, overlap, timing, effort)
        write_whole(path, json.dumps(to_plan_record(planner, found.plan, found.cycles)).encode())
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(emit, "fastest", known)
        yield


def _folder_of_run(factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers share."""
    folder = factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
