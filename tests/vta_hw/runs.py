"""The module that cocotb finds its tests in: those that ``simulate_all`` asks for, in order."""

import json
import os
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

import cocotb

from .rtl import RUNS, VALUES


def _run(case: Callable[[Any], Awaitable[None]], values: dict[str, Any]) -> Any:
    """``case`` as a coroutine for which ``parameters`` gives ``values``."""

    async def run(dut: Any) -> None:
        VALUES.clear()
        VALUES.update(values)
        await case(dut)

    return run


for number, (module, name, values) in enumerate(json.loads(os.environ[RUNS])):
    case = getattr(import_module(module), name).func
    globals()[f"run_{number}"] = cocotb.test(name=f"{name}_{number}")(_run(case, values))
