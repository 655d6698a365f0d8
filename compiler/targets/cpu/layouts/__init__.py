"""Layouts of tensors that suit a CPU's vectors."""
