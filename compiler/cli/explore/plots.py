"""The plots of an exploration, by Bokeh."""

from bokeh.models import ColumnDataSource, HoverTool
from bokeh.palettes import Category10_10
from bokeh.plotting import figure

from ...explore.exploration import Exploration
from ...explore.figures import DesignResult
from ...explore.front import fitting_front, pareto

__all__ = ["energy_plot", "trade_off_plot"]

HEIGHT = 420


def trade_off_plot(found: Exploration, family: str) -> figure:
    """Latency over the share of the part; the line joins the best of these two."""
    plot = _figure(found, family, "share of the part")
    _points(plot, found, family, [r.families[family].area.share for r in _fitting(found, family)])
    return plot


def energy_plot(found: Exploration, family: str) -> figure:
    """Latency over energy."""
    plot = _figure(found, family, "energy, uJ")
    _points(plot, found, family, [float(r.energy or 0) for r in _fitting(found, family)])
    return plot


def _fitting(found: Exploration, family: str) -> list[DesignResult]:
    return [r for r in found.results if r.complete and r.families[family].area.share <= 1]


def _figure(found: Exploration, family: str, x_label: str) -> figure:
    return figure(
        name=f"{family}: {x_label}",
        height=HEIGHT,
        sizing_mode="stretch_width",
        x_axis_label=x_label,
        y_axis_label="latency, ms",
        y_axis_type="log",
        tools="pan,wheel_zoom,box_zoom,reset,save",
        active_scroll="wheel_zoom",
    )


def _points(plot: figure, found: Exploration, family: str, across: list[float]) -> None:
    """One glyph for each size of the core, so that its legend hides it; then the front."""
    fitting = _fitting(found, family)
    front = {result.design for result in fitting_front(found.results, family)}
    latencies = [1e3 * result.families[family].latency for result in fitting]
    axes = [axis.name for axis in found.space.axes if len(axis.values) > 1]
    best = sorted(pareto(list(zip(across, latencies, strict=True))), key=lambda k: across[k])
    plot.line(
        [across[k] for k in best], [latencies[k] for k in best], color="#888888", line_width=1.5
    )
    sizes = sorted({result.design.config.block for result in fitting})
    for number, size in enumerate(sizes):
        mine = [k for k, result in enumerate(fitting) if result.design.config.block == size]
        values = {
            "x": [across[k] for k in mine],
            "y": [latencies[k] for k in mine],
            "size": [10 if fitting[k].design in front else 5 for k in mine],
            "alpha": [1.0 if fitting[k].design in front else 0.4 for k in mine],
            "luts": [fitting[k].families[family].area.luts for k in mine],
            "basis": [fitting[k].families[family].area.basis for k in mine],
            "energy": [fitting[k].energy for k in mine],
        }
        values |= {name: [fitting[k].design.values[name] for k in mine] for name in axes}
        points = plot.scatter(
            "x",
            "y",
            size="size",
            alpha="alpha",
            color=Category10_10[number % 10],
            line_color=None,
            source=ColumnDataSource(values),
            legend_label=f"{size}x{size}",
        )
        tips = [(name, f"@{name}") for name in axes]
        tips += [("ms", "@y{0.000}"), ("LUT", "@luts{0,0} (@basis)"), ("uJ", "@energy{0.0}")]
        plot.add_tools(HoverTool(renderers=[points], tooltips=tips))
    if sizes:
        plot.legend.click_policy = "hide"
        plot.add_layout(plot.legend[0], "right")
