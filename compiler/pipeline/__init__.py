"""Passes over any IR, and what looks on as they run."""
