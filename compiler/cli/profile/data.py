"""Data that the page of a report is drawn from, as JSON values."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import accumulate
from typing import Any

from dovetail.isa.memories import Memory
from dovetail.runtime.profile.cpu import CpuProfile
from dovetail.runtime.profile.explain import CAUSES, explain
from dovetail.runtime.profile.flows import token_flows
from dovetail.runtime.profile.memory_map import DRAM, Holding
from dovetail.runtime.profile.occupancy import occupancy
from dovetail.runtime.profile.profile import Profile
from dovetail.runtime.profile.shares import shared_spans
from dovetail.runtime.profile.traffic import bus_spans
from dovetail.runtime.profile.units import profile_units

from . import colours
from .compare import compared_rows

__all__ = ["cpu_data", "profile_data", "report_data"]

BINS = 2000
"""Steps over a run in which what is in use is counted."""
UNITS = ("LOAD", "GEMM", "VECTOR", "STORE")


def report_data(profile: Profile, against: Profile | None) -> dict[str, Any]:
    """Both runs, what is between them, and colours."""
    return {
        "colours": {
            "layers": colours.LAYERS,
            "units": colours.UNITS,
            "waits": colours.WAITS,
            "causes": colours.CAUSES,
        },
        "causes": CAUSES,
        "run": profile_data(profile),
        "against": profile_data(against) if against else None,
        "compared": compared_rows(profile, against) if against else None,
    }


def cpu_data(profile: CpuProfile) -> dict[str, Any]:
    """Kernels as layers, times in nanoseconds."""
    ends = [round(1e9 * end) for end in accumulate(each.seconds for each in profile.kernels)]
    layers = [
        {
            "name": ", ".join(each.nodes) or "(copies)",
            "kind": each.kernel,
            "cycles": 1e9 * each.seconds,
            "low": 1e9 * each.low,
            "high": 1e9 * each.high,
            "share": each.seconds / profile.seconds,
            "touched": each.touched,
            "misses": each.misses,
            "rate": each.touched / (1e6 * each.seconds) if each.seconds else 0,
            "begin": ends[number - 1] if number else 0,
            "end": ends[number],
        }
        for number, each in enumerate(profile.kernels)
    ]
    about = {name: getattr(profile, name) for name in ("model", "cpu", "threads", "runs", "caches")}
    shares = [[end, number] for number, end in enumerate(ends)]
    run = {**about, "nanoseconds": ends[-1], "layers": layers, "shares": shares}
    return {"colours": {"layers": colours.LAYERS}, "run": run}


def profile_data(profile: Profile) -> dict[str, Any]:
    """One run: tables by column."""
    result, config = profile.result, profile.config
    return {
        "model": profile.model,
        "target": config.name,
        "device": result.device,
        "clock_hz": config.clock_hz,
        "cycles": profile.cycles,
        "roof_cycles": profile.roof_cycles,
        "macs": result.macs or 0,
        "utilization": result.gemm_utilization or 0,
        "read": result.dram_bytes_read or 0,
        "written": result.dram_bytes_written or 0,
        "peak": config.macs_per_cycle,
        "bus": config.bus_bytes / config.dram.beat_interval_cycles,
        "layers": _layers(profile),
        "units": [asdict(each) for each in profile_units(result)],
        "shares": _shares(profile),
        "instructions": _instructions(profile),
        "flows": [[flow.source, flow.target] for flow in token_flows(profile.program)],
        "traffic": _traffic(profile),
        "memory": _memory(profile),
    }


def _layers(profile: Profile) -> list[dict[str, Any]]:
    found = []
    for number, (layer, parts, bus) in enumerate(
        zip(profile.layers, profile.breakdowns, profile.bus_cycles, strict=True)
    ):
        mine = [e for e in profile.timeline if e.layer == number and e.start >= 0]
        # Constants may be loaded long before.
        computing = [e for e in mine if e.unit in ("GEMM", "VECTOR")] or mine
        found.append(
            {
                **asdict(layer),
                "bound": layer.bound,
                "begin": min((e.start for e in computing), default=0),
                "end": max((e.end for e in computing), default=0),
                "first": min((e.index for e in mine), default=0),
                "last": max((e.index for e in mine), default=0),
                "causes": [getattr(parts, name) for name in CAUSES],
                "bus_cycles": bus,
                "why": asdict(explain(layer, parts, bus, profile.config, profile.cycles)),
            }
        )
    return found


def _shares(profile: Profile) -> list[list[int]]:
    """End and layer of each stretch of cycles of one layer."""
    found: list[list[int]] = []
    for share in shared_spans(
        profile.timeline, len(profile.layers), profile.cycles, profile.result.ends
    ):
        if found and found[-1][1] == share.layer:
            found[-1][0] = share.end
        else:
            found.append([share.end, share.layer])
    return found


def _instructions(profile: Profile) -> dict[str, list[Any]]:
    """Instructions that began, in the program's order; unknown waits are -1."""
    shown = [entry for entry in profile.timeline if entry.start >= 0]
    return {
        "index": [e.index for e in shown],
        "unit": [UNITS.index(e.unit) for e in shown],
        "layer": [e.layer for e in shown],
        "queued": [e.queued for e in shown],
        "start": [e.start for e in shown],
        "end": [e.end if e.end >= 0 else profile.cycles for e in shown],
        "token": [-1 if e.waited_token is None else e.waited_token for e in shown],
        "bank": [-1 if e.waited_port is None else e.waited_port for e in shown],
        "fetch": [e.waited_memory for e in shown],
        "assembly": [" ".join(profile.assembly[e.index].split()) for e in shown],
    }


def _traffic(profile: Profile) -> dict[str, list[int]]:
    """Traffic of the bus: kind, free cycles before it, and its cycles."""
    spans = bus_spans(profile.program, profile.timeline, profile.config, profile.cycles)
    kinds, before = list(colours.UNITS), [0, *(end for _, _, end in spans)]
    return {
        "kind": [kinds.index(kind) for kind, _, _ in spans],
        "free": [begin - end for (_, begin, _), end in zip(spans, before, strict=False)],
        "cycles": [end - begin for _, begin, end in spans],
    }


def _memory(profile: Profile) -> list[dict[str, Any]]:
    """Memories that hold anything; "used": the greatest part of one that is in use."""
    used = occupancy(profile.program, profile.timeline, profile.config, profile.cycles, BINS)
    found = []
    for name, holdings in profile.memory.items():
        if not holdings:
            continue
        if name == DRAM:
            about: dict[str, Any] = {"depth": max(each.high for each in holdings), "used": None}
        else:
            memory = Memory[name]
            depth = profile.config.depth(memory)
            about = {"depth": depth, "used": round(float(used[memory].max()), 3)}
        found.append({"name": name, **about, **_columns(holdings)})
    return found


def _columns(holdings: Sequence[Holding]) -> dict[str, Any]:
    names = list(dict.fromkeys(each.name for each in holdings))
    return {
        "low": [each.low for each in holdings],
        "high": [each.high for each in holdings],
        "begin": [each.begin for each in holdings],
        "end": [each.end for each in holdings],
        "layer": [each.layer for each in holdings],
        "tensor": [names.index(each.name) for each in holdings],
        "names": names,
    }
