"""Random models: each target gives what ONNX Runtime gives."""
