"""Every kernel of the benchmark networks through NVIDIA's assembler."""
