"""Boards at the end of a serial line."""
