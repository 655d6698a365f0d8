"""Needs of quantisation besides a model's file: data, accuracy, corrections, bounds.

Nothing here knows a file format: models are functions from samples to outputs, layers are arrays.
"""
