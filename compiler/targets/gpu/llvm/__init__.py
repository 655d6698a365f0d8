"""Kernels as PTX, through LLVM."""
