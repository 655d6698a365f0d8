"""Profiles of runs, from timeline, program and counters."""
