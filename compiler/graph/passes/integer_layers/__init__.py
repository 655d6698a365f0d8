"""Recognising layers that integers compute exactly, in a graph that dequantises and quantises."""
