"""The command ``dovetail benchmark``."""
