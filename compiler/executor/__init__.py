"""Models that are compiled as they run."""
