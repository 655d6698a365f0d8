"""Finding what is wrong with a compiled model: its run against its graph."""
