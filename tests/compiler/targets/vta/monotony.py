"""More memory, a wider bus or a faster memory never costs a cycle: random networks on random
accelerators, of which one thing at a time is raised.

    python -m tests.compiler.targets.vta.monotony --count 200

Each pair that takes longer than before is printed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import click
import numpy as np

from dovetail.compiler.errors import DoesNotFitError
from dovetail.compiler.graph.ir import Graph, GraphBuilder
from dovetail.compiler.graph.operators.integer.products import Conv2d
from dovetail.compiler.graph.operators.integer.values import Add, Requantize
from dovetail.compiler.graph.operators.integer.windows import MaxPool2d
from dovetail.compiler.graph.types import TensorType
from dovetail.compiler.options import CompileOptions
from dovetail.compiler.pipeline.trace import Trace
from dovetail.compiler.targets.vta.accelerate import compile_accelerated
from dovetail.isa.config import DramTiming, HardwareConfig
from dovetail.isa.configs import find_config
from dovetail.vta_sim.timing import time_program

__all__ = ["Case", "cases", "cycles_of", "dearer"]

TRACE = Trace(CompileOptions())


@dataclass(frozen=True, slots=True)
class Case:
    """A network, an accelerator, and others that have more of one thing each, by its name."""

    seed: int
    graph: Graph
    config: HardwareConfig

    def raised(self) -> Iterator[tuple[str, HardwareConfig]]:
        """All that differ from ``config`` in one thing."""
        config, dram = self.config, self.config.dram
        for name in ("act_depth", "wgt_depth", "acc_depth", "bus_bytes"):
            yield name, replace(config, **{name: 2 * getattr(config, name)})
        faster = {"latency_cycles": dram.latency_cycles // 2, "beat_interval_cycles": 1}
        for name, value in faster.items():
            yield name, replace(config, dram=replace(dram, **{name: value}))


def cases(first: int, count: int, rows: int = 12) -> Iterator[Case]:
    """``count`` cases from seed ``first`` on, of images of at most ``rows`` rows."""
    for seed in range(first, first + count):
        rng = np.random.default_rng(seed)
        yield Case(seed, _network(rng, rows), _accelerator(rng))


def cycles_of(graph: Graph, config: HardwareConfig) -> int | None:
    """Expected cycles of the whole network, which the simulator counts; None without room."""
    try:
        part = compile_accelerated(graph, config, CompileOptions(), TRACE, time_program)
    except DoesNotFitError:
        return None
    return part.expected_cycles


def dearer(seed: int) -> dict[str, tuple[int, int | None]]:
    """Cycles of a small network, before and after, for those raises that cost it cycles."""
    (case,) = cases(seed, 1, rows=5)
    before = cycles_of(case.graph, case.config)
    assert before is not None
    raised = ((name, cycles_of(case.graph, config)) for name, config in case.raised())
    return {name: (before, after) for name, after in raised if after is None or after > before}


def _accelerator(rng: np.random.Generator) -> HardwareConfig:
    """8x8, with memories that small networks fill, and a narrow and slow bus."""
    interval = int(rng.integers(2, 4))
    return replace(
        find_config("tiny"),
        block=8,
        act_depth=1 << int(rng.integers(7, 12)),
        wgt_depth=1 << int(rng.integers(5, 9)),
        acc_depth=1 << int(rng.integers(5, 9)),
        acc_banks=int(rng.choice([2, 4])),
        dram=DramTiming(
            latency_cycles=int(rng.choice([12, 24, 40])),
            queue_bursts=4,
            beat_interval_cycles=interval,
        ),
    )


class _Network:
    def __init__(self, rng: np.random.Generator) -> None:
        self.rng, self.builder = rng, GraphBuilder()

    def node(self, operator: object, *inputs: str) -> str:
        return self.builder.node(operator, inputs, f"t{len(self.builder.nodes)}", "node")

    def layer(self, x: str) -> str:
        _, height, _, channels = self.builder.types[x].shape
        match int(self.rng.integers(6)):
            case 0:
                return self.conv(x, channels, 3, channels)
            case 1:
                stride = 2 if height > 5 else 1
                return self.conv(x, channels, 3, channels, stride)
            case 2:
                more = self.conv(self.conv(x, channels, 3), channels, 3)
                return self.node(Add(0.5, 0.75, 1, -3, 2, -128, 127), x, more)
            case 3:
                return self.node(MaxPool2d((3, 3), (1, 1), (1, 1, 1, 1)), x)
            case 4:
                return self.conv(x, int(self.rng.integers(1, 6)) * 8, 3)
            case _:
                return self.conv(x, int(self.rng.integers(1, 10)) * 8, 1)

    def conv(self, x: str, outputs: int, size: int, groups: int = 1, stride: int = 1) -> str:
        shape = (outputs, size, size, self.builder.types[x].shape[3] // groups)
        weights = self.builder.constant("w", self.rng.integers(-128, 128, shape).astype(np.int8))
        bias = self.builder.constant("b", self.rng.integers(-999, 999, outputs).astype(np.int32))
        total = self.node(Conv2d((stride, stride), (size // 2,) * 4, groups, 3), x, weights, bias)
        scales = self.rng.uniform(1e-3, 4e-3, outputs).astype(np.float32)
        return self.node(Requantize(1, -128, 127), total, self.builder.constant("s", scales))


def _network(rng: np.random.Generator, rows: int) -> Graph:
    """One to four layers of an image of 4 to ``rows`` rows."""
    network, size = _Network(rng), int(rng.integers(4, rows + 1))
    shape = (1, size, size, int(rng.integers(1, 5)) * 8)
    x = network.builder.input("x", TensorType(shape, "int8"))
    for _ in range(int(rng.integers(1, 5))):
        x = network.layer(x)
    return network.builder.build((x,))


@click.command()
@click.option("--count", default=200, show_default=True)
@click.option("--seed", default=1, show_default=True)
def main(count: int, seed: int) -> None:
    """Compile COUNT networks for seven accelerators each."""
    pairs = found = 0
    for case in cases(seed, count):
        before = cycles_of(case.graph, case.config)
        if before is None:
            continue
        for name, config in case.raised():
            after = cycles_of(case.graph, config)
            pairs += 1
            if after is None or after > before:
                found += 1
                print(f"seed {case.seed}: {before} -> {after} with more {name}", flush=True)
    print(f"{pairs} pairs, {found} of them slower")
    raise SystemExit(bool(found))


if __name__ == "__main__":
    main()
