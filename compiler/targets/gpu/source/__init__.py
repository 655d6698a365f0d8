"""Kernels as source text of languages that look like C."""
