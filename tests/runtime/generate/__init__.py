"""Tests of what a host does around language models."""
