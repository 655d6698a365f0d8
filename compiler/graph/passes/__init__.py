"""Graph passes that every target may use."""
