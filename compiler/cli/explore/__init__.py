"""The command ``dovetail explore`` and its page."""
