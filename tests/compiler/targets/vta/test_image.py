"""LOADs of windows of an image as the host lays it, executed, against the image's pixels."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.compiler.targets.vta.image import load_windows
from dovetail.compiler.targets.vta.layers.activation import Activation
from dovetail.compiler.targets.vta.layers.image import Image
from dovetail.isa.configs import find_config
from dovetail.isa.encoding import encode
from dovetail.isa.legality import legality_problem
from dovetail.isa.semantics import load
from dovetail.isa.state import MachineState
from dovetail.runtime.accelerator.layouts import OwnWindows
from tests.compiler.targets.vta.layers.layers import RUBBISH, windows_of


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_every_part_of_an_image_is_loaded(data: st.DataObject) -> None:
    draw = data.draw
    config = find_config(draw(st.sampled_from(("tiny", "zynq7020"))))
    height, width, channels = draw(
        st.tuples(st.integers(1, 7), st.integers(3, 12), st.integers(1, 4))
    )
    transposed = draw(st.booleans())
    kernel, stride, pad = draw(st.tuples(st.integers(1, 5), st.integers(1, 3), st.integers(0, 2)))
    along, rows = (height, width) if transposed else (width, height)
    columns = max(1, (along + 2 * pad - kernel) // stride + 1)
    halo = draw(st.tuples(st.integers(0, 2), st.integers(0, 2)))
    pixel = channels + draw(st.integers(0, 3))
    image = Image(
        rows,
        columns,
        along * pixel,
        kernel * pixel,
        stride * pixel,
        pad * pixel,
        halo,
        transposed,
        channels,
        pixel,
    )
    if draw(st.booleans()):
        window = kernel * channels
        own = OwnWindows(kernel, stride, min(pad, kernel - 1), window + draw(st.integers(0, 9)))
        image = replace(
            image,
            row_bytes=columns * own.step,
            window_bytes=window,
            step=own.step,
            lead=0,
            pixel_bytes=channels,
            windows=own,
        )
    x = Activation(
        "x", image.window_bytes, rows, columns, config.block, (halo[0], 0, halo[1], 0), -7, image
    )
    values = (
        np.random.default_rng(draw(st.integers(0, 99)))
        .integers(RUBBISH + 1, 128, (1, height, width, channels))
        .astype(np.int8)
    )
    wanted = windows_of(values, x)

    margin = image.margin(config.block)
    dram = np.full(2 * margin + rows * image.pitch + 64, 0x55, np.uint8)
    placed = image.layout(-7).pack(values).reshape(-1).view(np.uint8)
    dram[margin : margin + placed.size] = placed
    state = MachineState.zeros(config, dram)

    def part(size: int) -> tuple[int, int]:
        first = draw(st.integers(0, size - 1))
        return first, draw(st.integers(1, size - first))

    spans = (part(x.blocks), part(x.rows), part(x.columns))
    strides = (spans[1][1] * spans[2][1], spans[2][1])
    for each in load_windows(x, spans, strides, 5, margin, config.bus_bytes):
        assert legality_problem(each, config) is None
        encode(replace(each))
        load(state, each)
    shape = tuple(count for _, count in spans)
    found = state.act[5 : 5 + int(np.prod(shape))].reshape(*shape, config.block)
    (b, nb), (r, nr), (c, nc) = spans
    wanted = wanted[b : b + nb, r : r + nr, c : c + nc]
    assert np.array_equal(found[wanted != RUBBISH], wanted[wanted != RUBBISH])
