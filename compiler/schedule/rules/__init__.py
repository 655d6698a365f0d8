"""Rules of targets: which steps make a definition fast."""
