"""Devices of GPUs."""
