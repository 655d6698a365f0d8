"""Schedules: recorded rewrites of programs."""
