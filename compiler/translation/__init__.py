"""Validation of translations: that an accelerator's program computes what its graph says."""
