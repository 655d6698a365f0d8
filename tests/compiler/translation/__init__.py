"""Tests of the validation of translations."""
