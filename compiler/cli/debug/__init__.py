"""The command ``dovetail debug``."""
