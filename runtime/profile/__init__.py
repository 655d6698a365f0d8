"""What a run's timeline, its program and its counters say together."""
