"""Machine code for CPUs."""
