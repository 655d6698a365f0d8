"""The accelerator's operators: one small model for each line of ``docs/operators.md``."""
