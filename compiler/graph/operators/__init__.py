"""The general operators of the graph IR, by family."""
