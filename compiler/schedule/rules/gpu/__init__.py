"""What a schedule for GPUs does to the loops of each kind of definition."""
