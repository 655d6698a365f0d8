"""What ``dovetail profile`` draws."""
