"""Programs: calls of loop programs on tensors, and the memory these are in."""
