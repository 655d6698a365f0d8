"""The command ``dovetail tune``."""
