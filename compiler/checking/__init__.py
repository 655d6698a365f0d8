"""Compiled results held against the graph interpreter."""
