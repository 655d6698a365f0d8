"""Groups of graph nodes as loop programs."""
