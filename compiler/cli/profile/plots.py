"""The plots of a profile, by Bokeh."""

from collections.abc import Sequence

import numpy as np
from bokeh.models import (
    ColumnDataSource,
    CustomJS,
    HoverTool,
    NumeralTickFormatter,
    Range1d,
    TapTool,
)
from bokeh.palettes import Category20_20
from bokeh.plotting import figure

from dovetail.runtime.profile.flows import token_flows
from dovetail.runtime.profile.profile import Profile
from dovetail.runtime.profile.traffic import dram_traffic, occupancy

__all__ = ["memory_plot", "roofline_plot", "timeline_plot", "traffic_plot"]

ROWS = ("STORE", "VECTOR", "GEMM", "LOAD")
"""From the bottom."""
HALF = 0.38
WAITS = {
    "memory": ("#888888", "waits for its next instruction"),
    "token": ("#cc0000", "waits for a token"),
    "port": ("#0066cc", "waits for a bank"),
}
BINS = 800
WIDTH = "stretch_width"
SHOW_INSTRUCTION = """
const place = source.selected.indices[0];
if (place !== undefined) {
    document.getElementById("instruction").textContent =
        `${source.data.index[place]}: ${source.data.assembly[place]}`;
}
"""


def colour_of(layer: int) -> str:
    """The colour of a layer, everywhere."""
    return str(Category20_20[(2 * layer + layer // 10) % 20])


def timeline_plot(profile: Profile, cycles: Range1d) -> figure:
    """One row a unit, one box an instruction; waits below, tokens on demand.

    cycles: the axis, shared with the other plots over time.
    """
    plot = figure(
        name="timeline",
        height=300,
        sizing_mode=WIDTH,
        x_range=cycles,
        y_range=list(ROWS),
        tools="xpan,xwheel_zoom,xbox_zoom,reset,save",
        active_scroll="xwheel_zoom",
        x_axis_label="cycle",
        output_backend="canvas",
    )
    plot.xaxis.formatter = NumeralTickFormatter(format="0,0")
    source = _instructions(profile)
    boxes = plot.quad(
        left="left",
        right="right",
        bottom="bottom",
        top="top",
        fill_color="colour",
        line_color="white",
        line_width=0.3,
        source=source,
        nonselection_fill_alpha=1.0,
    )
    plot.add_tools(
        HoverTool(
            renderers=[boxes],
            tooltips=[
                ("instruction", "@index"),
                ("layer", "@layer"),
                ("cycles", "@accepted to @ended, queued @queued"),
                ("waited", "@waited"),
            ],
        ),
        TapTool(renderers=[boxes]),
    )
    source.selected.js_on_change(
        "indices", CustomJS(args={"source": source}, code=SHOW_INSTRUCTION)
    )
    for name, (colour, text) in WAITS.items():
        strips = _waits(profile, name)
        if len(strips.data["left"]):
            plot.quad(
                left="left",
                right="right",
                bottom="bottom",
                top="top",
                color=colour,
                source=strips,
                legend_label=text,
            )
    tokens = plot.segment(
        x0="x0",
        y0="y0",
        x1="x1",
        y1="y1",
        color="#444444",
        line_width=0.8,
        source=_tokens(profile),
        legend_label="tokens",
    )
    tokens.visible = False
    plot.legend.click_policy = "hide"
    plot.legend.location = "top_left"
    plot.legend.orientation = "horizontal"
    plot.add_layout(plot.legend[0], "above")
    return plot


def traffic_plot(profile: Profile, cycles: Range1d) -> figure:
    """Bytes a cycle on the memory bus."""
    edges = np.linspace(0, profile.cycles, BINS + 1)
    centres = (edges[1:] + edges[:-1]) / 2
    found = dram_traffic(profile.program, profile.timeline, profile.config, profile.cycles, BINS)
    plot = _over_time("traffic", cycles, "DRAM bytes a cycle")
    colours = {"load": "#4e79a7", "store": "#e15759", "fetch": "#bab0ac"}
    below = np.zeros(BINS)
    for name, colour in colours.items():
        plot.varea(x=centres, y1=below, y2=below + found[name], color=colour, legend_label=name)
        below = below + found[name]
    plot.legend.orientation = "horizontal"
    plot.add_layout(plot.legend[0], "above")
    return plot


def memory_plot(profile: Profile, cycles: Range1d) -> figure:
    """How much of each scratchpad holds what is still to be read."""
    centres = (np.arange(BINS) + 0.5) * profile.cycles / BINS
    plot = _over_time("memory", cycles, "part in use")
    found = occupancy(profile.program, profile.timeline, profile.config, profile.cycles, BINS)
    for number, (memory, series) in enumerate(found.items()):
        if series.any():
            plot.line(centres, series, color=colour_of(number), legend_label=memory.name)
    plot.y_range = Range1d(0, 1.05)
    plot.yaxis.formatter = NumeralTickFormatter(format="0%")
    plot.legend.orientation = "horizontal"
    plot.add_layout(plot.legend[0], "above")
    return plot


def roofline_plot(profile: Profile) -> figure:
    """Every layer with MACs as a point, below the matrix core's peak and the memory's slope."""
    config = profile.config
    peak = config.macs_per_cycle
    bandwidth = config.bus_bytes / config.dram.beat_interval_cycles
    layers = [
        (number, layer)
        for number, layer in enumerate(profile.layers)
        if layer.macs and layer.dram_bytes and layer.cycles
    ]
    intensities = [layer.intensity for _, layer in layers] or [1.0]
    low, high = min(*intensities, peak / bandwidth) / 2, max(*intensities, peak / bandwidth) * 2
    plot = figure(
        name="roofline",
        height=360,
        sizing_mode=WIDTH,
        x_axis_type="log",
        y_axis_type="log",
        x_range=(low, high),
        y_range=(0.5, 2 * peak),
        x_axis_label="MAC for each byte of DRAM",
        y_axis_label="MAC a cycle",
        tools="pan,wheel_zoom,box_zoom,reset,save",
    )
    knee = peak / bandwidth
    plot.line([low, knee, high], [low * bandwidth, peak, peak], color="black", line_width=2)
    source = ColumnDataSource(
        {
            "x": [layer.intensity for _, layer in layers],
            "y": [layer.macs / layer.cycles for _, layer in layers],
            "name": [layer.name for _, layer in layers],
            "size": [5 + 25 * (layer.cycles / profile.cycles) ** 0.5 for _, layer in layers],
            "bound": [layer.bound for _, layer in layers],
            "cycles": [layer.cycles for _, layer in layers],
            "colour": [colour_of(number) for number, _ in layers],
        }
    )
    points = plot.scatter(
        "x", "y", size="size", color="colour", fill_alpha=0.7, source=source, name="layers"
    )
    plot.add_tools(
        HoverTool(
            renderers=[points],
            tooltips=[
                ("layer", "@name"),
                ("MAC a cycle", "@y{0.0}"),
                ("MAC a byte", "@x{0.0}"),
                ("bound", "@bound"),
                ("cycles", "@cycles{0,0}"),
            ],
        )
    )
    return plot


def _over_time(name: str, cycles: Range1d, label: str) -> figure:
    plot = figure(
        name=name,
        height=180,
        sizing_mode=WIDTH,
        x_range=cycles,
        y_axis_label=label,
        tools="xpan,xwheel_zoom,xbox_zoom,reset,save",
        active_scroll="xwheel_zoom",
    )
    plot.xaxis.formatter = NumeralTickFormatter(format="0,0")
    return plot


def _instructions(profile: Profile) -> ColumnDataSource:
    shown = [entry for entry in profile.timeline if entry.start >= 0]
    rows = [ROWS.index(entry.unit) + 0.5 for entry in shown]
    ends = [entry.end if entry.end >= 0 else profile.cycles for entry in shown]
    return ColumnDataSource(
        {
            "left": [entry.start + 1 for entry in shown],
            "right": [end + 1 for end in ends],
            "bottom": [row - HALF for row in rows],
            "top": [row + HALF for row in rows],
            "colour": [colour_of(entry.layer) for entry in shown],
            "index": [entry.index for entry in shown],
            "layer": [profile.layers[entry.layer].name for entry in shown],
            "queued": [entry.queued for entry in shown],
            "accepted": [entry.start for entry in shown],
            "ended": [entry.end for entry in shown],
            "waited": [
                f"{entry.waited_memory} fetch, {_known(entry.waited_token)} token, "
                f"{_known(entry.waited_port)} bank"
                for entry in shown
            ],
            "assembly": [profile.assembly[entry.index] for entry in shown],
        },
        name="instructions",
    )


def _known(cycles: int | None) -> str:
    return "?" if cycles is None else str(cycles)


def _waits(profile: Profile, name: str) -> ColumnDataSource:
    """Strips that end where the instruction begins: bank last, token before it, fetch first."""
    left, right, row = [], [], []
    for entry in profile.timeline:
        if entry.start < 0:
            continue
        waited = {
            "memory": entry.waited_memory,
            "token": entry.waited_token or 0,
            "port": entry.waited_port or 0,
        }
        if waited[name]:
            after = {"memory": ("token", "port"), "token": ("port",), "port": ()}[name]
            end = entry.start + 1 - sum(waited[other] for other in after)
            left.append(end - waited[name])
            right.append(end)
            row.append(ROWS.index(entry.unit) + 0.5 - HALF)
    return ColumnDataSource(
        {"left": left, "right": right, "bottom": [r - 0.1 for r in row], "top": row}
    )


def _tokens(profile: Profile) -> ColumnDataSource:
    columns: dict[str, list[float]] = {name: [] for name in ("x0", "y0", "x1", "y1")}
    for flow in token_flows(profile.program):
        source, target = profile.timeline[flow.source], profile.timeline[flow.target]
        if source.end >= 0 and target.start >= 0:
            values: Sequence[float] = (
                source.end + 1,
                ROWS.index(source.unit) + 0.5,
                target.start + 1,
                ROWS.index(target.unit) + 0.5,
            )
            for name, value in zip(columns, values, strict=True):
                columns[name].append(value)
    return ColumnDataSource(columns)
