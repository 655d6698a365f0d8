"""Modules, the devices that run them, and what the host does around a launch."""
