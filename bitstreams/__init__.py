"""The accelerator on boards: memory controllers, the host's link, top levels, bitstreams."""
