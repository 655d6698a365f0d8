"""Kinds of CPUs as data: one record a file; code generation reads them and knows no CPU by name."""
