"""Loop programs to machine code for CPUs, through LLVM."""
