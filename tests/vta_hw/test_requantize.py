"""The requantiser, against the float32 formula in NumPy, and TensorFlow Lite's fixed point."""

from typing import Any

import cocotb
import numpy as np
import pytest
from cocotb.triggers import FallingEdge
from numpy.typing import NDArray

from dovetail.isa.requantize import WIDE_LIMIT, requantize
from dovetail.vta_hw.requantize import requantize_latency
from tests.isa.fixed_point import any_parameters, multiply_by_quantized_multiplier

from .compute_top import BUILDS, REQUANTIZE_LANES, TOPS
from .rtl import parameters, simulate_all, start_clock


def adversarial(rng: np.random.Generator) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Values and scales at the edges of every rounding step."""
    edges = [0, 1, 2, 3, 1 << 22, 1 << 23, 1 << 24, 1 << 25, 1 << 30, (1 << 31) - 1]
    near = np.array([edge + d for edge in edges for d in range(-9, 10)], np.int64)
    # Ties of the conversion to float32: odd multiples of half its step, and their neighbours.
    steps = np.array([(1 << 24) + 1, (1 << 24) + 3, (1 << 25) + 2, (1 << 26) + 4, (1 << 30) + 64])
    ties = np.concatenate([steps + d for d in (-1, 0, 1)])
    carries = np.array([(1 << k) - 1 for k in range(25, 32)])
    values = np.concatenate([near, ties, carries])
    values = np.concatenate([values, -values, [-(1 << 31)]])
    values = np.clip(values, -(1 << 31), (1 << 31) - 1).astype(np.int32)
    powers = 2.0 ** np.arange(-34, 9)
    odd = [1.5, 1 / 3, 0.1, 5 / 7, 1 + 2**-23, 2 - 2**-23]
    scales = np.concatenate([powers * factor for factor in (1.0, *odd)]).astype(np.float32)
    limits = np.finfo(np.float32)
    scales = np.concatenate([scales, [limits.tiny, limits.max]]).astype(np.float32)
    grid = np.meshgrid(values, scales)
    return grid[0].reshape(-1), grid[1].reshape(-1)


def rounding_ties(rng: np.random.Generator) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Products just at, above and below an integer and a half."""
    values = rng.integers(1, 1 << 24, 40_000).astype(np.int32)
    targets = (rng.integers(-(1 << 20), 1 << 20, 40_000) >> rng.integers(0, 14, 40_000)) + 0.5
    scales = np.abs(targets / values).astype(np.float32)
    steps = rng.integers(-2, 3, 40_000).astype(np.int32)
    scales = (scales.view(np.int32) + steps).view(np.float32)
    exact = exact_ties()
    values, scales = (np.concatenate(pair) for pair in zip((values, scales), exact, strict=True))
    return np.where(rng.integers(0, 2, len(values)) == 1, values, -values), scales


def exact_ties() -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Products halfway between two float32, of which one is an integer and a half."""
    odd = 2 * np.arange(128) + 1
    bits = np.floor(np.log2(odd)).astype(np.int64)
    products = (np.repeat(odd << 24 - bits, 2) + np.tile([-1, 1], 128))[:, np.newaxis]
    factors = np.arange(3, 512, 2)
    places, chosen = np.nonzero(products % factors == 0)
    values = products[places, 0] // factors[chosen]
    scales = factors[chosen] * np.exp2(bits[places // 2] - 25)
    return values.astype(np.int32), scales.astype(np.float32)


def random_vectors(rng: np.random.Generator) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Values of every size, with scales that bring most of them near int8, and any others."""
    count = 100_000
    values = rng.integers(-(1 << 31), 1 << 31, count) >> rng.integers(0, 31, count)
    targets = rng.uniform(0.01, 300, count) * np.exp2(rng.integers(0, 12, count))
    scales = (targets / np.maximum(np.abs(values), 1)).astype(np.float32)
    anywhere = rng.integers(0x0080_0000, 0x7F80_0000, count).astype(np.int32).view(np.float32)
    return values.astype(np.int32), np.where(rng.integers(0, 4, count) == 0, anywhere, scales)


VECTORS = {"adversarial": adversarial, "ties": rounding_ties, "random": random_vectors}


def in_lanes(values: NDArray[Any]) -> NDArray[Any]:
    """One row a cycle."""
    return np.resize(values, (-(-len(values) // REQUANTIZE_LANES), REQUANTIZE_LANES))


async def run(
    dut: Any,
    values: NDArray[np.int32],
    scales: NDArray[Any],
    zero_point: int,
    shifts: NDArray[np.int64] | None = None,
) -> NDArray[np.int32]:
    """The results, int32[cycles, lanes], of one row a cycle, capped above int8."""
    latency = requantize_latency(BUILDS[parameters()["build"]].deep_pipelines)
    dut.requantize_zero_point.value = zero_point
    ports = [dut.requantize_values, dut.requantize_scales]
    given = [packed(values), packed(scales)]
    if shifts is not None:
        lanes = shifts << 5 * np.arange(REQUANTIZE_LANES)
        ports.append(dut.requantize_shifts)
        given.append([int(word) for word in lanes.sum(axis=1)])
    rows, found = list(zip(*given, strict=True)), dut.requantize_results
    results, size = [], 4 * REQUANTIZE_LANES
    for t in range(len(rows) + latency):
        if t >= latency:
            results.append(int(found.value).to_bytes(size, "little"))
        for port, word in zip(ports, rows[t] if t < len(rows) else (), strict=False):
            port.value = word
        await FallingEdge(dut.clk)
    return np.frombuffer(b"".join(results), np.int32).reshape(values.shape)


def packed(rows: NDArray[Any]) -> list[int]:
    """The lanes of each row, which have four bytes, as one number."""
    size, data = 4 * REQUANTIZE_LANES, rows.tobytes()
    return [int.from_bytes(data[at : at + size], "little") for at in range(0, len(data), size)]


@cocotb.test()
async def requantisers_equal_tensorflow_lite(dut: Any) -> None:
    """In fixed point: sums below 2^24, and larger ones where every result is clipped."""
    rng = np.random.default_rng(parameters()["seed"])
    x, multiplier, power = any_parameters(rng, 200_000)
    large = rng.integers(1 << 24, 1 << 31, 20_000) >> rng.integers(0, 3, 20_000)
    x = np.concatenate([x, np.maximum(large, 1 << 24) * rng.choice([-1, 1], len(large))])
    multiplier = np.concatenate([multiplier, rng.integers(1 << 30, 1 << 31, len(large))])
    power = np.concatenate([power, rng.integers(-14, 1, len(large))])
    order = rng.permutation(len(x))
    x, multiplier, power = (in_lanes(each[order]) for each in (x, multiplier, power))
    bits = multiplier | rng.integers(0, 2, multiplier.shape) << 31
    values, scales = x.astype(np.int32), bits.astype(np.uint32)
    await start_clock(dut)
    dut.requantize_fixed.value = 1
    for zero_point in parameters()["zero_points"]:
        results = await run(dut, values, scales, zero_point, 7 - power)
        exact = multiply_by_quantized_multiplier(x, multiplier, power) + zero_point
        wrong = np.argwhere(np.clip(results, -128, 127) != np.clip(exact, -128, 127))
        assert not len(wrong), [
            (zero_point, len(wrong)),
            *(each[tuple(wrong[0])] for each in (x, multiplier, power, results, exact)),
        ]


@cocotb.test()
async def requantisers_equal_the_formula(dut: Any) -> None:
    """Feed one vector a lane and cycle."""
    values, scales = VECTORS[parameters()["vectors"]](np.random.default_rng(parameters()["seed"]))
    signs = np.random.default_rng(7).choice(np.array([-1, 1], np.float32), len(scales))
    values, scales = in_lanes(values), in_lanes(scales * signs)
    await start_clock(dut)
    dut.requantize_fixed.value = 0
    for zero_point in parameters()["zero_points"]:
        results = await run(dut, values, scales, zero_point)
        wide = zero_point - WIDE_LIMIT, zero_point + WIDE_LIMIT
        for low, high in ((-128, 127), (-7, 9), wide):
            none = np.zeros(1, np.int32)
            expected = requantize(values, none, scales, zero_point, low, high)
            found = results if (low, high) == wide else np.clip(results, low, high)
            wrong = np.argwhere(found != expected)
            assert not len(wrong), (
                f"{len(wrong)} differ; first {values[tuple(wrong[0])]} * "
                f"{scales[tuple(wrong[0])]!r} + {zero_point}: "
                f"{found[tuple(wrong[0])]}, not {expected[tuple(wrong[0])]}"
            )


@pytest.mark.parametrize("build", ["plain", "deep_turns"])
def test_requantisation_equals_numpy_and_fixed_point_tensorflow_lite(build: str) -> None:
    """At every rounding edge, around halves, and for random vectors."""
    runs = [
        (
            requantisers_equal_the_formula,
            {"vectors": vectors, "seed": seed, "zero_points": zero_points, "build": build},
        )
        for vectors, seed, zero_points in (
            ("adversarial", 1, [0, -128, 127]),
            ("ties", 2, [-1]),
            ("random", 3, [5]),
        )
    ]
    fixed = {"seed": 4, "zero_points": [0, -128], "build": build}
    simulate_all(TOPS[build], [*runs, (requantisers_equal_tensorflow_lite, fixed)])
