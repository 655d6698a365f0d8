"""The queue with its head in registers, against a deque."""

from collections import deque
from typing import Any

import numpy as np
import pytest
from amaranth.sim import Simulator

from dovetail.vta_hw.head_queue import HeadQueue


@pytest.mark.parametrize("depth", [2, 4, 16])
@pytest.mark.parametrize("popping", [0.2, 0.5, 0.9])
def test_random_pushes_and_pops(depth: int, popping: float) -> None:
    queue = HeadQueue(16, depth)
    rng = np.random.default_rng(depth)

    async def drive(context: Any) -> None:
        held: deque[int] = deque()
        for _ in range(1500):
            push, pop = int(rng.random() < 0.5), int(rng.random() < popping)
            value = int(rng.integers(1 << 16))
            context.set(queue.push, push)
            context.set(queue.push_data, value)
            context.set(queue.pop, pop)
            assert context.get(queue.room) == (len(held) < depth)
            assert context.get(queue.valid) == bool(held)
            if held:
                assert context.get(queue.head) == held[0]
            room = len(held) < depth
            if pop and held:
                held.popleft()
            if push and room:
                held.append(value)
            await context.tick()

    simulator = Simulator(queue)
    simulator.add_clock(1e-8)
    simulator.add_testbench(drive)
    simulator.run()
