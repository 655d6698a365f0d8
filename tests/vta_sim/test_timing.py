"""The simulator's constants are the gateware's."""

import pytest

from dovetail.vta_sim.timing import GEMM_LATENCY, VECTOR_LATENCY

pytest.importorskip("amaranth", reason="Amaranth is not installed")


def test_latencies_are_those_of_the_gateware() -> None:
    from dovetail.vta_hw.gemm import Gemm
    from dovetail.vta_hw.vector import Vector

    assert GEMM_LATENCY == Gemm.LATENCY
    assert VECTOR_LATENCY == Vector.LATENCY
