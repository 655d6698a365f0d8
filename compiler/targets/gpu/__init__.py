"""The targets of GPUs: loop programs whose iterations are blocks and threads."""
