"""Whole small reports: every number and word that a table, a picture or a page's data has."""

import json
from collections import Counter
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.table import Table

from dovetail.compiler.benchmark.accuracy import Accuracy as Agreement
from dovetail.compiler.benchmark.measure import Measured
from dovetail.compiler.benchmark.subjects import Subject
from dovetail.compiler.cli.benchmark.picture import picture_svg
from dovetail.compiler.cli.benchmark.show import Row, figures, result_table
from dovetail.compiler.cli.profile.data import cpu_data, report_data
from dovetail.compiler.cli.quantize.report import accuracy_table, comparison_table, loss_table
from dovetail.compiler.cli.report import layer_table, unit_table
from dovetail.compiler.cli.timeline import timeline_svg
from dovetail.compiler.front.onnx.quantize.compare import Comparison
from dovetail.compiler.quantize.accuracy import Accuracy
from dovetail.compiler.quantize.loss import Kind, Loss
from dovetail.isa.configs import find_config
from dovetail.isa.instructions import Finish, Gemm, Load, Store, Vector
from dovetail.isa.memories import Memory, Unit
from dovetail.runtime.accelerator.part import LayerFigures
from dovetail.runtime.profile.cpu import CpuProfile, KernelProfile
from dovetail.runtime.profile.layers import profile_layers
from dovetail.runtime.profile.profile import PartNames, Profile
from dovetail.runtime.result import RunResult, TimelineEntry
from tests.kept import check_kept

KEPT = Path(__file__).with_name("kept_reports.json")
PROGRAM = (
    Load(memory=Memory.WGT, dram_address=256, sram_address=0, count_x=16, post={Unit.GEMM}),
    Load(memory=Memory.ACT, dram_address=0, sram_address=8, count_x=12, post={Unit.GEMM}),
    Gemm(
        act_address=8,
        wgt_address=0,
        acc_address=4,
        extent=(12, 4, 1, 1, 1, 1),
        act_stride=(1, 0, 0, 0, 0, 0),
        wgt_stride=(0, 1, 0, 0, 0, 0),
        acc_stride=(1, 12, 0, 0, 0, 0),
        wait={Unit.LOAD},
        post={Unit.VECTOR},
    ),
    Vector(
        source=Memory.ACC,
        destination=Memory.ACT,
        source_address=4,
        destination_address=64,
        extent=(48, 1, 1, 1, 1),
        source_stride=(1, 0, 0, 0, 0),
        destination_stride=(1, 0, 0, 0),
        finish=Finish.REQUANTIZE,
        wait={Unit.GEMM},
        post={Unit.STORE},
    ),
    Store(dram_address=1024, sram_address=64, count_x=48, wait={Unit.VECTOR}),
)
TIMELINE = (
    TimelineEntry(0, "LOAD", 0, 40, 41, 120, 0, 0, 40),
    TimelineEntry(1, "LOAD", 1, 60, 121, 160, 0, 0, 0),
    TimelineEntry(2, "GEMM", 0, 70, 130, 190, 51, 6, 70),
    TimelineEntry(3, "VECTOR", 1, 90, 195, 260, None, None, 90),
    TimelineEntry(4, "STORE", 1, 110, 262, -1, 150, 2, 110),
)
"""The last instruction never ends, and of one before it the device does not say for what it
waited."""
NAMES = ("first", "a layer of a name that has more letters than a line has room for")


def profile(cycles: int = 400) -> Profile:
    units = {"load": (118, 0, 0), "gemm": (60, 51, 6), "vector": (65, 0, 0), "store": (138, 150, 2)}
    kinds = ("busy", "stall_token", "stall_port")
    result = RunResult(
        *({}, "sim", 0.0, 0.0, 0.0, cycles, 5000),
        gemm_busy_cycles=60,
        gemm_utilization=5000 / (cycles * 16),
        dram_bytes_read=304,
        dram_bytes_written=192,
        counters={
            f"{unit}_{kind}": count
            for unit, counts in units.items()
            for kind, count in zip(kinds, counts, strict=True)
        },
        timeline=TIMELINE,
    )
    layers = LayerFigures(NAMES[0], "Conv2d", 4000, 304), LayerFigures(NAMES[1], "Add", 1000, 192)
    config = find_config("tiny")
    lines = tuple(f"line  {number}" for number in range(len(PROGRAM)))
    parts = PartNames(len(PROGRAM), ("weights", "", "", "sums", "y"), (("x", 0, 48),))
    own = profile_layers(result, layers, config)
    return Profile("model", result, config, PROGRAM, lines, own, 300, (parts,))


def shown(table: Table) -> str:
    text = StringIO()
    Console(file=text, width=140).print(table)
    return "\n".join(line.rstrip() for line in text.getvalue().splitlines())


def measured() -> list[Row]:
    first = Measured(Subject("ort", None), [2.0, 2.5, 3.0], [0.5, 0.7], 120.0, 1.5)
    board = Measured(
        *(Subject("sim", "vta:tiny"), [40.0, 50.0, 60.0], [], 3.25, 2.5, 7.0),
        cycles=[4_000_000, 5_000_000, 6_000_000],
        mhz=100.0,
        host_milliseconds=0.125,
    )
    found = Agreement(), Agreement(0.75, 0.5, 5e-5, equal=False)
    same = Measured(Subject("cpu", "cpu"), [1.0, 1.0, 1.0], [0.25], 80.0)
    agreements = (*found, Agreement(0.5, 1.0, 0.0, equal=True))
    return [
        Row(each, first, agreement)
        for each, agreement in zip((first, board, same), agreements, strict=True)
    ]


def kernels() -> CpuProfile:
    given = (
        KernelProfile("kernel0", ("conv", "relu"), 3e-6, 2e-6, 4e-6, 6000, (10, 2)),
        KernelProfile("copies", (), 1e-6, 1e-6, 1e-6, 512, (1, 0)),
        KernelProfile("nothing", ("none",), 0.0, 0.0, 0.0, 0, (0, 0)),
    )
    return CpuProfile("model", "avx2", 2, 50, 4e-6, (32768, 1 << 20), given)


def quantised() -> str:
    whole = Accuracy(40, {"top 1": 0.9, "loss": 12.345}, {"top 1": 0.8, "loss": 13.0}, 0.85, 0.0312)
    kept = Accuracy(40, whole.exact, {"top 1": 1.0, "loss": -1.25}, 0.95, 0.01)
    tensors = {f"t{number}": number / 100 for number in range(12)}
    losses = [
        Loss(list(Kind)[number % 2], f"t{number}", frozenset({"a"}), number / 50, number / 1000)
        for number in range(12)
    ]
    tables = (
        comparison_table(Comparison(40, tensors, {"y": 0.0123}, 0.975)),
        accuracy_table(whole, whole),
        accuracy_table(kept, whole),
        loss_table(losses),
    )
    return "\n".join(map(shown, tables))


def trace() -> str:
    """A line for each event; of each track of bytes, the sum of its values."""
    name = "perfetto.protos.perfetto.trace.perfetto_trace_pb2"
    schema = pytest.importorskip(name, reason="needs the extra profile")
    from dovetail.compiler.cli.profile.perfetto import perfetto_trace

    found, sums, lines = schema.Trace(), Counter[int](), list[str]()
    found.ParseFromString(perfetto_trace(profile()))
    for packet in found.packet:
        event = packet.track_event
        if event.type == schema.TrackEvent.TYPE_COUNTER:
            sums[event.track_uuid] += event.double_counter_value
        else:
            lines.append(" ".join(str(packet).split()))
    return "\n".join([*lines, *(f"track {track}: {sum_:.6g}" for track, sum_ in sums.items())])


def text_of(value: Any, at: str = "") -> str:
    """JSON values, with a line for each that holds no other."""
    items = list(value.items() if isinstance(value, dict) else enumerate(value))
    if any(isinstance(each, dict | list) for _, each in items):
        return "\n".join(
            text_of(each, f"{at}/{key}") if isinstance(each, dict | list) else f"{at}/{key} {each}"
            for key, each in items
        )
    return f"{at} {json.dumps(value)}"


ABOUT = {"rounds": 3, "runs": 10, "against": "ort"}
REPORTS: dict[str, Callable[[], str]] = {
    "layers": lambda: shown(layer_table(profile().layers, profile().result)),
    "units": lambda: shown(unit_table(profile().result)),
    "timeline": lambda: timeline_svg(TIMELINE, NAMES, 400),
    "page": lambda: text_of(report_data(profile(), profile(450))),
    "page of kernels": lambda: text_of(cpu_data(kernels())),
    "benchmark": lambda: shown(result_table("model", measured())),
    "benchmark's figures": lambda: text_of(figures(measured(), ABOUT)),
    "benchmark's picture": lambda: picture_svg("a model", measured(), ABOUT),
    "quantised": quantised,
    "timeline of many cycles": lambda: timeline_svg(TIMELINE, NAMES, 400_000),
    "trace": trace,
}


@pytest.mark.parametrize("name", REPORTS)
def test_all_of_a_report_is_as_it_was(name: str) -> None:
    check_kept(KEPT, name, REPORTS[name]().splitlines())
