"""Schedules of loop programs: pure rewrites, each checked, recorded as a trace."""
