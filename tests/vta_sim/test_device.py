"""The simulator as a device."""

import numpy as np

from dovetail.isa.launch import Launch
from dovetail.runtime.device import Launcher
from dovetail.vta_sim.device import SimulatorDevice

from .programs import PROGRAM, TINY, gemm, prepare


def test_a_launch_is_run_and_left_as_it_was() -> None:
    dram = prepare([gemm(3), gemm(7)]).dram
    before = dram.copy()
    device: Launcher = SimulatorDevice()
    done = device.run(Launch(TINY, dram, PROGRAM, 2))
    assert done.finished
    assert done.counters["instructions"] == 2
    assert (done.ended > done.accepted).all()
    assert done.dram is not dram
    np.testing.assert_array_equal(dram, before)
    np.testing.assert_array_equal(done.dram, before)


def test_a_launch_that_fails_says_why() -> None:
    dram = prepare([bytes(64)]).dram
    done = SimulatorDevice().run(Launch(TINY, dram, PROGRAM, 1))
    assert (done.finished, done.error_code, done.error_index) == (False, 1, 0)
