"""Cycle constants of the gateware, repeated here; a test compares them with their sources."""

__all__ = ["GEMM_LATENCY", "VECTOR_LATENCY"]

GEMM_LATENCY = 5
"""Last issue of a GEMM to its last write; ``vta_hw.gemm.Gemm.LATENCY``."""

VECTOR_LATENCY = 14
"""Last issue of a VECTOR to its last write; ``vta_hw.vector.Vector.LATENCY``."""
