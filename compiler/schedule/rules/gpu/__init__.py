"""Schedules for GPUs, for the loops of each kind of definition."""
