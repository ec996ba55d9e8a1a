"""Other people's integrators, written small, that the papers compare with."""
