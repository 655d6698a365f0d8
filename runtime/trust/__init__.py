"""Who made a module, and running it with limits."""
