"""ONNX's own backend tests on the compiled CPU path."""
