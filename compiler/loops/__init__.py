"""Loop programs: what every backend compiles."""
