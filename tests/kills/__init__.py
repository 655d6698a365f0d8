"""Commands that are killed at random moments; no damaged file may be read afterwards."""
