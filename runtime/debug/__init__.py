"""Looking into a run: stopping anywhere, memories as tensors, what waits for what."""
