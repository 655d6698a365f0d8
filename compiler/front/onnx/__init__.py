"""The importer of any ONNX model: each ONNX operator becomes a few operators of the graph IR."""
