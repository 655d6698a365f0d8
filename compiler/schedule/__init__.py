"""Schedules: recorded rewrites of kernels."""
