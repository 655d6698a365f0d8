"""Samples and labels from files: arrays, pictures, sounds."""

from .dataset import Dataset
from .pictures import Preparation
from .read import read_data

__all__ = ["Dataset", "Preparation", "read_data"]
