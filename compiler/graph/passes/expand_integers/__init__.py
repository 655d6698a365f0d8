"""Integer operators as general ones, for targets that compute by loops."""
