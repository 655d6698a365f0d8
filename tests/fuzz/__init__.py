"""Mutated models: each gives a result or one clear error."""
