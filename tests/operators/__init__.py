"""What the accelerator runs: one small model for each line of ``docs/operators.md``."""
