"""Rules of CPUs: from a definition and a machine to the steps of its schedule."""
