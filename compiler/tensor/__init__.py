"""Tensor IR: kernels as loop nests over buffers."""
