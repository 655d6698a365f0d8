"""Backends: graph and tensor IR to machine programs."""
