"""Devices that run kernels: GPUs, and CPUs by OpenCL."""
