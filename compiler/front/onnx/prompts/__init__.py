"""Decoders of one token as models of several: whole prompts, a block of tokens a run."""
