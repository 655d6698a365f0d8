"""A model on several devices: how fast, how large, how exact."""
