"""Expected costs of ways to run layers strip by strip."""

from dataclasses import replace

import pytest

from dovetail.compiler.targets.vta.cascade_sizes import CascadeSizes
from dovetail.compiler.targets.vta.items import activation_items

from .test_cascade import SMALL, deep
from .test_chain import low
from .test_stream import lowered


@pytest.mark.parametrize(("tap_depth", "comes_again"), [(64, True), (256, False)])
def test_waiting_for_constants_that_come_again_counts_where_it_is_asked_for(
    tap_depth: int, *, comes_again: bool
) -> None:
    layers, ends = lowered(deep(48, 48))
    config = replace(SMALL, tap_depth=tap_depth)
    items = activation_items(layers, ends.sources)
    sizes = CascadeSizes(layers, items, ends.results, config)
    more = set()
    for number, layer in enumerate(layers[:-1]):
        if "taps" in layer.constants:
            gone = frozenset({layer.inputs[0].name})
            plain = {x.rows: x.cycles for x in sizes.sizes(number, number + 1, gone)}
            waits = {x.rows: x.cycles for x in sizes.sizes(number, number + 1, gone, waits=True)}
            more |= {waits[rows] - plain[rows] for rows in plain.keys() & waits.keys()}
    assert min(more) >= 0
    assert (max(more) > 0) == comes_again


def test_waiting_for_the_rows_of_a_low_image_counts_where_it_is_asked_for() -> None:
    layers, ends = lowered(low())
    items = activation_items(layers, ends.sources)
    sizes = CascadeSizes(layers, items, ends.results, replace(SMALL, tap_depth=1024))
    plain, waits = (sizes.sizes(0, 1, frozenset(), waits=x) for x in (False, True))
    found = {x.rows: x.cycles for x in waits}
    late = {found[x.rows] - x.cycles for x in plain if x.rows in found}
    assert late
    assert min(late) > 0, "half of the rows come before the first one"
