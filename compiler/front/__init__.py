"""Front ends: each folder turns one kind of model file into graph IR."""
