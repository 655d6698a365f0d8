"""Running ONNX models as machine code, specialised to shapes as they come."""
