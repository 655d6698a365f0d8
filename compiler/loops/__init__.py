"""Loop programs: what every backend but the accelerator compiles."""
