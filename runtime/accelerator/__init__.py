"""Parts of modules that an accelerator runs, and what the host does around a launch."""
