"""TensorFlow Lite's files to graph IR."""
