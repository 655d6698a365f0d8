"""A second reading of the instruction set: decoder and interpreter from `docs/isa.md` alone."""
