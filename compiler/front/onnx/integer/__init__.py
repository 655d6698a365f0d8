"""Importers: model files to graph IR."""
