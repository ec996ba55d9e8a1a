"""How a step ends."""
SOLVED, NOT_CONVERGED, SINGULAR, TOO_FAST = 0, 1, 2, 3
