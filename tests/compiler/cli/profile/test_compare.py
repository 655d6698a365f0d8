"""Layers of two runs beside each other."""

from typing import Any, cast

from dovetail.compiler.cli.profile.compare import compared_rows
from dovetail.runtime.profile.layers import LayerProfile


class Run:
    """The parts of a profile that are compared."""

    def __init__(self, *layers: LayerProfile) -> None:
        self.layers, self.cycles = layers, sum(each.cycles for each in layers)


def layer(name: str, cycles: int = 100, **figures: Any) -> LayerProfile:
    given: dict[str, Any] = dict.fromkeys(
        ("gemm_cycles", "vector_cycles", "dram_cycles", "waited_token", "waited_port"), 10
    )
    given |= {"waited_memory": 10, "macs": 0, "utilization": 0.0, "dram_bytes": 0, **figures}
    return LayerProfile(name, "conv", cycles, **given)


def rows(here: Run, there: Run) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in compared_rows(cast(Any, here), cast(Any, there))]


def test_layers_are_found_by_name_then_by_place() -> None:
    here = Run(layer("a", 10), layer("renamed", 20), layer("c", 30), layer("new", 40))
    there = Run(layer("c", 31), layer("b", 21), layer("a", 11))
    assert rows(here, there) == [
        ("all", 100, 63, ""),
        ("a", 10, 11, ""),
        ("renamed", 20, 21, ""),
        ("c", 30, 31, ""),
        ("new", 40, None, "only in this run"),
    ]


def test_layers_of_the_other_run_alone_come_last() -> None:
    here = Run(layer("a", 10), layer("c", 30))
    there = Run(layer("a", 10), layer("b", 20), layer("c", 30), layer("d", 40))
    assert rows(here, there)[1:] == [
        ("a", 10, 10, ""),
        ("c", 30, 30, ""),
        ("d", None, 40, "only in the other run"),
    ]


def test_reasons_are_what_changed_by_more_than_a_hundredth() -> None:
    before = layer("a", 1000, gemm_cycles=500, dram_cycles=300, waited_token=None)
    after = layer("a", 800, gemm_cycles=380, dram_cycles=310, vector_cycles=21, waited_port=40)
    assert rows(Run(after), Run(before))[1] == (
        *("a", 800, 1000),
        "matrix core -120, waits for banks +30, vector unit +11",
    )
