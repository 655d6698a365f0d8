"""Operators of integer layers: int8 activations in NHWC with N = 1, int32 sums."""
