"""Targets: each folder has the passes, schedules and backend of one kind of machine."""
