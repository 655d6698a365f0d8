"""Machine code of modules for CPUs, run without a compiler."""
