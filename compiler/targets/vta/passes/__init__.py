"""Graph passes that only the accelerator needs."""
