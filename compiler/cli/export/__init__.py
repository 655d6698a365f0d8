"""The command ``dovetail export``."""
