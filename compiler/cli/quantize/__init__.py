"""The command ``dovetail quantize``."""
