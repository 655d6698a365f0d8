"""Graph IR: integer operators on tensors, activations in NHWC."""
