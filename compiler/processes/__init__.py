"""Child processes, and locks between processes."""
