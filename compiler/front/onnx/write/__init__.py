"""Graphs as ONNX models: what any front end has read, for those who take ONNX only."""

from .model import onnx_model, write_model

__all__ = ["onnx_model", "write_model"]
