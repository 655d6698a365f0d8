"""LLVM's assembly for more than one target: values, instructions, arithmetic of integers."""
