"""Drawings of ``dovetail profile``."""
