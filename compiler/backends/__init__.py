"""Backends: loop programs to machine programs."""
