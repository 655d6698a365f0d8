"""Why a layer takes as long as it does, in words that follow from its numbers."""

from dataclasses import fields

from dovetail.isa.config import HardwareConfig
from dovetail.isa.frozen import frozen

from .breakdown import Breakdown
from .layers import LayerProfile

__all__ = ["CAUSES", "Explanation", "causes", "explain"]

GOOD = 0.9
"""Part of a layer's cycles that are useful; with more, nothing is worth trying."""
MENTIONED = 0.05
"""Part of a layer's cycles below which a cause is not worth a sentence."""
BUS_FULL = 0.8
"""Part of a layer's cycles in which the bus is at work; with more, it is the limit."""

CAUSES = {
    "useful": "products that the model needs",
    "unfilled": "GEMM with multipliers that have nothing to do",
    "vector": "VECTOR works, GEMM stands still",
    "load": "waits for LOAD",
    "gemm": "VECTOR waits for GEMM",
    "vector_token": "GEMM waits for VECTOR",
    "store": "waits for STORE",
    "room": "waits for room for a token",
    "bank": "waits for a scratchpad bank",
    "fetch": "waits for instructions",
    "unknown": "waits that the device does not explain",
    "other": "beginning and end",
}
"""The fields of ``Breakdown`` as people read them."""


@frozen
class Explanation:
    """summary: one sentence.  because: facts, the largest first.  tries: what may help."""

    summary: str
    because: tuple[str, ...]
    tries: tuple[str, ...]


def causes(found: Breakdown) -> list[tuple[str, int]]:
    """Causes of cycles that are not useful, with their cycles: the largest first, and only those
    that are worth a sentence.
    """
    named = [(each.name, getattr(found, each.name)) for each in fields(Breakdown)]
    least = MENTIONED * found.cycles
    kept = [(name, count) for name, count in named if name != "useful" and count > least]
    return sorted(kept, key=lambda pair: -pair[1])


def explain(
    layer: LayerProfile, found: Breakdown, bus: int, config: HardwareConfig, run_cycles: int
) -> Explanation:
    """``found``: of the layer, in a run of ``run_cycles`` on ``config``.

    bus: cycles of the layer in which the bus was at work.
    """
    total = found.cycles
    if not total:
        return Explanation(
            "It takes no cycle of its own: all of its work overlaps with that of other layers.",
            (),
            (),
        )
    share = f"It takes {total:,} cycles, {total / run_cycles:.1%} of the run"
    useful = found.useful / total
    mentioned = causes(found)
    if useful >= GOOD or not mentioned:
        return Explanation(
            f"{share}; {_products(layer, found)}: there is little to gain but with fewer "
            "products, or more multipliers.",
            (),
            (),
        )
    first, most = mentioned[0]
    tries: dict[str, None] = {}
    because = []
    for name, count in mentioned:
        fact, helps = _cause(name, layer, found, bus, config)
        because.append(f"{count:,} cycles ({count / total:.1%}): {fact}")
        tries.update(dict.fromkeys(helps))
    if bus >= BUS_FULL * total and not {"load", "store"} & {name for name, _ in mentioned}:
        because.append(
            f"In {bus / total:.0%} of its cycles the bus was at work, so it would hardly be faster "
            "without those waits."
        )
        tries.update(dict.fromkeys(_wider(config)))
    summary = (
        f"{share}; {_products(layer, found)}. Most of the "
        f"{'others' if found.useful else 'cycles'}: {CAUSES[first]} ({most / total:.1%})."
    )
    return Explanation(summary, tuple(because), tuple(tries))


def _products(layer: LayerProfile, found: Breakdown) -> str:
    if layer.macs and not layer.gemm_cycles:
        return f"VECTOR does its {layer.macs:,} products"
    if not layer.macs:
        return "it has no products"
    return f"{found.useful / found.cycles:.1%} of them do the model's products"


def _cause(
    name: str, layer: LayerProfile, found: Breakdown, bus: int, config: HardwareConfig
) -> tuple[str, list[str]]:
    """The fact, and what may help."""
    tune = "dovetail tune: it measures other tilings and orders of this layer"
    match name:
        case "unfilled":
            worked = found.useful + found.unfilled
            return (
                f"GEMM worked {worked:,} cycles, in which it can do "
                f"{worked * config.macs_per_cycle:,} products; the layer has {layer.macs:,}. The "
                "rest is lanes that no channel fills, and filling its pipeline.",
                [f"channels in multiples of {config.block}, or a smaller block", tune],
            )
        case "vector":
            return _vector(layer, config, tune)
        case "load" | "store":
            return _memory(name, bus / found.cycles, config, tune)
        case "bank":
            banks = []
            if config.act_banks < 8:
                banks.append(f"act_banks above {config.act_banks}")
            if config.acc_banks < 4:
                banks.append(f"acc_banks above {config.acc_banks}")
            fact = "an instruction of another unit held a bank of ACT or ACC that was needed."
            return fact, [*banks, tune]
        case "fetch":
            return (
                "the next instruction was not in its unit's queue.",
                [
                    f"fetch_ahead above {config.fetch_ahead}",
                    f"queue_depth above {config.queue_depth}",
                ],
            )
        case "gemm":
            return "VECTOR had nothing to do until GEMM had ended.", [tune]
        case "vector_token":
            return (
                "GEMM could not begin until VECTOR had given something free or finished it.",
                [f"acc_depth above {config.acc_depth:,}", tune],
            )
        case "room":
            return (
                "no token came in that time: the unit that was to take one had not done so, or "
                "the program's order held it back.",
                [f"token_max above {config.token_max}", tune],
            )
        case "unknown":
            return "the device does not say what was waited for.", ["a profile on sim"]
        case _:
            return "the run begins or ends here, and units hand work to each other.", []


def _vector(layer: LayerProfile, config: HardwareConfig, tune: str) -> tuple[str, list[str]]:
    if layer.vector_cycles > layer.gemm_cycles:
        fact = (
            f"VECTOR has {layer.vector_cycles:,} cycles of work for this layer, GEMM "
            f"{layer.gemm_cycles:,}: VECTOR is the limit."
        )
        if config.vector_cycles > 1:
            return fact, [f"vector_cycles below {config.vector_cycles}"]
        helps = "a larger block: VECTOR works on as many lanes"
        return fact, [f"fewer operators besides the products, or {helps}" if layer.macs else helps]
    fact = (
        f"GEMM has more work ({layer.gemm_cycles:,} cycles against {layer.vector_cycles:,}), but "
        "stood still while VECTOR finished results."
    )
    return fact, [f"acc_depth above {config.acc_depth:,}, so that both work at a time", tune]


def _memory(name: str, bus: float, config: HardwareConfig, tune: str) -> tuple[str, list[str]]:
    what = "data had not come from DRAM" if name == "load" else "results had not gone to DRAM"
    if bus >= BUS_FULL:
        fact = f"{what}. In {bus:.0%} of the layer's cycles the bus was at work: it is the limit."
        return fact, _wider(config)
    fact = (
        f"{what}, though the bus was at work in only {bus:.0%} of the layer's cycles: "
        f"{name.upper()} began too late, or waited for DRAM's latency."
    )
    room = "so that LOAD can run ahead" if name == "load" else "so that results can wait"
    return fact, [f"larger scratchpads (act_depth, wgt_depth), {room}", tune]


def _wider(config: HardwareConfig) -> list[str]:
    found = ["larger scratchpads (act_depth, wgt_depth), so that less is loaded twice"]
    if config.bus_bytes < config.block:
        found.insert(0, f"bus_bytes above {config.bus_bytes}")
    return found
