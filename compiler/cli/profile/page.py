"""A profile as one HTML page that needs nothing else."""

from html import escape

from bokeh.embed import components
from bokeh.models import Range1d
from bokeh.resources import Resources

from dovetail.runtime.profile.profile import Profile

from .compare import comparison_table
from .plots import colour_of, memory_plot, roofline_plot, timeline_plot, traffic_plot

__all__ = ["profile_page"]

NAME_LENGTH = 48
"""Letters of a layer's name that the tables show."""

STYLE = """
body { font-family: system-ui, sans-serif; margin: 1.5em; color: #222; }
h1 { font-size: 1.4em; } h2 { font-size: 1.1em; margin-top: 1.6em; }
table { border-collapse: collapse; font-size: 0.85em; }
th, td { padding: 0.2em 0.7em; text-align: right; border-bottom: 1px solid #ddd; }
th { position: sticky; top: 0; background: #fff; } td.text, th.text { text-align: left; }
tr.layer { cursor: pointer; } tr.layer:hover, tr.chosen { background: #eef4fb; }
.swatch { display: inline-block; width: 0.8em; height: 0.8em; margin-right: 0.5em; }
.cards { display: flex; flex-wrap: wrap; gap: 1em; }
.card { border: 1px solid #ddd; border-radius: 6px; padding: 0.6em 1em; }
.card b { display: block; font-size: 1.25em; }
#instruction { background: #f6f6f6; padding: 0.6em; min-height: 1.4em; white-space: pre-wrap; }
.better { color: #080; } .worse { color: #b00; }
"""

SCRIPT = """
function chooseLayer(row) {
    document.querySelectorAll("tr.chosen").forEach((other) => other.classList.remove("chosen"));
    row.classList.add("chosen");
    const plot = Bokeh.documents[0].get_model_by_name("timeline");
    const begin = Number(row.dataset.begin), end = Number(row.dataset.end);
    const margin = Math.max(1, 0.02 * (end - begin));
    plot.x_range.setv({start: begin - margin, end: end + margin});
    document.getElementById("instruction").textContent =
        `layer ${row.dataset.name}: instructions ${row.dataset.instructions}`;
}
document.addEventListener("click", (event) => {
    const row = event.target.closest("tr.layer");
    if (row) chooseLayer(row);
});
"""


def profile_page(profile: Profile, against: Profile | None = None) -> str:
    """The page; ``against`` is another run to stand beside it."""
    cycles = Range1d(0, profile.cycles, bounds=(0, profile.cycles * 1.02))
    script, plots = components(
        {
            "roofline": roofline_plot(profile),
            "timeline": timeline_plot(profile, cycles),
            "traffic": traffic_plot(profile, cycles),
            "memory": memory_plot(profile, cycles),
        }
    )
    compared = (
        f"<h2>Against {escape(against.model)}</h2>{comparison_table(profile, against)}"
        if against
        else ""
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{escape(profile.model)}: profile</title>
{Resources(mode="inline", components=["bokeh"]).render_js()}
<style>{STYLE}</style>
</head>
<body>
<h1>{escape(profile.model)} on {escape(profile.config.name)}</h1>
{_summary(profile)}
{compared}
<h2>Timeline</h2>
<p>Drag to move, scroll to zoom, click an instruction or a layer below; "tokens" in the legend
shows who waited for whom.</p>
{plots["timeline"]}
<pre id="instruction"></pre>
{plots["traffic"]}
{plots["memory"]}
<h2>Layers</h2>
{_layers(profile)}
<h2>Roofline</h2>
{plots["roofline"]}
<h2>Units</h2>
{_units(profile)}
{script}
<script>{SCRIPT}</script>
</body>
</html>
"""


def _summary(profile: Profile) -> str:
    result, config = profile.result, profile.config
    seconds = profile.cycles / config.clock_hz
    moved = (result.dram_bytes_read or 0) + (result.dram_bytes_written or 0)
    cards = {
        "cycles": f"{profile.cycles:,}",
        f"at {config.clock_hz / 1e6:g} MHz": f"{1e3 * seconds:.3f} ms, {1 / seconds:,.1f}/s",
        "MACs": f"{result.macs or 0:,}",
        f"of {config.macs_per_cycle} MAC a cycle": f"{result.gemm_utilization or 0:.1%}",
        "DRAM bytes": f"{moved:,}",
        "instructions": f"{len(profile.program):,}",
        "device": result.device,
    }
    shown = "".join(
        f'<div class="card" data-figure="{escape(name)}"><b>{escape(value)}</b>{escape(name)}</div>'
        for name, value in cards.items()
    )
    return f'<div class="cards">{shown}</div>'


def _layers(profile: Profile) -> str:
    headings = (
        *("#", "layer", "operators", "cycles", "MACs", "utilisation", "DRAM bytes", "bound"),
        *("GEMM cycles", "VECTOR cycles", "DRAM cycles"),
        *("waits: token", "waits: bank", "waits: fetch"),
    )
    texts = {"layer", "operators", "bound"}
    head = "".join(
        f'<th class="text">{h}</th>' if h in texts else f"<th>{h}</th>" for h in headings
    )
    rows = []
    for number, layer in enumerate(profile.layers):
        mine = [e for e in profile.timeline if e.layer == number and e.start >= 0]
        # Constants may be loaded long before.
        computing = [e for e in mine if e.unit in ("GEMM", "VECTOR")] or mine
        begin = min((e.start for e in computing), default=0)
        end = max((e.end for e in computing), default=0)
        indices = [e.index for e in mine]
        span = f"{min(indices)} to {max(indices)}" if indices else "none"
        swatch = f'<span class="swatch" style="background:{colour_of(number)}"></span>'
        cells = (
            str(number),
            f"{layer.cycles:,}",
            f"{layer.macs:,}",
            f"{layer.utilization:.1%}",
            f"{layer.dram_bytes:,}",
            f"{layer.gemm_cycles:,}",
            f"{layer.vector_cycles:,}",
            f"{layer.dram_cycles:,}",
            *("?" if w is None else f"{w:,}" for w in (layer.waited_token, layer.waited_port)),
            f"{layer.waited_memory:,}",
        )
        name, kind = escape(layer.name), escape(layer.kind)
        shown = escape(shortened(layer.name))
        rows.append(
            f'<tr class="layer" data-name="{name}" data-begin="{begin}" data-end="{end}" '
            f'data-instructions="{span}"><td>{cells[0]}</td>'
            f'<td class="text" title="{name}">{swatch}{shown}</td><td class="text">{kind}</td>'
            + "".join(f"<td>{cell}</td>" for cell in cells[1:5])
            + f'<td class="text">{layer.bound}</td>'
            + "".join(f"<td>{cell}</td>" for cell in cells[5:])
            + "</tr>"
        )
    return f'<table id="layers"><tr>{head}</tr>{"".join(rows)}</table>'


def shortened(name: str) -> str:
    """The end of a long name, where names differ."""
    return name if len(name) <= NAME_LENGTH else f"…{name[1 - NAME_LENGTH :]}"


def _units(profile: Profile) -> str:
    counters = profile.result.counters
    rows = []
    for unit in ("load", "gemm", "vector", "store"):
        values = [counters[f"{unit}_{kind}"] for kind in ("busy", "stall_token", "stall_port")]
        values.append(profile.cycles - sum(values))
        cells = "".join(f"<td>{v:,} ({v / max(profile.cycles, 1):.0%})</td>" for v in values)
        rows.append(f'<tr><td class="text">{unit.upper()}</td>{cells}</tr>')
    return (
        '<table id="units"><tr><th class="text">unit</th><th>busy</th><th>waits: token</th>'
        f"<th>waits: bank</th><th>nothing to do</th></tr>{''.join(rows)}</table>"
    )
