"""The accelerator's backend: kernels to one program."""
