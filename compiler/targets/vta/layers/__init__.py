"""Layers as loop programs, in the accelerator's blocked layout."""
