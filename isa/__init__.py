"""The instruction set: formats, meaning, registers, assembly and configurations."""
