"""The compiler: model file to runtime module."""
