"""Proofs about the gateware, by Yosys and an SMT solver: ``make prove``."""
