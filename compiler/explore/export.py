"""The results as tables: one row for each design and model."""

import csv
import io
from collections.abc import Sequence

from .evaluate import Failure, Performance
from .exploration import Exploration
from .figures import DesignResult, slug
from .front import fitting_front

__all__ = ["rows", "to_csv", "to_parquet"]

Value = int | float | str | bool | None


def rows(exploration: Exploration) -> list[dict[str, Value]]:
    """Every row has the same columns; what there is no value for is None."""
    fronts = {
        family: {result.design for result in fitting_front(exploration.results, family)}
        for family in exploration.basis.areas
    }
    found = []
    for result in exploration.results:
        for model, outcome in result.outcomes.items():
            row: dict[str, Value] = {"design": result.design.key, **result.design.values}
            row |= {"model": model, **_run(outcome, result)}
            energy = result.energies.get(model)
            row["energy_uj"] = energy.total if energy else None
            row["energy_low_uj"] = energy.low if energy else None
            row["energy_high_uj"] = energy.high if energy else None
            for family in exploration.basis.areas:
                row |= _family(result, model, family)
                row[f"{slug(family)}_front"] = result.design in fronts[family]
            found.append(row)
    return found


def _run(outcome: Performance | Failure, result: DesignResult) -> dict[str, Value]:
    names = (
        *("cycles", "macs", "utilisation", "bytes_read", "bytes_written"),
        *("instructions", "memory_bytes", "error"),
    )
    if isinstance(outcome, Failure):
        return dict.fromkeys(names) | {"error": f"{outcome.kind}: {outcome.message}"}
    config, counters = result.design.config, outcome.counters
    read = (counters["fetch_beats"] + counters["load_beats"]) * config.bus_bytes
    return dict(
        zip(
            names,
            (
                outcome.cycles,
                outcome.macs,
                outcome.macs / (outcome.cycles * config.macs_per_cycle),
                read,
                counters["store_beats"] * config.bus_bytes,
                outcome.instructions,
                outcome.dram_bytes,
                None,
            ),
            strict=True,
        )
    )


def _family(result: DesignResult, model: str, family: str) -> dict[str, Value]:
    """Areas in one family; empty where a design did not run every model: nobody builds it."""
    found = result.families.get(family)
    names = ("luts", "registers", "multipliers", "block_rams", "share", "basis", "error")
    values: dict[str, Value] = {
        name: getattr(found.area, name) if found else None for name in names
    }
    values["clock_mhz"] = found.clock.hz / 1e6 if found else None
    values["latency_ms"] = 1e3 * found.latencies[model] if found else None
    return {f"{slug(family)}_{name}": value for name, value in values.items()}


def to_csv(table: Sequence[dict[str, Value]]) -> bytes:
    """A heading, then one line for each row."""
    text = io.StringIO()
    if table:
        writer = csv.DictWriter(text, list(table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)
    return text.getvalue().encode()


def to_parquet(table: Sequence[dict[str, Value]]) -> bytes:
    """An Apache Parquet file; needs pyarrow."""
    import pyarrow
    import pyarrow.parquet

    columns = {name: [row[name] for row in table] for name in (table[0] if table else {})}
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.table(columns), sink)
    return bytes(sink.getvalue())
